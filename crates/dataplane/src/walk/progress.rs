//! [`Progress`]: how far a packet has come, as one value: whether it is still on its way, what may have ended it, and what
//! accepted it; and the verdict that follows.

use rules::Role;
use rules::eval::{Alive, By, Givers, Verdict, Verdicts};
use rules::model::Hook;

use crate::disposition::{DropReason, Either, FinalVerdict};

/// How far a packet has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Whether it is still on its way.
    pub(super) alive: Alive,
    /// What may have ended it.
    pub(super) verdicts: Verdicts,
    /// What accepted it in the last chain that filters and has a rule that did, else in the last chain that it passed.
    accepted: Option<Givers>,
    /// The hook of the last chain that filters.
    filtered_at: Option<Hook>,
    /// A table's walk was given up: nothing is known of its result.
    pub(super) given_up: bool,
    /// Tracking may have dropped it.
    may_be_dropped: bool,
    /// What dropped it, or may have, if that was no rule.
    pub(super) untold: Option<DropReason>,
    /// The first chain of another ruleset that may have dropped it.
    foreign: Option<u16>,
}

impl Progress {
    /// At the start.
    #[inline(always)]
    pub(super) fn start() -> Self {
        Self {
            alive: Alive::Certain,
            verdicts: Verdicts::default(),
            accepted: None,
            filtered_at: None,
            given_up: false,
            may_be_dropped: false,
            untold: None,
            foreign: None,
        }
    }

    /// Whether it may still be on its way.
    #[inline(always)]
    pub(super) fn is_alive(&self) -> bool {
        self.alive != Alive::Gone
    }

    /// It is dropped here, for this.
    pub(super) fn drop_as(&mut self, reason: DropReason) {
        self.untold.get_or_insert(reason);
        self.verdicts.add(Verdict::Drop, None);
        self.alive = Alive::Gone;
    }

    /// It may be dropped here, for this.
    pub(super) fn may_drop_as(&mut self, reason: DropReason) {
        self.untold.get_or_insert(reason);
        self.may_end(Verdict::Drop);
    }

    /// Tracking may drop it.
    pub(super) fn may_be_dropped(&mut self) {
        self.may_be_dropped = true;
        self.may_end(Verdict::Drop);
    }

    /// A chain of another ruleset may drop it.
    pub(super) fn may_drop_in(&mut self, chain: u16) {
        self.foreign.get_or_insert(chain);
        self.may_end(Verdict::Drop);
    }

    /// It may end here, by no rule.
    pub(super) fn may_end(&mut self, verdict: Verdict) {
        self.verdicts.add(verdict, None);
        self.alive = Alive::Maybe;
    }

    /// What may have ended it so far has not.
    pub(super) fn begin_again(&mut self) {
        (self.alive, self.verdicts) = (Alive::Certain, Verdicts::default());
    }

    /// It surely came to the rules that found this: nothing before ended it.
    pub(super) fn settle(&mut self, found: &Verdicts) {
        self.begin_again();
        (self.untold, self.may_be_dropped, self.given_up) = (None, false, found.is_given_up());
    }

    /// The rules of a table found this.
    #[inline(always)]
    pub(super) fn take(&mut self, found: &Verdicts) {
        match found.sure() {
            Some((verdict, by)) => self.verdicts.add(verdict, by),
            None => self.verdicts.extend(&found.without_accept()),
        }
        self.alive = match (found.may_be(Verdict::Accept), found.only().is_some()) {
            (false, _) => Alive::Gone,
            (true, true) => self.alive,
            (true, false) => Alive::Maybe,
        };
    }

    /// What the rules of the bridge that it crosses said counts here, too.
    pub(super) fn join(&mut self, other: &Self) {
        self.verdicts.extend(&other.verdicts);
        self.given_up |= other.given_up;
        self.alive = other.alive;
    }

    /// What accepted it in a table of this role counts as what accepted it, if nothing weightier does.
    #[inline(always)]
    pub(super) fn accept(&mut self, (role, hook): (Role, Hook), found: &Verdicts) {
        if self.tells(role) {
            let givers = found.givers(Verdict::Accept);
            if self.filtered_at == Some(hook)
                && self.accepted.is_some_and(|it| it.is_sure())
                && self.says_less(hook, givers.and_then(|givers| givers.first))
            {
                return;
            }
            self.accepted = givers;
            if role == Role::Filter {
                self.filtered_at = Some(hook);
            }
        }
    }

    /// Whether what accepts it at a hook says less than what accepted it before: the policy of one chain that filters there
    /// after another.
    pub(super) fn says_less(&self, hook: Hook, by: Option<By>) -> bool {
        self.filtered_at == Some(hook) && !matches!(by, Some(By::Rule(_) | By::HotDrop(_)))
    }

    /// Whether what accepts it in a table of this role is what accepted it so far.
    #[inline(always)]
    pub(super) fn tells(&self, role: Role) -> bool {
        let tells = !matches!(role, Role::Translate | Role::Readdress);
        role == Role::Filter || self.filtered_at.is_none() && tells
    }

    /// Whether nothing but rules has had a say so far.
    pub(super) fn is_of_rules_alone(&self) -> bool {
        let besides = self.may_be_dropped || self.given_up;
        self.untold.is_none() && self.foreign.is_none() && !besides
    }

    /// What may have dropped it that is no rule, and has no other reason.
    fn no_rule(&self) -> DropReason {
        self.foreign.map_or(DropReason::Conntrack, DropReason::Foreign)
    }

    /// The last rule or policy that drops it.
    fn last_to_drop(&self) -> Option<DropReason> {
        let (last, _) = self.verdicts.or_by(Verdict::Drop)?;
        last.map(DropReason::from)
    }

    /// The verdict that is told at sight, by the one rule or policy that gave it.
    #[inline(always)]
    pub(super) fn sure(&self) -> Option<FinalVerdict> {
        match self.alive {
            _ if self.given_up => None,
            Alive::Certain if self.verdicts.is_empty() => match &self.accepted {
                None => Some(FinalVerdict::Accept(None)),
                Some(givers) => givers.is_sure().then_some(FinalVerdict::Accept(givers.first)),
            },
            Alive::Gone => match self.verdicts.sure() {
                Some((Verdict::Drop, Some(by))) => Some(FinalVerdict::Drop(by.into())),
                _ => None,
            },
            Alive::Certain | Alive::Maybe => None,
        }
    }

    /// The verdict; `may_be_on_another_way` where the packet may be accepted on a way that is not walked.
    pub(super) fn verdict(&mut self, may_be_on_another_way: bool) -> FinalVerdict {
        if self.given_up {
            return FinalVerdict::Unknown;
        }
        if self.is_alive() || may_be_on_another_way {
            let accepted = self.accepted;
            if let Some(givers) = &accepted {
                self.verdicts.add_givers(Verdict::Accept, givers);
            }
            self.verdicts.add(Verdict::Accept, accepted.and_then(|givers| givers.first));
        }
        match self.verdicts.only() {
            Some((Verdict::Accept, by)) => FinalVerdict::Accept(by),
            Some((Verdict::Drop, Some(by))) => FinalVerdict::Drop(by.into()),
            Some((Verdict::Drop, None)) => match self.untold.or_else(|| self.last_to_drop()) {
                Some(reason) => FinalVerdict::Drop(reason),
                None => FinalVerdict::Unknown,
            },
            Some((Verdict::Reject, Some(by))) => FinalVerdict::Reject(by),
            _ => FinalVerdict::Unknown,
        }
    }

    /// What may have given the verdict, where it is certain and what gave it is not.
    pub(super) fn either(&self) -> Option<Either> {
        let (verdict, first) = self.verdicts.only().filter(|_| !self.given_up)?;
        let reason = |by: Option<By>| by.map(DropReason::from).or(self.untold);
        let Some((last, others)) = self.verdicts.or_by(verdict) else {
            // No rule drops it: something else may have, and something after that does.
            let may_be = self.may_be_dropped || self.foreign.is_some();
            let last = self.untold.filter(|_| first.is_none() && may_be)?;
            return Some(Either { first: self.no_rule(), last, others: false });
        };
        let first = reason(first).unwrap_or_else(|| self.no_rule());
        Some(Either { first, last: reason(last)?, others })
    }
}
