//! [`Gives`]: what a rule would have made of a packet that it nearly matched.

use rules::model::{Action, FallThrough, Policy, Rule, Table};

/// What a packet that matches a rule may come to by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gives {
    /// The packet is accepted.
    Accept,
    /// The packet is dropped.
    Drop,
    /// The packet is dropped, and its sender gets an answer.
    Reject,
    /// The packet goes to a chain that accepts some packets, and drops none.
    MayAccept,
    /// The packet goes to a chain that drops some packets, and accepts none.
    MayDrop,
    /// The packet goes to a chain that does both.
    May,
    /// The packet goes on.
    Nothing,
}

impl Gives {
    /// All of them, in order.
    pub(super) const ALL: [Self; 7] = [
        Self::Accept,
        Self::Drop,
        Self::Reject,
        Self::MayAccept,
        Self::MayDrop,
        Self::May,
        Self::Nothing,
    ];

    /// What a rule gives that goes to no other chain.
    pub(super) fn of(rule: &Rule) -> Self {
        match &rule.action {
            Action::Accept => Self::Accept,
            Action::Drop => Self::Drop,
            Action::Target(target) if target.body.answer().is_some() => Self::Reject,
            _ => Self::Nothing,
        }
    }

    /// What a rule gives that goes to a chain.
    pub(super) fn of_chain(table: &Table, chain: u32) -> Self {
        let ends = Ends::of_chain(table, chain);
        match (ends.accept, ends.drop) {
            (true, false) => Self::MayAccept,
            (false, true) => Self::MayDrop,
            (true, true) => Self::May,
            (false, false) => Self::Nothing,
        }
    }

    /// Whether a packet that was accepted, or was not, may have come to another verdict by it.
    pub(super) fn changes(self, accepted: bool) -> bool {
        match self {
            Self::Accept | Self::MayAccept => !accepted,
            Self::Drop | Self::Reject | Self::MayDrop => accepted,
            Self::May => true,
            Self::Nothing => false,
        }
    }

    /// Whether it only leads to a chain.
    pub(super) fn leads(self) -> bool {
        matches!(self, Self::MayAccept | Self::MayDrop | Self::May)
    }

    /// What it would have done.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Accept => "would accept it",
            Self::Drop => "would drop it",
            Self::Reject => "would reject it",
            Self::MayAccept => "leads to where packets are accepted",
            Self::MayDrop => "leads to where packets are dropped",
            Self::May => "leads to where packets are accepted or dropped",
            Self::Nothing => "would match",
        }
    }

    /// The verdict as JSON spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Drop => "drop",
            Self::Reject => "reject",
            Self::MayAccept => "may_accept",
            Self::MayDrop => "may_drop",
            Self::May => "may_accept_or_drop",
            Self::Nothing => "nothing",
        }
    }
}

/// The verdicts that a chain, and the chains that it leads to, may give.
#[derive(Debug, Default)]
struct Ends {
    accept: bool,
    drop: bool,
}

impl Ends {
    /// Finds the verdicts of a chain; looks at each chain once.
    fn of_chain(table: &Table, chain: u32) -> Self {
        let (mut ends, mut waiting) = (Self::default(), vec![chain]);
        let mut seen = vec![false; table.chains.len()];
        while let Some(chain) = waiting.pop() {
            let fresh = seen.get_mut(chain as usize).filter(|seen| !**seen);
            let (Some(fresh), Some(chain)) = (fresh, table.chains.get(chain as usize)) else {
                continue;
            };
            *fresh = true;
            match chain.fall_through {
                FallThrough::Policy(Policy::Accept) => ends.accept = true,
                FallThrough::Policy(Policy::Drop) => ends.drop = true,
                FallThrough::Return => {}
            }
            for rule in &chain.rules {
                match &rule.action {
                    Action::Accept => ends.accept = true,
                    Action::Drop => ends.drop = true,
                    Action::Target(target) => {
                        ends.drop |= target.body.answer().is_some();
                        waiting.extend(target.body.leads_to());
                    }
                    Action::Jump(to) | Action::Goto(to) => waiting.push(*to),
                    Action::None | Action::Return => {}
                }
            }
        }
        ends
    }
}
