//! [`Switch`]: whether anybody watches, and what; read by every worker once for a burst.

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use arc_swap::{ArcSwap, Guard};
use std::sync::Arc;

use super::filter::Filter;

/// Frames that are written down at once, and in a second, for all who watch.
pub(super) const PER_SECOND: i64 = 1000;

/// What is wanted of the workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Wanted {
    #[default]
    Nothing,
    /// Frames that are dropped.
    Dropped,
    /// Those that leave, too.
    All,
}

/// Between those who watch and the workers.
#[derive(Debug, Default)]
pub(super) struct Switch {
    wanted: AtomicU8,
    filters: ArcSwap<Vec<Arc<Filter>>>,
    /// How many frames may be written down now.
    room: AtomicI64,
}

impl Switch {
    /// What is wanted from now on.
    pub(super) fn set(&self, filters: Vec<Arc<Filter>>) {
        let wanted = match &filters[..] {
            [] => Wanted::Nothing,
            some if some.iter().any(|filter| filter.wants_passed()) => Wanted::All,
            _ => Wanted::Dropped,
        };
        self.filters.store(Arc::new(filters));
        self.wanted.store(wanted as u8, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn wanted(&self) -> Wanted {
        match self.wanted.load(Ordering::Relaxed) {
            0 => Wanted::Nothing,
            1 => Wanted::Dropped,
            _ => Wanted::All,
        }
    }

    pub(super) fn filters(&self) -> Guard<Arc<Vec<Arc<Filter>>>> {
        self.filters.load()
    }

    /// Whether one more may be written down; takes its place.
    pub(super) fn has_room(&self) -> bool {
        self.room.load(Ordering::Relaxed) > 0 && self.room.fetch_sub(1, Ordering::Relaxed) > 0
    }

    /// Makes room for so many more, and for no more than [`PER_SECOND`].
    pub(super) fn make_room(&self, more: i64) {
        let raised = |room: i64| Some(room.max(0).saturating_add(more).min(PER_SECOND));
        // It always has a value to become.
        let _ = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raised);
    }
}
