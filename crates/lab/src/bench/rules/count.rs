//! What a hit does: the counter kinds that the study compares, each as the observer of a walk.
//!
//! Contract: counts packets and bytes of certain hits. The place of a counter is the rule's slot.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// A lock and a quota behind it, allocated for each rule, counting packets: the study's `1Q`.
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

/// Counters of one kind.
pub(super) trait Counters {
    /// A packet of so many bytes hit a rule.
    fn hit(&mut self, slot: u32, bytes: u64);
}

/// Tells counters of the hits of one packet after the other, all as long as each other.
#[derive(Debug)]
pub(super) struct Counted<'c, C> {
    pub(super) counters: &'c mut C,
    pub(super) bytes: u64,
}

impl<C: Counters> Observer for Counted<'_, C> {
    const SEES_RULES: bool = false;

    #[inline]
    fn counted(&mut self, slot: u32, certain: bool, _: &Transit<'_, '_>) {
        if certain {
            self.counters.hit(slot, self.bytes);
        }
    }
}

/// [`Counting::None`].
#[derive(Debug)]
pub(super) struct Nothing;

impl Counters for Nothing {
    #[inline]
    fn hit(&mut self, _: u32, _: u64) {}
}

/// [`Counting::Local`]: packets and bytes.
#[derive(Debug)]
pub(super) struct Local(pub(super) Vec<[u64; 2]>);

impl Counters for Local {
    #[inline]
    fn hit(&mut self, slot: u32, bytes: u64) {
        if let Some([packets, sum]) = self.0.get_mut(slot as usize) {
            *packets += 1;
            *sum += bytes;
        }
    }
}

/// [`Counting::Shared`].
#[derive(Debug)]
pub(super) struct Shared(pub(super) Vec<[AtomicU64; 2]>);

impl Counters for Shared {
    #[inline]
    fn hit(&mut self, slot: u32, bytes: u64) {
        if let Some([packets, sum]) = self.0.get(slot as usize) {
            packets.fetch_add(1, Ordering::Relaxed);
            sum.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// [`Counting::Allocated`].
#[derive(Debug)]
#[expect(clippy::vec_box, reason = "that it lies elsewhere is what is measured")]
pub(super) struct Allocated(pub(super) Vec<Box<[u64; 2]>>);

impl Counters for Allocated {
    #[inline]
    fn hit(&mut self, slot: u32, bytes: u64) {
        if let Some(place) = self.0.get_mut(slot as usize) {
            place[0] += 1;
            place[1] += bytes;
        }
    }
}

/// A quota behind a lock, which counts up.
type Quota = Box<Mutex<u64>>;

/// [`Counting::Locked`] and [`Counting::LockedTwice`].
#[derive(Debug)]
pub(super) struct Locked<const TIMES: usize>(pub(super) Vec<[Quota; TIMES]>);

impl<const TIMES: usize> Counters for Locked<TIMES> {
    #[inline]
    fn hit(&mut self, slot: u32, bytes: u64) {
        let Some(quotas) = self.0.get(slot as usize) else { return };
        for (quota, more) in quotas.iter().zip([1, bytes]) {
            *quota.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += more;
        }
    }
}

/// So many counters of the kind of each.
pub(super) fn many<T>(slots: usize, one: impl Fn() -> T) -> Vec<T> {
    std::iter::repeat_with(one).take(slots).collect()
}
