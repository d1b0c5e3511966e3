//! [`Variant`]: which generator was handed out, and what differs in its stream.

use engines::catalogue::Choices;

use super::preset::Preset;

/// Which generator was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The first course's: addresses below their count, config packets spread over the stream.
    A,
    /// The same with a start that is all config packets.
    B,
    /// Seed 000's: as B, addresses are 30-bit numbers of which ranges hold next to none, and config packets
    /// name a new address only every second time.
    C,
    /// As C with addresses that count from 1.
    D,
}

impl Variant {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::A, Self::B, Self::C, Self::D];

    /// Its letter in the studies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
        }
    }

    /// Addresses of a preset are below this, if they have a bound that a table could be laid out for.
    #[must_use]
    pub fn bound(self, preset: &Preset) -> Option<usize> {
        match self {
            Self::A | Self::B => Some(1 << preset.addresses_log),
            Self::C => None,
            // From 1 to the count.
            Self::D => Some((1 << preset.addresses_log) + 1),
        }
    }

    /// Packets at the start of a stream that are config packets one and all; the mix is the preset's after them.
    #[must_use]
    pub fn head(self, preset: &Preset) -> usize {
        match self {
            Self::A => 0,
            Self::B | Self::C | Self::D => (1 << preset.addresses_log) - 1,
        }
    }

    /// What an engine is told of the stream.
    #[must_use]
    pub fn choices(self, preset: &Preset, default_accept: bool) -> Choices {
        Choices { addresses: self.bound(preset), default_accept, ..Choices::default() }
    }
}
