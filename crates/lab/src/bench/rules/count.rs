//! What a hit does: the counter kinds that the study compares, each as the observer of a walk. Those without locks
//! are the ones that workers may have ([`crate::studies::counters`]).
//!
//! Contract: counts packets and bytes of certain hits. The place of a counter is the rule's slot.

use std::sync::{Mutex, PoisonError};

use dataplane::publish::tally::{Cell, Tally};
use rules::Transit;
use rules::eval::Observer;

/// A kind of counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// Nothing is counted.
    None,
    /// An array of the worker's own.
    Local,
    /// One array for all workers.
    Shared,
    /// An allocation for each counter.
    Allocated,
    /// A lock and a quota under it, allocated for each rule, counting packets: the study's `1Q`.
    Locked,
    /// Two of them, for packets and for bytes: the study's `2Q`.
    LockedTwice,
}

impl Counting {
    /// All of them.
    pub(super) const ALL: [Self; 6] =
        [Self::None, Self::Local, Self::Shared, Self::Allocated, Self::Locked, Self::LockedTwice];

    /// Its name in the document.
    #[must_use]
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Local => "local",
            Self::Shared => "shared",
            Self::Allocated => "allocated",
            Self::Locked => "locked",
            Self::LockedTwice => "locked twice",
        }
    }
}

/// Tells counters of the hits of one packet after the other, all as long as each other.
#[derive(Debug)]
pub(super) struct Counted<'c, T> {
    pub(super) counters: &'c T,
    pub(super) bytes: u64,
}

impl<T: Tally> Observer for Counted<'_, T> {
    const SEES_RULES: bool = false;

    #[inline]
    fn counted(&mut self, slot: u32, certain: bool, _: &Transit<'_, '_>) {
        if certain {
            self.counters.count(slot as usize, self.bytes);
        }
    }
}

/// A quota under a lock, which counts up.
type Quota = Box<Mutex<u64>>;

/// [`Counting::Locked`] and [`Counting::LockedTwice`].
#[derive(Debug)]
pub(super) struct Locked<const TIMES: usize>(Vec<[Quota; TIMES]>);

impl<const TIMES: usize> Tally for Locked<TIMES> {
    fn new(places: usize) -> Self {
        let quotas = || std::array::from_fn(|_| Quota::default());
        Self(std::iter::repeat_with(quotas).take(places).collect())
    }

    #[inline]
    fn count(&self, place: usize, bytes: u64) {
        let Some(quotas) = self.0.get(place) else { return };
        for (quota, more) in quotas.iter().zip([1, bytes]) {
            *quota.lock().unwrap_or_else(PoisonError::into_inner) += more;
        }
    }

    fn cell(&self, _: usize) -> Option<&Cell> {
        None
    }
}
