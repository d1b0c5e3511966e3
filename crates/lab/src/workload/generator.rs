//! The packets: trains of data packets drawn from many slots, with config packets in between.

use engines::{Body, Config, Data, Packet};

use super::pairs::Pairs;
use super::preset::Preset;
use super::random::{Mangle, Random, Tabled};
use super::variant::Variant;

/// A packet with all that its generator says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generated {
    /// A config packet.
    Config(Config<u32>),
    /// A data packet of a train.
    Data {
        /// Who sends what to whom.
        data: Data<u32>,
        /// Its number in its train, from 0.
        sequence: i32,
        /// Packets of the train.
        train_size: i32,
        /// The communication's tag.
        tag: u32,
    },
}

impl Generated {
    /// What an engine is shown.
    #[must_use]
    #[inline]
    pub fn packet(self) -> Packet<u32> {
        match self {
            Self::Config(config) => Packet::Config(config),
            Self::Data { data, .. } => Packet::Data(data),
        }
    }
}

/// A communication that sends trains from one address to another.
#[derive(Debug, Clone)]
struct Trains {
    source: u32,
    destination: u32,
    sequence: i32,
    size: i32,
    number: i32,
    count: i32,
    work: f64,
    tag: u32,
}

/// The generator; `M` says how it scrambles.
#[derive(Debug, Clone)]
pub struct Generator<M = Tabled> {
    variant: Variant,
    preset: Preset,
    pairs: Pairs<M>,
    uniform: Random<M>,
    exponential: Random<M>,
    slots: Box<[Trains]>,
    last_configured: u32,
    configs: u32,
    until_config: i32,
}

impl<M: Mangle> Generator<M> {
    /// From the one seed.
    #[must_use]
    pub fn new(variant: Variant, preset: &Preset) -> Self {
        let mut pairs = Pairs::new(variant, preset);
        let (mut uniform, mut exponential) = (Random::new(), Random::new());
        let last_configured = pairs.next().0;
        let trains = |_| Trains::new(preset, &mut pairs, &mut uniform, &mut exponential);
        let slots = (0..1usize << preset.trains_log).map(trains).collect();
        Self {
            variant,
            preset: *preset,
            pairs,
            uniform,
            exponential,
            slots,
            last_configured,
            configs: 0,
            until_config: 0,
        }
    }

    /// The next packet, of either kind.
    #[inline]
    pub fn packet(&mut self) -> Generated {
        if self.until_config > 0 {
            self.until_config -= 1;
            return self.data();
        }
        self.configs += 1;
        let addresses = 1u32 << self.preset.addresses_log;
        if self.variant == Variant::A || self.configs > addresses - 1 {
            self.until_config = self.exponential.exponential(1.0 / self.preset.config - 1.0);
        }
        Generated::Config(self.config())
    }

    /// The next config packet; the warm-up asks for nothing else. In variants C and D, which count config packets
    /// of the stream only, a warm-up names one address over and over.
    pub fn config(&mut self) -> Config<u32> {
        self.numbered_config(self.configs)
    }

    /// The config packet of this number: in variants C and D, odd ones name a new address.
    pub(super) fn numbered_config(&mut self, number: u32) -> Config<u32> {
        if matches!(self.variant, Variant::A | Variant::B) || number % 2 == 1 {
            self.last_configured = self.pairs.next().0;
        }
        let addresses = 1u32 << self.preset.addresses_log;
        let mask = (1u32 << (self.preset.addresses_log / 2)) - 1;
        let begin = self.uniform.below(addresses - 1 - mask);
        let persona_non_grata = self.uniform.unit() < self.preset.png;
        let accept = self.uniform.unit() < self.preset.accepting;
        let end = begin + 1 + self.uniform.below(mask - 1);
        Config { address: self.last_configured, persona_non_grata, accept, begin, end }
    }

    fn data(&mut self) -> Generated {
        let Self { preset, pairs, uniform, exponential, slots, .. } = self;
        let slot = uniform.next() as usize & (slots.len() - 1);
        let trains = &mut slots[slot];
        let iterations = exponential.exponential(trains.work) as u32;
        let body = Body { iterations, seed: uniform.next() };
        let packet = Generated::Data {
            data: Data { source: trains.source, destination: trains.destination, body },
            sequence: trains.sequence,
            train_size: trains.size,
            tag: trains.tag,
        };
        trains.sequence += 1;
        if trains.sequence == trains.size {
            trains.sequence = 0;
            trains.number += 1;
            if trains.number == trains.count {
                *trains = Trains::new(preset, pairs, uniform, exponential);
            }
        }
        packet
    }
}

impl Trains {
    fn new<M: Mangle>(
        preset: &Preset,
        pairs: &mut Pairs<M>,
        uniform: &mut Random<M>,
        exponential: &mut Random<M>,
    ) -> Self {
        let (source, destination) = pairs.next();
        let size = exponential.exponential(preset.train_size);
        let count = exponential.exponential(preset.trains);
        let work = f64::from(exponential.exponential(preset.work));
        let tag = uniform.next();
        Self { source, destination, sequence: 0, size, number: 0, count, work, tag }
    }
}
