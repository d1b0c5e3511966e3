//! The streams against the hashes of the originals. `make golden` does it for all of them in full.

use engines::model::Model;
use engines::{Decide, Packet};

use super::hash::Fnv;
use super::*;

fn hash_of<M: Mangle>(generator: &mut Generator<M>, packets: usize) -> u64 {
    let mut hash = Fnv::default();
    (0..packets).for_each(|_| hash.packet(&generator.packet()));
    hash.value()
}

#[test]
fn first_packets_of_all_streams_by_both_scramblers() {
    for variant in Variant::ALL {
        for (preset, golden) in PRESETS.iter().zip(golden::streams(variant)) {
            let mut bitwise = Generator::<Bitwise>::new(variant, preset);
            assert_eq!(hash_of(&mut bitwise, 1000), golden.first_1000, "{variant:?} {preset:?}");
            let mut tabled = Generator::<Tabled>::new(variant, preset);
            assert_eq!(hash_of(&mut tabled, 1000), golden.first_1000, "{variant:?} {preset:?}");
        }
    }
}

#[test]
fn warm_up_and_a_million_packets_of_the_smallest_preset() {
    for variant in Variant::ALL {
        let summary = summary::of(variant, &PRESETS[0]);
        assert_eq!(summary, golden::streams(variant)[0], "{variant:?}");
    }
}

#[test]
fn the_model_leaves_the_recorded_outcome() {
    for (variant, accept) in [(Variant::A, false), (Variant::A, true), (Variant::C, true)] {
        let outcome = summary::oracle(variant, &PRESETS[0], accept);
        assert_eq!(Some(&outcome), golden::outcomes(variant, accept).map(|all| &all[0]));
    }
}

#[test]
fn ranges_of_variant_c_hold_no_source() {
    let mut stream = Stream::new(Variant::C, &PRESETS[1], WarmUp::AsPublished);
    let mut model = Model::new(false);
    stream.warm_up().for_each(|config| model.update(&config));
    let mut permitted = 0;
    for packet in stream.packets().take(20_000) {
        match packet {
            Packet::Config(config) => model.update(&config),
            Packet::Data(data) => {
                permitted += u32::from(model.permits(data.source, data.destination))
            }
        }
    }
    assert_eq!(permitted, 0, "which is why C is only run with a default of accept");
}
