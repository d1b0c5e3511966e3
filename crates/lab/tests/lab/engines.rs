//! Every engine against the model, alone and with its address space left open.

use engines::catalogue::{Built, Choices, Kind};
use engines::model::Model;
use engines::striped_map::Settings;
use engines::{Address, Body, Config, Data, Decide, Packet, Permits};
use proptest::prelude::*;

/// What a test does to an engine, in a space of some addresses.
type Step = (bool, (usize, usize), (usize, usize), bool, bool);

fn steps(addresses: usize) -> impl Strategy<Value = Vec<Step>> {
    let pair = || (0..addresses, 0..addresses);
    let length = (0..addresses, 0usize..40);
    prop::collection::vec((any::<bool>(), pair(), length, any::<bool>(), any::<bool>()), 0..120)
}

fn packets<A: Address>(steps: &[Step], address: impl Fn(usize) -> A) -> Vec<Packet<A>> {
    let packet = |&(config, (one, other), (begin, length), png, accept): &Step| match config {
        true => Packet::Config(Config {
            address: address(one),
            persona_non_grata: png,
            accept,
            begin: address(begin),
            end: address(begin + length),
        }),
        false => Packet::Data(Data {
            source: address(one),
            destination: address(other),
            body: Body::default(),
        }),
    };
    steps.iter().map(packet).collect()
}

fn worker_answers<A: Address>(worker: &mut dyn Decide<A>, packets: &[Packet<A>]) -> Permits {
    let mut permits = Permits::default();
    worker.burst(packets, &mut permits);
    permits
}

fn compare<A: Address>(kind: Kind, choices: &Choices, packets: &[Packet<A>], pairs: &[(A, A)]) {
    let Ok(mut built) = kind.build::<A>(choices) else { return };
    let mut model = Model::new(choices.default_accept);
    let mut worker: Box<dyn Decide<A> + '_> = match &mut built {
        Built::Alone(engine) => Box::new(&mut **engine),
        Built::Shared(engine) => engine.worker(),
    };
    let expected = worker_answers(&mut model, packets);
    assert_eq!(worker_answers(&mut *worker, packets), expected, "{}", kind.name());
    for &(source, destination) in pairs {
        let answer = worker.decide(source, destination);
        assert_eq!(
            answer,
            model.permits(source, destination),
            "{} {source:?} {destination:?}",
            kind.name()
        );
    }
}

fn all<A: Address>(addresses: usize, of: impl Fn(usize) -> A) -> Vec<(A, A)> {
    let some = |at: usize| at.is_multiple_of((addresses / 24).max(1));
    let all = || (0..addresses).filter(|&at| some(at));
    all()
        .flat_map(|source| all().map(move |to| (source, to)))
        .map(|(s, d)| (of(s), of(d)))
        .collect()
}

fn choices(addresses: Option<usize>, default_accept: bool) -> Choices {
    let striped_map = Settings { initial: 2, longest: 1, full_percent: 10 };
    Choices { addresses, default_accept, stripes: 3, striped_map, ..Choices::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn few_addresses(default: bool, steps in steps(24)) {
        let packets = packets(&steps, |at| at as u32);
        for kind in Kind::ALL {
            for addresses in [Some(64), None] {
                let choices = choices(addresses, default);
                compare(kind, &choices, &packets, &all(24, |at| at as u32));
            }
        }
    }

    /// A range may go beyond the space that a laid-out engine was given; what lies in it counts.
    #[test]
    fn many_addresses(default: bool, steps in steps(20_000)) {
        let packets = packets(&steps, |at| at as u32);
        let kinds = [Kind::Tamis, Kind::CachedExact, Kind::CachedEpoch, Kind::SplitOrdered];
        for kind in kinds {
            for addresses in [Some(20_000), Some(40_000), None] {
                let choices = choices(addresses, default);
                compare(kind, &choices, &packets, &all(20_000, |at| at as u32));
            }
        }
    }

    #[test]
    fn addresses_of_ipv6(default: bool, steps in steps(24)) {
        let address = |at: usize| (0x2001_0db8_u128 << 96) + at as u128;
        let packets = packets(&steps, address);
        for kind in Kind::ALL {
            compare(kind, &choices(None, default), &packets, &all(24, address));
        }
    }
}

#[test]
fn the_names_are_those_of_the_command_line() {
    for kind in Kind::ALL {
        assert_eq!(Kind::from_name(kind.name()), Some(kind));
    }
    assert_eq!(Kind::from_name("matrix.as_published"), Some(Kind::MatrixAsPublished));
    assert_eq!(Kind::from_name("x"), None);
}

#[test]
fn engines_that_lay_out_a_space_refuse_one_without_bounds() {
    for kind in Kind::ALL {
        let refused = kind.build::<u32>(&choices(None, true)).is_err();
        let lays_out = [Kind::MatrixUnlocked, Kind::Matrix, Kind::MatrixAsPublished];
        assert_eq!(refused, lays_out.contains(&kind), "{}", kind.name());
    }
}
