//! Sets of bit strings as reduced ordered binary decision diagrams: two sets are the same exactly if their numbers are.
//!
//! Contract: memory is bounded by the number of nodes, and so is time, as each is made once; what would need more is
//! [`TooLarge`], and nothing made before is lost. Recursion is as deep as there are levels.
//!
//! Source: Bryant, Graph-Based Algorithms for Boolean Function Manipulation (1986).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

/// A set of bit strings: its place among the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Region(u32);

impl Region {
    /// The region without a string.
    pub const NONE: Self = Self(0);
    /// Every string.
    pub const ALL: Self = Self(1);

    /// Whether the region has no string.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }
}

/// More nodes than [`Diagrams`] may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too large")
    }
}

impl std::error::Error for TooLarge {}

/// A bit with what follows where it is 0 and where it is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    level: u32,
    low: Region,
    high: Region,
}

/// Leaves are below every level.
const LEAF: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Operation {
    And = 1,
    Or = 2,
    Without = 3,
    /// Whether there are strings of both.
    Meet = 4,
}

/// A result that may be needed once more.
#[derive(Debug, Clone, Copy)]
struct Known {
    of: (u32, Region, Region),
    result: Region,
}

/// Results that are kept at first, and at most; a new one takes the place of another. There is room for more of them than
/// there are nodes: else they are lost while they are needed, and what was done is done again and again.
const KEPT: (usize, usize) = (1 << 16, 1 << 22);

impl Known {
    const NOTHING: Self = Self { of: (0, Region::NONE, Region::NONE), result: Region::NONE };
}

/// All nodes, each once.
#[derive(Debug)]
pub struct Diagrams {
    nodes: Vec<Node>,
    places: HashMap<Node, Region, BuildHasherDefault<Mixer>>,
    known: Vec<Known>,
    most: usize,
}

impl Diagrams {
    /// Room for at most this many nodes, of about 40 bytes each.
    #[must_use]
    pub fn of_most(most: usize) -> Self {
        let leaf = |region| Node { level: LEAF, low: region, high: region };
        Self {
            nodes: vec![leaf(Region::NONE), leaf(Region::ALL)],
            places: HashMap::default(),
            known: vec![Known::NOTHING; KEPT.0],
            most,
        }
    }

    /// Room for at most this many from now on.
    pub fn limit(&mut self, most: usize) {
        self.most = most;
    }

    /// Does what may be left undone, with a quarter of the room that is left.
    pub(crate) fn within_quarter<T>(&mut self, does: impl FnOnce(&mut Self) -> T) -> T {
        let most = self.most;
        self.most = self.nodes.len() + most.saturating_sub(self.nodes.len()) / 4;
        let done = does(self);
        self.most = most;
        done
    }

    fn node(&self, region: Region) -> Node {
        self.nodes[region.0 as usize]
    }

    /// The level of the first bit that a region depends on, with what follows where it is 0 and where it is 1; `None`
    /// where it depends on none any more.
    #[must_use]
    pub fn branch(&self, region: Region) -> Option<(u32, Region, Region)> {
        let node = self.node(region);
        (node.level != LEAF).then_some((node.level, node.low, node.high))
    }

    /// The strings that go on as `low` where the bit of this level is 0, as `high` where it is 1. Both depend on bits of
    /// later levels only.
    ///
    /// # Errors
    /// There is no room.
    pub fn choice(&mut self, level: u32, low: Region, high: Region) -> Result<Region, TooLarge> {
        if low == high {
            return Ok(low);
        }
        let node = Node { level, low, high };
        if let Some(place) = self.places.get(&node) {
            return Ok(*place);
        }
        if self.nodes.len() >= self.most {
            return Err(TooLarge);
        }
        let place = Region(self.nodes.len() as u32);
        self.nodes.push(node);
        self.places.insert(node, place);
        if 2 * self.nodes.len() > self.known.len() && self.known.len() < KEPT.1 {
            self.keep_more();
        }
        Ok(place)
    }

    /// Doubles the results that are kept.
    fn keep_more(&mut self) {
        let more = vec![Known::NOTHING; 2 * self.known.len()];
        let before = std::mem::replace(&mut self.known, more);
        for known in before.into_iter().filter(|known| known.of != Known::NOTHING.of) {
            let slot = self.slot(known.of);
            self.known[slot] = known;
        }
    }

    /// Where a result is kept.
    fn slot(&self, (operation, a, b): (u32, Region, Region)) -> usize {
        let mut mixer = Mixer::default();
        mixer.write_u32(operation);
        mixer.write_u32(a.0);
        mixer.write_u32(b.0);
        mixer.finish() as usize & (self.known.len() - 1)
    }

    /// Strings of both.
    ///
    /// # Errors
    /// There is no room.
    pub fn and(&mut self, a: Region, b: Region) -> Result<Region, TooLarge> {
        self.apply(Operation::And, a, b)
    }

    /// Strings of either.
    ///
    /// # Errors
    /// There is no room.
    pub fn or(&mut self, a: Region, b: Region) -> Result<Region, TooLarge> {
        self.apply(Operation::Or, a, b)
    }

    /// Strings of the first that are none of the second.
    ///
    /// # Errors
    /// There is no room.
    pub fn without(&mut self, a: Region, b: Region) -> Result<Region, TooLarge> {
        self.apply(Operation::Without, a, b)
    }

    /// Whether two regions have a string in common. It makes no nodes.
    pub fn meet(&mut self, a: Region, b: Region) -> bool {
        let (a, b) = (a.min(b), a.max(b));
        if let Some(at_sight) = at_sight(Operation::And, a, b) {
            return !at_sight.is_empty();
        }
        let of = (Operation::Meet as u32, a, b);
        let slot = self.slot(of);
        if self.known[slot].of == of {
            return !self.known[slot].result.is_empty();
        }
        let (_, (a0, a1), (b0, b1)) = self.parts(a, b);
        let result = self.meet(a0, b0) || self.meet(a1, b1);
        let result = if result { Region::ALL } else { Region::NONE };
        self.known[slot] = Known { of, result };
        !result.is_empty()
    }

    /// The first level that two regions depend on, and what each goes on as where its bit is 0 and where it is 1.
    fn parts(&self, a: Region, b: Region) -> (u32, (Region, Region), (Region, Region)) {
        let (first, second) = (self.node(a), self.node(b));
        let level = first.level.min(second.level);
        let parts = |node: Node, whole| match node.level == level {
            true => (node.low, node.high),
            false => (whole, whole),
        };
        (level, parts(first, a), parts(second, b))
    }

    fn apply(&mut self, operation: Operation, a: Region, b: Region) -> Result<Region, TooLarge> {
        if let Some(at_sight) = at_sight(operation, a, b) {
            return Ok(at_sight);
        }
        let either_way = operation != Operation::Without;
        let (a, b) = if either_way && b < a { (b, a) } else { (a, b) };
        let of = (operation as u32, a, b);
        let slot = self.slot(of);
        if self.known[slot].of == of {
            return Ok(self.known[slot].result);
        }
        let (level, (a0, a1), (b0, b1)) = self.parts(a, b);
        let low = self.apply(operation, a0, b0)?;
        let high = self.apply(operation, a1, b1)?;
        let result = self.choice(level, low, high)?;
        // There may be more slots by now.
        let slot = self.slot(of);
        self.known[slot] = Known { of, result };
        Ok(result)
    }

    /// The strings that differ from one of the region in bits of these levels at most.
    ///
    /// # Errors
    /// There is no room.
    pub fn whatever(
        &mut self,
        region: Region,
        levels: std::ops::Range<u32>,
    ) -> Result<Region, TooLarge> {
        let mut done = HashMap::new();
        self.forget(region, &|level| levels.contains(&level), levels.end, &mut done)
    }

    /// Forgets the bits of these levels, which need not be contiguous.
    ///
    /// # Errors
    /// There is no room.
    pub fn whatever_of(
        &mut self,
        region: Region,
        levels: &BTreeSet<u32>,
    ) -> Result<Region, TooLarge> {
        let Some(last) = levels.last() else { return Ok(region) };
        let mut done = HashMap::new();
        self.forget(region, &|level| levels.contains(&level), last + 1, &mut done)
    }

    fn forget(
        &mut self,
        region: Region,
        is_meant: &dyn Fn(u32) -> bool,
        end: u32,
        done: &mut HashMap<Region, Region>,
    ) -> Result<Region, TooLarge> {
        let Some((level, low, high)) = self.branch(region).filter(|(l, ..)| *l < end) else {
            return Ok(region);
        };
        if let Some(result) = done.get(&region) {
            return Ok(*result);
        }
        let low = self.forget(low, is_meant, end, done)?;
        let high = self.forget(high, is_meant, end, done)?;
        let result = match is_meant(level) {
            true => self.or(low, high)?,
            false => self.choice(level, low, high)?,
        };
        done.insert(region, result);
        Ok(result)
    }
}

impl Diagrams {
    /// The strings that are in the region once these bits are what others are.
    ///
    /// # Errors
    /// There is no room.
    pub fn with_bits_of(
        &mut self,
        region: Region,
        others: &BTreeMap<u32, u32>,
    ) -> Result<Region, TooLarge> {
        if others.is_empty() {
            return Ok(region);
        }
        self.exchange(region, others, &mut HashMap::new())
    }

    fn exchange(
        &mut self,
        region: Region,
        others: &BTreeMap<u32, u32>,
        done: &mut HashMap<Region, Region>,
    ) -> Result<Region, TooLarge> {
        let Some((level, low, high)) = self.branch(region) else { return Ok(region) };
        if let Some(result) = done.get(&region) {
            return Ok(*result);
        }
        let low = self.exchange(low, others, done)?;
        let high = self.exchange(high, others, done)?;
        let result = match others.get(&level) {
            None => self.either(level, low, high)?,
            Some(other) => self.either(*other, low, high)?,
        };
        done.insert(region, result);
        Ok(result)
    }

    /// The region that is `low` where the bit of a level is 0, and `high` where it is 1, whatever levels they depend
    /// on.
    fn either(&mut self, level: u32, low: Region, high: Region) -> Result<Region, TooLarge> {
        let is_later = |region: Region, all: &Self| all.node(region).level > level;
        if is_later(low, self) && is_later(high, self) {
            return self.choice(level, low, high);
        }
        let bit = self.choice(level, Region::NONE, Region::ALL)?;
        let high = self.and(bit, high)?;
        let low = self.without(low, bit)?;
        self.or(low, high)
    }
}

/// What needs no look at the nodes.
fn at_sight(operation: Operation, a: Region, b: Region) -> Option<Region> {
    use Operation::{And, Or, Without};
    match (operation, a, b) {
        (And | Or, a, b) if a == b => Some(a),
        (Without, a, b) if a == b => Some(Region::NONE),
        (And, Region::NONE, _) | (And, _, Region::NONE) => Some(Region::NONE),
        (And, Region::ALL, other) | (And, other, Region::ALL) => Some(other),
        (Or, Region::ALL, _) | (Or, _, Region::ALL) => Some(Region::ALL),
        (Or, Region::NONE, other) | (Or, other, Region::NONE) => Some(other),
        (Without, Region::NONE, _) | (Without, _, Region::ALL) => Some(Region::NONE),
        (Without, a, Region::NONE) => Some(a),
        _ => None,
    }
}

/// Mixes words of nodes. The author of rules can make them collide, which costs time that the number of nodes bounds.
#[derive(Debug, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32((*byte).into()));
    }

    fn write_u32(&mut self, word: u32) {
        self.0 = (self.0.rotate_left(29) ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
