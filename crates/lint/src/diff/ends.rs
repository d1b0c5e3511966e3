//! One chain under both rulesets: the packets that get another verdict.

use std::collections::BTreeMap;

use rules::eval::{By, RuleRef, Verdict};
use rules::model::{Action, Hook, Rule, Ruleset};
use rules::save::print_rule;

use super::{Difference, Differences, MOST_REGIONS, MOST_UNKNOWN};
use crate::diagram::{Region, TooLarge};
use crate::flow::{Decision, Fate, Flow, target_text};
use crate::packet::{spec, walked};
use crate::space::{Preferred, Space};

/// One of the rulesets.
#[derive(Clone, Copy)]
pub(super) struct Side<'f> {
    pub(super) ruleset: &'f Ruleset,
    /// The table, if it has it.
    pub(super) table: Option<usize>,
    /// All packets through its chain, if it has it.
    pub(super) flow: Option<&'f Flow>,
}

/// A comparison at one place.
pub(super) struct Ends<'f> {
    pub(super) space: &'f mut Space,
    pub(super) hook: Hook,
    pub(super) place: String,
    pub(super) sides: [Side<'f>; 2],
    pub(super) found: &'f mut Differences,
}

/// Packets by what becomes of them.
type Fates = BTreeMap<Fate, Region>;

impl Ends<'_> {
    pub(super) fn compare(&mut self) -> Result<(), TooLarge> {
        let all = self.space.at_hook(self.hook)?;
        self.compare_alterations();
        let [old, new] = [self.fates(0, all)?, self.fates(1, all)?];
        let is_identical = self.walked_alike(0) == self.walked_alike(1);
        for (from, before) in &old {
            for (to, after) in &new {
                let both = self.space.diagrams.and(*before, *after)?;
                // What goes on after a target that may do anything is only known to be the same where all rules are.
                let is_same = from == to && (is_identical || !matches!(from, Fate::Open(_)));
                if both.is_empty() || is_same {
                    continue;
                }
                let certain = match is_known(from) && is_known(to) {
                    true => self.space.for_all_answers(both)?,
                    false => Region::NONE,
                };
                self.list([from, to], certain, all)?;
                let rest = self.space.diagrams.without(both, certain)?;
                self.list_unknown([from, to], rest, all);
            }
        }
        Ok(())
    }

    /// All that happens to packets on their way, rule by rule.
    fn walked_alike(&self, side: usize) -> Vec<(Region, Region, String)> {
        let Side { ruleset, flow, .. } = self.sides[side];
        let visits = flow.map_or(&[][..], |flow| &flow.visits);
        visits.iter().map(|it| (it.entry, it.matches, does(rule_at(ruleset, it.at)))).collect()
    }

    fn compare_alterations(&mut self) {
        let of = |side: Side<'_>| side.flow.map_or(0, |flow| flow.alterations);
        if of(self.sides[0]) != of(self.sides[1]) {
            let what = format!(
                "{}: marks and other changes of packets differ, and so may what depends on them",
                self.place
            );
            self.found.unknown.push(what);
        }
    }

    fn decisions(&self, side: usize) -> &[Decision] {
        self.sides[side].flow.map_or(&[], |flow| &flow.decisions)
    }

    fn fates(&mut self, side: usize, all: Region) -> Result<Fates, TooLarge> {
        let mut fates = Fates::new();
        let Some(flow) = self.sides[side].flow else {
            // A table without a chain here lets everything go on.
            fates.insert(Fate::Accept, all);
            return Ok(fates);
        };
        for decision in &flow.decisions {
            let region = fates.entry(decision.fate.clone()).or_insert(Region::NONE);
            *region = self.space.diagrams.or(*region, decision.region)?;
        }
        Ok(fates)
    }

    /// Lists the packets of a region, by what decides about them.
    fn list(
        &mut self,
        [from, to]: [&Fate; 2],
        mut left: Region,
        all: Region,
    ) -> Result<(), TooLarge> {
        let [old, new] = [self.deciding(0, from, left)?, self.deciding(1, to, left)?];
        for (by_old, before) in &old {
            for (by_new, after) in &new {
                let both = self.space.diagrams.and(*before, *after)?;
                let some = self.space.for_some_answers(both)?;
                let part = self.space.diagrams.and(some, left)?;
                if part.is_empty() {
                    continue;
                }
                left = self.space.diagrams.without(left, part)?;
                self.add([from, to], [*by_old, *by_new], part, all)?;
            }
        }
        Ok(())
    }

    /// Decisions of a side with this fate, about packets of a region.
    fn deciding(
        &mut self,
        side: usize,
        fate: &Fate,
        region: Region,
    ) -> Result<Vec<(Option<By>, Region)>, TooLarge> {
        if self.sides[side].flow.is_none() {
            return Ok(vec![(None, region)]);
        }
        let of_fate: Vec<(By, Region)> = self
            .decisions(side)
            .iter()
            .filter(|decision| decision.fate == *fate)
            .map(|decision| (decision.by, decision.region))
            .collect();
        let mut found = Vec::new();
        for (by, decided) in of_fate {
            let part = self.space.diagrams.and(decided, region)?;
            if part.is_empty() {
                continue;
            }
            // A chain that several rules lead to decides more than once.
            let known =
                found.iter_mut().find(|(one, _): &&mut (Option<By>, Region)| *one == Some(by));
            match known {
                Some((_, region)) => *region = self.space.diagrams.or(*region, part)?,
                None => found.push((Some(by), part)),
            }
        }
        Ok(found)
    }

    fn add(
        &mut self,
        fates: [&Fate; 2],
        by: [Option<By>; 2],
        part: Region,
        all: Region,
    ) -> Result<(), TooLarge> {
        let here = self.found.regions.iter().filter(|it| it.place == self.place).count();
        let pieces = self.space.pieces(part, all, MOST_REGIONS.saturating_sub(here));
        self.found.more |= pieces.more;
        let deciders = [0, 1].map(|side| self.decider(side, by[side]));
        for piece in pieces.pieces {
            let within = self.space.of_piece(&piece)?;
            let region = self.space.diagrams.and(within, part)?;
            match self.witness(region, fates) {
                Some(witness) => self.found.regions.push(Difference {
                    place: self.place.clone(),
                    fates: fates.map(Clone::clone),
                    deciders: deciders.clone(),
                    piece,
                    witness,
                }),
                None => self
                    .unknown(&format!("{} -> {}: {piece}: no packet shows it", fates[0], fates[1])),
            }
        }
        Ok(())
    }

    fn unknown(&mut self, what: &str) {
        self.found.unknown.push(format!("{}: {what}", self.place));
    }

    fn list_unknown(&mut self, [from, to]: [&Fate; 2], doubtful: Region, all: Region) {
        let pieces = self.space.pieces(doubtful, all, MOST_UNKNOWN);
        for piece in &pieces.pieces {
            self.unknown(&format!("{from} -> {to}: {piece}"));
        }
        if pieces.more {
            self.unknown("and more");
        }
    }

    fn decider(&self, side: usize, by: Option<By>) -> (u32, String) {
        let Side { ruleset, .. } = self.sides[side];
        match by {
            None => (0, "no chain".to_owned()),
            Some(By::Rule(at) | By::HotDrop(at)) => {
                let table = &ruleset.tables[at.table as usize];
                let rule = rule_at(ruleset, at);
                let chain = &table.chains[at.chain as usize];
                (rule.line, print_rule(ruleset.family, table, chain, rule))
            }
            Some(By::Policy { table, chain }) => {
                let chain = &ruleset.tables[table as usize].chains[chain as usize];
                let policy = chain.base.map_or_else(String::new, |base| base.policy.to_string());
                (chain.line, format!("policy {policy} of {}", chain.name))
            }
        }
    }

    /// A packet that both walks say this of.
    fn witness(&self, region: Region, fates: [&Fate; 2]) -> Option<String> {
        let family = self.space.family();
        (0..8).find_map(|seed| {
            let preferred = match seed {
                0 => Preferred::usual(family),
                _ => Preferred::drawn(family, seed),
            };
            let sample = self.space.sample(region, &preferred)?;
            for (side, fate) in self.sides.iter().zip(fates) {
                let Some(table) = side.table.filter(|_| side.flow.is_some()) else { continue };
                let walked = walked(side.ruleset, table, self.hook, &sample.values)?;
                let (verdict, _) = walked.verdict?;
                if Some(verdict) != verdict_of(fate) {
                    return None;
                }
            }
            spec(family, self.hook, &sample.values)
        })
    }
}

fn rule_at(ruleset: &Ruleset, at: RuleRef) -> &Rule {
    &ruleset.tables[at.table as usize].chains[at.chain as usize].rules[at.rule as usize]
}

/// What a rule does, whatever its chains are called.
fn does(rule: &Rule) -> String {
    match &rule.action {
        Action::Jump(_) => "jump".to_owned(),
        Action::Goto(_) => "goto".to_owned(),
        Action::Target(target) => target_text(target),
        action => format!("{action:?}"),
    }
}

/// What becomes of packets is told by the fate alone.
fn is_known(fate: &Fate) -> bool {
    verdict_of(fate).is_some()
}

fn verdict_of(fate: &Fate) -> Option<Verdict> {
    match fate {
        Fate::Accept => Some(Verdict::Accept),
        Fate::Drop => Some(Verdict::Drop),
        Fate::Reject(_) => Some(Verdict::Reject),
        // What a translation leads to is for later chains to say.
        Fate::Translate(_) | Fate::Open(_) => None,
    }
}
