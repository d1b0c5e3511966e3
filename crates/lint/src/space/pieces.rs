//! A region in disjoint pieces: for each part of a packet the numbers that it may have, in words.

use super::marks::cubes;
use super::part::{Dimension, Part};
use super::predicates::Space;
use crate::diagram::{Region, TooLarge};
use conntrack::CtState;
use rules::model::Family;
use rules::predicate::{ADDRESS_TYPES, Field, NO_PROTOCOL};
use rules::protocol_name;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Numbers of a part, as ranges with both ends, in order.
pub(super) type Ranges = Vec<(u128, u128)>;

/// Packets whose parts have these values, each by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Words for each part that does not have every value.
    pub fields: Vec<(Part, Vec<String>)>,
    /// Numbers for each part that does not have every value.
    pub(super) ranges: Vec<(Part, Ranges)>,
    /// What tests that can only be asked have to answer.
    pub answers: Vec<(String, bool)>,
}

impl Piece {
    /// For each part that does not have every number, the ranges of its numbers, with both ends: marks with their
    /// bits in the order of the space, interfaces by its numbers for them.
    #[must_use]
    pub fn ranges(&self) -> &[(Part, Vec<(u128, u128)>)] {
        &self.ranges
    }
}

/// The pieces of a region.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    /// Pieces that have no packet in common.
    pub pieces: Vec<Piece>,
    /// There are more pieces than are listed.
    pub more: bool,
}

/// Ranges of one dimension that are looked at.
const MOST_SLICES: usize = 4_096;

/// Ranges of a part, or answers of a piece, that are listed; more of them are said to be more.
const MOST_RANGES: usize = 64;

/// `tcp to dport 22, in eth0`.
impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields =
            self.fields.iter().map(|(part, words)| format!("{} {}", part.name(), words.join(",")));
        let answers = self.answers.iter().map(|(name, holds)| {
            if *holds { format!("where {name}") } else { format!("where not {name}") }
        });
        let all: Vec<String> = fields.chain(answers).collect();
        f.write_str(&if all.is_empty() { "every packet".to_owned() } else { all.join(", ") })
    }
}

impl Space {
    /// A region, within all packets of a hook, in at most `most` pieces.
    #[must_use]
    pub fn pieces(&self, region: Region, within: Region, most: usize) -> Pieces {
        let mut found = Pieces::default();
        let full = self.full(within);
        let mut split = Split { space: self, full, most, found: &mut found };
        split.from(0, region, &mut Vec::new());
        found
    }

    /// The numbers of a dimension that a region has, whatever stands before and after it.
    fn reached(&self, region: Region, dimension: Dimension) -> Ranges {
        let mut roots = Vec::new();
        self.roots(region, dimension.start, &mut roots);
        let all =
            roots.into_iter().flat_map(|root| self.slices(root, dimension).found.into_values());
        joined(all.flatten().collect())
    }

    /// Where a region goes on from a level.
    fn roots(&self, region: Region, level: u32, found: &mut Vec<Region>) {
        match self.diagrams.branch(region) {
            _ if region.is_empty() => {}
            Some((at, low, high)) if at < level => {
                self.roots(low, level, found);
                self.roots(high, level, found);
            }
            _ if found.contains(&region) => {}
            _ => found.push(region),
        }
    }

    /// The numbers of a dimension by the region that follows them.
    fn slices(&self, region: Region, dimension: Dimension) -> Slices {
        let mut slices = Slices { found: BTreeMap::new(), left: MOST_SLICES };
        self.slice(region, dimension, dimension.start, 0, &mut slices);
        slices
    }

    fn slice(
        &self,
        region: Region,
        dimension: Dimension,
        level: u32,
        number: u128,
        slices: &mut Slices,
    ) {
        if region.is_empty() || slices.left == 0 {
            return;
        }
        let rest = dimension.end() - level;
        let next = self.diagrams.branch(region).filter(|(at, ..)| *at < dimension.end());
        let Some((at, low, high)) = next else {
            let low = number.checked_shl(rest).unwrap_or(0);
            let last = if rest == 128 { u128::MAX } else { low | ((1 << rest) - 1) };
            return slices.add(region, low, last);
        };
        // A bit that does not matter, before a bit that does, splits the range.
        let (low, high) = if at == level { (low, high) } else { (region, region) };
        self.slice(low, dimension, level + 1, number << 1, slices);
        self.slice(high, dimension, level + 1, number << 1 | 1, slices);
    }
}

/// The numbers of a dimension, by what follows.
struct Slices {
    found: BTreeMap<Region, Ranges>,
    /// Ranges that there is room for.
    left: usize,
}

impl Slices {
    fn add(&mut self, region: Region, low: u128, high: u128) {
        let ranges = self.found.entry(region).or_default();
        match ranges.last_mut() {
            Some((_, end)) if low.checked_sub(1) == Some(*end) => *end = high,
            _ => {
                ranges.push((low, high));
                self.left -= 1;
            }
        }
    }
}

/// Sorts ranges, and joins adjacent ones.
pub(super) fn joined(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable();
    let mut all: Ranges = Vec::new();
    for (low, high) in ranges {
        match all.last_mut() {
            Some((_, end)) if low <= end.saturating_add(1) => *end = high.max(*end),
            _ => all.push((low, high)),
        }
    }
    all
}

/// The numbers of `full` that are in no range.
fn lacking(ranges: &Ranges, full: &Ranges) -> Ranges {
    let mut others = Ranges::new();
    for (low, high) in full {
        let mut next = Some(*low);
        for (from, to) in ranges.iter().filter(|(from, to)| to >= low && from <= high) {
            if let Some(start) = next.filter(|start| start < from) {
                others.push((start, from - 1));
            }
            next = to.checked_add(1);
        }
        others.extend(next.filter(|start| start <= high).map(|start| (start, *high)));
    }
    others
}

struct Split<'s> {
    space: &'s Space,
    /// What each dimension has anyway.
    full: Vec<Ranges>,
    most: usize,
    found: &'s mut Pieces,
}

impl Split<'_> {
    /// Goes through the dimensions from one of them on, with the ranges of those before it.
    fn from(&mut self, at: usize, region: Region, ranges: &mut Vec<Ranges>) {
        if self.found.pieces.len() >= self.most {
            self.found.more = true;
            return;
        }
        let Some(dimension) = self.space.dimensions.get(at) else {
            return self.add_answers(region, ranges, &mut Vec::new());
        };
        let slices = self.space.slices(region, *dimension);
        self.found.more |= slices.left == 0;
        for (next, slice) in slices.found {
            ranges.push(slice);
            self.from(at + 1, next, ranges);
            ranges.pop();
        }
    }

    fn add_answers(&mut self, at: Region, ranges: &[Ranges], answers: &mut Vec<(String, bool)>) {
        if self.found.pieces.len() >= self.most || answers.len() > MOST_RANGES {
            self.found.more = true;
            return;
        }
        let Some((level, low, high)) = self.space.diagrams.branch(at) else {
            if !at.is_empty() {
                self.add(ranges, answers);
            }
            return;
        };
        let number = (level - self.space.first_asked()) as usize;
        let name = self.space.asked_names.get(number).cloned().unwrap_or_default();
        for (next, holds) in [(low, false), (high, true)] {
            answers.push((name.clone(), holds));
            self.add_answers(next, ranges, answers);
            answers.pop();
        }
    }

    fn add(&mut self, ranges: &[Ranges], answers: &[(String, bool)]) {
        let dimensions = self.space.dimensions.iter().zip(ranges).zip(&self.full);
        let narrower = dimensions.filter(|((_, ranges), full)| *ranges != *full);
        let parts = narrower.map(|((Dimension { part, .. }, ranges), _)| (*part, ranges.clone()));
        let piece = self.space.piece(parts.collect(), &self.full);
        self.found.pieces.push(Piece { answers: answers.to_vec(), ..piece });
    }
}

impl Space {
    /// A piece of these ranges, in words; `full` is what each dimension has anyway.
    pub(super) fn piece(&self, ranges: Vec<(Part, Ranges)>, full: &[Ranges]) -> Piece {
        let mut fields = Vec::new();
        for (part, of_part) in &ranges {
            let place = self.dimensions.iter().position(|dimension| dimension.part == *part);
            let full = place.and_then(|place| full.get(place));
            let words = full.map(|full| self.words_within(*part, of_part, full));
            fields.extend(words.map(|words| (*part, words)));
        }
        // Asking for ports is asking for the header.
        let asks = |(part, _): &(Part, Vec<String>)| part.is_of_header();
        if fields.iter().any(asks) {
            fields.retain(|(part, words)| *part != Part::Form || *words != ["whole"]);
        }
        Piece { fields, ranges, answers: Vec::new() }
    }

    /// A piece of a region without its needless conditions: within `within`, the packets that it has then are of the
    /// region, too. Conditions on sources go first: they mostly follow from the input interface.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn widened(
        &mut self,
        piece: Piece,
        region: Region,
        within: Region,
    ) -> Result<Piece, TooLarge> {
        let outside = self.diagrams.without(within, region)?;
        let mut ranges = piece.ranges;
        let source = Part::Field(Field::Source);
        let mut parts: Vec<Part> = ranges.iter().map(|(part, _)| *part).collect();
        parts.sort_by_key(|part| *part != source);
        for part in parts {
            let others: Vec<_> = ranges.iter().filter(|(it, _)| *it != part).cloned().collect();
            let wider = self.of_ranges(&others)?;
            if !self.diagrams.meet(wider, outside) {
                ranges = others;
            }
        }
        let full = self.full(within);
        Ok(Piece { answers: piece.answers, ..self.piece(ranges, &full) })
    }

    /// What each dimension has anyway.
    pub(super) fn full(&self, within: Region) -> Vec<Ranges> {
        self.dimensions.iter().map(|it| self.reached(within, *it)).collect()
    }

    /// The packets of a piece, and others outside of what it is a piece of: tests that can only be asked are left out.
    ///
    /// # Errors
    /// There is no room.
    pub fn of_piece(&mut self, piece: &Piece) -> Result<Region, TooLarge> {
        self.of_ranges(&piece.ranges)
    }

    pub(super) fn of_ranges(&mut self, parts: &[(Part, Ranges)]) -> Result<Region, TooLarge> {
        let mut all = Region::ALL;
        for (part, ranges) in parts {
            let mut any = Region::NONE;
            for (low, high) in ranges {
                let one = self.range(*part, *low, *high)?;
                any = self.diagrams.or(any, one)?;
            }
            all = self.diagrams.and(all, any)?;
        }
        Ok(all)
    }

    /// The values that are there, or with `!` the missing ones, whichever are fewer.
    fn words_within(&self, part: Part, ranges: &Ranges, full: &Ranges) -> Vec<String> {
        let others = lacking(ranges, full);
        if others.len() >= ranges.len() {
            return self.words(part, ranges);
        }
        self.words(part, &others).into_iter().map(|word| format!("!{word}")).collect()
    }

    fn words(&self, part: Part, ranges: &Ranges) -> Vec<String> {
        let mut words: Vec<String> = ranges
            .iter()
            .take(MOST_RANGES)
            .flat_map(|range| self.range_words(part, *range))
            .collect();
        if ranges.len() > MOST_RANGES {
            words.push(format!("and {} more", ranges.len() - MOST_RANGES));
        }
        words
    }

    /// Marks under masks.
    fn mark_words(&self, low: u128, high: u128) -> Vec<String> {
        let cubes = cubes(low, high, Field::Mark.bits(self.family));
        let words = cubes.into_iter().map(|(value, mask)| {
            let (value, mask) = (self.marks.unpacked(value), self.marks.unpacked(mask));
            if mask == u32::MAX.into() {
                format!("{value:#x}")
            } else {
                format!("{value:#x}/{mask:#x}")
            }
        });
        words.collect()
    }

    fn range_words(&self, part: Part, (low, high): (u128, u128)) -> Vec<String> {
        let each = |name: &dyn Fn(u128) -> String| (low..=high).map(name).collect();
        let pair = |name: &dyn Fn(u128) -> String| match low == high {
            true => vec![name(low)],
            false => vec![format!("{}-{}", name(low), name(high))],
        };
        match part {
            Part::State => each(&|number| {
                CtState::ALL.get(number as usize).map_or("", |state| state.name()).to_owned()
            }),
            Part::Input | Part::Output => {
                each(&|it| self.names.kind(it).map_or_else(String::new, |kind| kind.words.clone()))
            }
            Part::Form => each(&|number| {
                let words = ["whole", "later fragment"];
                words.get(number as usize).unwrap_or(&"without header").to_string()
            }),
            Part::Way => each(&|number| one_of(&["input", "forward"], number)),
            Part::HasMac => each(&|number| if number == 1 { "yes" } else { "no" }.to_owned()),
            Part::Field(Field::Source | Field::Destination) => networks(self.family, low, high),
            Part::Field(Field::Protocol) => pair(&protocol),
            Part::Field(Field::SourceMac) => pair(&mac),
            Part::Field(Field::TcpFlags | Field::Tos) => pair(&|number| format!("{number:#04x}")),
            Part::Field(Field::Mark | Field::ConnMark) => self.mark_words(low, high),
            Part::Field(Field::SourceType | Field::DestinationType) => each(&|number| {
                ADDRESS_TYPES.get(number as usize).map_or("none", |name| *name).to_owned()
            }),
            Part::Field(Field::PacketType) => {
                each(&|number| one_of(&["unicast", "broadcast", "multicast", "otherhost"], number))
            }
            Part::Field(Field::Translated) => {
                each(&|number| one_of(&["nothing", "source", "destination", "both"], number))
            }
            Part::Field(_) => pair(&|number| number.to_string()),
        }
    }
}

fn one_of(names: &[&str], number: u128) -> String {
    names.get(number as usize).map_or_else(|| number.to_string(), |name| (*name).to_owned())
}

fn protocol(number: u128) -> String {
    match u8::try_from(number) {
        Ok(byte) => protocol_name(byte).map_or_else(|| byte.to_string(), str::to_owned),
        Err(_) if number == NO_PROTOCOL => "none".to_owned(),
        Err(_) => number.to_string(),
    }
}

fn mac(number: u128) -> String {
    let bytes = number.to_be_bytes();
    let hex: Vec<String> = bytes[10..].iter().map(|byte| format!("{byte:02x}")).collect();
    hex.join(":")
}

/// An address of a family.
pub(crate) fn address(family: Family, number: u128) -> String {
    match family {
        Family::Ipv6 => Ipv6Addr::from(number).to_string(),
        _ => Ipv4Addr::from(number as u32).to_string(),
    }
}

/// A range of addresses: a network where it is one, else both ends.
fn networks(family: Family, low: u128, high: u128) -> Vec<String> {
    let bits = Field::Source.bits(family);
    let host_bits = (low ^ high).checked_ilog2().map_or(0, |bit| bit + 1);
    let is_network = host_bits == 0 || {
        let ones = if host_bits == 128 { u128::MAX } else { (1 << host_bits) - 1 };
        low & ones == 0 && high & ones == ones
    };
    vec![match (is_network, host_bits) {
        (true, 0) => address(family, low),
        (true, host_bits) => format!("{}/{}", address(family, low), bits - host_bits),
        (false, _) => format!("{}-{}", address(family, low), address(family, high)),
    }]
}
