//! What became of packets under both rulesets: those that get another verdict, by what decides about them.

use std::collections::BTreeMap;

use rules::eval::{By, RuleRef};
use rules::model::{Hook, Rule, Ruleset};
use rules::save::print_rule;

use super::altered::Alterations;
use super::stage::{Decided, Origin, Passed, Stage};
use super::unequal::{End, Several, Unequal, is_known, is_same};
use super::witness::Witnesses;
use super::{Difference, Differences, MOST_REGIONS, MOST_UNKNOWN, causes, hook_name};
use crate::diagram::{Region, TooLarge};
use crate::flow::Fate;
use crate::space::{Part, Space};

/// A comparison of the verdicts on the same packets.
pub(super) struct Comparison<'c> {
    pub(super) space: &'c mut Space,
    pub(super) alterations: &'c Alterations,
    pub(super) rulesets: [&'c Ruleset; 2],
    pub(super) origin: Origin,
    /// All packets that are meant.
    pub(super) all: Region,
    pub(super) passed: &'c [Passed; 2],
    pub(super) unequal: &'c Unequal,
    pub(super) found: &'c mut Differences,
}

/// Packets that two rules, or policies, decide about.
struct Decision {
    stage: Stage,
    fates: [Fate; 2],
    by: [Option<By>; 2],
    region: Region,
    /// It depends on nothing that is not known.
    certain: bool,
}

impl Comparison<'_> {
    pub(super) fn compare(&mut self) -> Result<(), TooLarge> {
        self.compare_marks()?;
        let [old, new] = [self.ends(0)?, self.ends(1)?];
        let mut decisions = Vec::new();
        let mut done = Region::NONE;
        for Several { ends, region } in self.unequal.several(self.space, [&old, &new])? {
            done = self.space.diagrams.or(done, region)?;
            let certain = self.space.for_all_answers(region)?;
            let rest = self.space.diagrams.without(region, certain)?;
            let [Some(from), Some(to)] = [0, 1].map(|side: usize| ends[side].last()) else {
                continue;
            };
            let (pair, fates) = ([from, to], [0, 1].map(|side: usize| one_of(&ends[side])));
            for which in [(certain, true), (rest, false)] {
                self.list(pair, &fates, which, &mut decisions)?;
            }
        }
        for (from, before) in &old {
            for (to, after) in &new {
                if is_same(from, to) {
                    continue;
                }
                let both = self.space.diagrams.and(*before, *after)?;
                let both = self.space.diagrams.without(both, done)?;
                if both.is_empty() {
                    continue;
                }
                let certain = match is_known(&from.0) && is_known(&to.0) {
                    true => self.certain([from, to], [*before, *after])?,
                    false => Region::NONE,
                };
                let certain = self.space.diagrams.without(certain, done)?;
                let fates = fates([from, to]);
                self.list([from, to], &fates, (certain, true), &mut decisions)?;
                let alike = self.unequal.alike(self.space, *after)?;
                let both = self.space.diagrams.and(*before, alike)?;
                let both = self.space.diagrams.without(both, done)?;
                let rest = self.space.diagrams.without(both, certain)?;
                self.list([from, to], &fates, (rest, false), &mut decisions)?;
            }
        }
        decisions.sort_by_key(|decision| (!decision.certain, decision.stage));
        for decision in decisions {
            self.add(decision)?;
        }
        Ok(())
    }

    /// What becomes of packets: each region says of packets as they came.
    fn ends(&mut self, side: usize) -> Result<BTreeMap<End, Region>, TooLarge> {
        let passed = &self.passed[side];
        let mut ends: BTreeMap<End, Region> = BTreeMap::new();
        let decided = passed.decided.iter().filter(|it| !goes_on(&it.fate));
        let dead = decided.map(|it| (it.fate.clone(), it.packets));
        let accepted = passed.accepted.iter().map(|packets| (Fate::Accept, *packets));
        for (fate, packets) in dead.chain(accepted) {
            let translations = self.alterations.get(packets.altered).translations.clone();
            let region = ends.entry((fate, translations)).or_insert(Region::NONE);
            *region = self.space.diagrams.or(*region, packets.region)?;
        }
        Ok(ends)
    }

    /// Packets that get these fates for sure. Where flows are translated to different places they may go out by
    /// different interfaces: then one of the fates has to be the same for all of them.
    fn certain(
        &mut self,
        [from, to]: [&End; 2],
        [before, after]: [Region; 2],
    ) -> Result<Region, TooLarge> {
        let mut both = self.space.diagrams.and(before, after)?;
        if from.1 != to.1 {
            let always = [self.by_any_output(before)?, self.by_any_output(after)?];
            let one = self.space.diagrams.and(always[0], after)?;
            let other = self.space.diagrams.and(before, always[1])?;
            both = self.space.diagrams.or(one, other)?;
        }
        self.space.for_all_answers(both)
    }

    /// Packets that are in a region whatever interface they go out by.
    fn by_any_output(&mut self, region: Region) -> Result<Region, TooLarge> {
        let outside = self.space.diagrams.without(self.all, region)?;
        let levels = self.space.levels(Part::Output);
        let maybe_outside = self.space.diagrams.whatever(outside, levels)?;
        self.space.diagrams.without(region, maybe_outside)
    }

    /// Marks that routing sees.
    fn compare_marks(&mut self) -> Result<(), TooLarge> {
        let mut any = Region::NONE;
        for old in &self.passed[0].routed {
            for new in &self.passed[1].routed {
                let marks = [old, new].map(|it| self.alterations.get(it.altered).mark(self.space));
                if old.altered != new.altered && marks[0] != marks[1] {
                    let both = self.space.diagrams.and(old.region, new.region)?;
                    any = self.space.diagrams.or(any, both)?;
                }
            }
        }
        let some = self.space.for_some_answers(any)?;
        let place = if self.origin == Origin::Arriving { "PREROUTING" } else { "OUTPUT" };
        for piece in self.space.pieces(some, self.all, 4).pieces {
            let what = "packets get another mark, and so maybe another route";
            self.found.unknown.push(format!("mangle {place}: {what}: {piece}"));
        }
        Ok(())
    }

    /// Packets of a region by what decides about them. A packet that one side lets through is decided there where the
    /// other does not.
    fn list(
        &mut self,
        ends: [&End; 2],
        fates: &[Fate; 2],
        (mut left, certain): (Region, bool),
        decisions: &mut Vec<Decision>,
    ) -> Result<(), TooLarge> {
        let lead = lead(ends);
        for (stage, by, region) in self.leading(lead, ends)? {
            let at = (stage, certain);
            let mut here = self.part(region, &mut left)?;
            for (by_other, other) in self.others(1 - lead, ends[1 - lead], stage) {
                let part = self.part(other, &mut here)?;
                self.note(at, fates, pair(lead, by, Some(by_other)), part, decisions)?;
            }
            self.note(at, fates, pair(lead, by, None), here, decisions)?;
        }
        Ok(())
    }

    /// What a region has of another for some answers; it is taken from that.
    fn part(&mut self, region: Region, left: &mut Region) -> Result<Region, TooLarge> {
        let both = self.space.diagrams.and(region, *left)?;
        let some = self.space.for_some_answers(both)?;
        let part = self.space.diagrams.and(some, *left)?;
        *left = self.space.diagrams.without(*left, part)?;
        Ok(part)
    }

    /// Decisions that make the difference.
    fn leading(
        &mut self,
        side: usize,
        ends: [&End; 2],
    ) -> Result<Vec<(Stage, By, Region)>, TooLarge> {
        let end = ends[side];
        let is_meant = |it: &&Decided| match &end.0 {
            Fate::Accept => {
                matches!(&it.fate, Fate::Translate(text) if !ends[1 - side].1.contains(text))
            }
            fate => it.fate == *fate,
        };
        let decided = self.passed[side].decided.iter().filter(is_meant);
        Ok(decided.map(|it| (it.stage, it.by, it.packets.region)).collect())
    }

    /// What the other side decided there, or in that table on another way, or where it stopped packets.
    fn others(&self, side: usize, end: &End, stage: Stage) -> Vec<(By, Region)> {
        let is_meant = |it: &&Decided| match &end.0 {
            Fate::Accept => it.stage.table == stage.table && goes_on(&it.fate),
            fate => it.fate == *fate,
        };
        let decided = self.passed[side].decided.iter().filter(is_meant);
        let mut decided: Vec<&Decided> = decided.collect();
        decided.sort_by_key(|it| it.stage.hook != stage.hook);
        decided.into_iter().map(|it| (it.by, it.packets.region)).collect()
    }

    fn note(
        &mut self,
        (stage, certain): (Stage, bool),
        fates: &[Fate; 2],
        by: [Option<By>; 2],
        part: Region,
        decisions: &mut Vec<Decision>,
    ) -> Result<(), TooLarge> {
        if part.is_empty() {
            return Ok(());
        }
        let same = |it: &&mut Decision| {
            (it.stage, it.certain) == (stage, certain) && it.by == by && it.fates == *fates
        };
        match decisions.iter_mut().find(same) {
            Some(known) => known.region = self.space.diagrams.or(known.region, part)?,
            None => {
                let fates = fates.clone();
                decisions.push(Decision { stage, fates, by, region: part, certain });
            }
        }
        Ok(())
    }

    fn add(&mut self, decision: Decision) -> Result<(), TooLarge> {
        let Decision { stage, fates, by, region: part, certain } = decision;
        let place = place(stage);
        let here = self.found.regions.iter().filter(|it| it.place == place).count();
        let some = self.space.for_some_answers(part)?;
        let within = self.within(stage.hook, some)?;
        let pieces = self.space.pieces(some, within, MOST_REGIONS.saturating_sub(here));
        self.found.more |= pieces.more;
        let names = self.space.asked_in(part);
        let depends = causes::of(&names);
        let deciders = [0, 1].map(|side| self.decider(side, by[side]));
        self.found.to_know.extend(causes::to_know(&names));
        for piece in self.space.fewer(pieces.pieces, within)? {
            let of_piece = self.space.of_piece(&piece)?;
            let region = self.space.diagrams.and(of_piece, part)?;
            let (space, rulesets, origin, hook) =
                (&*self.space, self.rulesets, self.origin, stage.hook);
            match (Witnesses { space, rulesets, origin, hook }).find(region, &fates, certain) {
                Some((witness, given)) => self.found.regions.push(Difference {
                    place: place.clone(),
                    fates: fates.clone(),
                    deciders: deciders.clone(),
                    piece,
                    depends: depends.clone(),
                    witness,
                    given,
                }),
                None if self.found.unknown.len() >= MOST_UNKNOWN => self.found.more = true,
                None => {
                    let what = format!("{} -> {}: {piece}", fates[0], fates[1]);
                    let why = if certain {
                        ": no packet shows it".to_owned()
                    } else {
                        causes::words(&depends)
                    };
                    self.found.unknown.push(format!("{place}: {what}{why}"));
                }
            }
        }
        Ok(())
    }

    /// All packets that may get there, if these are some of them; else any.
    fn within(&mut self, hook: Hook, part: Region) -> Result<Region, TooLarge> {
        let way = match (self.origin, hook) {
            (Origin::Arriving, Hook::Input) => 0,
            (Origin::Arriving, Hook::Forward | Hook::Postrouting) => 1,
            _ => return Ok(self.all),
        };
        let way = self.space.range(Part::Way, way, way)?;
        let here = self.space.diagrams.and(self.all, way)?;
        let elsewhere = self.space.diagrams.without(part, here)?;
        Ok(if elsewhere.is_empty() { here } else { self.all })
    }

    fn decider(&self, side: usize, by: Option<By>) -> (u32, String) {
        let ruleset = self.rulesets[side];
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
}

fn place(stage: Stage) -> String {
    format!("{} {}", stage.table, hook_name(stage.hook))
}

fn pair(lead: usize, by: By, other: Option<By>) -> [Option<By>; 2] {
    if lead == 0 { [Some(by), other] } else { [other, Some(by)] }
}

fn rule_at(ruleset: &Ruleset, at: RuleRef) -> &Rule {
    &ruleset.tables[at.table as usize].chains[at.chain as usize].rules[at.rule as usize]
}

/// The walk goes on.
fn goes_on(fate: &Fate) -> bool {
    matches!(fate, Fate::Accept | Fate::Translate(_))
}

/// The side that tells where the difference is made: the one that does not let packets through, or translates them.
fn lead([from, to]: [&End; 2]) -> usize {
    match (&from.0, &to.0) {
        (Fate::Accept, Fate::Accept) => usize::from(!to.1.iter().all(|it| from.1.contains(it))),
        (Fate::Accept, _) => 1,
        _ => 0,
    }
}

/// One of several fates.
fn one_of(ends: &[End]) -> Fate {
    match ends {
        [(fate, _)] => fate.clone(),
        several => Fate::OneOf(several.iter().map(|(fate, _)| fate.clone()).collect()),
    }
}

/// What becomes of packets, in words: translations only where they make the difference.
fn fates([from, to]: [&End; 2]) -> [Fate; 2] {
    if from.0 != Fate::Accept || to.0 != Fate::Accept {
        return [from.0.clone(), to.0.clone()];
    }
    [from, to].map(|(fate, translations)| match translations.is_empty() {
        true => fate.clone(),
        false => Fate::Translate(translations.join(", ")),
    })
}
