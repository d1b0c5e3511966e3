//! Where a walk reads its rules: the model here, or a [`crate::layout`] of it.
//!
//! A source gives the rules of a chain one after the other, and says of each what can be said without asking
//! an extension. What it leaves open, the walk asks the rule itself.

use std::sync::Arc;

use super::header::Key;
use crate::ext::TargetUse;
use crate::family::Hook;
use crate::model::{Action, Chain, FallThrough, Policy, Rule, Table};

/// What holds the rules of one table.
pub trait Source<'r> {
    /// A place in a chain: the next rule to be read.
    type Cursor: Copy;
    /// A rule as it is held.
    type Rule: Stored<'r>;

    /// The built-in chain at a hook: its index, its start and its policy.
    fn base(&self, hook: Hook) -> Option<((u32, Self::Cursor), Policy)>;

    /// The chain of this index in the table.
    fn chain_at(&self, index: u32) -> (u32, Self::Cursor);

    /// The chain that a jump leads to, by what its rule holds for it.
    fn enter(&self, jump: u32) -> (u32, Self::Cursor);

    /// The next rule of a chain.
    fn next(&self, at: &mut Self::Cursor) -> Option<Self::Rule>;

    /// Whether there is no next rule.
    #[inline]
    fn is_over(&self, at: &Self::Cursor) -> bool {
        self.next(&mut { *at }).is_none()
    }

    /// Passes rules for as long as their own tests tell that they do not match, or that they do and only count:
    /// those are counted. How many rules it read, the last of which is the one that it found, with what its tests
    /// say; `None` at the end of the chain.
    #[inline]
    fn sweep(
        &self,
        at: &mut Self::Cursor,
        key: &Key<'_>,
        mut count: impl FnMut(u32),
    ) -> (u32, Option<(Self::Rule, Test)>) {
        let mut read = 0;
        while let Some(stored) = self.next(at) {
            read += 1;
            match stored.test(key) {
                Test::No => {}
                Test::Yes if stored.only_counts() => count(stored.slot()),
                test => return (read, Some((stored, test))),
            }
        }
        (read, None)
    }

    /// What the end of a user chain does.
    fn fall_through(&self, chain: u32) -> FallThrough;
}

/// One rule of a [`Source`].
pub trait Stored<'r>: Copy {
    /// What its own tests say.
    fn test(&self, key: &Key<'_>) -> Test;

    /// The rule in full.
    fn rule(&self) -> &'r Rule;

    /// What it does.
    fn step(&self) -> Step<'r>;

    /// Whether it does nothing but count.
    fn only_counts(&self) -> bool;

    /// Where its counters stand.
    fn slot(&self) -> u32;
}

/// What can be said of a rule at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// It does not match.
    No,
    /// It matches, and there is nothing else to ask.
    Yes,
    /// Its own tests hold; what it has of matches has to be asked.
    AskMatches,
    /// The rule has to be asked in full.
    Ask,
}

/// What a rule does with a packet; chains in the words of the source.
#[derive(Debug, Clone, Copy)]
pub enum Step<'r> {
    /// Nothing: its packets are counted.
    Count,
    /// Accepts the packet.
    Accept,
    /// Drops the packet.
    Drop,
    /// Ends the chain.
    Return,
    /// Jumps to a chain, and comes back from its end.
    Jump(u32),
    /// Jumps to a chain, whose end is this one's.
    Goto(u32),
    /// Asks a target.
    Target(&'r TargetUse),
}

/// What a rule does, with chains by their index in the table.
pub fn step_of(action: &Action) -> Step<'_> {
    match action {
        Action::None => Step::Count,
        Action::Accept => Step::Accept,
        Action::Drop => Step::Drop,
        Action::Return => Step::Return,
        Action::Jump(to) => Step::Jump(*to),
        Action::Goto(to) => Step::Goto(*to),
        Action::Target(target) => Step::Target(target),
    }
}

/// The model as it was read: the reference.
pub(super) struct Model<'r> {
    pub(super) table: &'r Table,
}

impl<'r> Model<'r> {
    fn start(&self, chain: usize) -> (u32, &'r [Arc<Rule>]) {
        (chain as u32, &self.table.chains[chain].rules)
    }

    fn chain(&self, index: u32) -> &'r Chain {
        &self.table.chains[index as usize]
    }
}

impl<'r> Source<'r> for Model<'r> {
    type Cursor = &'r [Arc<Rule>];
    type Rule = &'r Rule;

    fn base(&self, hook: Hook) -> Option<((u32, Self::Cursor), Policy)> {
        let chain = self.table.base_chain(hook)?;
        Some((self.start(chain), self.table.chains[chain].base?.policy))
    }

    fn chain_at(&self, index: u32) -> (u32, Self::Cursor) {
        self.start(index as usize)
    }

    fn enter(&self, jump: u32) -> (u32, Self::Cursor) {
        self.start(jump as usize)
    }

    #[inline]
    fn next(&self, at: &mut Self::Cursor) -> Option<&'r Rule> {
        let (rule, after) = at.split_first()?;
        *at = after;
        Some(rule)
    }

    fn fall_through(&self, chain: u32) -> FallThrough {
        let chain = self.chain(chain);
        if chain.base.is_some() { FallThrough::Return } else { chain.fall_through }
    }
}

impl<'r> Stored<'r> for &'r Rule {
    /// Nothing is answered at sight: what layouts read out of their words is held to rules that are asked in full.
    fn test(&self, _key: &Key<'_>) -> Test {
        Test::Ask
    }

    fn rule(&self) -> &'r Rule {
        self
    }

    fn step(&self) -> Step<'r> {
        step_of(&self.action)
    }

    fn only_counts(&self) -> bool {
        matches!(self.action, Action::None)
    }

    fn slot(&self) -> u32 {
        self.slot
    }
}
