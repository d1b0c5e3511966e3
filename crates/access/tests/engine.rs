//! Our engine against the model, in each of its layouts.

use access::model::Model;
use access::tamis::Tamis;
use access::{Config, Decide, Engine};
use proptest::prelude::*;

/// A change: address, begin and length of the range, banned, accepted.
type Change = (u32, u32, u32, bool, bool);

fn changes(addresses: u32) -> impl Strategy<Value = Vec<Change>> {
    let change = (0..addresses, 0..addresses, 0..600u32, any::<bool>(), any::<bool>());
    prop::collection::vec(change, 0..60)
}

/// Asks for every pair of some addresses after each change; a range may go beyond the space.
fn compare(engine: &Tamis, default: bool, addresses: u32, changes: &[Change]) {
    let mut model = Model::new(default);
    for &(address, begin, length, persona_non_grata, accept) in changes {
        let config =
            Config { address, persona_non_grata, accept, begin, end: begin.saturating_add(length) };
        Engine::update(engine, &config);
        model.update(&config);
        let others = [0, begin, begin + length / 2, addresses - 1];
        for source in others {
            for destination in [address, source] {
                let expected = model.permits(source, destination);
                assert_eq!(Engine::decide(engine, source, destination), expected, "{config:?}");
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
