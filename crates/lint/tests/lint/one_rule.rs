//! Small rulesets with one rule changed, over small universes, packet by packet: what changes is in a region or said to be
//! unknown, along the whole way, and after other packets.

use conntrack::CtState;
use lint::{Difference, Differences, Given, Part, Region, Sample, Space};
use lint::{diff, diff_on, walked_after, whole_walk};
use proptest::prelude::*;
use rules::eval::{Memories, Verdict};
use rules::model::{Hook, Ruleset};
use rules::predicate::{Field, Values};

use super::brute_force::{text, universe};
use super::differences::exact;
use super::ruleset;

/// A rule of a text taken out, doubled before the others of its chain, exchanged with the next one, or with the contrary
/// verdict.
fn edited(text: &str, kind: usize, at: usize) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let rules: Vec<usize> =
        (0..lines.len()).filter(|place| lines[*place].starts_with("-A ")).collect();
    let at = *rules.get(at.checked_rem(rules.len())?)?;
    let chain = |line: &String| line.split(' ').nth(1).map(str::to_owned);
    match kind {
        0 => _ = lines.remove(at),
        1 => {
            let first = *rules.iter().find(|place| chain(&lines[**place]) == chain(&lines[at]))?;
            let after = rules.iter().filter(|place| **place >= first);
            let table =
                after.take_while(|place| !lines[first..**place].iter().any(|it| it == "COMMIT"));
            if table.last()? < &at {
                return None;
            }
            lines.insert(first, lines[at].clone());
        }
        2 if chain(&lines[at]) == lines.get(at + 1).and_then(chain) => lines.swap(at, at + 1),
        3 => {
            let (to, with) = match lines[at].rsplit_once("-j ") {
                Some((tests, "ACCEPT")) => (tests.to_owned(), "DROP"),
                Some((tests, "DROP")) => (tests.to_owned(), "ACCEPT"),
                _ => return None,
            };
            lines[at] = format!("{to}-j {with}");
        }
        _ => return None,
    }
    Some(lines.join("\n") + "\n")
}

fn select(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(words.to_vec()).prop_map(str::to_owned)
}

fn rules(
    chain: &'static str,
    tests: &'static [&str],
    actions: &'static [&str],
    most: usize,
) -> impl Strategy<Value = String> {
    let rule = (select(tests), select(actions));
    let rule = rule.prop_map(move |(test, action)| format!("-A {chain} {test} {action}\n"));
    prop::collection::vec(rule, 0..most).prop_map(|rules| rules.concat())
}

const OF_WAY: &[&str] = &[
    "",
    "-s 10.0.0.0/31",
    "! -s 10.0.0.2/31",
    "-d 10.0.0.7",
    "-i eth0",
    "-p tcp -m tcp --dport 0:21",
    "-p udp",
    "-m mark --mark 0x1",
    "-m mark --mark 0x1",
    "-p tcp -m tcp --dport 22 -m mark ! --mark 0x0/0xff",
    "-d 10.0.0.7 -p tcp -m tcp --dport 22",
    "-m conntrack --ctstate NEW",
    "-m conntrack --ctstate UNTRACKED",
    "-s 10.0.0.0/30 -m conntrack --ctstate UNTRACKED,INVALID",
];
const BEFORE: &[&str] = &["-s 10.0.0.0/31", "-p udp", "-i eth0", "! -s 10.0.0.1"];

/// Rules of all tables that a packet passes.
fn of_whole_way() -> impl Strategy<Value = String> {
    let filter = |chain, most| {
        rules(chain, OF_WAY, &["-j ACCEPT", "-j DROP", "-j A", "-g A", "-j REJECT"], most)
    };
    let tables = (
        rules("PREROUTING", BEFORE, &["-j NOTRACK", "-j CT --notrack"], 2),
        rules(
            "PREROUTING",
            BEFORE,
            &["-j MARK --set-xmark 0x1/0xff", "-j MARK --set-xmark 0x2/0xff"],
            3,
        ),
        rules(
            "PREROUTING",
            &["-p tcp -m tcp --dport 21"],
            &["-j DNAT --to-destination 10.0.0.7:22"],
            2,
        ),
        (filter("INPUT", 3), filter("FORWARD", 4)),
        rules("A", OF_WAY, &["-j ACCEPT", "-j DROP", "-j RETURN"], 4),
    );
    tables.prop_map(|(raw, mangle, nat, (input, forward), a)| {
        let table =
            |name: &str, chains: &str, rules: String| format!("*{name}\n{chains}{rules}COMMIT\n");
        let before = ":PREROUTING ACCEPT [0:0]\n";
        let chains = ":INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:A - [0:0]\n";
        // Rules that are there in both, so that connections are tracked.
        let tracked = "-A FORWARD -m conntrack --ctstate RELATED -j ACCEPT\n";
        [
            table("raw", before, raw),
            table("mangle", before, mangle),
            table("nat", before, nat),
            table("filter", chains, format!("{tracked}{input}{forward}{a}")),
        ]
        .concat()
    })
}

/// Packets to this host, 10.0.0.7, and through it.
fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for mut values in universe(true) {
        if values.number(Field::Source) == (10 << 24) + 4 || values.input == "lo" {
            continue;
        }
        for (destination, to_host) in [(0x0a00_0007, true), (0x0a00_0009, false)] {
            values.set(Field::Destination, destination);
            values.set(Field::DestinationType, if to_host { 2 } else { 1 });
            all.push(Sample { values: values.clone(), to_host, answers: Vec::new() });
        }
    }
    all
}

/// Whether packets are of a region: a region that says no way is of that of its witness, and maybe of the other one.
fn holds(space: &mut Space, region: &Difference, one: Region, to_host: Option<bool>) -> bool {
    let says_way = region.piece.fields.iter().any(|(part, _)| *part == Part::Way);
    let is_to_host = region.witness.contains("path=input");
    let is_other = !says_way && to_host.is_some_and(|it| it != is_to_host);
    if region.witness.contains("path=output") || is_other {
        return false;
    }
    let piece = space.of_piece(&region.piece).expect("room");
    space.diagrams.meet(piece, one)
}

/// Whether a packet is of a region, and whether it may be.
fn is_inside(space: &mut Space, found: &Differences, sample: &Sample) -> [bool; 2] {
    let one = space.of_sample(sample).expect("room");
    [Some(sample.to_host), None]
        .map(|way| found.regions.iter().any(|region| holds(space, region, one, way)))
}

const MEMORIES: &[&str] = &[
    "",
    "-s 10.0.0.0/31",
    "-p udp",
    "-p tcp -m tcp --dport 22",
    "-m limit --limit 1/hour --limit-burst 1",
    "-p udp -m limit --limit 1/hour --limit-burst 1",
    "-m recent --set --name one --rsource",
    "-m recent --rcheck --name one --rsource",
    "-p tcp -m recent --set --name one --rsource",
    "-m statistic --mode nth --every 2 --packet 0",
];

fn of_memories() -> impl Strategy<Value = String> {
    let actions = &["-j ACCEPT", "-j DROP", "-j A", "-j RETURN", "-j LOG", "", "-j REJECT"];
    let inner = &["-j ACCEPT", "-j DROP", "-j RETURN", "-j LOG", ""];
    let both = (rules("FORWARD", MEMORIES, actions, 6), rules("A", MEMORIES, inner, 4));
    both.prop_map(|(forward, a)| {
        format!("*filter\n:FORWARD DROP [0:0]\n:A - [0:0]\n{forward}{a}COMMIT\n")
    })
}

/// Packets that distinguish tests that remember.
fn few() -> Vec<Values> {
    let is_meant = |it: &Values| {
        let (source, port) = (it.number(Field::Source) & 7, it.number(Field::DestinationPort));
        [0, 2].contains(&source) && [0, 22].contains(&port) && it.input == "eth0"
    };
    let mut few: Vec<Values> = universe(false).into_iter().filter(is_meant).collect();
    few.retain(|it| it.form == rules::predicate::Form::Whole && it.state == CtState::New);
    few
}

fn possible(ruleset: &Ruleset, before: &[&Values], last: &Values) -> Vec<Verdict> {
    let mut memories = Memories::of(ruleset);
    let mut walk = |it: &Values| {
        walked_after(&mut memories, ruleset, (0, Hook::Forward), it).expect("a packet").possible
    };
    before.iter().for_each(|it| _ = walk(it));
    walk(last).into_iter().map(|(verdict, _)| verdict).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn regions_of_one_changed_rule_are_exact(old in text(), kind in 0..4_usize, at in 0..40_usize) {
        let Some(new) = edited(&old, kind, at) else { return Ok(()) };
        prop_assume!(old.contains("state") == new.contains("state"));
        exact(&old, &new)?;
    }

    #[test]
    fn what_one_rule_changes_is_found_along_the_whole_way(
        old in of_whole_way(), kind in 0..4_usize, at in 0..40_usize,
    ) {
        let Some(new) = edited(&old, kind, at) else { return Ok(()) };
        let (before, after) = (ruleset(&old), ruleset(&new));
        let host = host::Host {
            local: Some(vec![host::Network::parse("10.0.0.7").unwrap()]),
            ..host::Host::default()
        };
        let given = Given { host, ..Given::default() };
        let found = diff_on(&before, &after, &given).unwrap();
        let mut space = Space::on(&[&before, &after], &given.host, None);
        for sample in samples() {
            let fates = [&before, &after].map(|it| whole_walk(&space, it, false, &sample));
            let [Some(from), Some(to)] = fates else { continue };
            let [inside, maybe_inside] = is_inside(&mut space, &found, &sample);
            let may_be = maybe_inside || found.more || !found.unknown.is_empty();
            prop_assert!(
                if from == to { !inside } else { may_be },
                "{from:?} -> {to:?}: {sample:?}\n{old}{new}{}", found.text()
            );
        }
    }

    #[test]
    fn what_others_before_change_is_said(old in of_memories(), kind in 0..4_usize, at in 0..40_usize) {
        let Some(new) = edited(&old, kind, at) else { return Ok(()) };
        let (before, after) = (ruleset(&old), ruleset(&new));
        let found = diff(&before, &after).unwrap();
        let mut space = Space::of(&[&before, &after]);
        let few = few();
        for last in &few {
            let sample = Sample { values: last.clone(), to_host: false, answers: Vec::new() };
            let [_, inside] = is_inside(&mut space, &found, &sample);
            for first in few.iter().map(Some).chain([None]) {
                let first: Vec<&Values> = first.into_iter().collect();
                let [from, to] = [&before, &after].map(|it| possible(it, &first, last));
                prop_assert!(
                    from == to || inside || found.more || !found.unknown.is_empty(),
                    "{first:?} {last:?}: {from:?} -> {to:?}\n{old}{new}{}", found.text()
                );
            }
            let is_certain = |region: &&Difference| region.depends.is_empty();
            let one = space.of_sample(&sample).unwrap();
            let certain: Vec<&Difference> = found.regions.iter().filter(is_certain).collect();
            if certain.iter().any(|region| holds(&mut space, region, one, None)) {
                let [from, to] = [&before, &after].map(|it| possible(it, &[], last));
                prop_assert!(
                    from.iter().all(|it| !to.contains(it)) || from.len() + to.len() > 2,
                    "{last:?}: {from:?} -> {to:?}\n{old}{new}{}", found.text()
                );
            }
        }
    }
}
