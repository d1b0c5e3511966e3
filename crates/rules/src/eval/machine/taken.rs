//! The state that a packet is taken for: where a walk of it alone would be, while the walk is of all its states.

use conntrack::States;

use super::super::source::Source;
use super::super::{By, Observer, Verdict};
use super::walk::{Place, Walk};
use crate::transit::Transit;

impl<'r, 'p, S: Source<'r>, O: Observer> Walk<'_, '_, 'p, S, O> {
    /// Whether a rule that may match does in the state that the packet is taken for, if it is at that rule.
    #[inline]
    pub(super) fn is_taken_by(&mut self, sure: bool, open: Option<States>) -> bool {
        let Place::Walks(state, depth) = self.taken else { return false };
        if depth != self.depth {
            return false;
        }
        if !sure && open.is_none() {
            self.taken = Place::Open;
        }
        sure || open.is_some_and(|open| open.may_be(state))
    }

    /// More than states is open: what becomes of the packet in the state that it is taken for is not known, if it is here.
    #[inline]
    pub(super) fn lose_taken(&mut self) {
        if matches!(self.taken, Place::Walks(_, depth) if depth == self.depth) {
            self.taken = Place::Open;
        }
    }

    /// What the rule at hand does with the packet in the state that it is taken for is not known, if it does anything.
    pub(super) fn doubt_taken(&mut self) {
        if std::mem::take(&mut self.takes) {
            self.lose_taken();
        }
    }

    /// In the state that it is taken for, the packet meets this verdict.
    pub(super) fn meet_taken(&mut self, verdict: Verdict, by: By) {
        self.taken = Place::Ended;
        self.verdicts.meet_as_taken(verdict, by);
    }

    /// From here on the packet has these states, if that says anything.
    pub(super) fn narrow(&mut self, to: Option<States>, transit: &mut Transit<'p, '_>) {
        let states = &mut transit.ct.view.states;
        if let Some(fewer) = to.filter(|to| to != states) {
            self.full.get_or_insert(*states);
            *states = fewer;
        }
    }
}
