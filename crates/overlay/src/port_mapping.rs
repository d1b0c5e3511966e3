//! [`PortMapping`]: a client of PCP and NAT-PMP, by which a node's router maps a UDP port of its own to the node's tunnel.
//!
//! Peers then reach the node at that port, whatever ports the router gives what the node sends. PCP is asked first; a router
//! that answers with an error of version 0, or not at all, is asked by NAT-PMP. A mapping is renewed at half of its lifetime.
//!
//! Contract: pure; time, randomness and bytes are passed in. Nothing panics on input. Who calls it passes what came from the
//! router's port [`ROUTER_PORT`] alone.
//!
//! Source: RFC 6887 (PCP: sections 7, 8, 11), RFC 6886 (NAT-PMP: section 3). Numbers are big-endian.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

use crate::limits::SECOND;

/// The UDP port at which routers are asked.
pub const ROUTER_PORT: u16 = 5351;
/// Length of the longest answer that is read, in bytes.
pub const LONGEST_ANSWER: usize = 1_100;

/// Seconds for which a mapping is asked for.
const LIFETIME: u32 = 7_200;
/// Seconds between which lifetimes of answers are taken to lie.
const LIFETIMES: std::ops::RangeInclusive<u32> = 120..=86_400;
/// Requests by one protocol, each waiting twice as long as the last, from [`FIRST_WAIT`] on.
const ATTEMPTS: u32 = 4;
const FIRST_WAIT: u64 = SECOND / 4;
/// Time after which a router is asked again that maps no port.
const REST: u64 = 600 * SECOND;

/// UDP, as PCP numbers protocols.
const UDP: u8 = 17;

/// A client of PCP and NAT-PMP.
#[derive(Debug)]
pub struct PortMapping {
    nonce: [u8; 12],
    /// The node's own address and its tunnel's port, while there is a router to ask.
    inner: Option<SocketAddrV4>,
    protocol: Protocol,
    /// Requests since the last answer.
    attempts: u32,
    /// When the next request is due.
    due: u64,
    /// The router's own address, as NAT-PMP tells it apart.
    router: Option<Ipv4Addr>,
    mapped: Option<Mapped>,
}

/// A mapping: the outer end, and when it ends.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    outer: SocketAddrV4,
    until: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Pcp,
    NatPmp,
}

impl PortMapping {
    /// A client without a router. `nonce` is drawn at random.
    #[must_use]
    pub fn new(nonce: [u8; 12]) -> Self {
        let (protocol, due) = (Protocol::Pcp, u64::MAX);
        Self { nonce, inner: None, protocol, attempts: 0, due, router: None, mapped: None }
    }

    /// The node's address at the router and its tunnel's port; `None` where there is no router to ask. Where it is another one than
    /// before, all begins anew.
    pub fn set_inner(&mut self, inner: Option<SocketAddrV4>, now: u64) {
        if inner == self.inner {
            return;
        }
        *self = Self { inner, ..Self::new(self.nonce) };
        if inner.is_some() {
            self.due = now;
        }
    }

    /// The router's end of the mapping, if there is one.
    #[must_use]
    pub fn outer(&self, now: u64) -> Option<SocketAddrV4> {
        self.mapped.filter(|mapped| now < mapped.until).map(|mapped| mapped.outer)
    }

    /// The datagrams that the router is to get now.
    pub fn requests(&mut self, now: u64) -> Vec<Vec<u8>> {
        let Some(inner) = self.inner.filter(|_| self.due <= now) else { return Vec::new() };
        if self.attempts >= ATTEMPTS {
            self.attempts = 0;
            match self.protocol {
                Protocol::Pcp => self.protocol = Protocol::NatPmp,
                Protocol::NatPmp => {
                    self.rest(now);
                    return Vec::new();
                }
            }
        }
        self.due = now.saturating_add(FIRST_WAIT << self.attempts);
        self.attempts += 1;
        self.asks(inner, LIFETIME)
    }

    /// The datagrams that end the mapping, if there is one.
    #[must_use]
    pub fn farewell(&self) -> Vec<Vec<u8>> {
        match (self.inner, self.mapped) {
            (Some(inner), Some(_)) => self.asks(inner, 0),
            _ => Vec::new(),
        }
    }

    /// Takes what the router answers.
    pub fn receive(&mut self, answer: &[u8], now: u64) {
        if self.inner.is_none() || self.attempts == 0 {
            return;
        }
        match self.protocol {
            Protocol::Pcp => self.receive_pcp(answer, now),
            Protocol::NatPmp => self.receive_nat_pmp(answer, now),
        }
    }

    fn receive_pcp(&mut self, answer: &[u8], now: u64) {
        let Some(inner) = self.inner else { return };
        // A server of NAT-PMP alone answers so, and one of PCP that knows other versions alone.
        if answer.first().is_some_and(|version| *version == 0) {
            if answer.get(1).is_some_and(|opcode| *opcode >= 128) {
                (self.protocol, self.attempts, self.due) = (Protocol::NatPmp, 0, now);
            }
            return;
        }
        let Some([2, 0x81, _, result]) = field(answer, 0) else { return };
        let asked = (self.nonce, [UDP], inner.port().to_be_bytes());
        let echoed = field(answer, 24).zip(field(answer, 36)).zip(field(answer, 40));
        if echoed.is_some_and(|((nonce, protocol), port)| (nonce, protocol, port) != asked) {
            return;
        }
        let (lifetime, port) = (field(answer, 4), field(answer, 42));
        let address = field::<16>(answer, 44).and_then(|it| Ipv6Addr::from(it).to_ipv4_mapped());
        match (result, lifetime, address.zip(port)) {
            (0, Some(lifetime), Some((address, port))) => {
                let outer = SocketAddrV4::new(address, u16::from_be_bytes(port));
                self.map(outer, u32::from_be_bytes(lifetime), now);
            }
            _ => self.rest(now),
        }
    }

    fn receive_nat_pmp(&mut self, answer: &[u8], now: u64) {
        let Some(inner) = self.inner else { return };
        match (field(answer, 0), field::<2>(answer, 2).map(u16::from_be_bytes)) {
            (Some([0, 128]), Some(0)) => self.router = field::<4>(answer, 8).map(Ipv4Addr::from),
            (Some([0, 129]), Some(0)) => {
                if field(answer, 8) != Some(inner.port().to_be_bytes()) {
                    return;
                }
                let (port, lifetime) = (field(answer, 10), field(answer, 12));
                // The router's address is asked for in the same breath; without it the request is repeated.
                if let (Some(router), Some(port), Some(lifetime)) = (self.router, port, lifetime) {
                    let outer = SocketAddrV4::new(router, u16::from_be_bytes(port));
                    self.map(outer, u32::from_be_bytes(lifetime), now);
                }
            }
            (Some([0, 128 | 129]), Some(1..)) => self.rest(now),
            _ => {}
        }
    }

    fn map(&mut self, outer: SocketAddrV4, lifetime: u32, now: u64) {
        if outer.ip().is_unspecified() || outer.port() == 0 || lifetime == 0 {
            return self.rest(now);
        }
        let lifetime = u64::from(lifetime.clamp(*LIFETIMES.start(), *LIFETIMES.end())) * SECOND;
        self.mapped = Some(Mapped { outer, until: now.saturating_add(lifetime) });
        (self.attempts, self.due) = (0, now.saturating_add(lifetime / 2));
    }

    /// Asks nothing for a while, and then by PCP again. A mapping that there is stays to its end.
    fn rest(&mut self, now: u64) {
        (self.protocol, self.attempts) = (Protocol::Pcp, 0);
        self.due = now.saturating_add(REST);
    }

    fn asks(&self, inner: SocketAddrV4, lifetime: u32) -> Vec<Vec<u8>> {
        let outer = self.mapped.map(|mapped| mapped.outer);
        // What it had, or the same port as inside; NAT-PMP wants 0 where a mapping is to end.
        let port = match lifetime {
            0 if self.protocol == Protocol::NatPmp => 0,
            _ => outer.map_or(inner.port(), |outer| outer.port()),
        };
        match self.protocol {
            Protocol::Pcp => {
                let address = outer.map_or(Ipv4Addr::UNSPECIFIED, |outer| *outer.ip());
                vec![pcp(&self.nonce, inner, SocketAddrV4::new(address, port), lifetime)]
            }
            Protocol::NatPmp => {
                let mut map = vec![0, 1, 0, 0];
                map.extend(inner.port().to_be_bytes());
                map.extend(port.to_be_bytes());
                map.extend(lifetime.to_be_bytes());
                vec![vec![0, 0], map]
            }
        }
    }
}

/// A MAP request of PCP.
fn pcp(nonce: &[u8; 12], inner: SocketAddrV4, outer: SocketAddrV4, lifetime: u32) -> Vec<u8> {
    let mut request = vec![2, 1, 0, 0];
    request.extend(lifetime.to_be_bytes());
    request.extend(inner.ip().to_ipv6_mapped().octets());
    request.extend(nonce);
    request.extend([UDP, 0, 0, 0]);
    request.extend(inner.port().to_be_bytes());
    request.extend(outer.port().to_be_bytes());
    request.extend(outer.ip().to_ipv6_mapped().octets());
    request
}

/// Bytes of an answer from a place on.
fn field<const N: usize>(answer: &[u8], at: usize) -> Option<[u8; N]> {
    answer.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests;
