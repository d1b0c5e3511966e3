//! [`OwnSockets`]: a UDP socket for each peer, at the tunnel's port, which receives that peer alone.
//!
//! Contract: a sender that is no peer fills the queue of the main socket alone, and what peers send waits elsewhere.
//! The sockets are made before the run is confined, as many as there are peers then, up to [`MOST`]; the timers make
//! them follow their peers. The main socket sends everything. Where a peer has no socket, or is heard at another
//! address of ours than the routes say, or has just moved, the main socket receives it: nothing else differs. A socket
//! follows its peer once that was found at its new place [`STEADY`] times in a row: what waits in it was sent before
//! the peer moved, and is long received when later datagrams reach it. A peer that is heard at two places in turn, as
//! behind a router that balances, has one of them on its socket and the other on the main one.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use pktio::datagram::DatagramSocket;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use tunnel::PeerId;

/// Sockets for peers of one tunnel, at most.
pub(super) const MOST: usize = 64;
/// The number of the main socket among the ready ones.
const MAIN: u64 = u64::MAX;
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// How often in a row a peer is found at another place before its socket follows; it is checked once per tick of the
/// timers.
pub(super) const STEADY: u32 = 20;

/// A peer, its endpoint, and our address at which it was heard.
pub(super) type Whereabouts = (PeerId, SocketAddr, Option<IpAddr>);

/// The sockets of peers.
#[derive(Debug)]
pub(super) struct OwnSockets {
    sockets: Vec<DatagramSocket>,
    /// The place that each socket receives.
    places: Mutex<Vec<Place>>,
    /// An epoll instance that shows which sockets are ready, the main one among them.
    ready: OwnedFd,
    /// Counts beginnings and ends of moves: odd while a move is on its way.
    moves: AtomicU64,
}

/// The peer that a socket receives, and from where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    peer: Option<PeerId>,
    /// The peer's endpoint, and our address: where it was heard, or the address that the socket got.
    way: Option<(SocketAddr, IpAddr)>,
    /// Where the peer was found last instead, and how often in a row.
    moved: Option<(SocketAddr, u32)>,
}

/// Sockets that have something to receive.
#[derive(Default)]
pub(super) struct Ready {
    pub(super) is_main: bool,
    /// Numbers of peers' sockets.
    pub(super) own: Vec<usize>,
}

impl OwnSockets {
    /// Sockets that receive nothing yet.
    pub(super) fn new(main: &DatagramSocket, sockets: Vec<DatagramSocket>) -> io::Result<Self> {
        let ready = epoll::create(CreateFlags::CLOEXEC)?;
        let numbered = sockets.iter().zip(0..).chain([(main, MAIN)]);
        for (socket, number) in numbered {
            epoll::add(&ready, socket, EventData::new_u64(number), EventFlags::IN)?;
        }
        let places = Mutex::new(vec![Place::default(); sockets.len()]);
        Ok(Self { sockets, places, ready, moves: AtomicU64::new(0) })
    }

    pub(super) fn get(&self, number: usize) -> Option<&DatagramSocket> {
        self.sockets.get(number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &DatagramSocket> {
        self.sockets.iter()
    }

    /// How often sockets began or ended to move. A thread that finds a socket ready by a move sees the move here
    /// afterwards.
    pub(super) fn moves(&self) -> u64 {
        self.moves.load(Ordering::Acquire)
    }

    /// Finds the sockets that have something now.
    pub(super) fn find_ready(&self, ready: &mut Ready) -> io::Result<()> {
        ready.is_main = false;
        ready.own.clear();
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MOST + 1];
        let (events, _) = match epoll::wait(
            &self.ready,
            &mut room[..=self.sockets.len().min(MOST)],
            Some(&NOW),
        ) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            found => found?,
        };
        for event in events {
            match event.data.u64() {
                MAIN => ready.is_main = true,
                number => ready.own.push(number as usize),
            }
        }
        ready.own.sort_unstable();
        Ok(())
    }

    /// Makes the sockets receive these peers. A socket whose peer is no longer among them goes to another peer, when
    /// one comes that has none; until then it stays where it was, as a socket without a connection would receive
    /// everybody.
    pub(super) fn follow(&self, peers: &[Whereabouts]) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        for place in &mut *places {
            place.peer = place.peer.filter(|held| peers.iter().any(|(peer, ..)| peer == held));
        }
        for (peer, endpoint, own) in peers {
            let held = places.iter().position(|place| place.peer == Some(*peer));
            let Some(number) =
                held.or_else(|| places.iter().position(|place| place.peer.is_none()))
            else {
                continue;
            };
            let place = &mut places[number];
            // Nothing that the peer sent waits in another peer's socket.
            let is_its_own = place.peer.replace(*peer).is_some();
            if place.is_at(*endpoint, *own) {
                place.moved = None;
            } else if !is_its_own || place.is_steady(*endpoint) {
                // Without a route there, the next call tries again.
                self.moves.fetch_add(1, Ordering::AcqRel);
                let at = self.sockets[number].receive_from(*endpoint).ok();
                self.moves.fetch_add(1, Ordering::AcqRel);
                place.way = at.map(|at| (*endpoint, own.unwrap_or(at)));
                place.moved = None;
            }
        }
    }
}

impl Place {
    fn is_at(&self, endpoint: SocketAddr, own: Option<IpAddr>) -> bool {
        self.way.is_some_and(|(from, at)| from == endpoint && own.is_none_or(|own| own == at))
    }

    /// Notes that the peer is found there once more; returns whether it stays.
    fn is_steady(&mut self, endpoint: SocketAddr) -> bool {
        let before = self.moved.filter(|(at, _)| *at == endpoint).map_or(0, |(_, times)| times);
        self.moved = Some((endpoint, before + 1));
        before + 1 >= STEADY
    }
}

impl AsFd for OwnSockets {
    /// Readable when any socket is, including the main one.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}
