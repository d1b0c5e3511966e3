//! A packet of several states, in the one that it is taken for: what its walk tells of that one.
//!
//! Contract: only where nothing but states is open, and nothing but rules has had a say: then it is what a walk in that
//! state alone would tell. Elsewhere the packet walks once more.

use conntrack::CtView;
use packet::Snapshot;
use rules::Role;
use rules::eval::{Alive, By, Verdict};
use rules::model::Hook;

use super::packet_walk::{Walk, Ways};
use crate::disposition::{DropReason, Early, Either, FinalVerdict};
use crate::observer::Observer;

/// A verdict that a packet has as what it is taken for.
pub(crate) type Sure = (FinalVerdict, Option<Either>, Early);

/// What decides a packet whose connection may be in several states.
pub(crate) enum Doubt {
    /// Its walk has decided.
    Decided(Sure),
    /// It has to walk once more, with this before tracking, if there is anything to walk with.
    Open(Option<(Snapshot, CtView)>),
}

impl Walk<'_, '_, '_> {
    /// Whether the walk tells from here on what becomes of the packet in that state.
    pub(super) fn may_tell_taken(&self) -> bool {
        self.progress.alive == Alive::Certain
            && self.progress.verdicts.is_empty()
            && self.transit.hook == Hook::Prerouting
            && !self.recorded.let_go
            && self.recorded.drawn.is_none()
            && self.below.is_none()
            && self.is_of_rules_alone()
    }

    /// Nothing but rules has had a say so far.
    fn is_of_rules_alone(&self) -> bool {
        self.progress.is_of_rules_alone() && self.ways == Ways::One
    }

    /// What a table's rules have said of it in that state, in which it came to them.
    pub(super) fn follow_taken(&mut self, role: Role, met: Option<(Verdict, By)>) {
        match met {
            Some((Verdict::Accept, by)) => {
                let says_less = self.taken_by.1.is_some()
                    && self.progress.says_less(self.transit.hook, Some(by));
                if self.progress.tells(role) && !says_less {
                    self.taken_by.1 = Some(by);
                }
                return;
            }
            Some(refused) => self.taken_by.0 = Some(refused),
            None => {}
        }
        self.transit.ct.walks_as = None;
    }

    /// What decides a packet whose states do not agree: the walk, unless what leaves depends on it, else a second walk.
    #[inline(always)]
    pub(crate) fn doubted(&mut self, may_decide: bool, observer: &mut impl Observer) -> Doubt {
        match if may_decide { self.as_taken(observer) } else { None } {
            Some(sure) => Doubt::Decided(sure),
            None => Doubt::Open(self.taken()),
        }
    }

    /// What becomes of it in that state, where its walk has told.
    fn as_taken(&mut self, observer: &mut impl Observer) -> Option<Sure> {
        if !self.is_of_rules_alone() {
            return None;
        }
        let verdict = match self.taken_by {
            (Some((Verdict::Reject, by)), _) => FinalVerdict::Reject(by),
            (Some((_, by)), _) => FinalVerdict::Drop(DropReason::from(by)),
            (None, by) if self.transit.ct.walks_as.is_some() => FinalVerdict::Accept(by),
            (None, _) => return None,
        };
        let view = self.transit.ct.view.as_taken()?;
        let is_first = self.transit.ct.tracker.as_mut().is_some_and(|tracker| tracker.take(&view));
        let early = if is_first { Early::First } else { Early::Later };
        observer.taken(view.states);
        Some((verdict, None, early))
    }
}
