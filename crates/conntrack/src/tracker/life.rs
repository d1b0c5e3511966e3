//! Flows begin, come into doubt and end.

use super::flows::Tracker;
use super::visit::Visit;
use crate::dissect::Unparsable;
use crate::flow::{Doubt, Flow};
use crate::index::Handle;
use crate::key::{Direction, Tuple};
use crate::status::Status;
use crate::view::{Certainty, Space};

impl Tracker {
    /// A flow that begins with this tuple, if the table has room; and how surely the kernel's has.
    pub(super) fn create(
        &mut self,
        tuple: &Tuple,
        visit: &Visit,
    ) -> Result<(Option<Handle>, Space), Unparsable> {
        let zone = visit.template.zone;
        let original = tuple.in_zone(zone.id_in(Direction::Original));
        let reply = original.inverse().ok_or(Unparsable::Invalid)?;
        let reply = reply.in_zone(zone.id_in(Direction::Reply));
        let mut flow = Flow::new(original, reply, visit.frame);
        let mut follows = None;
        match self.expectations.take(&original, zone.id, visit.now) {
            Some(expected) => {
                flow.status.set(Status::EXPECTED);
                flow.master_helper = expected.helper;
                follows = expected.follows;
                if self.table.may_be_evicted(expected.master) {
                    // Then nothing expects it.
                    flow.raise_doubt(Doubt::History);
                }
                if let Some(master) = self.table.flow_mut(expected.master) {
                    flow.mark = master.mark;
                    flow.master = master.born;
                    master.expecting = 0;
                    if visit.certainty == Certainty::Maybe {
                        // Where the packet is not here, another one may fulfil it.
                        let ends = expected.ends(master);
                        ends.into_iter().for_each(|pattern| self.untraceable.may_expect(pattern));
                    }
                }
            }
            None => flow.helper = visit.template.helper,
        }
        let (handle, space) = self.table.allocate(&flow, visit.now);
        self.bury();
        if (handle, space) == (None, Space::MayBeFull) {
            let longest = self.config.timeouts.longest(original.protocol());
            self.table.miss([&original, &reply], visit.now.saturating_add(longest), visit.now);
        }
        if let (Some(handle), Some(ends)) = (handle, follows) {
            self.follow(handle, ends, visit.now);
        }
        Ok((handle, space))
    }

    /// A malformed packet ends the wait for the flow that it would begin: the kernel looks at it after it made the flow.
    pub(super) fn waste(&mut self, tuple: &Tuple, visit: &Visit) {
        let zone = visit.template.zone;
        let original = tuple.in_zone(zone.id_in(Direction::Original));
        let Some(expected) = self.expectations.peek(&original, zone.id, visit.now) else { return };
        if self.lookup(tuple, zone, visit.now).is_some() {
            return;
        }
        self.expectations.forget(expected.master);
        let is_open = visit.certainty == Certainty::Maybe || self.untraceable.may_include(tuple);
        let master = self.table.flow(expected.master).filter(|_| is_open);
        let ends = master.map(|master| expected.ends(master));
        ends.into_iter().flatten().for_each(|pattern| self.untraceable.may_expect(pattern));
    }

    /// A packet of a flow in doubt may begin one of its own. In zones of one direction, or behind a translation,
    /// replies to that do not look as those to the flow in doubt do.
    pub(super) fn expect_own(&mut self, handle: Handle, tuple: &Tuple, visit: &Visit) {
        let Some(reply) = tuple.inverse() else { return };
        let zone = visit.template.zone.id_in(Direction::Reply);
        match self.table.find_in(&reply.in_zone(zone), [zone; 2], visit.now) {
            Some((found, _)) if found == handle => {}
            _ => self.untraceable.expect_reply(&reply),
        }
    }

    /// Whether a packet without a flow may belong to a flow that is not in the table.
    pub(super) fn is_out_of_sight(&self, tuple: &Tuple, visit: &Visit) -> bool {
        self.untraceable.may_include(tuple)
            || self.may_have_evicted(tuple, visit.template.zone, visit.now)
    }

    /// A flow that the kernel may have evicted is in doubt from now on.
    #[inline]
    pub(super) fn doubt_evicted(&mut self, handle: Handle, now: u64) -> Space {
        match self.table.may_be_evicted(handle) {
            true => {
                self.raise_doubt(handle, Doubt::Existence, now);
                Space::Tight
            }
            false => Space::Enough,
        }
    }

    pub(super) fn raise_doubt(&mut self, handle: Handle, doubt: Doubt, now: u64) {
        let timeouts = &self.config.timeouts;
        if let Some(flow) = self.table.flow_mut(handle) {
            flow.raise_doubt(doubt);
            let longest = timeouts.longest(flow.original.protocol());
            flow.deadline = if flow.is_confirmed() { now.saturating_add(longest) } else { longest };
        }
    }

    /// Takes a flow out of the table whose last packet is under way.
    pub(super) fn retire(&mut self, handle: Handle) {
        self.tie_up();
        self.table.unlink(handle);
        self.loose_end = Some(handle);
    }

    /// Forgets the flow of the last packet, if it is in no table.
    #[inline]
    pub(super) fn tie_up(&mut self) {
        if let Some(handle) = self.loose_end.take() {
            self.table.release(handle);
        }
        self.bury();
    }

    /// Forgets what depends on flows that have ended.
    #[inline]
    pub(super) fn bury(&mut self) {
        if self.table.has_buried() {
            self.bury_all();
        }
    }

    #[cold]
    fn bury_all(&mut self) {
        for handle in self.table.take_buried() {
            self.helpers.forget(handle);
            self.expectations.forget(handle);
        }
    }
}
