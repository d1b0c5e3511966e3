//! Tests that remember packets and are asked about others under one ruleset: what they say there has nothing to do with
//! what they say under the other one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::stage::Passed;
use crate::diagram::{Region, TooLarge};
use crate::flow::Fate;
use crate::space::Space;

/// What becomes of packets: their fate, and the targets that translated their flow.
pub(super) type End = (Fate, Vec<String>);

/// What such tests may answer.
#[derive(Debug)]
pub(super) struct Unequal {
    /// The levels of their answers.
    levels: BTreeSet<u32>,
    /// For the level of an answer under the new rules, the level of the answer at the same place under the old ones.
    old: BTreeMap<u32, u32>,
}

/// Packets that come to one of several ends under a ruleset, by what such tests say, and never to the same under both.
pub(super) struct Several {
    pub(super) ends: [Vec<End>; 2],
    pub(super) region: Region,
}

impl Unequal {
    /// Finds such tests among the tests that packets met; `is_told` says that what differs between the answers of one
    /// place is reported elsewhere.
    pub(super) fn of(
        space: &mut Space,
        passed: &[Passed; 2],
        is_told: bool,
    ) -> Result<Self, TooLarge> {
        let keys: [BTreeSet<&str>; 2] =
            [0, 1].map(|side: usize| passed[side].asked.iter().map(|it| &*it.key).collect());
        let (mut levels, mut old) = (BTreeSet::new(), BTreeMap::new());
        let mut places: HashMap<&str, u32> = HashMap::new();
        for (side, passed) in passed.iter().enumerate() {
            let only_here = |key: &str| !keys[1 - side].contains(key);
            for asked in passed.asked.iter().filter(|it| only_here(&it.key) && it.is_answered()) {
                let level = space.asked_level(&asked.key)?;
                levels.insert(level);
                if side == 0 {
                    places.insert(&asked.place, level);
                } else if let Some(same) = places.get(&*asked.place).filter(|_| is_told) {
                    old.insert(level, *same);
                }
            }
        }
        Ok(Self { levels, old })
    }

    /// Packets of a region of the new rules, where tests of one place say what they say under the old ones.
    pub(super) fn alike(&self, space: &mut Space, region: Region) -> Result<Region, TooLarge> {
        space.diagrams.with_bits_of(region, &self.old)
    }

    /// Packets that get another verdict whatever such tests say, where it is not one alone.
    pub(super) fn several(
        &self,
        space: &mut Space,
        ends: [&BTreeMap<End, Region>; 2],
    ) -> Result<Vec<Several>, TooLarge> {
        if self.levels.is_empty() {
            return Ok(Vec::new());
        }
        let mut differ = Region::NONE;
        for (from, before) in ends[0] {
            for (to, after) in ends[1] {
                let is_plain = is_known(&from.0) && is_known(&to.0) && from.1 == to.1;
                if is_plain && !is_same(from, to) {
                    let both = space.diagrams.and(*before, *after)?;
                    differ = space.diagrams.or(differ, both)?;
                }
            }
        }
        let region = self.whatever_they_say(space, differ)?;
        let mut all = vec![Several { ends: Default::default(), region }];
        for (side, ends) in ends.into_iter().enumerate() {
            for (end, region) in ends {
                let some = space.diagrams.whatever_of(*region, &self.levels)?;
                all = parted(space, all, (side, end), some)?;
            }
        }
        all.retain(|one| one.ends.iter().any(|ends| ends.len() > 1));
        Ok(all)
    }

    fn whatever_they_say(&self, space: &mut Space, region: Region) -> Result<Region, TooLarge> {
        let outside = space.diagrams.without(Region::ALL, region)?;
        let outside = space.diagrams.whatever_of(outside, &self.levels)?;
        space.diagrams.without(Region::ALL, outside)
    }
}

/// Splits packets by whether they may come to an end.
fn parted(
    space: &mut Space,
    all: Vec<Several>,
    (side, end): (usize, &End),
    some: Region,
) -> Result<Vec<Several>, TooLarge> {
    let mut parts = Vec::new();
    for Several { ends, region } in all {
        let others = space.diagrams.without(region, some)?;
        let region = space.diagrams.and(region, some)?;
        let mut with = ends.clone();
        with[side].push(end.clone());
        parts.push(Several { ends, region: others });
        parts.push(Several { ends: with, region });
    }
    parts.retain(|part| !part.region.is_empty());
    Ok(parts)
}

/// Whether two ends are equal for the packet. What programs make of it is never known to be.
pub(super) fn is_same(from: &End, to: &End) -> bool {
    match (&from.0, &to.0) {
        (Fate::Open(_), _) | (_, Fate::Open(_)) => false,
        (Fate::Accept, Fate::Accept) => from.1 == to.1,
        (old, new) => old == new,
    }
}

pub(super) fn is_known(fate: &Fate) -> bool {
    !matches!(fate, Fate::Open(_))
}
