//! One packet of a region: as near to a usual one as the region lets it be.

use conntrack::CtState;
use rules::model::Family;
use rules::predicate::{Field, Values};

use super::part::{FORMS, Part};
use super::pieces::Piece;
use super::predicates::Space;
use crate::diagram::{Region, TooLarge};

/// The bits to choose where a region leaves them open.
#[derive(Debug, Clone)]
pub struct Preferred {
    numbers: Vec<(Part, u128)>,
    asked: bool,
}

/// A packet of a region.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Values of the packet's fields.
    pub values: Values,
    /// The packet's own destination sends it to this host.
    pub to_host: bool,
    /// The answers that tests which can only be asked have to give for it.
    pub answers: Vec<(String, bool)>,
}

impl Preferred {
    /// A packet as people write it: between addresses and networks for documentation, the first of its connection.
    #[must_use]
    pub fn usual(family: Family) -> Self {
        let (source, destination, echo) = match family {
            Family::Ipv6 => (0x2001_0db8 << 96 | 1, 0x2001_0db8 << 96 | 2, 128),
            _ => (0xc000_0201, 0xc633_6401, 8),
        };
        let field = |field, number| (Part::Field(field), number);
        let new = CtState::ALL.iter().position(|state| *state == CtState::New).unwrap_or(0);
        let numbers = vec![
            (Part::State, new as u128),
            (Part::Input, 1),
            (Part::Output, 1),
            (Part::Form, 0),
            (Part::HasMac, 1),
            field(Field::Protocol, 6),
            field(Field::DestinationPort, 9),
            field(Field::SourcePort, 40_000),
            field(Field::TcpFlags, 2),
            field(Field::IcmpType, echo),
            field(Field::IcmpCode, 0),
            field(Field::Destination, destination),
            field(Field::Source, source),
            field(Field::SourceMac, 0x0200_0000_0001),
            // Of the types that a region leaves open, LOCAL is what people can give by --local.
            field(Field::SourceType, 1),
            field(Field::DestinationType, 2),
            field(Field::Ttl, 63),
            field(Field::Length, if family == Family::Ipv6 { 100 } else { 60 }),
        ];
        Self { numbers, asked: false }
    }

    /// A packet with bits drawn from a sequence that `seed` begins, so that many of them go all over a region.
    #[must_use]
    pub fn drawn(family: Family, seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut drawn = Self::usual(family);
        for (part, number) in &mut drawn.numbers {
            let is_kept = *part == Part::HasMac || next() % 4 == 0;
            let wide = u128::from(next()) << 64 | u128::from(next());
            if !is_kept {
                *number = wide;
            }
        }
        drawn.asked = next() % 2 == 0;
        drawn
    }

    /// Prefers another number for a part.
    #[must_use]
    pub fn with(mut self, part: Part, number: u128) -> Self {
        match self.numbers.iter_mut().find(|(of, _)| *of == part) {
            Some((_, old)) => *old = number,
            None => self.numbers.push((part, number)),
        }
        self
    }

    fn number(&self, part: Part) -> u128 {
        self.numbers.iter().find(|(of, _)| *of == part).map_or(0, |(_, number)| *number)
    }
}

impl Space {
    /// Returns a packet of a region, if it has one. Numbers that a region leaves open are the preferred ones, so the
    /// region must contain only packets that a hook sees.
    #[must_use]
    pub fn sample(&self, region: Region, preferred: &Preferred) -> Option<Sample> {
        if region.is_empty() {
            return None;
        }
        let mut values = Values::default();
        values.has_flow = self.is_tested(Field::ConnMark) || self.is_tested(Field::Translated);
        let mut at = region;
        let mut to_host = true;
        for dimension in &self.dimensions {
            let wanted = match dimension.part {
                // What no rule tests is as it comes.
                Part::Field(field) if field >= Field::SourceType && !self.is_tested(field) => 0,
                part => self.packed(part, preferred.number(part)),
            };
            let mut number = 0;
            for level in dimension.start..dimension.end() {
                let mut bit = dimension.has_bit(wanted, level);
                if let Some((_, low, high)) = self.diagrams.branch(at).filter(|(l, ..)| *l == level)
                {
                    bit = if bit { !high.is_empty() } else { low.is_empty() };
                    at = if bit { high } else { low };
                }
                number = number << 1 | u128::from(bit);
            }
            self.set(&mut values, dimension.part, number);
            if dimension.part == Part::Way {
                to_host = number == 0;
            }
        }
        let mut answers = Vec::new();
        while let Some((level, low, high)) = self.diagrams.branch(at) {
            let bit = if preferred.asked { !high.is_empty() } else { low.is_empty() };
            at = if bit { high } else { low };
            let name = self.asked_names.get((level - self.first_asked()) as usize);
            answers.extend(name.map(|name| (name.clone(), bit)));
        }
        Some(Sample { values, to_host, answers })
    }

    /// The packets with the values of a sample, and on its way.
    ///
    /// # Errors
    /// There is no room.
    pub fn of_sample(&mut self, sample: &Sample) -> Result<Region, TooLarge> {
        let way = u128::from(!sample.to_host);
        let way = self.range(Part::Way, way, way)?;
        let values = self.of_values(&sample.values)?;
        self.diagrams.and(values, way)
    }

    /// Whether a packet of the region that a piece is of is in the piece: number by number, without a diagram.
    #[must_use]
    pub fn is_of(&self, sample: &Sample, piece: &Piece) -> bool {
        piece.ranges.iter().all(|(part, ranges)| {
            let number = match part {
                Part::Way => u128::from(!sample.to_host),
                part => self.number_of(*part, &sample.values),
            };
            ranges.iter().any(|(low, high)| (*low..=*high).contains(&number))
        })
    }

    fn set(&self, values: &mut Values, part: Part, number: u128) {
        let name = |number| self.names.kind(number).map_or_else(String::new, |it| it.name.clone());
        match part {
            Part::State => {
                values.state = CtState::ALL.get(number as usize).copied().unwrap_or(CtState::New);
            }
            Part::Input => values.input = name(number),
            Part::Output => values.output = name(number),
            Part::Form => values.form = FORMS.get(number as usize).copied().unwrap_or(FORMS[0]),
            Part::Way => {}
            Part::HasMac => values.has_mac = number == 1,
            Part::Field(Field::Mark) => values.set(Field::Mark, self.marks.unpacked(number)),
            Part::Field(Field::ConnMark) => {
                values.set(Field::ConnMark, self.marks.unpacked(number));
            }
            Part::Field(field) => values.set(field, number),
        }
    }
}
