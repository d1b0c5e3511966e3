//! A packet that may go more than one way: to the host, or on.
//!
//! Where a translation is not known, nothing is certain any more. Where only it is not given which addresses are the
//! host's, the packet takes one way or the other, and a verdict that both give is certain.

use host::Refused;
use rules::eval::{Alive, Verdict};

use super::packet_walk::{Walk, Ways};
use crate::disposition::{DropReason, Why};
use crate::observer::Observer;

impl Walk<'_, '_, '_> {
    /// Where it goes from here is not known, and so neither is its verdict.
    pub(crate) fn leave_way_open(&mut self, observer: &mut impl Observer) {
        if !self.progress.is_alive() || self.recorded.let_go {
            return;
        }
        observer.depends_on(Why::Translation);
        self.progress.may_end(Verdict::Drop);
        self.ways = Ways::Indeterminate;
    }

    /// Routing refuses it.
    pub(crate) fn refuse(&mut self, why: Refused) {
        if self.progress.is_alive() {
            self.progress.drop_as(DropReason::Route(why));
        }
    }

    /// Routing may refuse it, which this would tell.
    pub(crate) fn may_refuse(
        &mut self,
        why: Refused,
        depends_on: Why,
        observer: &mut impl Observer,
    ) {
        if self.progress.is_alive() {
            observer.depends_on(depends_on);
            self.progress.may_drop_as(DropReason::Route(why));
        }
    }

    /// From here it goes to the host or on, which this would tell.
    pub(crate) fn fork(&mut self, depends_on: Why, observer: &mut impl Observer) {
        if !self.progress.is_alive() || self.ways != Ways::One {
            return;
        }
        observer.depends_on(depends_on);
        let was_certain = self.progress.alive == Alive::Certain;
        self.ways = Ways::Either { was_certain, survives: false };
        self.progress.alive = Alive::Maybe;
    }

    /// Whether it may go more than one way: then the rules on each may see it.
    pub(crate) fn is_way_indeterminate(&self) -> bool {
        self.ways != Ways::One
    }

    /// Where it may go more than one way, it may be on the other one, whatever its verdict on this one.
    pub(crate) fn other_way(&mut self) {
        match &mut self.ways {
            Ways::One => {}
            Ways::Indeterminate => self.progress.alive = Alive::Maybe,
            Ways::Either { survives, .. } => {
                *survives = self.progress.is_alive();
                self.progress.alive = Alive::Maybe;
            }
        }
    }

    /// Both ways end.
    pub(crate) fn join(&mut self) {
        let (was_certain, survives) = match self.ways {
            Ways::One => return,
            // What ended it on the ways that were walked did not where it took another one.
            Ways::Indeterminate => {
                self.progress.alive = Alive::Maybe;
                return;
            }
            Ways::Either { was_certain, survives } => (was_certain, survives),
        };
        let is_refused = self.progress.verdicts.may_be(Verdict::Drop)
            || self.progress.verdicts.may_be(Verdict::Reject);
        self.progress.alive = match survives || self.progress.is_alive() {
            false => Alive::Gone,
            true if was_certain && !is_refused => Alive::Certain,
            true => Alive::Maybe,
        };
    }
}
