//! Draws conversations: a few flows at a time, mostly by the book, now and then not.
//!
//! Nothing here hangs on what the firewall lets through: each side answers whatever the other has sent, so
//! a dropped packet leaves the flow as odd as it would be on a real network.

use fastrand::Rng;

use super::Sent;
use super::wire::{Addr, Ends, Segment, icmp, number, udp};

/// Flows at a time.
const FLOWS: usize = 6;
/// Packets that are remembered for repetition and for quoting in errors.
const MEMORY: usize = 16;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A source of conversations.
#[derive(Debug)]
pub struct Talk {
    rng: Rng,
    ipv6: bool,
    flows: Vec<Flow>,
    past: Vec<Sent>,
}

#[derive(Debug)]
struct Flow {
    /// From the client inside to the server outside; or the other way.
    ends: Ends,
    client_far: bool,
    ports: (u16, u16),
    kind: Kind,
    left: u8,
}

#[derive(Debug)]
enum Kind {
    Tcp(Tcp),
    Udp,
    Echo,
}

/// Both ends of a TCP flow: what each sends next, the client first.
#[derive(Debug)]
struct Tcp {
    next: [u32; 2],
    scaled: bool,
    stamped: bool,
    step: u8,
    /// Both sides send a SYN.
    simultaneous: bool,
    /// Which side closes first.
    closer: usize,
}

impl Talk {
    /// Conversations from a seed.
    #[must_use]
    pub fn new(seed: u64, ipv6: bool) -> Self {
        Self { rng: Rng::with_seed(seed), ipv6, flows: Vec::new(), past: Vec::new() }
    }

    /// The next packet, numbered.
    pub fn next(&mut self, serial: u16) -> Sent {
        while self.flows.len() < FLOWS {
            let flow = self.open();
            self.flows.push(flow);
        }
        let mut sent = match self.rng.u8(..40) {
            0 | 1 => self.again(),
            2 => self.error(),
            _ => None,
        }
        .unwrap_or_else(|| self.step());
        if self.rng.u8(..100) == 0 {
            self.spoil(&mut sent.bytes);
        }
        number(&mut sent.bytes, serial);
        if self.past.len() == MEMORY {
            let at = self.rng.usize(..MEMORY);
            self.past.swap_remove(at);
        }
        self.past.push(sent.clone());
        sent
    }

    fn open(&mut self) -> Flow {
        let client_far = self.rng.u8(..5) == 0;
        let (inside, outside) = (self.address(true), self.address(false));
        let (source, destination) = if client_far { (outside, inside) } else { (inside, outside) };
        let ends = Ends { ipv6: self.ipv6, source, destination };
        // Few ports, so that they are used again.
        let server = [80, 80, 21, 53, 443][self.rng.usize(..5)];
        let ports = (1024 + self.rng.u16(..4), server);
        let kind = match self.rng.u8(..10) {
            0..=5 => Kind::Tcp(Tcp {
                next: [self.rng.u32(..), self.rng.u32(..)],
                scaled: self.rng.bool(),
                stamped: self.rng.bool(),
                step: if self.rng.u8(..8) == 0 { 3 } else { 0 },
                simultaneous: self.rng.u8(..12) == 0,
                closer: self.rng.usize(..2),
            }),
            6..=8 => Kind::Udp,
            _ => Kind::Echo,
        };
        Flow { ends, client_far, ports, kind, left: 2 + self.rng.u8(..24) }
    }

    fn address(&mut self, inside: bool) -> Addr {
        let last = 1 + self.rng.u8(..3);
        let mut addr = [0; 16];
        if self.ipv6 {
            let net = if inside { 1 } else { 2 };
            addr[..6].copy_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, net]);
            addr[15] = last;
        } else {
            let net = if inside { [192, 0, 2] } else { [198, 51, 100] };
            addr[..3].copy_from_slice(&net);
            addr[3] = last;
        }
        addr
    }

    /// One packet of some flow.
    fn step(&mut self) -> Sent {
        let at = self.rng.usize(..self.flows.len());
        let rng = &mut self.rng;
        let flow = &mut self.flows[at];
        flow.left -= 1;
        let sent = match &mut flow.kind {
            Kind::Tcp(tcp) => {
                let (side, segment) = tcp.step(rng, flow.ports, &flow.ends);
                flow.sent(side, |ends| segment.packet(ends))
            }
            Kind::Udp => {
                let side = usize::from(rng.u8(..3) == 0);
                let ports = turned(flow.ports, side);
                let payload = vec![b'u'; rng.usize(..60)];
                flow.sent(side, |ends| udp(ends, ports, &payload))
            }
            Kind::Echo => {
                let side = usize::from(rng.u8(..3) == 0);
                let kinds = if flow.ends.ipv6 { [128, 129] } else { [8, 0] };
                let word = [0, flow.ports.0 as u8, 0, 1];
                let kind = if rng.u8(..20) == 0 { 13 } else { kinds[side] };
                flow.sent(side, |ends| icmp(ends, (kind, 0), word, b"echo"))
            }
        };
        if flow.left == 0 {
            let old = self.flows.swap_remove(at);
            if self.rng.bool() {
                self.flows.push(self.reopened(old));
            }
        }
        sent
    }

    /// The same ports again.
    fn reopened(&self, old: Flow) -> Flow {
        let kind = match old.kind {
            Kind::Tcp(tcp) => {
                let next = tcp.next.map(|next| next.wrapping_add(100_000));
                Kind::Tcp(Tcp { next, step: 0, ..tcp })
            }
            other => other,
        };
        Flow { kind, left: 12, ..old }
    }

    /// An earlier packet once more.
    fn again(&mut self) -> Option<Sent> {
        let len = self.past.len();
        (len > 0).then(|| self.past[self.rng.usize(..len)].clone())
    }

    /// An ICMP error about an earlier packet, from the way or from its destination.
    fn error(&mut self) -> Option<Sent> {
        let about = self.again()?;
        let quoted = &about.bytes;
        let (mut source, mut destination) = ([0; 16], [0; 16]);
        if self.ipv6 {
            source.copy_from_slice(quoted.get(24..40)?);
            destination.copy_from_slice(quoted.get(8..24)?);
        } else {
            source[..4].copy_from_slice(quoted.get(16..20)?);
            destination[..4].copy_from_slice(quoted.get(12..16)?);
        }
        if self.rng.bool() {
            source[if self.ipv6 { 15 } else { 3 }] = 99;
        }
        let ends = Ends { ipv6: self.ipv6, source, destination };
        let kinds = if self.ipv6 { [1, 3, 2, 4] } else { [3, 11, 12, 4] };
        let kind = kinds[self.rng.usize(..4)];
        let least = if self.ipv6 { 48 } else { 28 };
        let cut = if self.rng.u8(..6) == 0 { self.rng.usize(..quoted.len()) } else { quoted.len() };
        let body = &quoted[..cut.max(least).min(quoted.len())];
        let word = if self.ipv6 && kind == 2 { [0, 0, 5, 0] } else { [0; 4] };
        let bytes = icmp(ends, (kind, self.rng.u8(..2)), word, body);
        Some(Sent { from_far: !about.from_far, bytes })
    }

    /// Changes a byte behind the addresses, which leaves the checksum wrong.
    fn spoil(&mut self, bytes: &mut [u8]) {
        let least = if self.ipv6 { 40 } else { 20 };
        if bytes.len() > least {
            let at = self.rng.usize(least..bytes.len());
            bytes[at] = bytes[at].wrapping_add(self.rng.u8(1..));
        }
    }
}

fn turned(ports: (u16, u16), side: usize) -> (u16, u16) {
    if side == 0 { ports } else { (ports.1, ports.0) }
}

impl Flow {
    /// A packet of the client (side 0) or of the server.
    fn sent(&self, side: usize, build: impl FnOnce(Ends) -> Vec<u8>) -> Sent {
        let ends = if side == 0 { self.ends } else { self.ends.reversed() };
        Sent { from_far: self.client_far != (side == 1), bytes: build(ends) }
    }
}

impl Tcp {
    /// The next segment and who sends it.
    fn step(&mut self, rng: &mut Rng, ports: (u16, u16), ends: &Ends) -> (usize, Segment) {
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
            ports: turned(ports, side),
            seq: self.next[side],
            ack: if flags & ACK == 0 { 0 } else { self.next[1 - side] },
            flags,
            window: [0xffff, 0x2000, 100, 0][rng.usize(..20).min(3) * rng.usize(..2)],
            options: self.options(flags, rng),
            payload: payload(rng, ports, ends, side, len),
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
