//! A TCP connection: handshake or simultaneous open, data both ways, half-close; and what does not belong.

use fastrand::Rng;

use crate::state::wire::{Ends, Segment, turned};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Both ends of a TCP flow: what each sends next, the client first.
#[derive(Debug)]
pub(super) struct Tcp {
    next: [u32; 2],
    /// Behind the last byte that each sent last.
    sent: [u32; 2],
    /// How far ahead of what each sent is what the other saw.
    ahead: [u32; 2],
    scaled: bool,
    stamped: bool,
    step: u8,
    /// Both sides send a SYN.
    simultaneous: bool,
    /// Which side closes first.
    closer: usize,
}

impl Tcp {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self {
            next: [rng.u32(..), rng.u32(..)],
            sent: [0; 2],
            ahead: [0; 2],
            scaled: rng.bool(),
            stamped: rng.bool(),
            step: if rng.u8(..8) == 0 { 3 } else { 0 },
            simultaneous: rng.u8(..12) == 0,
            closer: rng.usize(..2),
        }
    }

    /// The same ports again.
    pub(super) fn again(&mut self) {
        self.next = self.next.map(|next| next.wrapping_add(100_000));
        self.ahead = [0; 2];
        self.step = 0;
    }

    /// What this side sent last was seen to end here.
    pub(super) fn came(&mut self, side: usize, end: u32) {
        self.ahead[side] = end.wrapping_sub(self.sent[side]);
    }

    /// The next segment and who sends it: the client, or the server, each knowing its own idea of ports and ends.
    pub(super) fn step(
        &mut self,
        rng: &mut Rng,
        ports: [(u16, u16); 2],
        ends: [Ends; 2],
    ) -> (usize, Segment) {
        let (side, flags, len) = match (self.step, self.simultaneous) {
            (0, _) => (0, SYN, 0),
            (1, true) => (1, SYN, 0),
            (1, false) => (1, SYN | ACK, 0),
            (2, true) => (rng.usize(..2), SYN | ACK, 0),
            (2, false) => (0, ACK, 0),
            (3..=10, _) => (rng.usize(..2), ACK | (rng.u8(..2) * 8), rng.usize(..50)),
            (11, _) => (self.closer, FIN | ACK, 0),
            (12, _) => (1 - self.closer, ACK, rng.usize(..2) * 10),
            (13, _) => (1 - self.closer, FIN | ACK, 0),
            _ => (self.closer, ACK, 0),
        };
        self.step += 1;
        if (4..10).contains(&self.step) && rng.u8(..6) == 0 {
            self.step = 11;
        }
        let mut segment = Segment {
            ports: turned(ports[side], side),
            seq: self.next[side],
            ack: if flags & ACK == 0 { 0 } else { self.seen_by(side) },
            flags,
            window: window(rng),
            options: self.options(flags, side, rng),
            payload: payload(rng, ports[side], &ends[side], side, len),
        };
        let payload = segment.payload.len() as u32;
        let len = payload + u32::from(flags & (SYN | FIN) != 0);
        if !odd(rng, &mut segment) {
            self.next[side] = self.next[side].wrapping_add(len);
        }
        self.sent[side] = segment.seq.wrapping_add(payload);
        (side, segment)
    }

    /// What this side expects next.
    fn seen_by(&self, side: usize) -> u32 {
        self.next[1 - side].wrapping_add(self.ahead[1 - side])
    }

    fn options(&self, flags: u8, side: usize, rng: &mut Rng) -> Vec<u8> {
        let mut options = Vec::new();
        if flags & SYN != 0 {
            options.extend([2, 4, 5, 0xb4, 1, 1, 4, 2]);
            if self.scaled {
                options.extend([1, 3, 3, rng.u8(..16)]);
            }
        } else if rng.u8(..10) == 0 {
            // One selective acknowledgement, of what was sent a while ago.
            options.extend([1, 1, 5, 10]);
            options.extend(self.seen_by(side).wrapping_sub(20).to_be_bytes());
            options.extend(self.seen_by(side).wrapping_sub(10).to_be_bytes());
        }
        if self.stamped {
            options.extend([1, 1, 8, 10, 0, 0, 0, self.step, 0, 0, 0, 1]);
        }
        options
    }
}

/// Mostly wide, seldom closed.
fn window(rng: &mut Rng) -> u16 {
    match rng.u8(..20) {
        0 => 0,
        1..=3 => 100,
        4..=8 => 0x2000,
        _ => 0xffff,
    }
}

/// Makes a segment one that does not belong, sometimes; whether it did.
fn odd(rng: &mut Rng, segment: &mut Segment) -> bool {
    match rng.u8(..40) {
        // Out of the window, by little and by much.
        0 => segment.seq = segment.seq.wrapping_add(rng.u32(1..200_000)),
        1 => segment.seq = segment.seq.wrapping_sub(rng.u32(1..200_000)),
        2 => segment.ack = segment.ack.wrapping_add(rng.u32(1..200_000)),
        3 => segment.ack = segment.ack.wrapping_sub(rng.u32(1..200_000)),
        4 => segment.flags = RST,
        5 => segment.flags = RST | ACK,
        6 => {
            segment.flags = RST;
            segment.seq = segment.seq.wrapping_add(rng.u32(..100));
        }
        7 => segment.flags = SYN,
        8 => segment.flags = SYN | ACK,
        9 => segment.flags = rng.u8(..),
        _ => return false,
    }
    true
}

/// Data; on port 21 what makes an FTP helper expect a flow.
fn payload(rng: &mut Rng, ports: (u16, u16), ends: &Ends, side: usize, len: usize) -> Vec<u8> {
    if ports.1 != 21 || len == 0 {
        return vec![b'd'; len];
    }
    let port = port(rng);
    let from = if side == 0 { ends.source } else { ends.destination };
    let text = match (ends.ipv6, side, rng.u8(..4)) {
        (true, 0, _) => format!("EPRT |2|{}|{port}|\r\n", std::net::Ipv6Addr::from(from)),
        (false, 0, 0) => {
            format!("eprt !1!{}.{}.{}.{}!{port}!\r\n", from[0], from[1], from[2], from[3])
        }
        (false, 0, kind) => format!("PORT {}\r\n", six(from, port, kind == 1)),
        (true, _, _) | (false, _, 0) => {
            format!("229 Entering Extended Passive Mode (|||{port}|)\r\n")
        }
        (false, _, kind) => {
            format!("227 Entering Passive Mode ({})\r\n", six(from, port, kind == 1))
        }
    };
    match rng.u8(..12) {
        0 => b"NOOP\r\n".to_vec(),
        _ => text.into_bytes(),
    }
}

/// Mostly one of the few that connections then go to; seldom one that the kernel treats as no other.
fn port(rng: &mut Rng) -> u16 {
    match rng.u8(..24) {
        0 => [0, 65_533, 65_534, 65_535][rng.usize(..4)],
        1..=6 => rng.u16(1024..),
        _ => 1024 + rng.u16(..4),
    }
}

/// An address and a port as six numbers, of two digits and more where they are padded.
fn six([a, b, c, d, ..]: [u8; 16], port: u16, padded: bool) -> String {
    let [high, low] = port.to_be_bytes();
    match padded {
        true => format!("{a:02},{b:02},{c:04},{d:02},{high:02},{low:03}"),
        false => format!("{a},{b},{c},{d},{high},{low}"),
    }
}
