//! [`Space`]: the packets that rules tell apart, and the regions of predicates among them.

use std::collections::{BTreeSet, HashMap, HashSet};

use conntrack::CtState;
use host::Host;
use rules::Backend;
use rules::ext::{MatchUse, Support};
use rules::ipset::Sets;
use rules::model::{Action, Family, IfaceTest, Rule, Ruleset};
use rules::predicate::{Bit, Change, Field, Form, Predicate, Values};

use super::marks::{Marks, cubes};
use super::names::Names;
use super::part::{Dimension, FORMS, Part, dimensions, place};
use crate::diagram::{Diagrams, Region, TooLarge};

/// Nodes that all regions of a space may have: 600 MiB.
const MOST_NODES: usize = 12_000_000;

/// Tests that can only be asked, which are as many levels.
const MOST_ASKED: u32 = 2_000;

/// Packets of a family under some rulesets.
#[derive(Debug)]
pub struct Space {
    pub(super) family: Family,
    pub(super) backend: Backend,
    /// Connections are tracked, and so packets are put together before any rule.
    pub(super) tracks: bool,
    /// Where sets are made.
    pub diagrams: Diagrams,
    pub(super) names: Names,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) marks: Marks,
    /// Tests that can only be asked, by name.
    pub(super) asked: HashMap<String, u32>,
    pub(super) asked_names: Vec<String>,
    /// Fields that some rule tests.
    pub(super) tested: BTreeSet<Field>,
    /// The host that the rules stand on.
    pub(super) host: Host,
    /// The host's sets, if they are known and no rule changes them.
    pub(super) sets: Option<Sets>,
    /// Some rule changes sets.
    pub(super) sets_change: bool,
    /// Packets with the way and the output interface that routes give them, where they are followed.
    pub(super) routed: Option<Region>,
}

impl Space {
    /// The packets that these rulesets, of one family and implementation, tell apart.
    #[must_use]
    pub fn of(rulesets: &[&Ruleset]) -> Self {
        Self::on(rulesets, &Host::default(), None)
    }

    /// The packets that these rulesets tell apart on a host, as far as it is known.
    #[must_use]
    pub fn on(rulesets: &[&Ruleset], host: &Host, sets: Option<&Sets>) -> Self {
        Self::among(rulesets, host, sets, &[])
    }

    /// A space that also distinguishes interfaces of these names.
    #[must_use]
    pub(crate) fn among(
        rulesets: &[&Ruleset],
        host: &Host,
        sets: Option<&Sets>,
        links: &[String],
    ) -> Self {
        let family = rulesets.first().map_or(Family::Ipv4, |ruleset| ruleset.family);
        let backend = rulesets.first().map_or_else(Backend::default, |ruleset| ruleset.backend);
        let rules = || rulesets.iter().flat_map(|ruleset| ruleset.rules());
        let names = Names::of(rules().flat_map(interfaces), links);
        let tracks = !rulesets.is_empty() && rulesets.iter().all(|ruleset| ruleset.tracks());
        let dimensions = dimensions(family, bits_for(names.count()));
        let sets_change = rules().any(changes_sets);
        let sets = sets.filter(|_| !sets_change).map(Sets::copied);
        let matches = rules().flat_map(|rule| &rule.matches);
        let predicates: Vec<Predicate> =
            matches.filter_map(|used| predicate_of(used, family, sets.as_ref())).collect();
        let mut tested = BTreeSet::new();
        predicates.iter().for_each(|one| note_fields(one, &mut tested));
        // Where addresses of the host are known, they say which way packets go.
        let tells = host.local.is_some() || host.assigned.is_some() || host.routes.is_some();
        if tells || !host.addresses.is_empty() {
            tested.insert(Field::DestinationType);
        }
        Self {
            family,
            backend,
            tracks,
            diagrams: Diagrams::of_most(MOST_NODES),
            names,
            dimensions,
            marks: Marks::of(predicates.iter()),
            asked: HashMap::new(),
            asked_names: Vec::new(),
            tested,
            host: host.clone(),
            sets,
            sets_change,
            routed: None,
        }
    }

    /// What a match asks, as data, where that says all of it.
    #[must_use]
    pub fn predicate_of(&self, used: &MatchUse) -> Option<Predicate> {
        predicate_of(used, self.family, self.sets.as_ref())
    }

    /// A match, asked twice about a packet that nothing altered in between, says the same, whatever other packets there
    /// were.
    #[must_use]
    pub fn repeats(&self, used: &MatchUse) -> bool {
        let is_set_of_others = self.sets_change && used.body.asks_for_set();
        used.support == Support::Evaluated && used.body.repeats() && !is_set_of_others
    }

    /// The host that the rules stand on.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// A copy of its sets, to walk packets with, if they are known and no rule changes them.
    pub(crate) fn sets(&self) -> Option<Sets> {
        self.sets.as_ref().map(Sets::copied)
    }

    /// Packets with the way and the output interface that routes give them, where they are followed.
    pub(crate) fn routed(&self) -> Option<Region> {
        self.routed
    }

    /// The family of its packets.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    pub(super) fn dimension(&self, part: Part) -> Dimension {
        let found = self.dimensions.iter().find(|dimension| dimension.part == part);
        *found.unwrap_or(&Dimension { part, start: 0, bits: 0 })
    }

    pub(super) fn first_asked(&self) -> u32 {
        self.dimensions.last().map_or(0, Dimension::end)
    }

    /// What a test that can only be asked accepts: a bit of this name.
    ///
    /// # Errors
    /// There is no room.
    pub fn asked(&mut self, name: &str) -> Result<Region, TooLarge> {
        let next = self.asked_names.len() as u32;
        let number = match self.asked.get(name) {
            Some(number) => *number,
            None if next >= MOST_ASKED => return Err(TooLarge),
            None => {
                self.asked.insert(name.to_owned(), next);
                self.asked_names.push(name.to_owned());
                next
            }
        };
        self.diagrams.choice(self.first_asked() + number, Region::NONE, Region::ALL)
    }

    /// The region without what it says of tests that can only be asked: packets that are in it for some answers of them.
    ///
    /// # Errors
    /// There is no room.
    pub fn for_some_answers(&mut self, region: Region) -> Result<Region, TooLarge> {
        self.diagrams.whatever(region, self.first_asked()..u32::MAX - 1)
    }

    /// The packets that are in a region whatever the answers of tests that can only be asked.
    ///
    /// # Errors
    /// There is no room.
    pub fn for_all_answers(&mut self, region: Region) -> Result<Region, TooLarge> {
        let outside = self.diagrams.without(Region::ALL, region)?;
        let may_be_outside = self.for_some_answers(outside)?;
        self.diagrams.without(Region::ALL, may_be_outside)
    }

    /// The packets of a region with any state of their connections.
    ///
    /// # Errors
    /// There is no room.
    pub fn in_any_state(&mut self, region: Region) -> Result<Region, TooLarge> {
        let state = self.dimension(Part::State);
        let free = self.diagrams.whatever(region, state.start..state.end())?;
        let states = self.range(Part::State, 0, CtState::ALL.len() as u128 - 1)?;
        self.diagrams.and(free, states)
    }

    /// Whether some rule tests a field.
    #[must_use]
    pub fn is_tested(&self, field: Field) -> bool {
        self.tested.contains(&field)
    }

    /// The levels of a part.
    pub fn levels(&self, part: Part) -> std::ops::Range<u32> {
        let dimension = self.dimension(part);
        dimension.start..dimension.end()
    }

    /// The level of a test that can only be asked.
    pub fn asked_level(&mut self, name: &str) -> Result<u32, TooLarge> {
        let region = self.asked(name)?;
        Ok(self.diagrams.branch(region).map_or(0, |(level, ..)| level))
    }

    /// The names of tests that can only be asked on which a region depends.
    pub fn asked_in(&self, region: Region) -> Vec<String> {
        let (mut seen, mut found) = (HashSet::new(), BTreeSet::new());
        let mut left = vec![region];
        while let Some(at) = left.pop() {
            let Some((level, low, high)) = self.diagrams.branch(at).filter(|_| seen.insert(at))
            else {
                continue;
            };
            let number = level.checked_sub(self.first_asked());
            found.extend(number.and_then(|number| self.asked_names.get(number as usize)).cloned());
            left.extend([low, high]);
        }
        found.into_iter().collect()
    }

    /// The number of a state.
    #[must_use]
    pub fn state(&self, state: CtState) -> u128 {
        place(&CtState::ALL, state)
    }

    /// The number of an interface of this name.
    pub fn interface(&self, name: &str) -> u128 {
        self.names.number(name)
    }

    /// The level of a bit of a field, counted from the least.
    pub fn level(&self, field: Field, bit: u32) -> u32 {
        let dimension = self.dimension(Part::Field(field));
        match field {
            Field::Mark | Field::ConnMark => dimension.start + self.marks.level(bit),
            _ => dimension.end() - 1 - bit,
        }
    }

    /// What becomes of packets under these changes, and maybe others that they become.
    ///
    /// # Errors
    /// There is no room.
    pub fn after(&mut self, region: Region, changes: &[Change]) -> Result<Region, TooLarge> {
        let mut all = region;
        for Change { field, bit, .. } in changes {
            let level = self.level(*field, *bit);
            all = self.diagrams.whatever(all, level..level + 1)?;
        }
        let of_connection = changes.iter().any(|change| change.of_connection);
        for change in changes.iter().filter(|_| !of_connection) {
            let level = self.level(change.field, change.bit);
            let (low, high) = match change.to {
                Bit::Is(true) => (Region::NONE, Region::ALL),
                Bit::Is(false) => (Region::ALL, Region::NONE),
                Bit::Of { .. } | Bit::Lost => continue,
            };
            let is_so = self.diagrams.choice(level, low, high)?;
            all = self.diagrams.and(all, is_so)?;
        }
        Ok(all)
    }

    pub(crate) fn range(&mut self, part: Part, low: u128, high: u128) -> Result<Region, TooLarge> {
        let dimension = self.dimension(part);
        if low > high || low > dimension.most() {
            return Ok(Region::NONE);
        }
        let high = high.min(dimension.most());
        let (mut from, mut to) = (Region::ALL, Region::ALL);
        for level in (dimension.start..dimension.end()).rev() {
            from = match dimension.has_bit(low, level) {
                true => self.diagrams.choice(level, Region::NONE, from)?,
                false => self.diagrams.choice(level, from, Region::ALL)?,
            };
            to = match dimension.has_bit(high, level) {
                true => self.diagrams.choice(level, Region::ALL, to)?,
                false => self.diagrams.choice(level, to, Region::NONE)?,
            };
        }
        self.diagrams.and(from, to)
    }

    pub(super) fn masked(
        &mut self,
        part: Part,
        value: u128,
        mask: u128,
    ) -> Result<Region, TooLarge> {
        let dimension = self.dimension(part);
        if value & !mask != 0 {
            return Ok(Region::NONE);
        }
        let (value, mask) = (self.packed(part, value), self.packed(part, mask));
        let mut same = Region::ALL;
        for level in (dimension.start..dimension.end()).rev() {
            if !dimension.has_bit(mask, level) {
                continue;
            }
            same = match dimension.has_bit(value, level) {
                true => self.diagrams.choice(level, Region::NONE, same)?,
                false => self.diagrams.choice(level, same, Region::NONE)?,
            };
        }
        Ok(same)
    }

    pub(super) fn one_of(
        &mut self,
        part: Part,
        numbers: impl IntoIterator<Item = u128>,
    ) -> Result<Region, TooLarge> {
        let mut any = Region::NONE;
        for number in numbers {
            let one = self.range(part, number, number)?;
            any = self.diagrams.or(any, one)?;
        }
        Ok(any)
    }

    /// The packets whose interface a test accepts.
    pub(super) fn by_interface(
        &mut self,
        part: Part,
        test: &IfaceTest,
    ) -> Result<Region, TooLarge> {
        self.names.accepted(test).into_iter().try_fold(Region::NONE, |any, (low, high)| {
            let one = self.range(part, low, high)?;
            self.diagrams.or(any, one)
        })
    }

    /// The packets that a predicate of a match holds for; `name` is its text.
    ///
    /// # Errors
    /// There is no room.
    pub fn of_match(&mut self, predicate: &Predicate, name: &str) -> Result<Region, TooLarge> {
        let holds = self.of_predicate(predicate)?;
        if self.backend == Backend::Legacy || !asks_for_header(predicate) {
            return Ok(holds);
        }
        // There a later fragment is read as if it had the header.
        let fragment = self.form(Form::LaterFragment)?;
        let asked = self.asked(name)?;
        let of_fragments = self.diagrams.and(fragment, asked)?;
        let of_others = self.diagrams.without(holds, fragment)?;
        self.diagrams.or(of_others, of_fragments)
    }

    /// The packets that a predicate holds for.
    ///
    /// # Errors
    /// There is no room.
    pub fn of_predicate(&mut self, predicate: &Predicate) -> Result<Region, TooLarge> {
        match predicate {
            Predicate::All(all) => all.iter().try_fold(Region::ALL, |both, one| {
                let one = self.of_predicate(one)?;
                self.diagrams.and(both, one)
            }),
            Predicate::Any(any) => any.iter().try_fold(Region::NONE, |either, one| {
                let one = self.of_predicate(one)?;
                self.diagrams.or(either, one)
            }),
            Predicate::Not(one) => {
                let one = self.of_predicate(one)?;
                self.diagrams.without(Region::ALL, one)
            }
            Predicate::Masked { field, value, mask } => {
                self.masked(Part::Field(*field), *value, *mask)
            }
            Predicate::Range { field: field @ (Field::Mark | Field::ConnMark), low, high } => {
                let cubes = cubes(*low, *high, field.bits(self.family));
                cubes.into_iter().try_fold(Region::NONE, |any, (value, mask)| {
                    let one = self.masked(Part::Field(*field), value, mask)?;
                    self.diagrams.or(any, one)
                })
            }
            Predicate::Range { field, low, high } => self.range(Part::Field(*field), *low, *high),
            Predicate::Input(test) => self.by_interface(Part::Input, test),
            Predicate::Output(test) => self.by_interface(Part::Output, test),
            Predicate::State(states) => {
                let all = (0..).zip(CtState::ALL).filter(|(_, state)| states.may_be(*state));
                self.one_of(Part::State, all.map(|(number, _)| number))
            }
            Predicate::HasHeader => self.form(Form::Whole),
            Predicate::LaterFragment => self.form(Form::LaterFragment),
            Predicate::HasMac => self.range(Part::HasMac, 1, 1),
        }
    }

    /// The packets with these values, whatever tests say of them that can only be asked.
    ///
    /// # Errors
    /// There is no room.
    pub fn of_values(&mut self, values: &Values) -> Result<Region, TooLarge> {
        let mut all = Region::ALL;
        for Dimension { part, .. } in self.dimensions.clone() {
            if part == Part::Way {
                continue;
            }
            let number = self.number_of(part, values);
            let one = self.range(part, number, number)?;
            all = self.diagrams.and(all, one)?;
        }
        Ok(all)
    }

    /// The number that a packet with these values has for a part. Of its way they say nothing.
    pub(super) fn number_of(&self, part: Part, values: &Values) -> u128 {
        match part {
            Part::Way => 0,
            Part::State => place(&CtState::ALL, values.state),
            Part::Input => self.names.number(&values.input),
            Part::Output => self.names.number(&values.output),
            Part::Form => place(&FORMS, values.form),
            Part::HasMac => values.has_mac.into(),
            Part::Field(field) => self.packed(part, values.number(field)),
        }
    }

    /// A number of a part in the order of its bits here.
    pub(super) fn packed(&self, part: Part, number: u128) -> u128 {
        match part {
            Part::Field(Field::Mark | Field::ConnMark) => self.marks.packed(number),
            _ => number,
        }
    }

    pub(super) fn form(&mut self, form: Form) -> Result<Region, TooLarge> {
        let number = place(&FORMS, form);
        self.range(Part::Form, number, number)
    }
}

/// Bits that `count` numbers take.
fn bits_for(count: u128) -> u32 {
    (u128::BITS - count.saturating_sub(1).leading_zeros()).max(1)
}

fn interfaces(rule: &Rule) -> impl Iterator<Item = &IfaceTest> {
    let of_header = rule.header.iter().flat_map(|header| [header.input(), header.output()]);
    of_header.flatten()
}

/// The names of interfaces that rules ask for as a whole.
pub(crate) fn named_in(ruleset: &Ruleset) -> impl Iterator<Item = String> {
    let tests = ruleset.rules().flat_map(interfaces).filter(|test| !test.prefix);
    tests.map(|test| test.name.to_string()).filter(|name| !name.is_empty())
}

fn asks_for_header(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::All(several) | Predicate::Any(several) => several.iter().any(asks_for_header),
        Predicate::Not(one) => asks_for_header(one),
        Predicate::HasHeader => true,
        _ => false,
    }
}

fn changes_sets(rule: &Rule) -> bool {
    matches!(&rule.action, Action::Target(target) if target.body.changes_sets())
}

fn predicate_of(used: &MatchUse, family: Family, sets: Option<&Sets>) -> Option<Predicate> {
    match sets {
        Some(sets) => used.body.predicate_in(family, sets),
        None => used.body.predicate(),
    }
}

fn note_fields(predicate: &Predicate, to: &mut BTreeSet<Field>) {
    match predicate {
        Predicate::All(several) | Predicate::Any(several) => {
            several.iter().for_each(|one| note_fields(one, to));
        }
        Predicate::Not(one) => note_fields(one, to),
        Predicate::Masked { field, .. } | Predicate::Range { field, .. } => _ = to.insert(*field),
        _ => {}
    }
}
