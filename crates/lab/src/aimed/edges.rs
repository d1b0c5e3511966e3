//! Packets at and beside the edges of what rules ask for.

use std::collections::BTreeMap;

use fastrand::Rng;
use lint::{Part, Piece, Preferred, Space};
use packet::{icmpv4, icmpv6, tcp, udp};
use rules::model::{Family, Rule};
use rules::predicate::{Field, Predicate};

/// Parts that packets have, besides their fields.
const PARTS: [Part; 6] =
    [Part::State, Part::Input, Part::Output, Part::Way, Part::Form, Part::HasMac];

/// Numbers at edges and beside them, by the part of a packet.
#[derive(Debug, Clone, Default)]
pub struct Edges(BTreeMap<Part, Vec<u128>>);

impl Edges {
    /// Notes what a rule asks for.
    pub fn note_rule(&mut self, space: &Space, rule: &Rule) {
        let header = rule.header.as_ref().and_then(|it| it.predicate(space.family()));
        let tests = rule.matches.iter().filter_map(|used| space.predicate_of(used));
        header.into_iter().chain(tests).for_each(|one| self.note(space, &one));
    }

    /// Notes where a region begins and ends.
    pub fn note_piece(&mut self, piece: &Piece) {
        for (part, ranges) in piece.ranges() {
            // Marks have their bits in another order there, and rules name them anyway.
            if matches!(part, Part::Field(Field::Mark | Field::ConnMark)) {
                continue;
            }
            ranges.iter().for_each(|(low, high)| self.range(*part, *low, *high));
        }
    }

    fn note(&mut self, space: &Space, predicate: &Predicate) {
        match predicate {
            Predicate::All(several) | Predicate::Any(several) => {
                several.iter().for_each(|one| self.note(space, one));
            }
            Predicate::Not(one) => self.note(space, one),
            Predicate::Masked { field, value, mask } => {
                let bits = field.bits(space.family());
                let full = if bits >= u128::BITS { u128::MAX } else { (1 << bits) - 1 };
                self.range(Part::Field(*field), *value, value | (full & !mask));
            }
            Predicate::Range { field, low, high } => self.range(Part::Field(*field), *low, *high),
            Predicate::Input(test) => self.put(Part::Input, space.interface(&test.name)),
            Predicate::Output(test) => self.put(Part::Output, space.interface(&test.name)),
            Predicate::State(_)
            | Predicate::HasHeader
            | Predicate::LaterFragment
            | Predicate::HasMac => {}
        }
    }

    fn range(&mut self, part: Part, low: u128, high: u128) {
        for number in [low, high, low.wrapping_sub(1), high.wrapping_add(1)] {
            self.put(part, number);
        }
    }

    fn put(&mut self, part: Part, number: u128) {
        let numbers = self.0.entry(part).or_default();
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }

    /// Numbers of another are these, too.
    pub fn take(&mut self, others: &Self) {
        for (part, numbers) in &others.0 {
            numbers.iter().for_each(|number| self.put(*part, *number));
        }
    }

    fn drawn(&self, part: Part, rng: &mut Rng) -> Option<u128> {
        let numbers = self.0.get(&part).filter(|it| !it.is_empty())?;
        Some(numbers[rng.usize(..numbers.len())])
    }
}

/// A packet to look for: parts at edges that are near, at any edge of the rules, as usual, or anywhere.
#[must_use]
pub fn preferred(family: Family, near: &Edges, all: &Edges, rng: &mut Rng) -> Preferred {
    let mut wanted = Preferred::usual(family);
    let fields = Field::ALL.into_iter().map(Part::Field);
    for part in PARTS.into_iter().chain(fields) {
        let number = match rng.u8(..8) {
            0..3 => near.drawn(part, rng).or_else(|| all.drawn(part, rng)),
            3..5 => all.drawn(part, rng),
            5 => Some(rng.u128(..)),
            _ => None,
        };
        let number = number.or_else(|| of_kind(family, part, rng));
        if let Some(number) = number {
            wanted = wanted.with(part, number);
        }
    }
    wanted
}

/// What parts without edges are mostly.
fn of_kind(family: Family, part: Part, rng: &mut Rng) -> Option<u128> {
    let icmp = if family == Family::Ipv6 { icmpv6::PROTOCOL } else { icmpv4::PROTOCOL };
    Some(match part {
        Part::State => rng.u128(..8),
        Part::Input | Part::Output => rng.u128(1..64),
        Part::Way => rng.u128(..2),
        Part::Form => u128::from(rng.u8(..16) == 0),
        Part::HasMac => u128::from(rng.u8(..8) != 0),
        Part::Field(Field::Protocol) => {
            let protocols = [tcp::PROTOCOL, tcp::PROTOCOL, udp::PROTOCOL, icmp, 132, 50];
            protocols[rng.usize(..protocols.len())].into()
        }
        Part::Field(Field::TcpFlags) => {
            let flags = [0x02, 0x12, 0x10, 0x11, 0x14, 0x04, 0x00, 0x3f, 0x29, 0x18];
            flags[rng.usize(..flags.len())]
        }
        Part::Field(Field::SourceType | Field::DestinationType) => rng.u128(..12),
        Part::Field(Field::PacketType | Field::Translated) => rng.u128(..4),
        Part::Field(Field::IcmpType) => rng.u128(..32),
        _ => return None,
    })
}
