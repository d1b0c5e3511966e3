//! The two kinds of packet, and the verdicts of a burst of them.

use crate::address::Address;

/// A config packet: one atomic change of what one address may do and accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config<A> {
    /// The address that is changed.
    pub address: A,
    /// Whether it may not send from now on.
    pub persona_non_grata: bool,
    /// Whether it accepts the sources of the range from now on.
    pub accept: bool,
    /// The first source of the range.
    pub begin: A,
    /// The first source after it; a range that does not begin before its end is empty.
    pub end: A,
}

/// A data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<A> {
    /// The sender.
    pub source: A,
    /// The receiver.
    pub destination: A,
    /// What it carries.
    pub body: Body,
}

/// What a data packet carries: the work that a permitted one makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Body {
    /// Steps of the fingerprint.
    pub iterations: u32,
    /// Where it starts.
    pub seed: u32,
}

/// A packet of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<A> {
    /// Evaluated.
    Data(Data<A>),
    /// Carried out.
    Config(Config<A>),
}

impl<A: Address> Config<A> {
    /// Whether the range has this source.
    #[inline]
    pub fn covers(&self, source: A) -> bool {
        self.begin <= source && source < self.end
    }
}

/// Which packets of a burst are permitted data packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permits {
    words: [u64; Self::MOST / 64],
}

impl Permits {
    /// The longest burst.
    pub const MOST: usize = 256;

    /// Says of packet `at` whether it is permitted. Each is answered once.
    #[inline]
    pub fn say(&mut self, at: usize, permitted: bool) {
        self.words[at / 64] |= u64::from(permitted) << (at % 64);
    }

    /// Whether packet `at` is permitted.
    #[must_use]
    #[inline]
    pub fn has(&self, at: usize) -> bool {
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// How many are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
}
