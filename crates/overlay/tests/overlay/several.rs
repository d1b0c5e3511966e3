//! Several relays: pairs use the relay that answers soonest, and both nodes leave a killed one within two seconds,
//! without a word of the directory.

use overlay::limits::SECOND;
use proptest::prelude::*;
use tunnel::Path;

use crate::home::Routers;
use crate::router::Kind;
use crate::town::{Distances, MILLISECOND, Town};

const CLOUD: Distances = Distances { cloud: [5 * MILLISECOND; 2], between: 5 * MILLISECOND };
/// Two nodes that nothing but a relay joins.
const RANDOM: Routers = &[Kind::Random];

/// Two nodes that speak by a relay, of those to which datagrams take that many milliseconds; it is known which is the quickest.
fn town(routers: [Routers; 2], relays: &[u64]) -> Town {
    let relays: Vec<u64> = relays.iter().map(|takes| takes * MILLISECOND).collect();
    let mut town = Town::apart(routers, CLOUD, &relays);
    town.wait(3 * SECOND);
    town.ask(0);
    town.wait(SECOND / 2);
    assert_eq!(town.speak(&[0, 1], 400), 0);
    town
}

/// Kills the relay that is used while both speak, fifty times a second; returns how many milliseconds it took until both use
/// another one, and how many packets were lost.
fn kill(town: &mut Town, sides: &[usize]) -> (u64, usize) {
    let used = town.relay(sides[0]).unwrap();
    town.speak_on(sides, 10);
    town.kill_relay(used);
    let (killed, mut lost) = (town.now, 0);
    while sides.iter().any(|side| town.relay(*side) == Some(used)) {
        assert!(town.now < killed + 10 * SECOND, "nobody leaves it");
        lost += 1;
        town.speak_on(sides, 2);
    }
    ((town.now - killed) / MILLISECOND, lost * sides.len())
}

#[test]
fn the_relay_that_answers_soonest_is_used() {
    for (relays, best) in [([10, 30, 40], 0), ([30, 10, 40], 1), ([40, 30, 10], 2)] {
        let town = town([RANDOM; 2], &relays);
        assert_eq!([0, 1].map(|side| town.relay(side)), [Some(best); 2], "{relays:?}");
    }
}

#[test]
fn a_relay_that_is_killed_is_left_within_two_seconds() {
    for routers in [RANDOM, &[Kind::Plain]] {
        for takes in [1, 10, 40] {
            let mut town = town([routers, RANDOM], &[takes, 2 * takes]);
            let (took, lost) = kill(&mut town, &[0, 1]);
            eprintln!("{routers:?}, {takes} ms to the relay: left after {took} ms, {lost} lost");
            assert!(took <= 2_000, "{took} ms");
            assert_eq!(town.speak(&[0, 1], 300), 0);
            // It is used again once it is back, as it is the quicker one.
            let other = town.relay(0).unwrap();
            town.restart_relay(1 - other);
            assert_eq!(town.speak(&[0, 1], 4_500), 0);
            assert_eq!([0, 1].map(|side| town.relay(side)), [Some(1 - other); 2], "{takes}");
        }
    }
}

#[test]
fn a_node_that_alone_sends_leaves_a_killed_relay_within_two_seconds() {
    let mut town = town([RANDOM; 2], &[10, 20]);
    let (took, _) = kill(&mut town, &[1]);
    assert!(took <= 2_000, "{took} ms");
    assert_eq!(town.speak(&[1], 300), 0);
    assert_eq!(town.speak(&[0, 1], 300), 0);
}

#[test]
fn pairs_that_are_shown_the_way_while_a_relay_is_away_use_the_other_one() {
    for away in 0..2 {
        let relays = [10 * MILLISECOND; 2];
        let mut town = Town::apart([RANDOM; 2], CLOUD, &relays);
        town.wait(SECOND);
        town.kill_relay(away);
        town.wait(2 * SECOND);
        town.ask(0);
        town.wait(SECOND);
        assert_eq!([0, 1].map(|side| town.relay(side)), [Some(1 - away); 2]);
        assert_eq!(town.speak(&[0, 1], 100), 0);
    }
}

#[test]
fn a_direct_path_goes_on_whatever_becomes_of_relays() {
    let mut town = town([&[Kind::Plain]; 2], &[10, 20]);
    assert_eq!([0, 1].map(|side| town.path(side)), [Some(Path::Direct); 2]);
    town.kill_relay(0);
    assert_eq!(town.speak(&[0, 1], 6_000), 0);
    town.is_cut = true;
    town.speak(&[0, 1], 400);
    assert_eq!([0, 1].map(|side| town.relay(side)), [Some(1); 2]);
    assert_eq!(town.speak(&[0, 1], 300), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The world sees to it that nothing comes out twice.
    #[test]
    fn pairs_speak_as_long_as_one_relay_is_there(
        takes in proptest::collection::vec(1..60_u64, 2..4),
        kinds in (0..3_usize, 0..3_usize),
        kills in proptest::collection::vec((0..3_usize, 20..400_u64), 1..6),
    ) {
        let kind = |kind: usize| [RANDOM, &[Kind::Open], &[Kind::Address]][kind];
        let mut town = town([kind(kinds.0), kind(kinds.1)], &takes);
        for (killed, hundredths) in kills {
            let killed = killed % takes.len();
            town.kill_relay(killed);
            town.speak(&[0, 1], 250);
            prop_assert_eq!(town.speak(&[0, 1], hundredths), 0);
            town.restart_relay(killed);
            prop_assert_eq!(town.speak(&[0, 1], 2_500), 0);
        }
    }
}
