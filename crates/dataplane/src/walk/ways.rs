//! A packet that may go more than one way: to the host, or on.
//!
//! Where a translation is not known, nothing is certain any more. Where only it is not given which addresses are the
//! host's, the packet takes one way or the other, and a verdict that both give is certain.

use host::Refused;
use rules::eval::{Alive, Verdict};

use super::Walk;
use crate::disposition::{DropReason, Why};
use crate::observer::Observer;

/// How many ways a packet may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ways {
    /// One.
    #[default]
    One,
    /// Indeterminate: any, or none.
    Indeterminate,
    /// To the host or on.
    Either {
        /// It surely got here.
        was_certain: bool,
        /// On the first way it may have got through.
        survives: bool,
    },
}

impl Walk<'_, '_, '_> {
    /// Where it goes from here is not known, and so neither is its verdict.
    pub(crate) fn leave_way_open(&mut self, observer: &mut impl Observer) {
        if self.alive == Alive::Gone || self.let_go {
            return;
        }
        observer.depends_on(Why::Translation);
        self.verdicts.add(Verdict::Drop, None);
        self.alive = Alive::Maybe;
        self.ways = Ways::Indeterminate;
    }

    /// Routing refuses it.
    pub(crate) fn refuse(&mut self, why: Refused) {
        if self.alive != Alive::Gone {
            self.untold.get_or_insert(DropReason::Route(why));
            self.verdicts.add(Verdict::Drop, None);
            self.alive = Alive::Gone;
        }
    }

    /// Routing may refuse it, which this would tell.
    pub(crate) fn may_refuse(
        &mut self,
        why: Refused,
        depends_on: Why,
        observer: &mut impl Observer,
    ) {
        if self.alive != Alive::Gone {
            observer.depends_on(depends_on);
            self.untold.get_or_insert(DropReason::Route(why));
            self.verdicts.add(Verdict::Drop, None);
            self.alive = Alive::Maybe;
        }
    }

    /// From here it goes to the host or on, which this would tell.
    pub(crate) fn fork(&mut self, depends_on: Why, observer: &mut impl Observer) {
        if self.alive == Alive::Gone || self.ways != Ways::One {
            return;
        }
        observer.depends_on(depends_on);
        let was_certain = self.alive == Alive::Certain;
        self.ways = Ways::Either { was_certain, survives: false };
        self.alive = Alive::Maybe;
    }

    /// Whether it may go more than one way: then the rules on each may see it.
    pub(crate) fn is_way_indeterminate(&self) -> bool {
        self.ways != Ways::One
    }

    /// Where it may go more than one way, it may be on the other one, whatever its verdict on this one.
    pub(crate) fn other_way(&mut self) {
        match &mut self.ways {
            Ways::One => {}
            Ways::Indeterminate => self.alive = Alive::Maybe,
            Ways::Either { survives, .. } => {
                *survives = self.alive != Alive::Gone;
                self.alive = Alive::Maybe;
            }
        }
    }

    /// Both ways end.
    pub(crate) fn join(&mut self) {
        let Ways::Either { was_certain, survives } = self.ways else { return };
        let is_refused =
            self.verdicts.may_be(Verdict::Drop) || self.verdicts.may_be(Verdict::Reject);
        self.alive = match survives || self.alive != Alive::Gone {
            false => Alive::Gone,
            true if was_certain && !is_refused => Alive::Certain,
            true => Alive::Maybe,
        };
    }
}
