//! What tests that remember packets may say of others, rule by rule.

use conntrack::CtState;
use proptest::prelude::*;
use rules::eval::{Memories, Verdict};
use rules::model::{Hook, Ruleset};
use rules::predicate::{Field, Values};
use rules::save::{LoadOptions, load};

use super::rulesets::diff_within;
use super::{Compared, Differences, Given};
use crate::packet::walked_after;

fn ruleset(rules: &str) -> Ruleset {
    let text = format!("*filter\n:FORWARD DROP [0:0]\n:A - [0:0]\n:B - [0:0]\n{rules}COMMIT\n");
    load(&text, &LoadOptions::default()).map(|it| it.ruleset).expect("rules")
}

/// Without room for all packets that such tests are asked about.
fn told(old: &str, new: &str) -> Differences {
    diff_within(&ruleset(old), &ruleset(new), &Given::default(), 0).expect("one family")
}

#[test]
fn rules_whose_tests_see_other_packets_are_named() {
    let rest = "-A FORWARD -i eth0 -j A\n-A FORWARD -i eth1 -j A\n-A A -p udp -m limit --limit 1/sec -j ACCEPT\n-A A -j REJECT\n-A FORWARD -m limit --limit 2/sec -j ACCEPT\n";
    let one = "-A FORWARD -i eth0 -p udp -m udp --dport 53 -j ACCEPT\n";
    let found = told(&format!("{one}{rest}"), rest);
    assert_eq!(found.regions, [], "{}", found.text());
    assert!(found.unknown[0].contains("dport 53: depends on -m limit --limit 1/sec"));
    let named: Vec<&String> =
        found.unknown.iter().filter(|it| it.contains("any packet that gets to line")).collect();
    let [line] = &*named else { panic!("{}", found.text()) };
    assert!(line.starts_with("filter FORWARD: ACCEPT or REJECT"), "{line}");
    assert!(line.contains("any packet that gets to line 7 ("), "{line}");
}

#[test]
fn what_comes_after_such_a_test_may_see_others_too() {
    let rest = "-A FORWARD -m limit --limit 1/sec -j A\n-A FORWARD -p tcp -m limit --limit 2/sec -j ACCEPT\n-A A -p udp -m limit --limit 3/sec -j ACCEPT\n-A B -m limit --limit 4/sec -j ACCEPT\n";
    let found = told(&format!("-A FORWARD -s 10.0.0.1 -p icmp -j DROP\n{rest}"), rest);
    let named = |line: u32| {
        let words = format!("gets to line {line} (");
        found.unknown.iter().any(|it| it.contains(&words))
    };
    assert_eq!([5, 6, 7, 8].map(named), [true, true, true, false], "{}", found.text());
}

const TESTS: &[&str] = &[
    "",
    "-s 10.0.0.0",
    "-p udp",
    "-m limit --limit 1/hour --limit-burst 1",
    "-p udp -m limit --limit 1/hour --limit-burst 1",
    "-m recent --set --name one --rsource",
    "-m recent --rcheck --name one --rsource",
    "-p udp -m recent --set --name one --rsource",
    "-m statistic --mode nth --every 2 --packet 0",
];
const ACTIONS: &[&str] = &["-j ACCEPT", "-j DROP", "-j A", "-g A", "-j RETURN", "", "-j REJECT"];

fn rules(
    chain: &'static str,
    actions: &'static [&'static str],
) -> impl Strategy<Value = Vec<String>> {
    let select = proptest::sample::select;
    let rule = (select(TESTS), select(actions));
    let rule = rule.prop_map(move |(test, action)| format!("-A {chain} {test} {action}\n"));
    prop::collection::vec(rule, 0..6)
}

fn packets() -> Vec<Values> {
    let mut all = Vec::new();
    for (source, protocol) in [(0, 17), (0, 6), (1, 17), (1, 6)] {
        let mut values = Values::default();
        (values.state, values.has_mac) = (CtState::New, true);
        (values.input, values.output) = ("eth0".to_owned(), "eth1".to_owned());
        values.set(Field::Source, (10 << 24) + source);
        values.set(Field::Destination, 0x0a00_0009);
        values.set(Field::Protocol, protocol);
        values.set(Field::DestinationPort, 22);
        values.set(Field::TcpFlags, 2);
        all.push(values);
    }
    all
}

fn possible(ruleset: &Ruleset, packets: &[&Values]) -> Vec<Verdict> {
    let mut memories = Memories::of(ruleset);
    let walk = |it: &&Values| {
        walked_after(&mut memories, ruleset, (0, Hook::Forward), it).expect("a packet").possible
    };
    packets.iter().map(walk).last().expect("a packet").into_iter().map(|(it, _)| it).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn what_is_told_to_be_the_same_is_so_after_any_packet(
        forward in rules("FORWARD", ACTIONS), a in rules("A", &["-j ACCEPT", "-j DROP", "-j RETURN", ""]),
        at in 0..12_usize,
    ) {
        let old: Vec<String> = forward.into_iter().chain(a).collect();
        let mut new = old.clone();
        if at >= old.len() {
            return Ok(());
        }
        new.remove(at);
        let (old, new) = (old.concat(), new.concat());
        let found = told(&old, &new);
        if found.compared() != Compared::Same {
            return Ok(());
        }
        let (before, after) = (ruleset(&old), ruleset(&new));
        for first in &packets() {
            for last in &packets() {
                let both = [&before, &after].map(|it| possible(it, &[first, last]));
                prop_assert_eq!(&both[0], &both[1], "{:?} {:?}\n{}\n{}", first, last, old, new);
            }
        }
    }
}
