//! Frames and ARP packets.

use super::{Frames, MACS, PORTS, V4};

impl Frames {
    /// A frame that a bridge forwards.
    pub fn frame(&mut self) -> Vec<u8> {
        let destination = self.mac();
        let mut frame = [destination, self.pick(&MACS)].concat();
        if self.one_in(5) {
            let id = self.pick(&[0_u16, 1, 5, 100]);
            let tci = id | u16::from(self.pick(&[0_u8, 3])) << 13;
            frame.extend([0x81, 0]);
            frame.extend(tci.to_be_bytes());
        }
        let (kind, mut body) = match self.rng.u8(..8) {
            0 | 1 => (0x0800, self.ip_body()),
            2 | 3 => (0x86dd, self.ip6_body()),
            4 => (0x0806, self.arp_body()),
            5 => (0x8035, self.arp_body()),
            6 => (0, self.llc_body()),
            _ => (self.pick(&[0x88cc, 0x0600, 0x9000]), vec![0x61; self.rng.usize(..40)]),
        };
        if self.one_in(12) {
            body.truncate(self.rng.usize(..body.len() + 1));
        }
        if self.one_in(12) {
            body.extend([0; 9]);
        }
        // What is not bounded by the kernel's match must be there: it reads on.
        if kind == 0 && body.len() < 12 {
            body.resize(12, 0x33);
        }
        let kind = if kind == 0 { body.len() as u16 } else { kind };
        frame.extend(kind.to_be_bytes());
        frame.extend(body);
        // A tag must have something after it, or the kernel drops the frame.
        frame.resize(frame.len().max(20), 0);
        frame
    }

    fn ip_body(&mut self) -> Vec<u8> {
        let protocol = self.pick(&[6, 17, 1, 2, 47, 132]);
        let words = if self.one_in(8) { 6 } else { 5 };
        let mut body =
            vec![0x40 + words, self.pick(&[0, 0x10]), 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
        if self.one_in(8) {
            body[7] = 1;
        }
        body.extend(self.pick(&V4));
        body.extend(self.pick(&V4));
        body.resize(usize::from(words) * 4, 1);
        self.upper_body(protocol, &mut body);
        let len = body.len() as u16;
        body[2..4].copy_from_slice(&len.to_be_bytes());
        body
    }

    fn ip6_body(&mut self) -> Vec<u8> {
        let protocol = self.pick(&[6, 17, 58, 132, 59]);
        let mut chain = protocol;
        let mut extensions = Vec::new();
        for _ in 0..self.rng.usize(..3) {
            let kind = self.pick(&[0, 60, 43, 44, 51]);
            let mut header = vec![chain, 0, 0, 0, 0, 0, 0, 0];
            match kind {
                44 => header[3] = self.pick(&[0, 1, 8, 9]),
                51 => {
                    header[1] = 1;
                    header.extend([0; 4]);
                }
                _ => {}
            }
            extensions.splice(0..0, header);
            chain = kind;
        }
        let class = self.pick(&[0, 0x10_u8]);
        let mut body = vec![0x60 | class >> 4, class << 4, 0, 0, 0, 0, chain, 64];
        body.extend(self.v6());
        body.extend(self.v6());
        body.extend(extensions);
        self.upper_body(protocol, &mut body);
        let len = (body.len() - 40) as u16;
        body[4..6].copy_from_slice(&len.to_be_bytes());
        body
    }

    fn upper_body(&mut self, protocol: u8, body: &mut Vec<u8>) {
        match protocol {
            1 | 58 => body.extend([self.pick(&[0, 3, 8, 9, 128, 129]), self.pick(&[0, 1, 2])]),
            2 => body.extend([self.pick(&[0x11, 0x12, 0x16, 0x17]), 0]),
            _ => {
                body.extend(self.pick(&PORTS).to_be_bytes());
                body.extend(self.pick(&PORTS).to_be_bytes());
            }
        }
        body.resize(body.len() + self.pick(&[0_usize, 2, 6, 16]), 0);
    }

    fn arp_body(&mut self) -> Vec<u8> {
        let (hardware, kind) = (self.pick(&[1, 1, 1, 6]), self.pick(&[[8, 0], [8, 0], [8, 6]]));
        let lengths = self.pick(&[[6, 4], [6, 4], [6, 4], [8, 4], [6, 16]]);
        let mut body = vec![0, hardware];
        body.extend(kind);
        body.extend(lengths);
        body.extend([0, self.pick(&[1, 1, 2, 9, 77])]);
        let sender = self.pick(&V4);
        for addr in [sender, if self.one_in(3) { sender } else { self.pick(&V4) }] {
            body.extend(self.mac());
            body.extend(&[0; 2][..usize::from(lengths[0] - 6)]);
            body.extend(addr);
            body.extend(&[0; 12][..usize::from(lengths[1] - 4)]);
        }
        body
    }

    fn llc_body(&mut self) -> Vec<u8> {
        match self.rng.u8(..4) {
            0 => [&[0xaa, 0xaa, self.pick(&[3, 0]), 0, 0, 0][..], &[0x08, 0, 0x20, 0, 0x08, 0, 9]]
                .concat(),
            1 => vec![
                self.pick(&[0x42, 0xaa, 0x43]),
                self.pick(&[0x42, 0xaa]),
                3,
                0,
                0,
                0x20,
                0,
                1,
                2,
                3,
                4,
                5,
            ],
            _ => {
                let mut body = vec![0x42, 0x42, 3, 0, 0, 0, self.pick(&[0, 0, 0, 0x80, 2])];
                body.push(self.pick(&[0, 1, 3, 0x80]));
                let bridge = |frames: &mut Self| {
                    let mut id = frames.pick(&[[0, 1], [0x80, 0], [1, 0]]).to_vec();
                    id.extend(frames.pick(&MACS));
                    id
                };
                body.extend(bridge(self));
                body.extend([0, 0, self.pick(&[0, 1, 0x80]), self.pick(&[0, 1])]);
                body.extend(bridge(self));
                for _ in 0..5 {
                    body.extend(self.pick(&[[0, 0], [0, 1], [1, 0], [0x80, 0]]));
                }
                body
            }
        }
    }

    /// An ARP packet that a host takes in.
    pub fn arp_frame(&mut self) -> Vec<u8> {
        let destination = if self.one_in(2) { [0xff; 6] } else { crate::scene::NEAR_MAC };
        let mut frame = [destination, self.pick(&MACS)].concat();
        frame.extend([0x08, 0x06]);
        loop {
            let body = self.arp_body();
            // Others never get to the rules.
            if body[4..6] == [6, 4] {
                frame.extend(body);
                break;
            }
        }
        frame.extend(&[0; 18][..if self.one_in(3) { 18 } else { 0 }]);
        frame
    }
}
