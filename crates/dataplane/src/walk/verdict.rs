//! A packet's verdict, and what gave it, once its walk is over.

use rules::eval::{Alive, By, Verdict};

use super::Walk;
use super::ways::Ways;
use crate::disposition::{DropReason, Either, FinalVerdict};

impl Walk<'_, '_, '_> {
    /// Its verdict, and what may have given it where that is not certain.
    #[inline(always)]
    pub(crate) fn end(&mut self) -> (FinalVerdict, Option<Either>) {
        // Most packets certainly went on, or certainly did not, by the one rule or policy that says so.
        let sure = match self.alive {
            _ if self.ways != Ways::One || self.given_up => None,
            Alive::Certain if self.verdicts.is_empty() => match &self.accepted {
                None => Some(FinalVerdict::Accept(None)),
                Some(givers) => givers.is_sure().then_some(FinalVerdict::Accept(givers.first)),
            },
            Alive::Gone => match self.verdicts.sure() {
                Some((Verdict::Drop, Some(by))) => Some(FinalVerdict::Drop(by.into())),
                _ => None,
            },
            Alive::Certain | Alive::Maybe => None,
        };
        if let Some(verdict) = sure {
            return (verdict, None);
        }
        (self.verdict(), self.either())
    }

    /// Its verdict.
    pub(crate) fn verdict(&mut self) -> FinalVerdict {
        if self.given_up {
            return FinalVerdict::Unknown;
        }
        if self.alive != Alive::Gone || self.ways == Ways::Indeterminate {
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
    pub(crate) fn either(&self) -> Option<Either> {
        let (verdict, first) = self.verdicts.only().filter(|_| !self.given_up)?;
        let reason = |by: Option<By>| by.map(DropReason::from).or(self.untold);
        let Some((last, others)) = self.verdicts.or_by(verdict) else {
            // No rule drops it: tracking may have, and something after it does.
            let last = self.untold.filter(|_| first.is_none() && self.may_be_dropped)?;
            return Some(Either { first: DropReason::Conntrack, last, others: false });
        };
        let first = reason(first).unwrap_or(DropReason::Conntrack);
        Some(Either { first, last: reason(last)?, others })
    }

    /// The last rule or policy that drops it.
    fn last_to_drop(&self) -> Option<DropReason> {
        let (last, _) = self.verdicts.or_by(Verdict::Drop)?;
        last.map(DropReason::from)
    }
}
