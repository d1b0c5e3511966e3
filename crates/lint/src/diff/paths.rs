//! Packets that may get to a chain, as they come: every jump on a way there matches them.
//!
//! Contract: too many packets, never too few. What came before a rule is left out, tests that can only be asked are taken
//! to hold, and what targets may have made of packets is left open for those packets that some such target may match.

use std::collections::{BTreeSet, HashMap};

use conntrack::Side;
use rules::ext::{Alters, Course, TargetUse};
use rules::model::{Action, Chain, Hook, Rule, Ruleset};
use rules::predicate::{Field, Predicate};
use rules::{CONNTRACK, TableKind};

use super::stage::Origin;
use crate::diagram::{Region, TooLarge};
use crate::space::{Part, Space};

/// Packets by the hook of the base chain that they entered through.
type Entries = Vec<(Hook, Region)>;

/// What may be another thing to rules than it is as packets come, without any target.
const OF_WAY: [Part; 3] = [Part::Output, Part::Field(Field::Ttl), Part::State];

/// Callers of callers that are looked for: each takes a part of the machine's stack.
const DEEPEST: usize = 256;

/// Ways to the chains of a ruleset.
pub(super) struct Paths<'p> {
    ruleset: &'p Ruleset,
    /// Entries that are known, by table and chain.
    known: HashMap<(usize, usize), Entries>,
    /// For each table and chain the rules that lead to it, in their order, each by its chain and its place.
    callers: Vec<Vec<Vec<(usize, usize)>>>,
    /// Chains whose callers are looked for.
    within: Vec<(usize, usize)>,
    /// Parts that targets alter, and the packets that they may match.
    altered: (BTreeSet<Part>, Region),
}

impl<'p> Paths<'p> {
    pub(super) fn of(space: &mut Space, ruleset: &'p Ruleset) -> Result<Self, TooLarge> {
        let altered = altered(space, ruleset)?;
        let callers = ruleset.tables.iter().map(|table| callers(&table.chains)).collect();
        Ok(Self { ruleset, known: HashMap::new(), callers, within: Vec::new(), altered })
    }

    /// Packets of an origin that may match a rule.
    pub(super) fn that_match(
        &mut self,
        space: &mut Space,
        (table, chain): (usize, usize),
        rule: &Rule,
        origin: Origin,
    ) -> Result<Region, TooLarge> {
        let matches = matches(space, rule)?;
        let mut any = Region::NONE;
        for (hook, entry) in self.that_enter(space, table, chain)? {
            let entry = self.of_origin(space, origin, hook, entry)?;
            let here = self.as_they_came(space, (table, hook), matches)?;
            let both = space.diagrams.and(entry, here)?;
            any = space.diagrams.or(any, both)?;
        }
        Ok(any)
    }

    /// Packets of an origin that may come to a hook.
    pub(super) fn at_hook(
        &self,
        space: &mut Space,
        origin: Origin,
        hook: Hook,
    ) -> Result<Region, TooLarge> {
        self.of_origin(space, origin, hook, Region::ALL)
    }

    fn of_origin(
        &self,
        space: &mut Space,
        origin: Origin,
        hook: Hook,
        region: Region,
    ) -> Result<Region, TooLarge> {
        let way = match (origin, hook) {
            (Origin::Arriving, Hook::Output) => return Ok(Region::NONE),
            (Origin::Arriving, Hook::Prerouting | Hook::Brouting) => return Ok(region),
            (Origin::Arriving, Hook::Input) => 0,
            (Origin::Arriving, Hook::Forward | Hook::Postrouting) => 1,
            (Origin::Sent, Hook::Output | Hook::Postrouting) => return Ok(region),
            (Origin::Sent, _) => return Ok(Region::NONE),
        };
        let way = space.range(Part::Way, way, way)?;
        let way = self.left_open(space, way)?;
        space.diagrams.and(region, way)
    }

    fn that_enter(
        &mut self,
        space: &mut Space,
        table: usize,
        chain: usize,
    ) -> Result<Entries, TooLarge> {
        if let Some(known) = self.known.get(&(table, chain)) {
            return Ok(known.clone());
        }
        let ruleset: &'p Ruleset = self.ruleset;
        let chains = &ruleset.tables[table].chains;
        if let Some(base) = chains[chain].base {
            return Ok(vec![(base.hook, Region::ALL)]);
        }
        // Chains that lead to themselves, or too deep for the machine's stack: any packet may get there.
        if self.within.len() >= DEEPEST || self.within.contains(&(table, chain)) {
            return Ok(Hook::ALL.into_iter().map(|hook| (hook, Region::ALL)).collect());
        }
        self.within.push((table, chain));
        let mut entries: Entries = Vec::new();
        for (caller, rule) in self.callers[table][chain].clone() {
            let matches = matches(space, &chains[caller].rules[rule])?;
            for (hook, entry) in self.that_enter(space, table, caller)? {
                let here = self.as_they_came(space, (table, hook), matches)?;
                let both = space.diagrams.and(entry, here)?;
                match entries.iter_mut().find(|(other, _)| *other == hook) {
                    Some((_, known)) => *known = space.diagrams.or(*known, both)?,
                    None => entries.push((hook, both)),
                }
            }
        }
        self.within.pop();
        self.known.insert((table, chain), entries.clone());
        Ok(entries)
    }

    /// The packets that are in a region as they come, or may be on their way.
    pub(super) fn at_some_time(
        &self,
        space: &mut Space,
        region: Region,
    ) -> Result<Region, TooLarge> {
        let region = forgotten(space, region, &OF_WAY)?;
        self.left_open(space, region)
    }

    /// The packets that may be in a region where a table sees them at a hook.
    fn as_they_came(
        &self,
        space: &mut Space,
        (table, hook): (usize, Hook),
        region: Region,
    ) -> Result<Region, TooLarge> {
        let mut open = vec![Part::Field(Field::Ttl)];
        // Before routing nobody knows the interface that packets go out by.
        if matches!(hook, Hook::Prerouting | Hook::Input | Hook::Brouting) {
            open.push(Part::Output);
        }
        if is_before_tracking(space, &self.ruleset.tables[table].name, hook) {
            open.push(Part::State);
        }
        let region = forgotten(space, region, &open)?;
        self.left_open(space, region)
    }

    /// Adds packets that targets may have altered into packets of the region.
    fn left_open(&self, space: &mut Space, region: Region) -> Result<Region, TooLarge> {
        let (parts, hits) = &self.altered;
        if hits.is_empty() {
            return Ok(region);
        }
        let any = forgotten(space, region, parts)?;
        let any = space.diagrams.and(any, *hits)?;
        space.diagrams.or(region, any)
    }
}

fn forgotten<'p>(
    space: &mut Space,
    region: Region,
    parts: impl IntoIterator<Item = &'p Part>,
) -> Result<Region, TooLarge> {
    parts.into_iter().try_fold(region, |region, part| space.with_any(region, *part))
}

/// What targets may make others of, and of which packets.
fn altered(space: &mut Space, ruleset: &Ruleset) -> Result<(BTreeSet<Part>, Region), TooLarge> {
    let (mut parts, mut hits) = (BTreeSet::new(), Region::NONE);
    for table in &ruleset.tables {
        for chain in &table.chains {
            for rule in &chain.rules {
                let Action::Target(target) = &rule.action else { continue };
                let of_target = alters(target, &table.name, chain.base.map(|base| base.hook));
                if !of_target.is_empty() {
                    parts.extend(of_target);
                    let one = matches(space, rule)?;
                    hits = space.diagrams.or(hits, one)?;
                }
            }
        }
    }
    let hits = forgotten(space, hits, parts.iter().chain(&OF_WAY))?;
    Ok((parts, hits))
}

/// Parts of packets that a target alters.
fn alters(target: &TargetUse, table: &str, hook: Option<Hook>) -> BTreeSet<Part> {
    use Field::{Destination, DestinationPort, DestinationType, Translated};
    let mut parts: BTreeSet<Part> =
        target.body.changes().into_iter().map(|change| Part::Field(change.field)).collect();
    if target.body.course() == Course::Passes(Alters::State) {
        parts.insert(Part::State);
    }
    if target.body.translates() {
        parts.insert(Part::Field(Translated));
        let side = target.body.mapping().map(|mapping| mapping.side);
        // Chains of nat that give another source: the destination stays as it is.
        let gives_source = table == TableKind::NAT
            && matches!(hook, Some(Hook::Postrouting | Hook::Input))
            && side.is_none();
        if side != Some(Side::Source) && !gives_source {
            let fields = [Destination, DestinationPort, DestinationType];
            parts.extend(fields.map(Part::Field));
            parts.insert(Part::Way);
        }
    }
    parts
}

fn callers(chains: &[Chain]) -> Vec<Vec<(usize, usize)>> {
    let mut callers = vec![Vec::new(); chains.len()];
    for (caller, chain) in chains.iter().enumerate() {
        for (place, rule) in chain.rules.iter().enumerate() {
            if let Action::Jump(to) | Action::Goto(to) = rule.action {
                callers[to as usize].push((caller, place));
            }
        }
    }
    callers
}

fn is_before_tracking(space: &Space, table: &str, hook: Hook) -> bool {
    let tables = space.family().tables();
    let kind = tables.iter().find(|kind| kind.name == table);
    kind.and_then(|kind| kind.priority(hook)).is_none_or(|priority| priority < CONNTRACK)
}

/// What a rule matches, where every test that can only be asked holds.
fn matches(space: &mut Space, rule: &Rule) -> Result<Region, TooLarge> {
    let header = rule.header.as_ref().map(|header| header.predicate(space.family()));
    let tests = rule.matches.iter().map(|used| space.predicate_of(used));
    let known = header.into_iter().chain(tests).flatten();
    let all = Predicate::All(known.collect());
    let region = space.of_match(&all, "")?;
    space.for_some_answers(region)
}
