//! Headers that were found before: the handler treats them like headers that it finds.

use std::net::IpAddr;
use std::sync::Arc;

use dataplane::{Arrival, DropReason, Evaluator, FinalVerdict, Origin, Program, find_headers};
use packet::craft::{Addresses, Craft, Message};
use packet::{L3, L3Fault, Link};
use proptest::prelude::*;
use rules::model::Family;
use rules::save::{LoadOptions, load};

use crate::Nobody;

const RULES: &str =
    "*filter\n:FORWARD DROP\n-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n";
const BRIDGED: &str =
    "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n-A FORWARD -p ARP -j DROP\n";

fn program(family: Family, text: &str) -> Program {
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    let ruleset = load(text, &options).expect("rules").ruleset;
    Program::new([Arc::new(ruleset)], dataplane::Config::default())
}

fn craft() -> Craft {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let addresses = Addresses::new(address("10.0.0.9"), address("192.0.2.7")).expect("one family");
    Craft::new(addresses, Message::udp(5, 53))
}

/// A record of a packet at a hook, by its number in `linux/netfilter.h`, as NFLOG makes one.
fn record(hook: u8, packet: &[u8]) -> Vec<u8> {
    let mut record = vec![2, 0, 0, 5];
    for (kind, value) in [(1_u16, &[8, 0, hook, 0][..]), (9, packet)] {
        record.extend((4 + value.len() as u16).to_le_bytes());
        record.extend(kind.to_le_bytes());
        record.extend(value);
        record.resize(record.len().next_multiple_of(4), 0);
    }
    record
}

/// The outcome of a frame, with headers found before or not, as text, and its bytes afterwards.
fn outcome(
    program: &Program,
    frame: &[u8],
    arrival: &Arrival<'_>,
    is_found: bool,
) -> (String, Vec<u8>) {
    let mut bytes = frame.to_vec();
    let headers = find_headers(program, frame, arrival.link, arrival.wire_len, arrival.origin);
    let given = Arrival { headers: is_found.then_some(&headers), ..*arrival };
    let mut evaluator = Evaluator::new(program);
    if is_found {
        evaluator.prefetch([(frame, &headers)].into_iter());
    }
    let outcome = format!("{:?}", evaluator.handle(&mut bytes, &given, &mut Nobody).outcome);
    (outcome, bytes)
}

proptest! {
    /// Whatever the frame, its origin and its observer.
    #[test]
    fn headers_found_before_change_nothing(
        (at, value) in (0..46_usize, any::<u8>()),
        cut in 0..60_usize,
        origin in prop_oneof![Just(Origin::Addresses), Just(Origin::Wire), Just(Origin::Host)],
        link in prop_oneof![Just(Link::Ethernet), Just(Link::Raw), Just(Link::Nflog)],
        hook in 0..6_u8,
    ) {
        let raw = Craft { ethernet: None, ..craft() }.frame();
        let mut frame = match link {
            Link::Ethernet => craft().frame(),
            Link::Nflog => record(hook, &raw),
            _ => raw,
        };
        let len = frame.len();
        frame[at % len] = value;
        frame.truncate(cut.max(1));
        for program in [program(Family::Ipv4, RULES), program(Family::Bridge, BRIDGED)] {
            let arrival = Arrival { origin, ..Arrival::new(1, link, len) };
            let found = outcome(&program, &frame, &arrival, true);
            prop_assert_eq!(found, outcome(&program, &frame, &arrival, false));
        }
    }
}

/// The checksum of what came in is verified; a record says that of its packet, whatever is given.
#[test]
fn headers_depend_on_where_a_frame_comes_from() {
    let program = program(Family::Ipv4, RULES);
    let mut raw = Craft { ethernet: None, ..craft() }.frame();
    raw[10] ^= 1;
    let l3 =
        |bytes: &[u8], link, origin| find_headers(&program, bytes, link, bytes.len(), origin).l3;
    let (wrong, fine) = (L3::Fault(L3Fault::Checksum), L3::Ipv4 { header_len: 20 });
    assert_eq!(l3(&raw, Link::Raw, Origin::Wire), wrong);
    assert_eq!(l3(&raw, Link::Raw, Origin::Host), fine);
    assert_eq!(l3(&raw, Link::Raw, Origin::Addresses), fine);
    assert_eq!(l3(&record(2, &raw), Link::Nflog, Origin::Addresses), wrong);
    assert_eq!(l3(&record(3, &raw), Link::Nflog, Origin::Wire), fine);
    let arrival = Arrival { origin: Origin::Wire, ..Arrival::new(1, Link::Raw, raw.len()) };
    let end = Evaluator::new(&program).handle(&mut raw.clone(), &arrival, &mut Nobody).outcome.end;
    assert_eq!(end.verdict, FinalVerdict::Drop(DropReason::Stack(L3Fault::Checksum)));
}

#[test]
fn a_bridge_sees_the_link_header_alone() {
    let frame = craft().frame();
    let l3 = |program: &Program| {
        find_headers(program, &frame, Link::Ethernet, frame.len(), Origin::Wire).l3
    };
    assert_eq!(l3(&program(Family::Bridge, BRIDGED)), L3::Other);
    assert_eq!(l3(&program(Family::Ipv4, RULES)), L3::Ipv4 { header_len: 20 });
}

/// A debug build compares the headers of every burst of every test with the ones that it finds again.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "headers of this frame")]
fn headers_of_another_frame_are_told() {
    let program = program(Family::Ipv4, RULES);
    let frame = Craft { ethernet: None, ..craft() }.frame();
    let other = find_headers(&program, &frame[..12], Link::Raw, frame.len(), Origin::Wire);
    let given = Arrival { headers: Some(&other), ..Arrival::new(1, Link::Raw, frame.len()) };
    Evaluator::new(&program).handle(&mut frame.clone(), &given, &mut Nobody);
}
