//! The workload of the access-control exercise: its generators, bit for bit.
//!
//! Courses handed the generator out in variants; [`Variant`] names them and what differs. One seed, no
//! parameter for it: every generator of the same preset and variant yields the same stream. The random
//! numbers, the pairs of addresses and the packets are one file each; [`fingerprint`] is the work that a
//! permitted packet makes, and [`hash`] is how a stream is compared with the recorded one.

pub mod fingerprint;
mod generator;
pub mod golden;
pub mod hash;
mod pairs;
mod preset;
mod random;
pub mod summary;

use access::{Config, Packet};
use engines::catalogue::Choices;

pub use generator::{Generated, Generator};
pub use preset::{PRESETS, Preset};
pub use random::{Bitwise, Mangle, Tabled};

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

/// Which addresses the warm-up of variants C and D names; those of A and B are the same either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WarmUp {
    /// One address in all of it: the generator counts config packets of the stream only.
    AsPublished,
    /// A new one every second time, as in the stream.
    Mended,
}

/// The config packets of the warm-up, and the packets that come after it from a second generator.
///
/// The exercise calls `getConfigPacket` so often before the clock starts; the stream is then as if the
/// warm-up had been drawn from a generator of its own, since every generator has the one seed.
#[derive(Debug, Clone)]
pub struct Stream {
    generator: Generator<Tabled>,
    packets: usize,
    warm_up: WarmUp,
}

impl Stream {
    /// A stream whose warm-up has not been taken yet.
    #[must_use]
    pub fn new(variant: Variant, preset: &Preset, warm_up: WarmUp) -> Self {
        Self { generator: Generator::new(variant, preset), packets: preset.warm_up(), warm_up }
    }

    /// The config packets of the warm-up; to be taken first.
    pub fn warm_up(&mut self) -> impl Iterator<Item = Config<u32>> + '_ {
        let Self { generator, packets, warm_up } = self;
        (1..=*packets as u32).map(|number| match warm_up {
            WarmUp::AsPublished => generator.config(),
            WarmUp::Mended => generator.numbered_config(number),
        })
    }

    /// Leaves out the next packets.
    pub fn skip(&mut self, packets: usize) {
        for _ in 0..packets {
            self.generator.packet();
        }
    }

    /// The packets after it, without end.
    pub fn packets(self) -> impl Iterator<Item = Packet<u32>> + Send + use<> {
        let mut generator = self.generator;
        std::iter::repeat_with(move || generator.packet().packet())
    }
}

#[cfg(test)]
mod tests;
