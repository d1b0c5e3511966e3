//! A stream made ready: what engines are told before the clock starts, and the packets that are timed.
//!
//! Contract: drawing takes no time of a run; every engine of a contest is told the same and sees the same packets.

use std::collections::HashMap;
use std::sync::OnceLock;

use access::RangeSet;
use engines::cached::Grain;
use engines::catalogue::{Built, Choices, Kind};
use engines::striped_map;
use engines::{Config, Packet};

use crate::workload::{Parts, Preset, Stream, Variant, WarmUp};

/// What comes before the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The exercise's warm-up, and after it the head of config packets that variants B to D begin with.
    Warm(WarmUp),
    /// Nothing: tables are empty.
    Cold,
    /// The head alone, which engines are told; packets are of the preset's mix from the first one on.
    Steady,
}

/// What an engine is told beyond the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tuning {
    /// Locks of `striped`, if not as usual.
    pub stripes: Option<usize>,
    /// How the table of `striped_map` starts and grows.
    pub striped_map: striped_map::Settings,
    /// How exact the invalidation of `cached_exact` is.
    pub grain: Grain,
}

/// Packets of a part: making them takes many times as long as copying the generator of the largest preset.
const PART: usize = 1 << 16;

/// A stream whose warm-up is drawn and whose packets are prepared.
#[derive(Debug)]
pub struct Prepared {
    /// Which generator.
    pub variant: Variant,
    /// Which mix.
    pub preset: Preset,
    /// Default of R.
    pub default_accept: bool,
    /// What came before.
    pub start: Start,
    told: Vec<Config<u32>>,
    after: Stream,
    packets: Vec<Packet<u32>>,
    parts: OnceLock<Parts>,
}

impl Prepared {
    /// Draws the warm-up, as mended, and packets.
    #[must_use]
    pub fn new(variant: Variant, preset: &Preset, default_accept: bool, packets: usize) -> Self {
        Self::from(Start::Warm(WarmUp::Mended), variant, preset, default_accept, packets)
    }

    /// Draws what comes before, and packets.
    #[must_use]
    pub fn from(
        start: Start,
        variant: Variant,
        preset: &Preset,
        default_accept: bool,
        packets: usize,
    ) -> Self {
        let warm_up = match start {
            Start::Warm(warm_up) => warm_up,
            Start::Cold | Start::Steady => WarmUp::AsPublished,
        };
        let mut after = Stream::new(variant, preset, warm_up);
        let told = match start {
            Start::Warm(_) => after.warm_up().collect(),
            Start::Cold => Vec::new(),
            Start::Steady => configs(after.clone(), variant.head(preset)),
        };
        if start == Start::Steady {
            after.skip(told.len());
        }
        let packets = after.clone().packets().take(packets).collect();
        Self {
            variant,
            preset: *preset,
            default_accept,
            start,
            told,
            after,
            packets,
            parts: OnceLock::new(),
        }
    }

    /// The packets that are timed.
    #[must_use]
    pub fn packets(&self) -> &[Packet<u32>] {
        &self.packets
    }

    /// Those of them that ask for a decision.
    #[must_use]
    pub fn decisions(&self) -> usize {
        self.packets.iter().filter(|packet| matches!(packet, Packet::Data(_))).count()
    }

    /// For each packet whether it changes what some address may do or accepts, after what came before it.
    #[must_use]
    pub fn changes(&self) -> Vec<bool> {
        let mut known = HashMap::new();
        let mut change = |config: &Config<u32>| {
            let usual = || (false, RangeSet::new(self.default_accept));
            let (png, accepts) = known.entry(config.address).or_insert_with(usual);
            let before = accepts.clone();
            accepts.set(config.begin, Some(config.end), config.accept);
            let changed = *png != config.persona_non_grata || *accepts != before;
            *png = config.persona_non_grata;
            changed
        };
        self.told.iter().for_each(|config| _ = change(config));
        let changes = |packet: &Packet<u32>| match packet {
            Packet::Data(_) => false,
            Packet::Config(config) => change(config),
        };
        self.packets.iter().map(changes).collect()
    }

    /// An engine that was told what came before.
    ///
    /// # Errors
    /// It refuses the address space.
    pub fn engine(&self, kind: Kind, tuning: Tuning) -> Result<Built<u32>, String> {
        let mut built = self.empty(kind, tuning)?;
        self.tell(&mut built);
        Ok(built)
    }

    /// An engine that was told nothing yet.
    ///
    /// # Errors
    /// It refuses the address space.
    pub fn empty(&self, kind: Kind, tuning: Tuning) -> Result<Built<u32>, String> {
        let choices = self.variant.choices(&self.preset, self.default_accept);
        let Tuning { stripes, striped_map, grain } = tuning;
        let stripes = stripes.unwrap_or(choices.stripes);
        kind.build(&Choices { stripes, striped_map, grain, ..choices })
            .map_err(|error| error.to_string())
    }

    /// Tells an engine what came before.
    pub fn tell(&self, built: &mut Built<u32>) {
        self.told.iter().for_each(|config| built.update(config));
    }

    /// The generator of the packets.
    pub(super) fn generator(&self) -> impl Iterator<Item = Packet<u32>> + Send + use<> {
        self.after.clone().packets().take(self.packets.len())
    }

    /// The packets in parts, for threads that make them at a time.
    pub(super) fn parts(&self) -> &Parts {
        self.parts.get_or_init(|| Parts::new(&self.after, self.packets.len(), PART))
    }

    /// A generator for each of some workers, which yield as many packets in all as the stream has. All have the one
    /// seed, as in the first study's published code; but the head, which every one of them would begin with, is dealt
    /// out among them, so that all together see the mix of one stream.
    pub(super) fn generators(
        &self,
        workers: usize,
    ) -> impl Iterator<Item = impl Iterator<Item = Packet<u32>> + Send + use<>> {
        let all = self.packets.len();
        let head = match self.start {
            Start::Warm(_) | Start::Cold => self.variant.head(&self.preset).min(all),
            Start::Steady => 0,
        };
        let mut steady = self.after.clone();
        steady.skip(head);
        let part = move |count: usize, at: usize| count * at / workers..count * (at + 1) / workers;
        (0..workers).map(move |at| {
            let first = self.packets[part(head, at)].to_vec();
            let rest = part(all - head, at).len();
            first.into_iter().chain(steady.clone().packets().take(rest))
        })
    }
}

/// The config packets that a stream begins with, this number of them.
fn configs(stream: Stream, count: usize) -> Vec<Config<u32>> {
    let config = |packet| match packet {
        Packet::Config(config) => Some(config),
        Packet::Data(_) => None,
    };
    stream.packets().take(count).filter_map(config).collect()
}
