//! Room in a full table: which flow is evicted here, and which may have been evicted by the kernel.
//!
//! Source: Linux 6.18 `nf_conntrack_core.c` (`early_drop`, `gc_worker_can_early_drop`).

use super::flows::Table;
use crate::flow::{Doubt, Flow};
use crate::index::Handle;
use crate::key::Tuple;
use crate::status::Status;
use crate::tcp;
use crate::view::Space;

/// Slots that a full table looks at for a flow that may go.
const SEARCH: usize = 256;

/// What a full table finds when it looks for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// The slot of a dead flow.
    Dead,
    /// The slot of a flow that is evicted for it.
    Evicted,
    /// No slot, and no flow could be evicted.
    None,
    /// No slot so far.
    NoneYet,
}

impl Table {
    /// A slot for a new flow; it is found only once it is confirmed. `None` when the table is full; and how surely the
    /// kernel has room for it.
    pub(crate) fn allocate(&mut self, flow: &Flow, now: u64) -> (Option<Handle>, Space) {
        self.sweep(now);
        let space = match self.len() >= self.max {
            false if self.len().saturating_add(self.evicted.most(now)) < self.max => Space::Enough,
            // Here there is room, as those went that the kernel may have kept.
            false => {
                self.squeezed();
                Space::MayBeFull
            }
            true => match self.make_room(now) {
                Room::Dead => Space::Enough,
                Room::Evicted if self.decides => Space::Enough,
                Room::Evicted | Room::NoneYet if !self.decides => Space::MayBeFull,
                Room::Evicted | Room::NoneYet | Room::None => Space::Full,
            },
        };
        if self.len() >= self.max {
            self.stats.refused += 1;
            self.pressure = true;
            return (None, space);
        }
        self.stats.created += 1;
        let squeezes = self.squeezes;
        let handle = self.place(flow);
        if let Some(flow) = self.flow_mut(handle) {
            flow.squeezes = squeezes;
        }
        (Some(handle), space)
    }

    /// Looks for a flow that may go, from where the last search stopped.
    fn make_room(&mut self, now: u64) -> Room {
        // Here or there, one may go now, or as soon as the kernel has been told that there is no room.
        self.squeezed();
        for _ in 0..SEARCH.min(self.flows.len()) {
            self.search_at = if self.search_at >= self.flows.len() { 0 } else { self.search_at };
            let slot = self.search_at as u32;
            self.search_at += 1;
            let Some(flow) = self.flows.get(slot as usize) else { continue };
            if flow.is_confirmed() && flow.is_expired(now) {
                self.expire(self.handle(slot));
                return Room::Dead;
            }
            if flow.is_confirmed() && self.may_go(flow) && !flow.has_helper() {
                self.evict(slot, now);
                self.passed = 0;
                return Room::Evicted;
            }
            // One that may go, or may not be there, is reason to doubt that there is no room.
            let is_sure = !self.may_go(flow) && flow.doubt == Doubt::None;
            self.passed = if is_sure { self.passed + 1 } else { 0 };
        }
        if self.passed >= self.flows.len() { Room::None } else { Room::NoneYet }
    }

    /// Notes that a flow may have been evicted to make room. The count is 0 only before the first time.
    fn squeezed(&mut self) {
        self.squeezes = self.squeezes.wrapping_add(1).max(1);
    }

    /// Whether the kernel lets this flow go to make room.
    fn may_go(&self, flow: &Flow) -> bool {
        !flow.status.contains(Status::ASSURED) || self.pressure && tcp::is_closing(flow)
    }

    /// A flow with these tuples may be there, though not in here, and live until then.
    pub(crate) fn miss(&mut self, tuples: [&Tuple; 2], until: u64, now: u64) {
        if self.decides {
            return;
        }
        let hashes = tuples.map(|tuple| self.hash(tuple));
        self.evicted.add(hashes, until, now);
    }

    fn evict(&mut self, slot: u32, now: u64) {
        let Some(flow) = self.flows.get(slot as usize) else { return };
        let (original, reply, until) = (flow.original, flow.reply, flow.deadline);
        self.miss([&original, &reply], until, now);
        self.release(self.handle(slot));
        self.stats.early_drops += 1;
    }

    /// Whether the kernel may have evicted this flow since it was last asked, so that its next packet finds none.
    #[inline]
    pub(crate) fn may_be_evicted(&mut self, handle: Handle) -> bool {
        self.squeezes != 0 && self.may_be_evicted_since(handle)
    }

    fn may_be_evicted_since(&mut self, handle: Handle) -> bool {
        let squeezes = self.squeezes;
        let Some(flow) = self.flow(handle) else { return false };
        if self.decides || flow.squeezes == squeezes || !flow.is_confirmed() {
            return false;
        }
        let may_go = self.may_go(flow);
        if let Some(flow) = self.flow_mut(handle) {
            flow.squeezes = squeezes;
        }
        may_go
    }

    /// Whether the kernel may have a flow with this tuple that is not in here.
    #[inline]
    pub(crate) fn may_have(&self, tuple: &Tuple, now: u64) -> bool {
        !self.evicted.is_empty() && self.evicted.may_be(self.hash(tuple), now)
    }

    /// A flow is closing: it may go where none could.
    #[inline]
    pub(crate) fn closes(&mut self) {
        self.passed = 0;
    }
}
