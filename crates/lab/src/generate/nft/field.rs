//! [`Field`]: what a test reads, how its values are drawn and written, and how a packet gets one.

use rules::model::Family;

use super::super::draft::Draft;
use super::Drawing;

/// How a field's values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number of so many bits, in decimal: ordered.
    Number(u32),
    /// The same in hexadecimal.
    Hex(u32),
    /// An IPv4 address: ordered, with prefixes.
    V4,
    /// An IPv6 address: ordered, with prefixes.
    V6,
    /// An Ethernet address.
    Mac,
    /// Words; a value is an index.
    Words(&'static [&'static str]),
    /// Words that are bits: `a,b` tests whether one is set.
    Flags(&'static [&'static str]),
    /// Only `exists` and `missing`.
    Presence,
}

impl Kind {
    /// Bits of a value that masks and ranges are over; none of words.
    #[must_use]
    pub fn bits(self) -> Option<u32> {
        match self {
            Self::Number(bits) | Self::Hex(bits) => Some(bits),
            Self::V4 => Some(32),
            Self::V6 => Some(128),
            Self::Mac | Self::Words(_) | Self::Flags(_) | Self::Presence => None,
        }
    }

    /// A value as nft reads it.
    #[must_use]
    pub fn show(self, value: u128) -> String {
        match self {
            Self::Number(_) => value.to_string(),
            Self::Hex(_) => format!("{value:#x}"),
            Self::V4 => std::net::Ipv4Addr::from(value as u32).to_string(),
            Self::V6 => std::net::Ipv6Addr::from(value).to_string(),
            Self::Mac => {
                let bytes = value.to_be_bytes();
                let pairs: Vec<String> = bytes[10..].iter().map(|b| format!("{b:02x}")).collect();
                pairs.join(":")
            }
            Self::Words(words) | Self::Flags(words) => {
                words[value as usize % words.len()].to_owned()
            }
            Self::Presence => if value == 0 { "missing" } else { "exists" }.to_owned(),
        }
    }
}

/// What a test reads.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// As the rule says it.
    pub name: &'static str,
    /// The item that it tries.
    pub item: &'static str,
    /// Family of the packets that have it, if it is one.
    pub family: Option<Family>,
    /// How values are written.
    pub kind: Kind,
    /// Draws a value near what packets have.
    pub draw: fn(&mut Drawing<'_>) -> u128,
    /// Gives a packet the value, if that can be.
    pub craft: fn(&mut Draft, u128),
}

/// A field of packets of both families.
pub(super) const fn field(
    item: &'static str,
    name: &'static str,
    kind: Kind,
    draw: fn(&mut Drawing<'_>) -> u128,
    craft: fn(&mut Draft, u128),
) -> Field {
    Field { name, item, family: None, kind, draw, craft }
}

/// A field of IPv4 packets.
pub(super) const fn v4(
    item: &'static str,
    name: &'static str,
    kind: Kind,
    draw: fn(&mut Drawing<'_>) -> u128,
    craft: fn(&mut Draft, u128),
) -> Field {
    Field { name, item, family: Some(Family::Ipv4), kind, draw, craft }
}

/// A field of IPv6 packets.
pub(super) const fn v6(
    item: &'static str,
    name: &'static str,
    kind: Kind,
    draw: fn(&mut Drawing<'_>) -> u128,
    craft: fn(&mut Draft, u128),
) -> Field {
    Field { name, item, family: Some(Family::Ipv6), kind, draw, craft }
}

/// Leaves the packet as it is.
pub(super) fn nothing(_: &mut Draft, _: u128) {}

/// One of a few numbers, or near one.
pub(super) fn near(drawing: &mut Drawing<'_>, known: &[u128], bits: u32) -> u128 {
    let max = if bits >= 128 { u128::MAX } else { (1 << bits) - 1 };
    let value = drawing.draw.pick(known);
    match drawing.draw.rng.u8(..10) {
        0 => value.wrapping_add(1) & max,
        1 => value.wrapping_sub(1) & max,
        2 => drawing.draw.rng.u128(..) & max,
        _ => value & max,
    }
}
