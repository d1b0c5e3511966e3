//! A worker: takes a revision and its counters for a burst of packets, and walks them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use rules::Transit;
use rules::eval::{Alive, Memories, Verdicts};
use rules::revision::Revision;

use super::array::Array;
use super::desk::{Desk, Seat};
use super::tally::{Local, Tables, Tally};

/// What a worker works with.
#[derive(Debug)]
pub(super) struct Work<T> {
    pub(super) revision: Arc<Revision>,
    pub(super) tables: Tables,
    pub(super) array: Arc<Array<T>>,
}

/// What a worker shares with the ledger.
#[derive(Debug)]
pub(super) struct Place<T> {
    pub(super) desk: CachePadded<Desk<Work<T>>>,
    /// Number of the revision that it walks, 0 between bursts. Only for errors to tell.
    pub(super) at: AtomicU64,
}

/// One thread's way to the rules. Between bursts it holds on to nothing, however long it rests.
pub struct Worker<T = Local> {
    place: Arc<Place<T>>,
    memories: Memories,
}

impl<T: Tally> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("place", &self.place).finish_non_exhaustive()
    }
}

impl<T: Tally> Worker<T> {
    pub(super) fn new(place: Arc<Place<T>>) -> Self {
        Self { place, memories: Memories::default() }
    }

    /// Starts a burst with the newest revision, without waiting. It ends when what is returned is dropped.
    ///
    /// # Panics
    /// A burst before was forgotten (`mem::forget`) and never ended.
    #[inline]
    pub fn burst(&mut self) -> BurstGuard<'_, T> {
        let seat = self.place.desk.take();
        let Some(seat) = seat else { panic!("a burst was forgotten before it ended") };
        self.place.at.store(seat.what.revision.number(), Ordering::Relaxed);
        BurstGuard { place: &self.place, memories: &mut self.memories, seat: Some(seat) }
    }
}

/// A burst of packets: all of them are evaluated by one revision.
pub struct BurstGuard<'w, T = Local> {
    place: &'w Place<T>,
    memories: &'w mut Memories,
    /// There until it is dropped.
    seat: Option<Box<Seat<Work<T>>>>,
}

impl<T: Tally> fmt::Debug for BurstGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BurstGuard").field("seat", &self.seat).finish_non_exhaustive()
    }
}

impl<T: Tally> BurstGuard<'_, T> {
    /// The rules.
    #[must_use]
    pub fn revision(&self) -> &Revision {
        let Some(seat) = &self.seat else { unreachable!("it is there until drop") };
        &seat.what.revision
    }

    /// Walks a table's built-in chain at the packet's hook and counts, see [`Revision::walk`].
    #[inline]
    pub fn walk(&mut self, table: usize, transit: &mut Transit<'_, '_>, entry: Alive) -> Verdicts {
        let Some(seat) = &self.seat else { unreachable!("it is there until drop") };
        let Work { revision, tables, array } = &seat.what;
        array.walk(revision, *tables, table, transit, entry, self.memories)
    }
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
