//! Which rules packets reached.
//!
//! A chain is walked from its first rule on, so what was reached of it is known by the last rule that hit, and by whether
//! packets fell off its end ([`Ends`]): no rule needs to see packets that passed it.
//!
//! Contract: a rule is said to be reached, or not reached, only if that is certain of all packets.

use dataplane::{Counters, Why};
use rules::eval::{By, Cause, RuleRef};
use rules::model::{Family, Ruleset};

use crate::rules_file::RulesFile;

/// How surely packets fell off the ends of the chains of a ruleset.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends {
    /// For each table, the place of its first chain.
    tables: Vec<usize>,
    chains: Vec<End>,
}

/// Whether packets fell off one end: for certain, and maybe.
#[derive(Debug, Clone, Copy, Default)]
struct End {
    certain: bool,
    maybe: bool,
}

impl Ends {
    pub(crate) fn of(ruleset: &Ruleset) -> Self {
        let mut chains = 0;
        let tables = ruleset.tables.iter().map(|table| {
            let first = chains;
            chains += table.chains.len();
            first
        });
        let tables = tables.collect();
        Self { tables, chains: vec![End::default(); chains] }
    }

    /// A packet fell off.
    #[inline]
    pub(crate) fn note(&mut self, table: u32, chain: u32, certain: bool) {
        let Some(first) = self.tables.get(table as usize) else { return };
        if let Some(end) = self.chains.get_mut(first + chain as usize) {
            end.certain |= certain;
            end.maybe |= !certain;
        }
    }

    /// Whether some packet fell off the end of a chain for certain, and whether one may have.
    pub(crate) fn at(&self, table: usize, chain: usize) -> (bool, bool) {
        let end = self.tables.get(table).and_then(|first| self.chains.get(first + chain));
        end.map_or((false, false), |end| (end.certain, end.certain || end.maybe))
    }

    /// What others saw, too.
    pub(crate) fn merge(&mut self, other: &Self) {
        let Self { chains, tables: _ } = other;
        for (ours, theirs) in self.chains.iter_mut().zip(chains) {
            ours.certain |= theirs.certain;
            ours.maybe |= theirs.maybe;
        }
    }
}

/// Whether packets reached a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Some packet reached it.
    Yes,
    /// No packet reached it.
    No,
    /// A packet may have reached it.
    Maybe,
}

impl Reached {
    /// The answer in a word.
    #[must_use]
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Maybe => "maybe",
        }
    }
}

/// How many rules of a chain packets reached, from its first one on: for certain, and at most.
#[derive(Debug, Clone, Copy, Default)]
struct Depth {
    certain: u32,
    most: u32,
}

/// What was reached of all chains of a file, by table and chain.
#[derive(Debug)]
pub(crate) struct Reach {
    chains: Vec<Vec<Depth>>,
    /// Packets passed that no capture shows.
    has_unseen: bool,
}

impl Reach {
    /// What was reached of the rules of a file, from what was counted on them, what dropped packets on the spot among
    /// other decisions, and what unknown verdicts depend on.
    pub(crate) fn new(
        file: &RulesFile,
        counters: &Counters,
        ends: &Ends,
        decisions: impl Iterator<Item = (Family, By)>,
        unknown: impl Iterator<Item = Why> + Clone,
    ) -> Self {
        let given_up = unknown.clone().any(is_given_up);
        let tables = file.ruleset.tables.iter().enumerate().map(|(t, table)| {
            let chains = table.chains.iter().enumerate().map(|(c, chain)| {
                let all = chain.rules.len() as u32;
                let (certain, maybe) = ends.at(t, c);
                let depth = |reaches: bool| if reaches { all } else { 0 };
                Depth { certain: depth(certain), most: depth(maybe || given_up) }
            });
            chains.collect()
        });
        let mut reach = Self { chains: tables.collect(), has_unseen: false };
        for (at, ..) in file.rules() {
            let tally = counters.rule(at);
            if tally.packets + tally.maybe > 0 {
                reach.deepen(at, tally.packets > 0);
            }
        }
        let family = file.ruleset.family;
        for (one, by) in decisions {
            if let By::HotDrop(at) = by
                && one == family
            {
                reach.deepen(at, true);
            }
        }
        for why in unknown {
            if let Why::Rule(one, at, _) = why
                && one == family
            {
                reach.deepen(at, false);
            }
        }
        reach
    }

    /// Notes whether packets may have passed that no capture shows.
    pub(crate) fn with_unseen(self, has_unseen: bool) -> Self {
        Self { has_unseen, ..self }
    }

    /// Whether a rule was.
    pub(crate) fn of(&self, at: RuleRef) -> Reached {
        let table = self.chains.get(at.table as usize);
        let chain = table.and_then(|table| table.get(at.chain as usize));
        let Depth { certain, most } = chain.copied().unwrap_or_default();
        match at.rule {
            rule if rule < certain => Reached::Yes,
            rule if rule < most || self.has_unseen => Reached::Maybe,
            _ => Reached::No,
        }
    }

    fn deepen(&mut self, at: RuleRef, certain: bool) {
        let table = self.chains.get_mut(at.table as usize);
        let chain = table.and_then(|table| table.get_mut(at.chain as usize));
        let Some(depth) = chain else { return };
        depth.most = depth.most.max(at.rule + 1);
        if certain {
            depth.certain = depth.certain.max(at.rule + 1);
        }
    }
}

/// Whether a walk ended before its end, so that nobody knows what it would have reached.
fn is_given_up(why: Why) -> bool {
    matches!(why, Why::Rule(_, _, Cause::Steps | Cause::Patience | Cause::Stopped))
}
