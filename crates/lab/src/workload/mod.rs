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
mod parts;
mod preset;
mod random;
pub mod summary;
mod variant;

use engines::{Config, Packet};

pub use generator::{Generated, Generator};
pub use parts::Parts;
pub use preset::{PRESETS, Preset};
pub use random::{Bitwise, Mangle, Tabled};
pub use variant::Variant;

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
