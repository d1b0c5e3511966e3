//! The way without the relay: whatever routers there are, and whatever is lost, repeated, late or cut, packets pass; and they
//! pass directly where the routers let them.

use overlay::limits::{PUNCH_AGAIN, PUNCH_LEAD, PUNCH_SECOND, SECOND};
use proptest::prelude::*;
use tunnel::Path;

use crate::router::Kind;
use crate::routers::{FAIR, MILLISECOND, Streets, Weather};

const KINDS: [Kind; 4] = [Kind::Cone, Kind::Plain, Kind::Open, Kind::Random];

/// Attempts as the directory begins them: both at once, then one first, then the other one.
fn attempts(streets: &mut Streets) {
    let (lead, later) = (PUNCH_LEAD, PUNCH_LEAD + PUNCH_SECOND);
    for after in [[lead, lead], [lead, later], [later, lead]] {
        streets.punch(after);
        streets.speak(PUNCH_AGAIN / SECOND);
    }
}

fn paths(streets: &Streets) -> [Path; 2] {
    [streets.path(0), streets.path(1)]
}

/// Whether two routers let their hosts reach each other, one way or the other.
fn is_let(one: Kind, other: Kind) -> bool {
    let is_random = |kind| kind == Kind::Random;
    one == Kind::Cone || other == Kind::Cone || !(is_random(one) || is_random(other))
}

#[test]
fn routers_decide_which_nodes_reach_each_other_directly() {
    for (one, other) in KINDS.into_iter().flat_map(|one| KINDS.map(|other| (one, other))) {
        for direct in [0, 8 * MILLISECOND] {
            let mut streets = Streets::new([one, other], 1, Weather { direct, ..FAIR });
            streets.wait(SECOND);
            attempts(&mut streets);
            let expected = if is_let(one, other) { Path::Direct } else { Path::Relay };
            assert_eq!(paths(&streets), [expected; 2], "{one:?} and {other:?}, {direct} ns");
            assert_eq!(streets.speak(5), 0, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn what_comes_too_early_stands_in_the_way_until_the_other_node_sends_first() {
    let mut streets = Streets::new([Kind::Plain, Kind::Open], 1, FAIR);
    streets.wait(SECOND);
    let (lead, later) = (PUNCH_LEAD, PUNCH_LEAD + PUNCH_SECOND);
    streets.punch([lead, later]);
    streets.speak(3);
    assert_eq!(paths(&streets), [Path::Relay; 2]);
    // Too soon: the router still has what came.
    streets.punch([later, lead]);
    streets.speak(3);
    assert_eq!(paths(&streets), [Path::Relay; 2]);
    streets.speak(PUNCH_AGAIN / SECOND);
    streets.punch([later, lead]);
    streets.speak(3);
    assert_eq!(paths(&streets), [Path::Direct; 2]);
}

#[test]
fn the_round_trip_is_that_of_the_way_that_is_used() {
    let weather = Weather { direct: 8 * MILLISECOND, relayed: 30 * MILLISECOND, ..FAIR };
    let mut streets = Streets::new([Kind::Plain, Kind::Plain], 1, weather);
    streets.wait(2 * SECOND);
    let by_relay = [0, 1].map(|side| streets.round_trip(side));
    assert!(by_relay.contains(&Some(120 * MILLISECOND)), "{by_relay:?}");
    streets.punch([PUNCH_LEAD; 2]);
    streets.speak(2);
    assert_eq!(paths(&streets), [Path::Direct; 2]);
    // What was measured by the relay no longer counts.
    assert!([0, 1].iter().all(|side| streets.round_trip(*side) != Some(120 * MILLISECOND)));
    streets.wait(60 * SECOND);
    assert_eq!([0, 1].map(|side| streets.round_trip(side)), [Some(16 * MILLISECOND); 2]);
}

#[test]
fn nothing_is_lost_on_the_way_to_the_direct_path_and_the_relay_gets_keepalives_alone() {
    let mut streets = Streets::new([Kind::Plain, Kind::Plain], 1, FAIR);
    streets.wait(SECOND);
    streets.punch([PUNCH_LEAD; 2]);
    assert_eq!(streets.speak(2), 0);
    assert_eq!(paths(&streets), [Path::Direct; 2]);
    let before = streets.relayed();
    // As many sessions as there are in a while, and a time in which nobody says anything.
    assert_eq!(streets.speak(400), 0);
    streets.wait(600 * SECOND);
    assert_eq!(streets.speak(5), 0);
    // By it, either is found at once where the direct path ends: each says every 20 s that it is there.
    let seconds = 400 + 600 + 5;
    assert!(streets.relayed() - before <= 2 * seconds / 20 + 2, "{}", streets.relayed() - before);
}

#[test]
fn a_direct_path_that_ends_gives_way_to_the_relay_and_is_found_again() {
    let mut streets = Streets::new([Kind::Plain, Kind::Open], 1, FAIR);
    streets.wait(SECOND);
    streets.punch([PUNCH_LEAD; 2]);
    streets.speak(2);
    assert_eq!(paths(&streets), [Path::Direct; 2]);
    streets.is_cut = true;
    // A second of silence, and three probes of half a second each.
    assert!(streets.speak(4) > 0);
    assert_eq!(paths(&streets), [Path::Relay; 2]);
    assert_eq!(streets.speak(5), 0);
    streets.is_cut = false;
    streets.speak(45);
    assert_eq!(paths(&streets), [Path::Direct; 2], "they try again by themselves");
    assert_eq!(streets.speak(5), 0);
}

#[test]
fn an_idle_path_that_ended_is_found_out_with_the_first_packets() {
    let mut streets = Streets::new([Kind::Cone, Kind::Cone], 1, FAIR);
    streets.wait(SECOND);
    streets.punch([PUNCH_LEAD; 2]);
    streets.speak(2);
    streets.wait(60 * SECOND);
    streets.is_cut = true;
    streets.speak(4);
    assert_eq!(streets.speak(5), 0);
    assert_eq!(paths(&streets), [Path::Relay; 2]);
}

#[test]
fn an_end_that_alone_loses_the_direct_path_reaches_the_other_one_through_the_relay() {
    let mut streets = Streets::new([Kind::Plain, Kind::Plain], 1, FAIR);
    streets.wait(SECOND);
    streets.punch([PUNCH_LEAD; 2]);
    streets.speak(2);
    streets.wait(90 * SECOND);
    // One of them finds out, and is heard by the other one, which has said nothing since.
    streets.is_cut = true;
    streets.speak_from(&[0], 3);
    assert_eq!(streets.speak_from(&[0], 2), 0);
    // The other one has found out meanwhile, as it is spoken to through the relay.
    assert_eq!(streets.speak(2), 0);
}

#[test]
fn datagrams_that_somebody_sends_on_from_elsewhere_move_no_endpoint() {
    let mut streets = Streets::new([Kind::Cone, Kind::Cone], 1, FAIR);
    streets.wait(SECOND);
    // An attacker that is faster than the path keeps two nodes on the relay, and gets nothing by it.
    for (is_cut, copied) in [(true, [true, true]), (false, [true, true]), (false, [true, false])] {
        (streets.is_cut, streets.copied) = (is_cut, copied);
        streets.punch([PUNCH_LEAD; 2]);
        streets.speak(3);
        streets.copied = [false; 2];
        assert_eq!((streets.speak(3), paths(&streets)), (0, [Path::Relay; 2]), "{copied:?}");
    }
    streets.punch([PUNCH_LEAD; 2]);
    streets.speak(3);
    assert_eq!(paths(&streets), [Path::Direct; 2]);
    streets.copied = [true; 2];
    streets.speak(5);
    streets.copied = [false; 2];
    assert_eq!((streets.speak(5), paths(&streets)), (0, [Path::Direct; 2]));
}

/// What happens.
#[derive(Clone, Debug)]
enum Step {
    Punch(u64, u64),
    Speak(u64),
    Wait(u64),
    Cut(bool),
    Weather(u32, u32, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..800_u64, 0..800_u64).prop_map(|(one, other)| Step::Punch(one, other)),
        3 => (1..4_u64).prop_map(Step::Speak),
        2 => (1..40_u64).prop_map(Step::Wait),
        2 => any::<bool>().prop_map(Step::Cut),
        2 => (0..60_u32, 0..30_u32, 0..300_u64)
            .prop_map(|(lost, twice, late)| Step::Weather(lost, twice, late)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packets_pass_once_the_network_carries_whatever_was_tried(
        seed: u64,
        (one, other) in (0..4_usize, 0..4_usize),
        steps in proptest::collection::vec(step(), 0..16),
        is_cut: bool,
    ) {
        let mut streets = Streets::new([KINDS[one], KINDS[other]], seed, FAIR);
        for step in steps {
            match step {
                Step::Punch(one, other) => streets.punch([one, other].map(|it| it * MILLISECOND)),
                Step::Speak(seconds) => drop(streets.speak(seconds)),
                Step::Wait(seconds) => streets.wait(seconds * SECOND),
                Step::Cut(is_cut) => streets.is_cut = is_cut,
                Step::Weather(lost, twice, late) => {
                    let late = late * MILLISECOND;
                    streets.weather = Weather { lost, twice, late, ..FAIR };
                }
            }
        }
        (streets.weather, streets.is_cut) = (FAIR, is_cut);
        // A handshake that was lost is tried again within 15 s of silence.
        streets.speak(30);
        prop_assert_eq!(streets.speak(5), 0);
        if is_cut {
            prop_assert_eq!(paths(&streets), [Path::Relay; 2]);
        }
    }
}
