//! What targets made of packets on their way, bit by bit: regions say of packets as they came what rules ask of them as
//! they are.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rules::predicate::{Bit, Change, Field};

use crate::diagram::{Region, TooLarge};
use crate::space::{Part, Space};

/// What a bit is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Now {
    Is(bool),
    /// What the bit of that level was when the packet came, or the contrary.
    Was {
        level: u32,
        inverted: bool,
    },
}

/// How the raw table asked for packets to be tracked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Request {
    Untracked,
    /// Tracked with a helper, or other events: nothing of that shows in the packet itself.
    Plain,
    /// Maybe as part of another connection, by this target.
    Other(String),
}

/// All that was made of packets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct Altered {
    bits: BTreeMap<u32, Now>,
    /// The targets that translated their flow.
    pub(super) translations: Vec<String>,
    /// Every target that changed them, as far as tests may tell that can only be asked.
    pub(super) by: BTreeSet<String>,
    pub(super) request: Option<Request>,
}

impl Altered {
    /// Sets the bits of a part to a number's.
    pub(super) fn set(&mut self, space: &Space, part: Part, number: u128) {
        let levels = space.levels(part);
        let end = levels.end;
        for level in levels {
            self.bits.insert(level, Now::Is(number >> (end - 1 - level) & 1 == 1));
        }
    }

    /// A bit is this.
    pub(super) fn is(&mut self, level: u32, bit: bool) {
        self.bits.insert(level, Now::Is(bit));
    }

    /// The bits of a part are what they were when the packet came.
    pub(super) fn restore(&mut self, space: &Space, part: Part) {
        space.levels(part).for_each(|level| _ = self.bits.remove(&level));
    }

    /// The bits of a part are unknown: this tells which.
    pub(super) fn lose(
        &mut self,
        space: &mut Space,
        part: Part,
        what: &str,
    ) -> Result<(), TooLarge> {
        for level in space.levels(part) {
            let asked = space.asked_level(&format!("{what}\t{level}"))?;
            self.bits.insert(level, Now::Was { level: asked, inverted: false });
        }
        Ok(())
    }

    /// A bit of a part depends on whether something is so.
    pub(super) fn depend(&mut self, level: u32, asked: u32, inverted: bool) {
        self.bits.insert(level, Now::Was { level: asked, inverted });
    }

    /// What a target changed.
    pub(super) fn change(
        &mut self,
        space: &mut Space,
        changes: &[Change],
        by: &str,
    ) -> Result<(), TooLarge> {
        let before = self.bits.clone();
        for Change { field, bit, to, .. } in changes {
            let level = space.level(*field, *bit);
            let now = match *to {
                Bit::Is(bit) => Now::Is(bit),
                Bit::Of { field, bit, inverted } => {
                    let level = space.level(field, bit);
                    match before.get(&level) {
                        None => Now::Was { level, inverted },
                        Some(Now::Is(bit)) => Now::Is(*bit != inverted),
                        Some(Now::Was { level, inverted: other }) => {
                            Now::Was { level: *level, inverted: inverted != *other }
                        }
                    }
                }
                Bit::Lost => {
                    let what = format!("what {by} makes of packets\t{field:?} {bit}");
                    Now::Was { level: space.asked_level(&what)?, inverted: false }
                }
            };
            match now {
                Now::Was { level: same, inverted: false } if same == level => {
                    self.bits.remove(&level);
                }
                now => _ = self.bits.insert(level, now),
            }
        }
        self.by.insert(by.to_owned());
        Ok(())
    }

    /// What became of the mark.
    pub(super) fn mark(&self, space: &Space) -> impl PartialEq + use<> {
        self.bits_of(space, Part::Field(Field::Mark))
    }

    /// What became of the time to live.
    pub(super) fn has_other(&self, space: &Space, field: Field) -> bool {
        !self.bits_of(space, Part::Field(field)).is_empty()
    }

    fn bits_of(&self, space: &Space, part: Part) -> Vec<(u32, Now)> {
        self.bits.range(space.levels(part)).map(|(level, now)| (*level, *now)).collect()
    }
}

/// Packets of which the same was made, as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packets {
    /// The number of what was made of them.
    pub(super) altered: u32,
    pub(super) region: Region,
}

/// Each of what was made of packets, by number; 0 is nothing.
#[derive(Debug, Default)]
pub(super) struct Alterations {
    all: Vec<Altered>,
    numbers: HashMap<Altered, u32>,
    /// Regions that were asked about, each as it is of packets as they came.
    known: HashMap<(u32, Region), Region>,
}

/// Most alterations that are kept apart.
const MOST: usize = 4_096;

impl Alterations {
    pub(super) fn number(&mut self, altered: Altered) -> Result<u32, TooLarge> {
        if let Some(number) = self.numbers.get(&altered) {
            return Ok(*number);
        }
        if self.all.len() >= MOST {
            return Err(TooLarge);
        }
        let number = self.all.len() as u32;
        self.all.push(altered.clone());
        self.numbers.insert(altered, number);
        Ok(number)
    }

    pub(super) fn get(&self, number: u32) -> &Altered {
        &self.all[number as usize]
    }

    /// The packets, as they came, that are in a region as they are now.
    pub(super) fn were(
        &mut self,
        space: &mut Space,
        number: u32,
        region: Region,
    ) -> Result<Region, TooLarge> {
        if self.all[number as usize].bits.is_empty() {
            return Ok(region);
        }
        if let Some(known) = self.known.get(&(number, region)) {
            return Ok(*known);
        }
        let Some((level, low, high)) = space.diagrams.branch(region) else { return Ok(region) };
        let low = self.were(space, number, low)?;
        let high = self.were(space, number, high)?;
        let now = self.all[number as usize].bits.get(&level).copied();
        let now = now.unwrap_or(Now::Was { level, inverted: false });
        let result = match now {
            Now::Is(true) => high,
            Now::Is(false) => low,
            Now::Was { level, inverted } => {
                let (low, high) = if inverted { (high, low) } else { (low, high) };
                let one = space.diagrams.choice(level, Region::NONE, Region::ALL)?;
                let high = space.diagrams.and(one, high)?;
                let low = space.diagrams.without(low, one)?;
                space.diagrams.or(low, high)?
            }
        };
        self.known.insert((number, region), result);
        Ok(result)
    }
}
