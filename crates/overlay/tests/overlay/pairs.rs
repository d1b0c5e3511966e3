//! The list of `pairs.txt` over a simulated network: each pair, each node asking first.

use overlay::limits::SECOND;
use proptest::prelude::*;
use tunnel::Path;

use crate::home::Routers;
use crate::router::Kind;
use crate::town::{Distances, MILLISECOND, Town};

/// What two nodes get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gets {
    Direct,
    Predict,
    Cross,
    Relay,
}

pub(crate) fn routers(word: &str) -> Option<Routers> {
    Some(match word {
        "cone" => &[Kind::Cone],
        "restricted" => &[Kind::Restricted],
        "plain" => &[Kind::Plain],
        "open" => &[Kind::Open],
        "range" => &[Kind::Range],
        "address" => &[Kind::Address],
        "sequential" => &[Kind::Sequential],
        "random" => &[Kind::Random],
        "carrier" => &[Kind::Plain, Kind::Plain],
        "firewall" => &[Kind::Firewall],
        "brief" => &[Kind::Brief],
        // What the tunnel says by TCP is not of this crate.
        "blocked" => return None,
        _ => panic!("{word}"),
    })
}

fn gets(word: &str) -> Gets {
    match word {
        "direct" => Gets::Direct,
        "predict" => Gets::Predict,
        "cross" => Gets::Cross,
        "relay" => Gets::Relay,
        _ => panic!("{word}"),
    }
}

/// The pairs of the list, by name, with what they get.
pub(crate) fn pairs() -> Vec<([&'static str; 2], Gets)> {
    let lines = include_str!("pairs.txt").lines().filter(|line| !line.starts_with('#'));
    let mut rows = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let columns = rows.find(|row| !row.is_empty()).unwrap();
    let of_row = |row: Vec<&'static str>| {
        let cells = columns.clone().into_iter().zip(row[1..].to_vec());
        cells.map(move |(other, what)| ([row[0], other], gets(what))).collect::<Vec<_>>()
    };
    rows.filter(|row| !row.is_empty()).flat_map(of_row).collect()
}

#[test]
fn the_list_is_the_same_whoever_of_two_is_first() {
    let all = pairs();
    assert_eq!(all.len(), 12 * 12);
    for ([one, other], what) in &all {
        assert!(all.contains(&([*other, *one], *what)), "{one} and {other}");
    }
}

/// Datagrams of both nodes cross.
const FAR: Distances = Distances { cloud: [5 * MILLISECOND; 2], between: 5 * MILLISECOND };
/// One node hears later of the attempt than what the other one sends takes to arrive.
const NEAR: Distances = Distances { cloud: [MILLISECOND, 31 * MILLISECOND], between: MILLISECOND };

/// How long nodes are there before anybody asks: a router that forgets in seconds is found out in ten.
fn there(both: [Routers; 2]) -> u64 {
    if both.iter().any(|it| it.contains(&Kind::Brief)) { 12 * SECOND } else { 3 * SECOND }
}

/// Plays a pair: what it got in 1.5 s after the first question, and how many packets were lost.
fn play([one, other]: [Routers; 2], asks: usize, distances: Distances) -> (bool, usize) {
    let mut town = Town::new([one, other], distances);
    town.wait(there([one, other]));
    town.ask(asks);
    town.wait(SECOND / 2);
    let lost = town.speak(&[0, 1], 100);
    let is_direct = [0, 1].map(|side| town.path(side)) == [Some(Path::Direct); 2];
    (is_direct, lost + town.speak(&[0, 1], 100))
}

/// Plays all pairs; returns what is not as the list says.
fn wrong(distances: Distances) -> Vec<String> {
    let mut wrong = Vec::new();
    for ([one, other], what) in pairs() {
        let Some(both) = routers(one).zip(routers(other)) else { continue };
        for asks in [0, 1] {
            let (is_direct, lost) = play(both.into(), asks, distances);
            let crosses = distances.cloud[0] == distances.cloud[1];
            let is_right = match what {
                Gets::Cross if !crosses => true,
                what => is_direct == (what != Gets::Relay),
            };
            if !is_right || lost > 0 {
                let got = if is_direct { "direct" } else { "relay" };
                let asks = [one, other][asks];
                wrong.push(format!(
                    "{one}, {other}; {asks} asks: {what:?}, got {got}, lost {lost}\n"
                ));
            }
        }
    }
    wrong
}

#[test]
fn every_pair_gets_what_the_list_says_where_datagrams_cross() {
    let wrong = wrong(FAR);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.concat());
}

#[test]
fn every_pair_gets_what_the_list_says_where_one_node_hears_late() {
    for cloud in [NEAR.cloud, [NEAR.cloud[1], NEAR.cloud[0]]] {
        let wrong = wrong(Distances { cloud, ..NEAR });
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.concat());
    }
}

/// What happens to two nodes that speak to each other all the time.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// They speak for that many hundredths of a second.
    Speak(u64),
    Cut,
    Mend,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![3 => (10..300_u64).prop_map(Step::Speak), 1 => Just(Step::Cut), 1 => Just(Step::Mend)]
}

#[test]
fn a_node_behind_a_router_that_forgets_in_seconds_is_reached_whenever_it_is_spoken_to() {
    for (brief, seconds) in [(&[Kind::Brief] as Routers, 1), (&[Kind::Plain], 25)] {
        // By the relay, and directly.
        for (other, path) in [(Kind::Random, Path::Relay), (Kind::Plain, Path::Direct)] {
            let other: Routers =
                if other == Kind::Random { &[Kind::Random] } else { &[Kind::Plain] };
            let mut town = Town::new([brief, other], FAR);
            town.wait(12 * SECOND);
            assert_eq!(town.keep(0), seconds * SECOND, "{brief:?}");
            town.ask(1);
            town.wait(2 * SECOND);
            assert_eq!(town.path(1), Some(path));
            for pause in [1, 3, 10, 29] {
                town.wait(pause * SECOND);
                assert_eq!(town.speak(&[1], 10), 0, "{brief:?} and {other:?} after {pause} s");
            }
        }
    }
}

/// Found by the day of many nodes: each initiation arrived while the other node's router had forgotten it.
#[test]
fn two_nodes_behind_routers_that_forget_in_seconds_wake_one_after_the_other() {
    let brief: Routers = &[Kind::Brief];
    for late in [2_300, 2_600, 2_900] {
        let mut town = Town::new([brief; 2], FAR);
        town.wait(12 * SECOND);
        town.ask(0);
        town.wait(2 * SECOND);
        assert_eq!(town.speak(&[0, 1], 100), 0);
        // No session outlasts that.
        (0..2).for_each(|side| town.sleep(side, true));
        town.wait(600 * SECOND);
        town.sleep(0, false);
        town.wait(late * MILLISECOND);
        town.sleep(1, false);
        town.wait(10 * SECOND);
        assert_eq!(town.speak(&[0, 1], 100), 0, "{late} ms later");
    }
}

/// Two nodes speak while the direct path is cut and mended.
fn back_and_forth(
    pair: usize,
    cloud: (u64, u64),
    between: u64,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let ([one, other], _) = pairs()[pair];
    let Some(both) = routers(one).zip(routers(other)) else { return Ok(()) };
    let cloud = [cloud.0 * MILLISECOND, cloud.1 * MILLISECOND];
    let mut town = Town::new(both.into(), Distances { cloud, between: between * MILLISECOND });
    town.wait(there(both.into()));
    town.ask(0);
    town.wait(SECOND / 2);
    for step in steps {
        match *step {
            Step::Speak(hundredths) => prop_assert_eq!(town.speak(&[0, 1], hundredths), 0),
            // A second of silence and three lost probes are not noticed at once.
            Step::Cut => {
                town.is_cut = true;
                town.speak(&[0, 1], 400);
            }
            // The path is tried again by itself, while packets go through the relay.
            Step::Mend => {
                town.is_cut = false;
                prop_assert_eq!(town.speak(&[0, 1], 4_500), 0);
            }
        }
    }
    Ok(())
}

/// Found by the day of many nodes: where both try by themselves, a router may take what comes too early for its own.
#[test]
fn a_direct_path_that_was_cut_for_a_minute_is_there_again_two_minutes_later() {
    let [open, plain]: [Routers; 2] = [&[Kind::Open], &[Kind::Plain]];
    for (routers, distances) in [([open, plain], FAR), ([plain, open], FAR), ([plain, open], NEAR)]
    {
        // Soon after the question, and when nobody asks the directory any more.
        for before in [2, 300] {
            let mut town = Town::new(routers, distances);
            town.wait(3 * SECOND);
            town.ask(0);
            town.wait(before * SECOND);
            assert_eq!([0, 1].map(|side| town.path(side)), [Some(Path::Direct); 2]);
            town.is_cut = true;
            town.speak(&[0, 1], 6_000);
            town.is_cut = false;
            assert_eq!(town.speak(&[0, 1], 12_000), 0);
            let paths = [0, 1].map(|side| town.path(side));
            assert_eq!(paths, [Some(Path::Direct); 2], "{routers:?}, {distances:?}, {before} s");
        }
    }
}

/// Both ends make a session at once, and the relay is faster than the direct path: found by the property below.
#[test]
fn sessions_that_both_ends_make_at_once_lose_nothing() {
    let steps = [Step::Speak(102), Step::Cut, Step::Mend, Step::Mend, Step::Mend];
    back_and_forth(0, (1, 1), 11, &steps).expect("nothing is lost");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The world sees to it that nothing comes out twice.
    #[test]
    fn to_the_direct_path_and_back_nothing_is_lost_but_while_its_end_is_not_noticed(
        pair in 0..144_usize,
        cloud in (1..40_u64, 1..40_u64),
        between in 1..40_u64,
        steps in proptest::collection::vec(step(), 1..8),
    ) {
        back_and_forth(pair, cloud, between, &steps)?;
    }
}
