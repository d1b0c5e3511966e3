//! [`Switch`]: whether anybody watches, and what; read by every worker once per burst.

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use arc_swap::{ArcSwap, Guard};
use std::sync::Arc;

use super::filter::Filter;

/// Frames that are written down at once, and in a second, for all watchers together.
pub(super) const PER_SECOND: i64 = 1000;

/// Which frames the workers are to write down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Wanted {
    #[default]
    Nothing,
    /// Frames that are dropped.
    Dropped,
    /// Frames that leave, too.
    All,
}

/// The state between watchers and workers.
#[derive(Debug, Default)]
pub(super) struct Switch {
    wanted: AtomicU8,
    filters: ArcSwap<Vec<Arc<Filter>>>,
    /// The number of frames that may be written down now.
    room: AtomicI64,
}

impl Switch {
    /// Sets the filters that are wanted from now on.
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

    /// Whether one more frame may be written down; takes its place.
    pub(super) fn has_room(&self) -> bool {
        self.room.load(Ordering::Relaxed) > 0 && self.room.fetch_sub(1, Ordering::Relaxed) > 0
    }

    /// Makes room for `more` frames, and for no more than [`PER_SECOND`] in all.
    pub(super) fn make_room(&self, more: i64) {
        let raised = |room: i64| Some(room.max(0).saturating_add(more).min(PER_SECOND));
        // The closure always returns a value.
        let _ = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raised);
    }
}
