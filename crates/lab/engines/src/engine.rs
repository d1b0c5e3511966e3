//! What every engine does, alone or shared by threads.

use std::fmt;

use crate::address::Address;
use crate::config::{Config, Packet, Permits};

/// An engine that any number of threads use at a time. `decide` and `update` are linearizable unless the
/// engine's file says that it shows a published design that is not.
pub trait Engine<A: Address>: Send + Sync {
    /// Whether `source` may send to `destination`.
    fn decide(&self, source: A, destination: A) -> bool;

    /// Applies a change, as one action.
    fn update(&self, config: &Config<A>);

    /// Bytes held, without the allocator's own.
    fn bytes(&self) -> usize;

    /// How often a reader had to start again so far.
    fn retries(&self) -> u64 {
        0
    }

    /// Evaluates packets, or applies them, one after the other; at most [`Permits::MOST`].
    fn burst(&self, packets: &[Packet<A>], permits: &mut Permits) {
        for (at, packet) in packets.iter().enumerate() {
            match packet {
                Packet::Data(data) => {
                    permits.say(at, self.decide(data.source, data.destination));
                }
                Packet::Config(config) => self.update(config),
            }
        }
    }

    /// What one thread works with.
    fn worker(&self) -> Box<dyn Decide<A> + '_> {
        Box::new(self)
    }
}

/// What one thread works with: an engine of its own, or its way into a shared one.
pub trait Decide<A: Address>: Send {
    /// Whether `source` may send to `destination`.
    fn decide(&mut self, source: A, destination: A) -> bool;

    /// Applies a change.
    fn update(&mut self, config: &Config<A>);

    /// Evaluates packets, or applies them, one after the other; at most [`Permits::MOST`].
    fn burst(&mut self, packets: &[Packet<A>], permits: &mut Permits) {
        for (at, packet) in packets.iter().enumerate() {
            match packet {
                Packet::Data(data) => {
                    permits.say(at, self.decide(data.source, data.destination));
                }
                Packet::Config(config) => self.update(config),
            }
        }
    }
}

impl<A: Address, E: Engine<A> + ?Sized> Decide<A> for &E {
    fn decide(&mut self, source: A, destination: A) -> bool {
        (**self).decide(source, destination)
    }

    fn update(&mut self, config: &Config<A>) {
        (**self).update(config);
    }

    fn burst(&mut self, packets: &[Packet<A>], permits: &mut Permits) {
        (**self).burst(packets, permits);
    }
}

impl<A: Address, D: Decide<A> + ?Sized> Decide<A> for &mut D {
    fn decide(&mut self, source: A, destination: A) -> bool {
        (**self).decide(source, destination)
    }

    fn update(&mut self, config: &Config<A>) {
        (**self).update(config);
    }

    fn burst(&mut self, packets: &[Packet<A>], permits: &mut Permits) {
        (**self).burst(packets, permits);
    }
}

/// The addresses do not fit an engine that lays out the whole space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// The most addresses it takes.
    pub most: usize,
    /// How many there are; `None`: without a bound.
    pub found: Option<usize>,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected addresses below {}, found ", self.most)?;
        match self.found {
            Some(found) => write!(f, "addresses below {found}"),
            None => write!(f, "addresses without a bound"),
        }
    }
}

impl std::error::Error for TooLarge {}
