//! A router that translates: which port it gives, what it lets in, and what it keeps of what comes for itself. Ports are treated
//! as nftables was measured to on Linux 6.18 (RFC 4787 has the words).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use overlay::limits::SECOND;

/// How long most routers remember what nothing passes through.
const FORGETS: u64 = 30 * SECOND;

/// Which port a router gives, and what it lets in; `pairs.txt` has them in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Cone,
    Restricted,
    Plain,
    Open,
    Range,
    Address,
    Sequential,
    Random,
    /// No translation; what answers is let in.
    Firewall,
    /// A firewall before a node that has IPv6 alone.
    Sole,
    Brief,
}

pub(crate) struct Router {
    kind: Kind,
    pub(crate) address: IpAddr,
    /// Ports that were given, by inside and destination, and when something passed last.
    given: BTreeMap<(SocketAddr, SocketAddr), (SocketAddr, u64)>,
    /// The port that each socket inside was given last for another destination, which Linux tries first.
    last: BTreeMap<SocketAddr, (SocketAddr, SocketAddr)>,
    /// What came for the router itself: port and source, and when.
    own: BTreeMap<(u16, SocketAddr), u64>,
    next: u16,
}

impl Router {
    pub(crate) fn new(kind: Kind, address: IpAddr) -> Self {
        Self {
            kind,
            address,
            given: BTreeMap::new(),
            last: BTreeMap::new(),
            own: BTreeMap::new(),
            next: 0,
        }
    }

    fn forget(&mut self, now: u64) {
        let forgets = if self.kind == Kind::Brief { 2 * SECOND } else { FORGETS };
        self.given.retain(|_, (_, at)| now - *at < forgets);
        self.own.retain(|_, at| now - *at < FORGETS);
    }

    /// Where a datagram from inside comes from, outside.
    pub(crate) fn out(&mut self, from: SocketAddr, to: SocketAddr, now: u64) -> SocketAddr {
        self.forget(now);
        let place = match self.given.get(&(from, to)) {
            Some((place, _)) => *place,
            None => self.give(from, to),
        };
        self.given.insert((from, to), (place, now));
        place
    }

    fn give(&mut self, from: SocketAddr, to: SocketAddr) -> SocketAddr {
        self.next = self.next.wrapping_add(1);
        // Far apart, and never the same twice.
        let any = 20_000 + self.next.wrapping_mul(7_919) % 20_000;
        let port = match self.kind {
            Kind::Firewall | Kind::Sole => return from,
            Kind::Random => any,
            Kind::Sequential => 41_000 + 2 * (self.next % 64),
            Kind::Address => {
                let mut known =
                    self.given.iter().filter(|((of, at), _)| *of == from && at.ip() == to.ip());
                known.next().map_or(any, |(_, (place, _))| place.port())
            }
            Kind::Range => 50_000 + from.port() % 1_000,
            _ => {
                let last =
                    self.last.get(&from).filter(|(to, _)| self.given.contains_key(&(from, *to)));
                let port = last.map_or(from.port(), |(_, place)| place.port());
                if self.own.contains_key(&(port, to)) { any } else { port }
            }
        };
        let place = (self.address, port).into();
        self.last.insert(from, (to, place));
        place
    }

    /// Where a datagram from outside goes, inside.
    pub(crate) fn inward(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        now: u64,
    ) -> Option<SocketAddr> {
        self.forget(now);
        let lets = |at: SocketAddr| match self.kind {
            Kind::Cone => true,
            Kind::Restricted => at.ip() == from.ip(),
            _ => at == from,
        };
        let mut all = self.given.iter_mut();
        let found = all.find(|((_, at), (place, _))| *place == to && lets(*at));
        if let Some(((inside, _), (_, at))) = found {
            *at = now;
            return Some(*inside);
        }
        if self.kind == Kind::Open {
            self.own.insert((to.port(), from), now);
        }
        None
    }
}
