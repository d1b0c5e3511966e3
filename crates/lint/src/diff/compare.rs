//! Compares the fates of packets under both rulesets: packets that get another verdict, by what decides about them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rules::eval::{By, RuleRef};
use rules::model::{Hook, Rule, Ruleset};
use rules::save::print_rule;

use super::altered::Alterations;
use super::causes;
use super::differences::{Difference, Differences, MOST_REGIONS, MOST_UNKNOWN};
use super::stage::{Decided, Origin, Passed, Stage, hook_name};
use super::unequal::{End, Several, Unequal, is_known, is_same};
use super::witness::Witnesses;
use crate::diagram::{Region, TooLarge};
use crate::flow::Fate;
use crate::meeting::Meeting;
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
    /// The decisions of each side, to be found by packets.
    pub(super) decided: [Meeting; 2],
    /// Pieces of which no packet was found that shows them.
    pub(super) unshown: usize,
}

/// Decisions in their order, and where each is.
#[derive(Default)]
struct Decisions {
    all: Vec<Decision>,
    places: BTreeMap<Noted, usize>,
}

/// What distinguishes decisions.
type Noted = (Stage, bool, [Option<By>; 2], [Fate; 2]);

/// Pieces without a witness after which no more witnesses are looked for.
const MOST_UNSHOWN: usize = 200;

/// Packets that two rules, or policies, decide about.
struct Decision {
    stage: Stage,
    fates: [Fate; 2],
    by: [Option<By>; 2],
    region: Region,
    /// The decision depends on nothing that is not known.
    certain: bool,
}

impl Comparison<'_> {
    pub(super) fn compare(mut self) -> Result<(), TooLarge> {
        self.compare_marks()?;
        let [old, new] = [self.ends(0)?, self.ends(1)?];
        let mut decisions = Decisions::default();
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
        let new: Vec<(&End, &Region)> = new.iter().collect();
        let regions = new.iter().map(|(_, region)| **region).collect();
        let ends = Meeting::of(&mut self.space.diagrams, regions);
        for (from, before) in &old {
            let left = self.space.diagrams.without(*before, done)?;
            let mut at = 0;
            while let Some(place) = ends.next(&mut self.space.diagrams, at, left) {
                at = place + 1;
                let (to, after) = new[place];
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
        decisions.all.sort_by_key(|decision| (!decision.certain, decision.stage));
        for decision in decisions.all {
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
        let new = &self.passed[1].routed;
        let regions = new.iter().map(|it| it.region).collect();
        let by_new = Meeting::of(&mut self.space.diagrams, regions);
        for old in &self.passed[0].routed {
            let mut from = 0;
            while let Some(place) = by_new.next(&mut self.space.diagrams, from, old.region) {
                from = place + 1;
                let new = &new[place];
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
    /// other does not. What the other side decided at that hook comes first.
    fn list(
        &mut self,
        ends: [&End; 2],
        fates: &[Fate; 2],
        (mut left, certain): (Region, bool),
        decisions: &mut Decisions,
    ) -> Result<(), TooLarge> {
        let lead = lead(ends);
        let passed = self.passed;
        let mut from = 0;
        while let Some(place) = self.decided[lead].next(&mut self.space.diagrams, from, left) {
            from = place + 1;
            let leading = &passed[lead].decided[place];
            if !leads(leading, lead, ends) {
                continue;
            }
            let (stage, by) = (leading.stage, leading.by);
            let at = (stage, certain);
            let mut here = self.part(leading.packets.region, &mut left)?;
            for is_there in [true, false] {
                let mut from = 0;
                while let Some(place) =
                    self.decided[1 - lead].next(&mut self.space.diagrams, from, here)
                {
                    from = place + 1;
                    let other = &passed[1 - lead].decided[place];
                    let same_hook = other.stage.hook == stage.hook;
                    if same_hook == is_there && follows(other, ends[1 - lead], stage) {
                        let part = self.part(other.packets.region, &mut here)?;
                        self.note(at, fates, pair(lead, by, Some(other.by)), part, decisions)?;
                    }
                }
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

    fn note(
        &mut self,
        (stage, certain): (Stage, bool),
        fates: &[Fate; 2],
        by: [Option<By>; 2],
        part: Region,
        decisions: &mut Decisions,
    ) -> Result<(), TooLarge> {
        if part.is_empty() {
            return Ok(());
        }
        match decisions.places.entry((stage, certain, by, fates.clone())) {
            Entry::Occupied(place) => {
                let known = &mut decisions.all[*place.get()];
                known.region = self.space.diagrams.or(known.region, part)?;
            }
            Entry::Vacant(place) => {
                place.insert(decisions.all.len());
                let fates = fates.clone();
                decisions.all.push(Decision { stage, fates, by, region: part, certain });
            }
        }
        Ok(())
    }

    fn add(&mut self, decision: Decision) -> Result<(), TooLarge> {
        let Decision { stage, fates, by, region: part, certain } = decision;
        if self.unshown > MOST_UNSHOWN {
            self.found.more = true;
            return Ok(());
        }
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
                None if self.found.unknown.len() >= MOST_UNKNOWN => {
                    self.unshown += 1;
                    self.found.more = true;
                }
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

/// Whether a decision makes the difference of these ends, on the side that leads.
fn leads(it: &Decided, lead: usize, ends: [&End; 2]) -> bool {
    match &ends[lead].0 {
        Fate::Accept => {
            matches!(&it.fate, Fate::Translate(text) if !ends[1 - lead].1.contains(text))
        }
        fate => it.fate == *fate,
    }
}

/// The other side, which comes to this end, decided it there, or in that table on another way, or where it stopped packets.
fn follows(it: &Decided, end: &End, stage: Stage) -> bool {
    match &end.0 {
        Fate::Accept => it.stage.table == stage.table && goes_on(&it.fate),
        fate => it.fate == *fate,
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

/// The side whose decision names the place of the difference: it does not let packets through, or translates them.
fn lead([from, to]: [&End; 2]) -> usize {
    match (&from.0, &to.0) {
        (Fate::Accept, Fate::Accept) => usize::from(!to.1.iter().all(|it| from.1.contains(it))),
        (Fate::Accept, _) => 1,
        _ => 0,
    }
}

/// The fate of several ends: the only one, or one of several.
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
