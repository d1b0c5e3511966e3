//! [`Test`]: one test of an expression: a word at a computed place, and the ranges that it may lie in.

use packet::Read;

use crate::outcome::Outcome;
use crate::transit::Transit;

/// One operand of `&&`: a place, and the ranges its word may lie in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) start: u32,
    pub(super) steps: Box<[(Operator, u32)]>,
    pub(super) ranges: Box<[(u32, u32)]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    And,
    Left,
    Right,
    /// Move by the value so far and read the word at the number.
    At,
}

impl Operator {
    pub(super) const ALL: [(&'static str, Self); 4] =
        [("&", Self::And), ("<<", Self::Left), (">>", Self::Right), ("@", Self::At)];

    fn text(self) -> &'static str {
        Self::ALL.iter().find(|(_, operator)| *operator == self).map_or("", |(text, _)| text)
    }
}

impl Test {
    pub(super) fn text(&self) -> String {
        let steps = self.steps.iter().map(|(op, number)| format!("{}{number:#x}", op.text()));
        let ranges = self.ranges.iter().map(|(low, high)| match low == high {
            true => format!("{low:#x}"),
            false => format!("{low:#x}:{high:#x}"),
        });
        let ranges: Vec<String> = ranges.collect();
        format!("{:#x}{}={}", self.start, steps.collect::<String>(), ranges.join(","))
    }

    pub(super) fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match self.value(transit) {
            Read::Known(bits) => bits.lie_in(&self.ranges),
            Read::Unknown => Outcome::MAYBE,
            Read::Absent => Outcome::NO,
        }
    }

    /// The value at the place; absent where the kernel gives up.
    fn value(&self, transit: &Transit<'_, '_>) -> Read<Bits> {
        let mut base = 0_u32;
        let mut bits = word(transit, 0, self.start);
        for (operator, number) in &self.steps {
            let Read::Known(Bits { value, unknown }) = bits else { return bits };
            bits = match operator {
                Operator::And => Bits::of(value & number, unknown & number),
                Operator::Left => {
                    Bits::of(value.wrapping_shl(*number), unknown.wrapping_shl(*number))
                }
                Operator::Right => {
                    Bits::of(value.wrapping_shr(*number), unknown.wrapping_shr(*number))
                }
                Operator::At if unknown != 0 => return Read::Unknown,
                Operator::At => match base.checked_add(value) {
                    Some(moved) => {
                        base = moved;
                        word(transit, base, *number)
                    }
                    None => return Read::Absent,
                },
            };
        }
        bits
    }
}

/// A value of which some bits may not be known; those are 0 in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bits {
    value: u32,
    unknown: u32,
}

impl Bits {
    fn of(value: u32, unknown: u32) -> Read<Self> {
        Read::Known(Self { value, unknown })
    }

    /// Whether the value lies in one of the ranges.
    fn lie_in(self, ranges: &[(u32, u32)]) -> Outcome {
        let (least, most) = (self.value, self.value | self.unknown);
        if ranges.iter().any(|(low, high)| *low <= least && most <= *high) {
            return Outcome::YES;
        }
        match ranges.iter().any(|(low, high)| *low <= most && least <= *high) {
            true if self.unknown != 0 => Outcome::MAYBE,
            _ => Outcome::NO,
        }
    }
}

/// The word at `base + offset` from the network header, in host byte order.
fn word(transit: &Transit<'_, '_>, base: u32, offset: u32) -> Read<Bits> {
    let Some(at) = (base as usize).checked_add(offset as usize) else { return Read::Absent };
    match transit.net(at) {
        Read::Known(bytes) => Bits::of(u32::from_be_bytes(bytes), 0),
        Read::Unknown => known_bytes(transit, at),
        Read::Absent => Read::Absent,
    }
}

/// What is known of a word.
#[cold]
fn known_bytes(transit: &Transit<'_, '_>, at: usize) -> Read<Bits> {
    let (mut value, mut unknown) = ([0; 4], [0; 4]);
    for (index, (value, unknown)) in value.iter_mut().zip(&mut unknown).enumerate() {
        match transit.net(at + index) {
            Read::Known([byte]) => *value = byte,
            Read::Unknown | Read::Absent => *unknown = 0xff,
        }
    }
    let unknown = u32::from_be_bytes(unknown);
    // Where the packet may end inside the word, the word may not be there at all.
    match transit.packet.is_open()
        && transit.packet.network_offset() + at + 4 > transit.packet.headers().end
    {
        true => Read::Unknown,
        false => Bits::of(u32::from_be_bytes(value), unknown),
    }
}
