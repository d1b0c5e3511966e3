//! Draws conversations: a few flows at a time, mostly by the book, now and then not.
//!
//! Each side answers whatever the other has sent, so a dropped packet leaves the flow as odd as it would be on a
//! real network. Where a packet comes out translated ([`Talk::came`]), the other side answers what it saw.

mod sctp;
mod tcp;

use std::collections::VecDeque;

use fastrand::Rng;

use self::sctp::Sctp;
use self::tcp::Tcp;
use super::stage::Stage;
use super::wire::{self, Addr, Ends, fragment, icmp, looks_unfinished, number, turned, udp};
use super::{Came, Sent};

/// Flows at a time.
const FLOWS: usize = 6;
/// Where TFTP servers listen.
const TFTP: u16 = 69;
/// Packets that are remembered for repetition and for quoting in errors.
const MEMORY: usize = 16;

/// A source of conversations.
#[derive(Debug)]
pub struct Talk {
    rng: Rng,
    stage: Stage,
    ports: Ports,
    flows: Vec<Flow>,
    past: Vec<Sent>,
    came: Vec<Came>,
    /// Fragments that wait to be sent.
    fragments: VecDeque<Sent>,
    /// Number of the flow of the last packet, and which side sent it.
    last: Option<(u64, usize)>,
    opened: u64,
}

/// The ports that conversations use.
#[derive(Debug, Clone)]
pub struct Ports {
    /// Of servers.
    pub servers: Vec<u16>,
    /// How many clients have: few are soon used again, and where sources are translated soon taken, so that the
    /// kernel draws others.
    pub clients: u16,
}

impl Ports {
    /// Of a few servers. `translated`: clients have more.
    #[must_use]
    pub fn usual(translated: bool) -> Self {
        let clients = if translated { 400 } else { 4 };
        Self { servers: vec![80, 80, 21, 53, 443], clients }
    }

    /// More of FTP, TFTP, and the ports that FTP expects connections to.
    pub fn help(&mut self) {
        self.servers.extend([21, 21, TFTP, TFTP, TFTP, 1024, 1025, 1026, 1027]);
        self.clients = 40;
    }
}

#[derive(Debug)]
struct Flow {
    number: u64,
    /// From the client to the server, as the client sees them.
    ends: Ends,
    client_far: bool,
    ports: (u16, u16),
    /// The same as the server sees them, and the device behind which it lives.
    seen: Option<AtServer>,
    kind: Kind,
    left: u8,
}

#[derive(Debug, Clone, Copy)]
struct AtServer {
    ends: Ends,
    ports: (u16, u16),
    server_far: bool,
}

#[derive(Debug)]
enum Kind {
    Tcp(Tcp),
    Sctp(Sctp),
    Udp,
    Echo,
}

impl Talk {
    /// Conversations from a seed.
    #[must_use]
    pub fn new(seed: u64, stage: Stage, ports: Ports) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            stage,
            ports,
            flows: Vec::new(),
            past: Vec::new(),
            came: Vec::new(),
            fragments: VecDeque::new(),
            last: None,
            opened: 0,
        }
    }

    /// The next packet, numbered; fragments keep the number of their packet.
    pub fn next(&mut self, serial: u16) -> Sent {
        if let Some(fragment) = self.fragments.pop_front() {
            return fragment;
        }
        while self.flows.len() < FLOWS {
            let flow = self.open();
            self.flows.push(flow);
        }
        self.last = None;
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
        remember(&mut self.rng, &mut self.past, sent.clone());
        if self.rng.u8(..14) == 0 {
            self.take_apart(&sent, serial);
        }
        self.fragments.pop_front().unwrap_or(sent)
    }

    /// Tells what came out of the kernel for the last packet.
    pub fn came(&mut self, came: &Came) {
        remember(&mut self.rng, &mut self.came, came.clone());
        let Some((number, side)) = self.last else { return };
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.number == number) else { return };
        if let (0, Some((ends, ports))) = (side, read(&came.bytes)) {
            flow.seen = Some(AtServer { ends, ports, server_far: came.by_far });
        }
        if let (Kind::Tcp(tcp), Some(end)) = (&mut flow.kind, wire::end_of_segment(&came.bytes)) {
            tcp.came(side, end);
        }
    }

    fn open(&mut self) -> Flow {
        let client_far = self.rng.u8(..5) == 0;
        let source = self.host(client_far);
        let destination = match self.rng.u8(..6) {
            0 if !self.stage.fronts.is_empty() => {
                self.stage.fronts[self.rng.usize(..self.stage.fronts.len())]
            }
            _ => self.host(!client_far),
        };
        let ends = Ends { ipv6: self.stage.ipv6(), source, destination };
        let server = self.ports.servers[self.rng.usize(..self.ports.servers.len())];
        let ports = (1024 + self.rng.u16(..self.ports.clients), server);
        let kind = match self.rng.u8(..11) {
            0..=5 => Kind::Tcp(Tcp::new(&mut self.rng)),
            6..=8 => Kind::Udp,
            9 => Kind::Sctp(Sctp::new(&mut self.rng)),
            _ => Kind::Echo,
        };
        self.opened += 1;
        let left = 2 + self.rng.u8(..24);
        Flow { number: self.opened, ends, client_far, ports, seen: None, kind, left }
    }

    fn host(&mut self, far: bool) -> Addr {
        let hosts = &self.stage.hosts[usize::from(far)];
        hosts[self.rng.usize(..hosts.len())]
    }

    /// One packet of some flow.
    fn step(&mut self) -> Sent {
        loop {
            let at = self.rng.usize(..self.flows.len());
            let rng = &mut self.rng;
            let flow = &mut self.flows[at];
            flow.left -= 1;
            let (side, sent) = flow.step(rng);
            self.last = Some((flow.number, side));
            // Nobody else speaks for the firewall, or for an address that only rules know.
            let is_front = self.stage.fronts.contains(&flow.ends.destination);
            let is_voiced = side == 0 || flow.seen.is_some() || !is_front;
            if flow.left == 0 {
                let mut old = self.flows.swap_remove(at);
                match self.rng.bool() {
                    true => old.again(&mut self.rng),
                    false => old = self.open(),
                }
                self.flows.push(old);
            }
            if is_voiced {
                return sent;
            }
        }
    }

    /// An earlier packet once more.
    fn again(&mut self) -> Option<Sent> {
        let len = self.past.len();
        (len > 0).then(|| self.past[self.rng.usize(..len)].clone())
    }

    /// An ICMP error about an earlier packet, as it was sent or as it came out, from the way or from its
    /// destination.
    fn error(&mut self) -> Option<Sent> {
        let about = match self.rng.u8(..3) {
            0 => self.again().map(|sent| Came { by_far: !sent.from_far, bytes: sent.bytes }),
            _ if self.came.is_empty() => None,
            _ => Some(self.came[self.rng.usize(..self.came.len())].clone()),
        }?;
        let quoted = &about.bytes;
        let (ends, _) = read(quoted)?;
        let mut ends = ends.reversed();
        if self.rng.bool() || self.stage.fronts.contains(&ends.source) {
            ends.source[if ends.ipv6 { 15 } else { 3 }] = 99;
        }
        let kinds = if ends.ipv6 { [1, 3, 2, 4] } else { [3, 11, 12, 4] };
        let kind = kinds[self.rng.usize(..4)];
        let least = if ends.ipv6 { 48 } else { 28 };
        let cut = if self.rng.u8(..6) == 0 { self.rng.usize(..quoted.len()) } else { quoted.len() };
        let body = &quoted[..cut.max(least).min(quoted.len())];
        let word = if ends.ipv6 && kind == 2 { [0, 0, 5, 0] } else { [0; 4] };
        let bytes = icmp(ends, kind, self.rng.u8(..2), word, body);
        Some(Sent::at_once(about.by_far, bytes))
    }

    /// Changes a byte after the addresses, which leaves the checksum wrong: and once more, should it look as if it were
    /// left to a network card. The kernel is told by the device whether it was, a capture is not.
    fn spoil(&mut self, bytes: &mut [u8]) {
        let least = if self.stage.ipv6() { 40 } else { 20 };
        while bytes.len() > least {
            let at = self.rng.usize(least..bytes.len());
            bytes[at] = bytes[at].wrapping_add(self.rng.u8(1..));
            if !looks_unfinished(bytes) {
                break;
            }
        }
    }

    /// Fragments of a packet to send in its place: in order or not, one twice, one missing, or overlapping.
    fn take_apart(&mut self, sent: &Sent, serial: u16) {
        let header = if self.stage.ipv6() { 40 } else { 20 };
        let len = sent.bytes.len() - header;
        if len <= 8 {
            return;
        }
        let mut from = 0;
        let mut pieces = Vec::new();
        while from < len {
            let to = (from + 8 * self.rng.usize(1..6)).min(len);
            pieces.push((from, to, to < len));
            from = to;
        }
        let odd = self.rng.u8(..12);
        let any = self.rng.usize(..pieces.len());
        match odd {
            0 => pieces.push(pieces[any]),
            1 => drop(pieces.remove(any)),
            2 if pieces[any].0 >= 8 => pieces[any].0 -= 8,
            _ => {}
        }
        if self.rng.bool() {
            self.rng.shuffle(&mut pieces);
        }
        let from_far = sent.from_far;
        self.fragments.extend(pieces.into_iter().map(|(from, to, more)| {
            Sent::at_once(from_far, fragment(&sent.bytes, serial, from, to, more))
        }));
    }
}

fn remember<T>(rng: &mut Rng, past: &mut Vec<T>, news: T) {
    if past.len() == MEMORY {
        let at = rng.usize(..MEMORY);
        past.swap_remove(at);
    }
    past.push(news);
}

/// Addresses and ports, or the identifier of an ICMP query as both, of a whole packet.
fn read(bytes: &[u8]) -> Option<(Ends, (u16, u16))> {
    let ipv6 = bytes.first()? >> 4 == 6;
    let (at, len, upper, protocol) =
        if ipv6 { (8, 16, 40, *bytes.get(6)?) } else { (12, 4, 20, *bytes.get(9)?) };
    let addr = |at: usize| {
        let mut addr = [0; 16];
        addr[..len].copy_from_slice(bytes.get(at..at + len)?);
        Some(addr)
    };
    let ends = Ends { ipv6, source: addr(at)?, destination: addr(at + len)? };
    let word = |at: usize| bytes.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
    let ports = match protocol {
        1 | 58 => (word(upper + 4), word(upper + 4)),
        _ => (word(upper), word(upper + 2)),
    };
    Some((ends, ports))
}

impl Flow {
    fn step(&mut self, rng: &mut Rng) -> (usize, Sent) {
        let ipv6 = self.ends.ipv6;
        match &mut self.kind {
            Kind::Tcp(tcp) => {
                let speaks = [self.ends, self.seen.map_or(self.ends, |seen| seen.ends)];
                let ports = [self.ports, self.seen.map_or(self.ports, |seen| seen.ports)];
                let (side, segment) = tcp.step(rng, ports, speaks);
                (side, self.sent(side, |ends, _| segment.packet(ends)))
            }
            Kind::Sctp(sctp) => {
                let (side, mut header, chunks) = sctp.step(rng, self.ports);
                let build = |ends, ports| {
                    header.ports = turned(ports, side);
                    wire::sctp(ends, header, &chunks)
                };
                (side, self.sent(side, build))
            }
            Kind::Udp if self.ports.1 == TFTP => self.tftp(rng),
            Kind::Udp => {
                let side = usize::from(rng.u8(..3) == 0);
                let payload = vec![b'u'; rng.usize(..60)];
                (side, self.sent(side, |ends, ports| udp(ends, turned(ports, side), &payload)))
            }
            Kind::Echo => {
                let side = usize::from(rng.u8(..3) == 0);
                let kinds = if ipv6 { [128, 129] } else { [8, 0] };
                let kind = if rng.u8(..20) == 0 { 13 } else { kinds[side] };
                let build = |ends, ports: (u16, u16)| {
                    let [high, low] = ports.0.to_be_bytes();
                    icmp(ends, kind, 0, [high, low, 0, 1], b"echo")
                };
                (side, self.sent(side, build))
            }
        }
    }

    /// A request, or a packet of the transfer, for which the server has a port of its own.
    fn tftp(&self, rng: &mut Rng) -> (usize, Sent) {
        let transfer = 3000 + (self.number % 50) as u16;
        match rng.u8(..4) {
            0 => (0, self.sent(0, |ends, ports| udp(ends, ports, &[0, rng.u8(..4), b'f', 0]))),
            1 => {
                let acknowledges = [0, 4, 0, 1];
                (0, self.sent(0, |ends, ports| udp(ends, (ports.0, transfer), &acknowledges)))
            }
            2 => (1, self.sent(1, |ends, ports| udp(ends, (TFTP, ports.0), &[0, 5, 0, 0]))),
            _ => (1, self.sent(1, |ends, ports| udp(ends, (transfer, ports.0), &[0, 3, 0, 1]))),
        }
    }

    /// The same ports again.
    fn again(&mut self, rng: &mut Rng) {
        self.left = 12;
        match &mut self.kind {
            Kind::Tcp(tcp) => tcp.again(),
            Kind::Sctp(sctp) => sctp.again(rng),
            Kind::Udp | Kind::Echo => {}
        }
    }

    /// A packet of the client (side 0) or of the server, each with the addresses and the client's and server's
    /// ports that it knows.
    fn sent(&self, side: usize, build: impl FnOnce(Ends, (u16, u16)) -> Vec<u8>) -> Sent {
        let Some(seen) = self.seen.filter(|_| side == 1) else {
            let ends = if side == 0 { self.ends } else { self.ends.reversed() };
            return Sent::at_once(self.client_far != (side == 1), build(ends, self.ports));
        };
        Sent::at_once(seen.server_far, build(seen.ends.reversed(), seen.ports))
    }
}
