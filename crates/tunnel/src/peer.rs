//! What is kept of a peer: who it is, where it was last heard, its sessions, a handshake that waits for an answer.

use std::net::SocketAddr;

use crate::admission::Rate;
use crate::aead::Suite;
use crate::allowed::Prefix;
use crate::cookie::Jar;
use crate::direct::{Direct, Path, Tried};
use crate::keys::{PresharedKey, PublicKey};
use crate::mac::Mac1;
use crate::message::INITIATION;
use crate::noise::Initiated;
use crate::relays::Relays;
use crate::session::Sessions;
use crate::timers::Timers;
use crate::timestamp::Timestamp;

/// A peer of one tunnel; never that of a peer that was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// A peer as it is configured.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// The peer's public key.
    pub key: PublicKey,
    /// What the pair shares besides; all zeros is nothing.
    pub preshared: PresharedKey,
    /// Where it is, if that is known; where it is heard, later.
    pub endpoint: Option<SocketAddr>,
    /// Relays that reach it, where that endpoint is one of theirs: the peer may be reached elsewhere, too
    /// ([`crate::Tunnel::attempt`]).
    pub relays: Vec<SocketAddr>,
    /// Nanoseconds of silence after which it gets a keepalive, so that a NAT remembers us.
    pub keepalive: Option<u64>,
    /// The addresses that are its own; a prefix that another peer has is taken from it.
    pub allowed: Vec<Prefix>,
}

impl PeerConfig {
    /// One that shares no secret, whose place is not known, and that has no addresses.
    #[must_use]
    pub fn new(key: PublicKey) -> Self {
        let preshared = PresharedKey::default();
        let (endpoint, keepalive) = (None, None);
        Self { key, preshared, endpoint, relays: Vec::new(), keepalive, allowed: Vec::new() }
    }

    fn direct(&self) -> Option<Direct> {
        let first = self.endpoint.filter(|_| !self.relays.is_empty())?;
        Some(Direct::new(Relays::new(first, &self.relays)))
    }
}

/// How a peer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// The peer's public key.
    pub key: PublicKey,
    /// Where its last authentic datagram came from, or its configured endpoint.
    pub endpoint: Option<SocketAddr>,
    /// Whether that is a relay's, of a peer that is reached by one.
    pub path: Option<Path>,
    /// What was tried to reach that peer without the relay.
    pub tried: Option<Tried>,
    /// When the current sending session was made, in nanoseconds of the caller's clock.
    pub session: Option<u64>,
    /// The suite of that session.
    pub suite: Option<Suite>,
    /// Nanoseconds from a handshake's initiation, or a probe of the path, to the answer, by the path that is used now.
    pub round_trip: Option<u64>,
    /// Whether an initiation waits for an answer.
    pub handshaking: bool,
    /// When an authentic datagram came, in nanoseconds of the caller's clock.
    pub heard: Option<u64>,
    /// Inner packets that were staged, and their bytes.
    pub sent: (u64, u64),
    /// Inner packets that were released, and their bytes.
    pub received: (u64, u64),
    /// Datagrams with lower counters than a received one that have not come.
    pub lost: u64,
    /// The most datagrams with higher counters that came before a late one.
    pub reorder_depth: u64,
}

/// An initiation that waits for its response.
pub(crate) struct Pending {
    pub(crate) noise: Initiated,
    /// What was sent.
    pub(crate) message: Box<[u8; INITIATION]>,
    /// Our index in it.
    pub(crate) index: u32,
    /// When the first of these was sent.
    pub(crate) started: u64,
    /// When this one was.
    pub(crate) sent: u64,
    pub(crate) retry_at: u64,
    /// Whether it was sent before its time because of what the peer told us; it is not hurried again.
    pub(crate) hurried: bool,
    /// The rate of messages that claim to be its response.
    pub(crate) responses: Rate,
}

impl Pending {
    /// What the peer told us makes the next one likely to succeed: it is sent at once.
    pub(crate) fn hurry(&mut self, now: u64) {
        if !self.hurried {
            self.retry_at = now;
        }
    }
}

/// What is kept of a peer.
pub(crate) struct Peer {
    pub(crate) key: PublicKey,
    pub(crate) preshared: PresharedKey,
    pub(crate) endpoint: Option<SocketAddr>,
    /// The way without the relay, of a peer that has one.
    pub(crate) direct: Option<Box<Direct>>,
    /// Other places of the peer that are to get a probe, the last one first.
    pub(crate) asides: Vec<SocketAddr>,
    /// The last initiation for the peer's other relays.
    pub(crate) copies: Vec<(SocketAddr, [u8; INITIATION])>,
    pub(crate) mac1: Mac1,
    pub(crate) jar: Jar,
    pub(crate) sessions: Sessions,
    pub(crate) pending: Option<Pending>,
    pub(crate) timers: Timers,
    /// The timestamp of the latest initiation that we answered.
    pub(crate) latest: Option<Timestamp>,
    /// Our next initiation is later than this: than our last one, and than what the peer says it has seen.
    pub(crate) floor: Option<Timestamp>,
    pub(crate) heard: Option<u64>,
    /// The last measured round trip, and the endpoint that it was by.
    pub(crate) round_trip: Option<(SocketAddr, u64)>,
    pub(crate) sent: (u64, u64),
    pub(crate) received: (u64, u64),
    pub(crate) lost: u64,
    pub(crate) reorder_depth: u64,
}

impl Peer {
    pub(crate) fn new(config: &PeerConfig) -> Self {
        Self {
            key: config.key,
            preshared: config.preshared.clone(),
            endpoint: config.endpoint,
            direct: config.direct().map(Box::new),
            asides: Vec::new(),
            copies: Vec::new(),
            mac1: Mac1::of(&config.key),
            jar: Jar::of(&config.key),
            sessions: Sessions::default(),
            pending: None,
            timers: Timers::new(config.keepalive.filter(|interval| *interval > 0)),
            latest: None,
            floor: None,
            heard: None,
            round_trip: None,
            sent: (0, 0),
            received: (0, 0),
            lost: 0,
            reorder_depth: 0,
        }
    }

    /// The timestamp of an initiation that is made now: the clock's, but later than any before.
    pub(crate) fn next_timestamp(&mut self, clock: Timestamp) -> Timestamp {
        let timestamp = self.floor.map_or(clock, |floor| floor.next().max(clock));
        self.floor = Some(timestamp);
        timestamp
    }

    /// Something came from there by keys that nobody but the peer has, and that is no replay.
    pub(crate) fn heard_at(&mut self, from: SocketAddr, now: u64) {
        match &mut self.direct {
            None => self.endpoint = Some(from),
            Some(direct) => {
                if let Some(moved) = direct.heard(from, self.endpoint, now) {
                    self.endpoint = Some(moved);
                }
            }
        }
        self.heard = Some(now);
        self.timers.heard(now);
    }

    /// The first time at which something is to be done.
    pub(crate) fn first_deadline(&self) -> Option<u64> {
        let retry = self.pending.as_ref().map(|pending| pending.retry_at);
        let (direct, is_up) =
            (self.endpoint.zip(self.direct.as_ref()), self.sessions.current.is_some());
        let direct = direct
            .and_then(|(endpoint, direct)| direct.deadline((endpoint, self.timers.silence), is_up));
        let aside = (!self.asides.is_empty() || !self.copies.is_empty()).then_some(0);
        let all = [self.timers.first(), retry, self.sessions.first_end(), direct, aside];
        all.into_iter().flatten().min()
    }

    pub(crate) fn status(&self) -> PeerStatus {
        let session = self.sessions.current.as_ref();
        PeerStatus {
            key: self.key,
            endpoint: self.endpoint,
            path: self.endpoint.zip(self.direct.as_ref()).map(|(at, direct)| direct.path(at)),
            tried: self.direct.as_ref().map(|direct| direct.tried()),
            session: session.map(|session| session.born),
            suite: session.map(|session| session.keys.suite),
            round_trip: self.round_trip.filter(|it| self.endpoint == Some(it.0)).map(|it| it.1),
            handshaking: self.pending.is_some(),
            heard: self.heard,
            sent: self.sent,
            received: self.received,
            lost: self.lost,
            reorder_depth: self.reorder_depth,
        }
    }
}

/// Packets and bytes, one packet on.
pub(crate) fn count(of: &mut (u64, u64), bytes: usize) {
    *of = (of.0.wrapping_add(1), of.1.wrapping_add(bytes as u64));
}
