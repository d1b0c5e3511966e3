//! A worker: takes a program and its counters for a burst of packets, and takes the packets through.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use conntrack::steer::Shard;
use conntrack::{Listing, Tracker};
use crossbeam_utils::CachePadded;
use packet::Headers;
use rules::Transit;
use rules::eval::{Alive, Verdicts};

use super::array::Array;
use super::desk::{Desk, Seat};
use super::tally::{Local, Places, Tally};
use crate::arrival::Arrival;
use crate::egress::Egress;
use crate::handler::Handler;
use crate::observer::Observer;
use crate::program::Program;
use crate::state::State;

/// A program with the counters of its worker.
#[derive(Debug)]
pub(super) struct Work<T> {
    pub(super) program: Arc<Program>,
    pub(super) places: Places,
    pub(super) array: Arc<Array<T>>,
}

/// What a worker shares with the ledger.
#[derive(Debug)]
pub(super) struct Place<T> {
    pub(super) desk: CachePadded<Desk<Work<T>>>,
    /// Number of the program that it walks, 0 between bursts. Only errors report it.
    pub(super) at: AtomicU64,
}

/// One thread's access to the rules, with the state that its packets leave.
///
/// Between bursts it is offline: it holds on to no program, and neither commits nor snapshots wait for it, however
/// long it sleeps in `poll`. The first burst after that has the newest program.
pub struct Worker<T = Local> {
    place: Arc<Place<T>>,
    handler: Handler,
    /// Number of the program that the handler follows.
    followed: u64,
}

impl<T: Tally> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("place", &self.place).finish_non_exhaustive()
    }
}

impl<T: Tally> Worker<T> {
    pub(super) fn new(place: Arc<Place<T>>, program: &Program, shard: Option<Shard>) -> Self {
        let handler = match program.shared() {
            Some(shared) => Handler::sharing(program, shared, shard),
            None => Handler::new(program),
        };
        Self { place, handler, followed: program.number() }
    }

    /// Makes a worker whose packets are sent; see [`Handler::sending`].
    #[must_use]
    pub fn sending(self) -> Self {
        Self { handler: self.handler.sending(), ..self }
    }

    /// Starts a burst with the newest program, without waiting. It ends when the guard is dropped. State that packets
    /// left is kept under a new program: see [`State::follow`].
    ///
    /// # Panics
    /// The previous burst was forgotten (`mem::forget`) and never ended.
    #[inline]
    pub fn burst(&mut self) -> BurstGuard<'_, T> {
        let seat = self.place.desk.take();
        let Some(seat) = seat else { panic!("a burst was forgotten before it ended") };
        let program = &*seat.what.program;
        self.place.at.store(program.number(), Ordering::Relaxed);
        if self.followed != program.number() {
            self.handler.follow(program);
            self.followed = program.number();
        }
        BurstGuard { place: &self.place, handler: &mut self.handler, seat: Some(seat) }
    }

    /// The connections: see [`State::connections`].
    pub fn connections(&mut self) -> Listing {
        self.handler.connections()
    }

    /// The tables of connections, between bursts: see [`State::trackers`].
    pub fn trackers(&mut self) -> impl Iterator<Item = &mut Tracker> {
        self.handler.trackers()
    }

    /// The state that its packets left.
    #[must_use]
    pub fn state(&self) -> &State {
        self.handler.state()
    }
}

/// A burst of packets: all of them go through one program.
pub struct BurstGuard<'w, T = Local> {
    place: &'w Place<T>,
    handler: &'w mut Handler,
    /// Present until the guard is dropped.
    seat: Option<Box<Seat<Work<T>>>>,
}

impl<T: Tally> fmt::Debug for BurstGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BurstGuard").field("seat", &self.seat).finish_non_exhaustive()
    }
}

impl<T: Tally> BurstGuard<'_, T> {
    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &work(self.seat.as_deref()).program
    }

    /// The program, to be kept beyond the burst.
    #[must_use]
    pub fn shared_program(&self) -> &Arc<Program> {
        &work(self.seat.as_deref()).program
    }

    /// Prefetches like [`Handler::prefetch`].
    pub fn prefetch<'b>(&self, frames: impl Iterator<Item = (&'b [u8], &'b Headers)> + Clone) {
        self.handler.prefetch(self.program(), frames);
    }

    /// Takes a frame through the program and counts; see [`Handler::handle`].
    #[inline]
    pub fn handle<'a>(
        &'a mut self,
        bytes: &mut [u8],
        arrival: &Arrival<'a>,
        observer: &mut impl Observer,
    ) -> Egress<'a, 'a> {
        let Work { program, places, array } = work(self.seat.as_deref());
        let mut observers = (array.counting(places), observer);
        self.handler.handle(program, bytes, arrival, &mut observers)
    }

    /// Walks one table's built-in chain at the packet's hook and counts: rules alone, without the steps around them.
    #[inline]
    pub fn walk(&mut self, table: usize, transit: &mut Transit<'_, '_>, entry: Alive) -> Verdicts {
        let Work { program, places, array } = work(self.seat.as_deref());
        let mut counting = array.counting(places);
        self.handler.walk(program, table, transit, entry, &mut counting)
    }
}

#[inline]
fn work<T>(seat: Option<&Seat<Work<T>>>) -> &Work<T> {
    let Some(seat) = seat else { unreachable!("it is there until drop") };
    &seat.what
}

impl<T> Drop for BurstGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.place.at.store(0, Ordering::Relaxed);
        if let Some(seat) = self.seat.take() {
            self.place.desk.leave(seat);
        }
    }
}
