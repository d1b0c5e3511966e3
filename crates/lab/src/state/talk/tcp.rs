//! A TCP connection: handshake or simultaneous open, data both ways, half-close; and what does not belong.

use fastrand::Rng;

use super::turned;
use crate::state::wire::{Ends, Segment};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Both ends of a TCP flow: what each sends next, the client first.
#[derive(Debug)]
pub(super) struct Tcp {
    next: [u32; 2],
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
        self.step = 0;
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
            ack: if flags & ACK == 0 { 0 } else { self.next[1 - side] },
            flags,
            window: window(rng),
            options: self.options(flags, rng),
            payload: payload(rng, ports[side], &ends[side], side, len),
        };
        let len = segment.payload.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
        if !odd(rng, &mut segment) {
            self.next[side] = self.next[side].wrapping_add(len);
        }
        (side, segment)
    }

    fn options(&self, flags: u8, rng: &mut Rng) -> Vec<u8> {
        let mut options = Vec::new();
        if flags & SYN != 0 {
            options.extend([2, 4, 5, 0xb4, 1, 1, 4, 2]);
            if self.scaled {
                options.extend([1, 3, 3, rng.u8(..16)]);
            }
        } else if rng.u8(..10) == 0 {
            // One selective acknowledgement, of what was sent a while ago.
            options.extend([1, 1, 5, 10]);
            options.extend(self.next[0].wrapping_sub(20).to_be_bytes());
            options.extend(self.next[0].wrapping_sub(10).to_be_bytes());
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
    let port = 1024 + rng.u16(..4);
    let from = if side == 0 { ends.source } else { ends.destination };
    let text = if ends.ipv6 {
        let addr = std::net::Ipv6Addr::from(from);
        match side {
            0 => format!("EPRT |2|{addr}|{port}|\r\n"),
            _ => format!("229 Entering Extended Passive Mode (|||{port}|)\r\n"),
        }
    } else {
        let [a, b, c, d] = [from[0], from[1], from[2], from[3]];
        let [high, low] = port.to_be_bytes();
        match side {
            0 => format!("PORT {a},{b},{c},{d},{high},{low}\r\n"),
            _ => format!("227 Entering Passive Mode ({a},{b},{c},{d},{high},{low})\r\n"),
        }
    };
    text.into_bytes()
}
