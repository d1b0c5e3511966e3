//! Our engine against the model, in each of its layouts.
#![cfg(not(loom))]

use engines::model::Model;
use engines::sparse::Sparse;
use engines::tamis::Tamis;
use engines::{Address, Config, Decide, Engine};
use proptest::prelude::*;

/// A change: which of a few destinations, begin and length of the range, banned, accepted.
type Drawn = (u32, u32, u32, bool, bool);

/// Destinations that changes are drawn for: few, so that later changes meet what earlier ones left.
const DESTINATIONS: u32 = 4;

fn changes(addresses: u32) -> impl Strategy<Value = Vec<Drawn>> {
    let change =
        (0..DESTINATIONS, 0..addresses, 0..600u32, prop::bool::weighted(0.2), any::<bool>());
    prop::collection::vec(change, 0..60)
}

/// Asks for the ends of every range, of every destination; a range may go beyond the space.
fn compare(engine: &Tamis, default: bool, addresses: u32, changes: &[Drawn]) {
    let mut model = Model::new(default);
    let destination = |number: u32| number * (addresses / DESTINATIONS);
    for &(number, begin, length, persona_non_grata, accept) in changes {
        let address = destination(number);
        let config = Config { address, persona_non_grata, accept, begin, end: begin + length };
        Engine::update(engine, &config);
        model.update(&config);
    }
    for &(_, begin, length, ..) in changes {
        let end = begin + length;
        for source in
            [begin.saturating_sub(1), begin, begin + length / 2, end.saturating_sub(1), end]
        {
            let source = source.min(addresses - 1);
            for to in (0..DESTINATIONS).map(destination) {
                let expected = model.permits(source, to);
                assert_eq!(Engine::decide(engine, source, to), expected, "{source} to {to}");
            }
        }
    }
}

/// Changes and questions of addresses anywhere, the highest and the lowest among them, with room for one at first.
fn compare_anywhere<A: Address>(default: bool, changes: &[Drawn], at: impl Fn(u32) -> A) {
    let (engine, mut model) = (Sparse::<A>::new(default, 1), Model::new(default));
    for &(address, begin, length, persona_non_grata, accept) in changes {
        let (begin, end) = (at(begin), at(begin + length));
        let config = Config { address: at(address), persona_non_grata, accept, begin, end };
        engine.update(&config);
        model.update(&config);
        for source in [address, 0, 699].map(&at).into_iter().chain([begin, end]) {
            for to in (0..DESTINATIONS).map(&at).chain([begin]) {
                let expected = model.permits(source, to);
                assert_eq!(engine.decide(source, to), expected, "{source:?} to {to:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_bit_for_each_pair(default: bool, changes in changes(700)) {
        compare(&Tamis::new(1 << 11, default).unwrap(), default, 700, &changes);
    }

    #[test]
    fn cells_of_256_sources(default: bool, changes in changes(20_000)) {
        compare(&Tamis::new(20_600, default).unwrap(), default, 20_000, &changes);
    }

    #[test]
    fn any_addresses(default: bool, changes in changes(100)) {
        compare_anywhere(default, &changes, |at| at);
        compare_anywhere(default, &changes, |at| u32::MAX / 699 * at.min(699));
        compare_anywhere(default, &changes, |at| u128::MAX / 699 * u128::from(at.min(699)));
    }

    #[test]
    fn cells_of_512_sources(default: bool, changes in changes(700)) {
        compare(&Tamis::tight(1 << 11, default), default, 700, &changes);
    }
}

#[test]
fn a_space_that_is_too_large_is_refused() {
    let refused = Tamis::new((1 << 16) + 1, true).unwrap_err();
    assert_eq!(refused.to_string(), "expected addresses below 65536, found addresses below 65537");
    assert!(Tamis::new(1 << 16, true).is_ok());
}
