//! However many workers there are, and whatever the rules are laid out as: everything that comes out of a replay is what
//! one thread makes of it that walks the rules as they were read.
//!
//! Each capture is a batch of its own, so small captures are shared out as one large one would be.

// Clippy allows it in test functions only; here all are part of tests.

mod made;
mod outcome;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use conntrack::Mode;
use proptest::prelude::*;
use replay::groups::GroupBy;
use replay::run::{self, List, Wanted};
use replay::walk::Setup;
use replay::{Alone, Selection};

use made::{Made, packets};
use outcome::{Asked, Outcome, Outputs, outcome};

/// Rules of every class, for IPv4. Chosen ones are put together in this order.
const RULES: &[&str] = &[
    "-A FORWARD -s 10.0.0.0/30 -p udp -j MARK --set-mark 3",
    "-A FORWARD -p tcp --dport 1001 -j DROP",
    "-A FORWARD -m mark --mark 3 -j ACCEPT",
    "-A FORWARD -i lan0 -p udp --dport 1002 -j DROP",
    "-A FORWARD -m set --match-set bad src -j DROP",
    "-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
    "-A FORWARD -m conntrack --ctstate INVALID -j DROP",
    "-A FORWARD -m connmark --mark 5 -j REJECT",
    "-A FORWARD -p tcp -m conntrack --ctstate NEW -j CONNMARK --set-mark 5",
    "-A FORWARD -m connlabel --label 3 --set -p tcp --dport 1003 -j ACCEPT",
    "-A FORWARD -m connbytes --connbytes 3: --connbytes-dir both --connbytes-mode packets -j DROP",
    "-A FORWARD -m limit --limit 1/s -j ACCEPT",
    "-A FORWARD -m statistic --mode nth --every 3 --packet 0 -j DROP",
    "-A FORWARD -m recent --name seen --set -j ACCEPT",
    "-A FORWARD -p icmp -j ACCEPT",
    "-A FORWARD -p udp -m geoip --source-country DE -j DROP",
    "-A FORWARD -s 10.0.0.0/31 -j DROP",
    "-A FORWARD -p tcp -j other",
    "-A FORWARD -s 10.0.0.0/30 -j other",
];
const TRACKING: std::ops::Range<usize> = 5..11;

/// A ruleset of the rules whose numbers these are; with a nat table on top or not.
fn ruleset(chosen: &[usize], nat: bool) -> String {
    let mut chosen = chosen.to_vec();
    chosen.sort_unstable();
    chosen.dedup();
    let rules: String = chosen.iter().map(|rule| format!("{}\n", RULES[*rule])).collect();
    let nat = if nat {
        "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -p tcp -j SNAT --to-source 192.0.2.1\nCOMMIT\n"
    } else {
        ""
    };
    format!(
        "{nat}*filter\n:FORWARD ACCEPT [0:0]\n:other - [0:0]\n{rules}-A other -j DROP\nCOMMIT\n"
    )
}

fn rules() -> impl Strategy<Value = String> {
    let any = proptest::collection::vec(0..RULES.len(), 0..6);
    let pure = proptest::collection::vec(0..5usize, 0..4);
    let per_flow = (pure.clone(), proptest::collection::vec(TRACKING, 1..4))
        .prop_map(|(pure, tracking)| [pure, tracking].concat());
    let chosen = prop_oneof![1 => any, 1 => pure, 3 => per_flow];
    (chosen, proptest::bool::weighted(0.1)).prop_map(|(chosen, nat)| ruleset(&chosen, nat))
}

fn asked() -> impl Strategy<Value = Asked> {
    let list = prop_oneof![
        Just(None),
        Just(Some((List::Drop, 7))),
        Just(Some((List::Unknown, 500))),
        Just(Some((List::Change, 20))),
    ];
    let mode = prop_oneof![Just(Mode::Kernel), Just(Mode::Midstream), Just(Mode::Off)];
    let evaluated = (
        rules(),
        proptest::option::weighted(0.3, rules()),
        mode,
        prop_oneof![3 => Just(262_144usize), 1 => 1usize..40],
        proptest::option::weighted(0.2, bans()),
    );
    let groups = proptest::sample::subsequence(GroupBy::ALL.to_vec(), 0..=GroupBy::ALL.len());
    let groups = prop_oneof![Just(Vec::new()), groups];
    let given = (list, groups, outputs(), proptest::option::weighted(0.2, 0u64..200));
    (evaluated, given).prop_map(|(evaluated, (list, groups, outputs, count))| {
        let (rules, versus, mode, ct_max, bans) = evaluated;
        let selection = Selection { count, ..Selection::default() };
        let asked = Asked { rules, versus, list, groups, mode, ct_max, ..Asked::default() };
        Asked { selection, bans, outputs, ..asked }
    })
}

/// Bans, and sources that are not accepted, that hold from before the first packet on.
fn bans() -> impl Strategy<Value = String> {
    let change = (0u8..3, 0u8..4, 0u8..4).prop_map(|(what, client, server)| match what {
        0 => format!("- ban 10.0.0.{client}\n"),
        1 => format!("- deny 10.0.0.{client} 20.0.0.{server}\n"),
        _ => format!("- ban 20.0.0.{server}\n"),
    });
    proptest::collection::vec(change, 1..4).prop_map(|changes| changes.concat())
}

/// Half of the time all there are, else any of them.
fn outputs() -> impl Strategy<Value = Outputs> {
    let any = any::<[bool; 5]>().prop_map(|[verdicts, page, packets, split, annotate]| Outputs {
        verdicts,
        page,
        packets,
        split,
        annotate,
    });
    prop_oneof![Just(Outputs::ALL), any]
}

/// Everything that came out is the same.
fn same(one: &Outcome, other: &Outcome, what: &str) -> Result<(), TestCaseError> {
    for (name, bytes) in &one.files {
        prop_assert!(other.files.get(name) == Some(bytes), "{}: {}", what, name);
    }
    prop_assert_eq!(one.files.len(), other.files.len());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_number_of_threads_gives_the_same(asked in asked(), packets in packets()) {
        let made = Made::new(&packets);
        let alone = outcome(&asked, &made, 1);
        for threads in [2, 3, 7] {
            same(&alone, &outcome(&asked, &made, threads), &format!("{threads} threads"))?;
        }
    }

    #[test]
    fn packed_rules_give_what_the_rules_as_read_give(asked in asked(), packets in packets()) {
        let made = Made::new(&packets);
        let packed = outcome(&asked, &made, 1);
        let asked = Asked { reference: true, ..asked };
        same(&outcome(&asked, &made, 1), &packed, "packed")?;
    }
}

/// Why one worker evaluated all packets.
fn one_worker(rules: &[usize], ct_max: usize, packets: &[made::Packet]) -> Option<Alone> {
    let asked = Asked { rules: ruleset(rules, false), ct_max, ..Asked::default() };
    outcome(&asked, &Made::new(packets), 3).one_worker
}

#[test]
fn packets_that_depend_on_each_other_after_all_fall_to_one_worker() {
    let plain: Vec<made::Packet> = (0..120).map(made::Packet::udp).collect();
    let with = |at: usize, packet: made::Packet| {
        let mut packets = plain.clone();
        packets[at] = packet;
        packets
    };
    let state = &[5, 8];
    assert_eq!(one_worker(state, 262_144, &plain), None);
    assert_eq!(one_worker(state, 20, &plain), Some(Alone::Connections));
    let fragment = made::Packet { fragment: true, ..made::Packet::udp(1) };
    assert_eq!(one_worker(state, 262_144, &with(100, fragment)), Some(Alone::Fragments));
    assert_eq!(one_worker(&[1], 262_144, &with(100, fragment)), None);
    let cooked = made::Packet { cooked: true, ..made::Packet::udp(1) };
    assert_eq!(one_worker(state, 262_144, &with(100, cooked)), None);
}

/// Where nothing is tracked, fragments for the host wait for each other before INPUT, in whatever batch they come.
#[test]
fn fragments_for_the_host_meet_at_one_worker() {
    let mut packets: Vec<made::Packet> = (0..120).map(made::Packet::udp).collect();
    // Of an odd port the last fragment, of an even one the first: two packets in all.
    for at in [13, 34, 55, 76] {
        packets[at].fragment = true;
    }
    let rules =
        "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p udp -m length --length 60: -j DROP\nCOMMIT\n";
    let asked = Asked { rules: rules.to_owned(), ..Asked::default() };
    let made = Made::new(&packets);
    let alone = outcome(&asked, &made, 1);
    assert_eq!(alone.one_worker, None);
    let dropped = |files: &Outcome| {
        let text = String::from_utf8_lossy(&files.files["verdicts"]).into_owned();
        text.lines().filter(|line| line.contains("drop")).count()
    };
    assert_eq!(dropped(&alone), 2);
    for threads in [2, 3, 7] {
        same(&alone, &outcome(&asked, &made, threads), &format!("{threads} threads")).unwrap();
    }
}

/// So many segments, from hosts and ports of their own, that are rejected with resets, and then the resets.
fn rejected(segments: u16) -> Vec<made::Packet> {
    let segment = |number: u16| {
        let [port, client] = number.to_be_bytes();
        made::Packet { client, port, kind: 0, cooked: true, after: 0, ..made::Packet::udp(0) }
    };
    let reset = |number| made::Packet { is_reply: true, kind: 5, ..segment(number) };
    (0..segments).map(segment).chain((0..segments).map(reset)).collect()
}

/// A bounded number of refused packets is kept, over all senders: one worker has to know which are given up.
#[test]
fn answers_are_given_up_for_all_packets_together() {
    let rules = "*filter\n:FORWARD ACCEPT [0:0]\n:OUTPUT DROP [0:0]\n\
         -A FORWARD -p tcp -j REJECT --reject-with tcp-reset\n\
         -A OUTPUT -m conntrack --ctstate RELATED -j ACCEPT\nCOMMIT\n";
    let outputs = Outputs { page: false, split: false, annotate: false, ..Outputs::ALL };
    let asked = Asked { rules: rules.to_owned(), outputs, ..Asked::default() };
    for (segments, alone) in [(900, None), (1300, Some(Alone::Answers))] {
        let made = Made::new(&rejected(segments));
        let one = outcome(&asked, &made, 1);
        for threads in [2, 3] {
            let several = outcome(&asked, &made, threads);
            same(&one, &several, &format!("{segments} on {threads} threads")).unwrap();
            assert_eq!(several.one_worker, alone);
        }
    }
}

/// Ctrl-C while packets turn out to depend on each other: what was written is still what is counted.
#[test]
fn a_stop_at_a_new_start_loses_nothing_that_was_written() {
    let mut packets: Vec<made::Packet> = (0..250).map(made::Packet::udp).collect();
    packets[170].fragment = true;
    let made = Made::new(&packets);
    let rules = [outcome::load("rules.v4", &ruleset(&[5, 8], false))];
    let setup = Setup::default();
    let stop = Arc::new(AtomicBool::new(false));
    let (mut reads, mut verdicts) = (0, Vec::new());
    let mut progress = |_, _| {
        reads += 1;
        // The 18th capture is the one with the fragment.
        stop.store(reads >= 18, Ordering::Relaxed);
    };
    let mut wanted = Wanted {
        verdicts: Some(&mut verdicts),
        progress: Some(&mut progress),
        stop: Some(Arc::clone(&stop)),
        threads: 2,
        ..Wanted::default()
    };
    let report = run::replay(&rules, &made.captures, &setup, &mut wanted).unwrap();
    drop(wanted);
    assert_eq!((report.one_worker, report.interrupted), (Some(Alone::Fragments), true));
    let written = verdicts.iter().filter(|byte| **byte == b'\n').count();
    assert!(written >= 100, "{written}");
    assert_eq!(report.packets, written as u64);
}

/// Ctrl-C while a packet walks rules that jump to each other twice over: the walk ends, and says why.
#[test]
fn a_stop_ends_walks_that_are_too_long() {
    let levels = 24;
    let chains: String = (0..levels).map(|level| format!(":d{level} - [0:0]\n")).collect();
    let jumps: String =
        (1..levels).map(|next| format!("-A d{0} -j d{next}\n", next - 1).repeat(2)).collect();
    let text = format!("*filter\n:FORWARD ACCEPT [0:0]\n{chains}-A FORWARD -j d0\n{jumps}COMMIT\n");
    let rules = [outcome::load("rules.v4", &text)];
    let made = Made::new(&[made::Packet::udp(1)]);
    let unknown = |stops: bool| {
        let stop = Arc::new(AtomicBool::new(false));
        let mut progress = |_, _| stop.store(stops, Ordering::Relaxed);
        let mut wanted = Wanted {
            progress: Some(&mut progress),
            stop: Some(Arc::clone(&stop)),
            threads: 1,
            ..Wanted::default()
        };
        let setup = Setup::default();
        let report = run::replay(&rules, &made.captures, &setup, &mut wanted).unwrap();
        assert_eq!(report.verdicts.unknown.packets, 1);
        report.unknown_reasons().into_iter().map(|(_, what, _)| what).collect::<Vec<_>>()
    };
    assert_eq!(unknown(false), ["a walk that is too long, and was given up"]);
    assert_eq!(unknown(true), ["the end of the replay, which was stopped"]);
}
