//! Any packets in any order: no panic, never too many flows, every flow found both ways.

use crate::net::*;
use conntrack::defrag::{Defrag, Limits};
use conntrack::{
    Certainty, Config, Direction, EntryHook, Helper, Mode, Template, Tracker, Visit, Zone,
};
use packet::craft::{Addresses, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link, Packet, Snap, parse};
use proptest::prelude::*;

pub(crate) const MAX: usize = 24;

fn addresses() -> impl Strategy<Value = Addresses> {
    (0u8..3, 0u8..3, any::<bool>()).prop_map(|(a, b, v6)| {
        if v6 {
            Addresses::V6 { source: [a; 16], destination: [b; 16] }
        } else {
            Addresses::V4 { source: [10, 0, 0, a], destination: [10, 0, 0, b] }
        }
    })
}

fn message() -> impl Strategy<Value = Message> {
    let number = || prop::sample::select(vec![0u32, 1, 2, 1000, 1001, 70_000, u32::MAX]);
    let port = || 1u16..4;
    let tcp = (port(), port(), any::<u8>(), number(), number(), any::<u16>()).prop_map(
        |(source_port, destination_port, flags, sequence, acknowledgement, window)| Message::Tcp {
            source_port,
            destination_port,
            flags: Flags(flags & 0x3f),
            sequence,
            acknowledgement,
            window,
        },
    );
    let udp = (port(), port()).prop_map(|(source, destination)| Message::udp(source, destination));
    let icmp = (any::<u8>(), 0u16..2).prop_map(|(kind, id)| Message::Icmp {
        kind,
        code: 0,
        id,
        sequence: 0,
    });
    let other = (
        prop::sample::select(vec![132u8, 47, 136, 33, 0, 43, 44, 51, 59, 60, 2]),
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 4, 8, 58, 255]), 0..40),
    )
        .prop_map(|(protocol, header)| Message::Other { protocol, header });
    prop_oneof![4 => tcp, 2 => udp, 2 => icmp, 2 => other]
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    frame: Vec<u8>,
    captured: usize,
    pub(crate) wait: u64,
    end: u8,
    visit: u8,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let payload = prop::collection::vec(any::<u8>(), 0..60);
    let damage = prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>()));
    let parts = (addresses(), message(), payload, damage);
    (parts, prop::option::weighted(0.2, 0usize..90), 0u64..50, any::<u8>(), any::<u8>()).prop_map(
        |((addresses, message, payload, damage), captured, wait, end, visit)| {
            let mut frame = with_payload(addresses, message, &payload);
            if let Some((at, value)) = damage {
                let at = at.index(frame.len());
                frame[at] = value;
            }
            let captured = captured.unwrap_or(usize::MAX).min(frame.len());
            Step { frame, captured, wait, end, visit }
        },
    )
}

pub(crate) fn config(kind: u8) -> Config {
    let mode = if kind & 1 == 0 { Mode::Kernel } else { Mode::Midstream };
    let checksums = if kind & 2 == 0 { Checksums::Verify } else { Checksums::Ignore };
    Config { mode, checksums, max: MAX, liberal: kind & 4 != 0, ..Config::default() }
}

pub(crate) fn visit(step: &Step, now: u64, frame: u64) -> Visit {
    let bits = step.visit;
    let zone = Zone { id: u16::from(bits & 1), original: bits & 2 == 0, reply: bits & 4 == 0 };
    let helper =
        [Helper::None, Helper::Ftp, Helper::Tftp, Helper::Other][usize::from(bits >> 3 & 3)];
    let hook = if bits & 32 == 0 { EntryHook::Prerouting } else { EntryHook::Output };
    let certainty = if bits & 0xc0 == 0xc0 { Certainty::Maybe } else { Certainty::Certain };
    let template = Template { zone, helper };
    Visit { now, frame, hook, template, certainty, ..Visit::default() }
}

pub(crate) fn run(tracker: &mut Tracker, step: &Step, visit: &Visit) {
    let mut bytes = step.frame[..step.captured].to_vec();
    let headers = parse(Link::Raw, &bytes, step.frame.len(), Checksums::Ignore);
    let snap = Snap::new(&bytes, step.frame.len());
    tracker.prefetch([(snap, &headers)], visit.template.zone);
    let packet = Packet::parse(&mut bytes, step.frame.len(), Link::Raw, Checksums::Ignore);
    let view = tracker.track(&packet, visit);
    assert!(tracker.len() <= MAX);
    match step.end % 5 {
        0 => tracker.discard(&view),
        1 => {
            tracker.confirm(&packet, &view, visit.now, Certainty::Maybe);
        }
        2 => {
            tracker.close(&view, visit.now);
            tracker.confirm(&packet, &view, visit.now, Certainty::Certain);
        }
        3 => {}
        _ => {
            tracker.confirm(&packet, &view, visit.now, Certainty::Certain);
        }
    }
    assert!(tracker.len() <= MAX);
}

/// Every living flow is found by both of its tuples, and by nothing else's; of two with one tuple, which zones of one
/// direction allow, the later one is.
fn all_are_found(tracker: &mut Tracker, now: u64) {
    let flows: Vec<_> = tracker
        .living(now)
        .map(|flow| {
            (flow.born(), [Direction::Original, Direction::Reply].map(|way| *flow.tuple(way)))
        })
        .collect();
    for tuple in flows.iter().flat_map(|(_, tuples)| tuples) {
        let with_it = flows.iter().filter(|(_, tuples)| tuples.contains(tuple));
        let last = with_it.map(|(born, _)| *born).max();
        let zone = Zone::both(tuple.zone());
        let (handle, way) = tracker.find(tuple, zone, now).expect("not found");
        let flow = tracker.flow(handle).expect("handle leads nowhere");
        assert_eq!(Some(flow.born()), last);
        assert_eq!(flow.tuple(way), tuple);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_sequence(kind in 0u8..8, steps in prop::collection::vec(step(), 0..120)) {
        let mut tracker = Tracker::new(config(kind));
        let mut defrag = Defrag::new(Limits::default());
        let mut now = 0;
        for (number, step) in steps.iter().enumerate() {
            now += step.wait * SECOND;
            let mut bytes = step.frame[..step.captured].to_vec();
            let packet = Packet::parse(&mut bytes, step.frame.len(), Link::Raw, Checksums::Ignore);
            defrag.push(&packet, now, 0);
            run(&mut tracker, step, &visit(step, now, number as u64 + 1));
        }
        all_are_found(&mut tracker, now);
    }

    /// A packet of which bytes are missing never gets an answer that the whole packet contradicts.
    #[test]
    fn a_cut_packet_keeps_the_true_state_possible(
        kind in 0u8..8,
        steps in prop::collection::vec(step(), 0..40),
        last in step(),
        captured in 0usize..80,
    ) {
        let mut whole = Tracker::new(config(kind));
        let mut cut = Tracker::new(config(kind));
        let mut now = 0;
        for (number, step) in steps.iter().enumerate() {
            now += step.wait * SECOND;
            let step = Step { captured: step.frame.len(), end: 4, ..step.clone() };
            let visit = Visit { certainty: Certainty::Certain, ..visit(&step, now, number as u64 + 1) };
            run(&mut whole, &step, &visit);
            run(&mut cut, &step, &visit);
        }
        let visit = Visit { certainty: Certainty::Certain, ..visit(&last, now, 1000) };
        let state = |tracker: &mut Tracker, captured: usize| {
            let mut bytes = last.frame[..captured.min(last.frame.len())].to_vec();
            let packet = Packet::parse(&mut bytes, last.frame.len(), Link::Raw, Checksums::Ignore);
            tracker.track(&packet, &visit).states
        };
        let (truth, told) = (state(&mut whole, usize::MAX), state(&mut cut, captured));
        if let Some(truth) = truth.only() {
            prop_assert!(told.may_be(truth), "{truth:?} is not in {told:?}");
        }
    }

    /// Flows in doubt: of two worlds, in one of which the first packet was dropped, the states of both
    /// remain possible.
    #[test]
    fn doubt_covers_both_worlds(
        kind in 0u8..8,
        steps in prop::collection::vec(step(), 1..30),
        doubtful in 0usize..30,
    ) {
        let mut worlds = [0, 4, 1].map(|end| (end, Tracker::new(config(kind))));
        let mut now = 0;
        for (number, step) in steps.iter().enumerate() {
            now += step.wait * SECOND / 10;
            let visit = Visit {
                certainty: Certainty::Certain,
                template: Template::default(),
                ..visit(step, now, number as u64 + 1)
            };
            let mut states = Vec::new();
            for (end, tracker) in &mut worlds {
                let end = if number == doubtful { *end } else { 4 };
                let mut bytes = step.frame.clone();
                let len = bytes.len();
                let packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
                let view = tracker.track(&packet, &visit);
                states.push(view.states);
                match end {
                    0 => tracker.discard(&view),
                    1 => {
                        tracker.confirm(&packet, &view, now, Certainty::Maybe);
                    }
                    _ => {
                        tracker.confirm(&packet, &view, now, Certainty::Certain);
                    }
                }
            }
            let told = states[2];
            for truth in states[..2].iter().filter_map(|states| states.only()) {
                prop_assert!(told.may_be(truth), "packet {number}: {truth:?} is not in {told:?}");
            }
        }
    }
}
