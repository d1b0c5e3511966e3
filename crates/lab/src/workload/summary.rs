//! A stream's hashes and what a sequential model makes of it, to be compared with the recorded ones.

use engines::model::Model;
use engines::{Decide, Packet};

use super::golden::{Golden, GoldenOutcome};
use super::hash::Fnv;
use super::{Generated, Generator, Preset, Stream, Tabled, Variant, WarmUp, fingerprint};

/// Packets after the warm-up.
const PACKETS: usize = 1_000_000;

/// The hashes of a stream.
#[must_use]
pub fn of(variant: Variant, preset: &Preset) -> Golden {
    let mut fresh = Generator::<Tabled>::new(variant, preset);
    let mut first = Fnv::default();
    (0..1000).for_each(|_| first.packet(&fresh.packet()));
    let mut generator = Generator::<Tabled>::new(variant, preset);
    let mut warm_up = Fnv::default();
    for _ in 0..preset.warm_up() {
        warm_up.packet(&Generated::Config(generator.config()));
    }
    let (mut next, mut configs) = (Fnv::default(), 0);
    for _ in 0..PACKETS {
        let packet = generator.packet();
        configs += u64::from(matches!(packet, Generated::Config(_)));
        next.packet(&packet);
    }
    Golden { first_1000: first.value(), warm_up: warm_up.value(), next_1m: next.value(), configs }
}

/// What the model makes of a stream.
#[must_use]
pub fn oracle(variant: Variant, preset: &Preset, default_accept: bool) -> GoldenOutcome {
    let mut stream = Stream::new(variant, preset, WarmUp::AsPublished);
    let mut model = Model::new(default_accept);
    stream.warm_up().for_each(|config| model.update(&config));
    let mut bins = vec![0; 1 << 16];
    for packet in stream.packets().take(PACKETS) {
        match packet {
            Packet::Config(config) => model.update(&config),
            Packet::Data(data) if model.permits(data.source, data.destination) => {
                bins[usize::from(fingerprint::jump_ahead(data.body))] += 1;
            }
            Packet::Data(_) => {}
        }
    }
    outcome(&bins)
}

/// What a histogram says.
#[must_use]
pub fn outcome(bins: &[u64]) -> GoldenOutcome {
    let sum = |(value, &count): (usize, &u64)| value as u64 * count;
    GoldenOutcome {
        passed: bins.iter().sum(),
        histogram: Fnv::of_histogram(bins),
        fingerprints: bins.iter().enumerate().map(sum).sum(),
    }
}
