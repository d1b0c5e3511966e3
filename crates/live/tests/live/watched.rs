//! Watched frames: each dropped frame is reported, as it came and with what decided, or counted as lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dataplane::Unresolved;
use live::config::{Cores, OnPanic, Order, Other, Workers};
use live::{FrameEvent, Listening, Next, Reason, Run, Status, WireSpec};
use pktio::MemoryPort;
use proptest::collection::vec;
use proptest::prelude::*;
use rules::model::Family;
use rules::save::{LoadOptions, load};

use super::{NAMES, Rig, config, craft, datagram, filter, finish, ruleset, send, syn};

/// Rules that change the time to live of packets before FORWARD drops them.
const MANGLE: &str =
    "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j TTL --ttl-set 9\nCOMMIT\n";
const RULES: &str = "-A FORWARD -p tcp -m tcp --dport 22 -j DROP\n\
    -A FORWARD -p tcp -m tcp --dport 23 -j REJECT --reject-with tcp-reset\n\
    -A FORWARD -p tcp -m tcp --dport 80 -j ACCEPT\n";
const TRACKED: &str = "-A FORWARD -m conntrack --ctstate RELATED -j ACCEPT\n";

fn start(workers: usize, order: Order, text: &str) -> (Run, [MemoryPort; 2]) {
    let Rig { far, near: [left, right], .. } = Rig::new(&filter("ACCEPT", ""));
    let ports = [(NAMES[0].to_owned(), left), (NAMES[1].to_owned(), right)];
    let ends = vec![WireSpec { ports, crossings: Default::default(), other: Other::Pass, order }];
    let wanted = Workers { cores: Cores::Any, count: Some(workers) };
    let rules = [ruleset(Family::Ipv4, text)];
    let config = config(Unresolved::Drop, Vec::new());
    (Run::start_on(ends, (&rules, config), OnPanic::Closed, &wanted).unwrap(), far)
}

/// All that there is until the run ends.
fn all(listening: &Listening) -> Vec<Arc<FrameEvent>> {
    let mut told = Vec::new();
    loop {
        match listening.next(Duration::from_secs(60)) {
            Next::Frame(frame) => told.push(frame),
            Next::Ended => return told,
            Next::Nothing => panic!("a run that has ended says so"),
        }
    }
}

/// Frames by their port of arrival, their bytes and what decided.
type Counted = BTreeMap<(usize, Vec<u8>, String), usize>;

/// The rule that drops a frame to this port.
fn decided(port: u16, rules_before: usize) -> Option<String> {
    let number = |rule: usize| rule + rules_before;
    Some(match port {
        22 => format!("drop by rule {} of FORWARD", number(1)),
        23 => format!("reject by rule {} of FORWARD", number(2)),
        80 => return None,
        _ => "drop by the policy of FORWARD".to_owned(),
    })
}

fn told_of(told: &FrameEvent) -> (usize, Vec<u8>, String) {
    let from = NAMES.iter().position(|name| *name == &*told.input).unwrap();
    let line = told.answer(false).to_string();
    let verdict = line.split("  ").nth(2).unwrap();
    let by = verdict.split([':', '(']).next().unwrap().trim_end().to_owned();
    (from, told.bytes.clone(), by)
}

fn lost_by_the_wire(status: &Status) -> u64 {
    let aside = [Reason::Fragment, Reason::ReplyRate];
    let of = |from: usize| {
        let frames = &status.directions[from].frames;
        frames.dropped() - aside.map(|reason| frames.of(reason)).iter().sum::<u64>()
    };
    of(0) + of(1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_dropped_frame_is_told_or_lost(
        workers in 1..4_usize,
        is_ordered in any::<bool>(),
        is_tracked in any::<bool>(),
        frames in vec((0..2_usize, prop::sample::select(vec![22, 23, 24, 80]), 0..300_u16), 0..60),
        times in prop::sample::select(vec![1_usize, 1, 1, 30]),
    ) {
        let (before, rules) = match is_tracked {
            true => (1, format!("{TRACKED}{RULES}")),
            false => (0, RULES.to_owned()),
        };
        let text = format!("{MANGLE}{}", filter("DROP", &rules));
        let order = if is_ordered { Order::Wire } else { Order::Flow };
        let (run, mut far) = start(workers, order, &text);
        let listening = run.listen("").unwrap();
        let mut expected = Counted::new();
        for (side, port, source) in frames.iter().cycle().take(frames.len() * times) {
            let message = packet::craft::Message::tcp(4000 + source, *port, packet::tcp::Flags::SYN);
            let frame = craft(["10.0.0.7", "10.0.0.9"], message).frame();
            send(&mut far[*side], std::slice::from_ref(&frame));
            if let Some(by) = decided(*port, before) {
                *expected.entry((*side, frame, by)).or_default() += 1;
            }
        }
        let left = finish(run, far);
        let (told, lost) = (all(&listening), listening.lost());
        prop_assert_eq!(told.len() as u64 + lost, lost_by_the_wire(&left.status));
        let mut counted = Counted::new();
        told.iter().for_each(|told| *counted.entry(told_of(told)).or_default() += 1);
        // What no rule saw for want of room is not what the rules are expected to drop.
        let crowded = [Reason::Handover, Reason::Queue, Reason::Overdue];
        let is_crowded = (0..2).any(|at| crowded.iter().any(|why| left.direction(at).of(*why) > 0));
        if lost == 0 && !is_crowded {
            prop_assert_eq!(counted, expected);
        }
    }
}

#[test]
fn a_filter_tells_what_it_wants_and_counts_nothing_else_as_lost() {
    let (run, mut far) = start(1, Order::Flow, &filter("DROP", RULES));
    let listening = run.listen("tcp port 22 and in right").unwrap();
    assert_eq!(
        run.listen("tcp prt 22").unwrap_err().to_string().split(',').next(),
        Some("filter: expected host")
    );
    let frames: Vec<_> = (0..1500).map(|_| syn(24)).chain([syn(22)]).collect();
    send(&mut far[1], &frames);
    send(&mut far[0], &[syn(22)]);
    finish(run, far);
    let told = all(&listening);
    assert_eq!((told.len(), listening.lost()), (1, 0));
    assert_eq!(told[0].bytes, syn(22));
    let line = told[0].answer(false).to_string();
    let what = "right > left  tcp 10.0.0.7:40000 > 10.0.0.9:22 syn  drop by rule 1 of FORWARD \
                (line 3): -A FORWARD -p tcp -m tcp --dport 22 -j DROP";
    assert_eq!(&line[16..], what);
}

#[test]
fn what_is_over_the_rate_or_unread_is_counted() {
    let (run, mut far) = start(1, Order::Flow, &filter("DROP", ""));
    let listening = run.listen("").unwrap();
    send(&mut far[0], &(0..2500).map(|_| syn(22)).collect::<Vec<_>>());
    let left = finish(run, far);
    let told = all(&listening).len() as u64;
    // There is room for a second's, and what a few moments add.
    assert!((1000..2500).contains(&told), "{told}");
    assert_eq!((told + listening.lost(), left.direction(0).of(Reason::Policy)), (2500, 2500));
}

#[test]
fn what_leaves_is_told_to_who_asks_for_it() {
    let rules = filter("ACCEPT", "-A FORWARD -p udp -j DROP\n");
    let (run, mut far) = start(1, Order::Flow, &rules);
    let listening = [run.listen("verdict accept"), run.listen("verdict any"), run.listen("")];
    let listening = listening.map(Result::unwrap);
    send(&mut far[0], &[syn(80), datagram(["10.0.0.7", "10.0.0.9"], 53)]);
    finish(run, far);
    let told = listening
        .each_ref()
        .map(|listening| all(listening).iter().map(|told| told.verdict).collect::<Vec<_>>());
    assert_eq!(told, [vec!["accept"], vec!["accept", "drop"], vec!["drop"]]);
}

/// The rule of a drop is that of the program which dropped it, whatever is in force when somebody reads of it.
#[test]
fn a_rule_is_named_by_the_program_that_decided() {
    let (run, mut far) = start(1, Order::Flow, &filter("ACCEPT", "-A FORWARD -p tcp -j DROP\n"));
    let listening = run.listen("").unwrap();
    send(&mut far[0], &[syn(22)]);
    while run.status().directions[0].frames.dropped() == 0 {
        std::thread::yield_now();
    }
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    let new = load(&filter("ACCEPT", "-A FORWARD -p udp -j DROP\n"), &options).unwrap().ruleset;
    run.published().replace(1, new).unwrap();
    finish(run, far);
    let told = all(&listening);
    let texts: Vec<_> = told.iter().map(|told| told.answer(false).by.text).collect();
    assert_eq!(texts, ["-A FORWARD -p tcp -j DROP"]);
    assert_eq!(told[0].program, Some(1));
}
