//! Fragments for the host itself, where nothing is tracked.

use std::sync::Arc;

use dataplane::{
    Arrival, Config, DropReason, Evaluator, FinalVerdict, Origin, Path, Program, Skip,
};
use packet::craft::{Craft, Fragment, Message};
use rules::eval::RuleRef;
use rules::model::Family;
use rules::save::{LoadOptions, load};

use crate::ways::{Hits, PLAIN, arrival, comes, craft, leaves, routed, ruleset};

/// Rules of a host without connection tracking: PREROUTING marks by an offset of 0, which the first fragment has.
const UNTRACKED: &str = "*mangle\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n-A PREROUTING -s 10.0.0.66 -j DROP\n\
    -A PREROUTING ! -f -j MARK --set-mark 7\n-A INPUT -m mark --mark 7\n-A INPUT -f\nCOMMIT\n*filter\n\
    :INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n-A INPUT -p udp -m length --length 1136 -j DROP\nCOMMIT\n";

/// Where a fragment lies in its packet.
#[derive(Debug, Clone, Copy)]
struct Cut {
    offset: u16,
    payload_len: usize,
    more: bool,
}

const FIRST: Cut = Cut { offset: 0, payload_len: 1000, more: true };

const LAST: Cut = Cut { offset: 1008, payload_len: 108, more: false };

/// A fragment from `source` to the host.
fn piece(source: &str, cut: Cut) -> Vec<u8> {
    let Cut { offset, payload_len, more } = cut;
    let message = Message::udp(5, 6);
    let fragment = Some(Fragment { offset, more });
    Craft { fragment, payload_len, id: 7, ..craft(source, "10.0.0.1", message) }.frame()
}

/// The verdict on a fragment, and the rules that it certainly hits, as table and rule of their chains.
fn piece_comes(
    evaluator: &mut Evaluator<'_>,
    number: u64,
    mut bytes: Vec<u8>,
) -> (FinalVerdict, Vec<(u32, u32, u32)>) {
    let arrival =
        Arrival { origin: Origin::Wire, interface: Some("eth0"), ..arrival(number, &bytes) };
    let mut hits = Hits::default();
    let outcome = evaluator.handle(&mut bytes, &arrival, &mut hits).outcome;
    assert!(hits.maybe.is_empty(), "{:?}", hits.maybe);
    let certain = hits.certain.iter().map(|at| (at.table, at.chain, at.rule));
    (outcome.end.verdict, certain.collect())
}

#[test]
fn input_sees_the_packet_that_fragments_make_where_nothing_is_tracked() {
    let (rules, config) = (ruleset(UNTRACKED), routed());
    let marks = (0, 0, 1);
    let whole = [(0, 1, 0), (1, 0, 0)];
    let held = FinalVerdict::Skip(Skip::Fragment);
    let dropped = FinalVerdict::Drop(DropReason::Rule(RuleRef { table: 1, chain: 0, rule: 0 }));

    let program = Program::new([Arc::clone(&rules)], config.clone());

    let mut evaluator = Evaluator::new(&program);
    let mut comes = |number, cut| piece_comes(&mut evaluator, number, piece("10.0.0.9", cut));
    assert_eq!(comes(1, FIRST), (held, vec![marks]));
    assert_eq!(comes(2, LAST), (dropped, whole.to_vec()), "with the mark of the first one");
    // The other way round the first fragment brings the packet, with its own mark.
    assert_eq!(comes(3, LAST), (held, vec![]));
    assert_eq!(comes(4, FIRST), (dropped, [&[marks][..], &whole].concat()));
}

#[test]
fn fragments_that_make_no_packet_never_come_to_input() {
    let (rules, config) = (ruleset(UNTRACKED), routed());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let mut comes = |number, source, cut| {
        let (verdict, hits) = piece_comes(&mut evaluator, number, piece(source, cut));
        let is_at_input = hits.iter().any(|(_, chain, _)| *chain == 1);
        (verdict, is_at_input)
    };
    let held = (FinalVerdict::Skip(Skip::Fragment), false);
    // What PREROUTING drops does not wait.
    let by_rule = FinalVerdict::Drop(DropReason::Rule(RuleRef { table: 0, chain: 0, rule: 0 }));
    assert_eq!(comes(1, "10.0.0.66", FIRST), (by_rule, false));
    // One that overlaps takes all with it.
    assert_eq!(comes(2, "10.0.0.9", FIRST), held);
    let reassembly = (FinalVerdict::Drop(DropReason::Reassembly), false);
    assert_eq!(comes(3, "10.0.0.9", Cut { offset: 1000, ..LAST }), reassembly);
    assert_eq!(comes(4, "10.0.0.9", LAST), held);
    // Thirty seconds are the most that one waits.
    assert_eq!(comes(30_005, "10.0.0.9", FIRST), held);
}

#[test]
fn where_a_fragment_may_have_been_dropped_input_is_open() {
    let rules = ruleset(&UNTRACKED.replace("-s 10.0.0.66", "-m cpu --cpu 1"));
    let config = routed();
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let mut comes = |number, cut| {
        let mut bytes = piece("10.0.0.9", cut);
        let arrival =
            Arrival { origin: Origin::Wire, interface: Some("eth0"), ..arrival(number, &bytes) };
        let mut hits = Hits::default();
        let outcome = evaluator.handle(&mut bytes, &arrival, &mut hits).outcome;
        let at_input = |hits: &[RuleRef]| hits.iter().filter(|at| at.chain + at.table > 0).count();
        (outcome.end.verdict.word(), at_input(&hits.certain), at_input(&hits.maybe))
    };
    assert_eq!(comes(1, FIRST), ("unknown", 0, 0));
    // The mark is that of a rule which the first one may not have come to.
    assert_eq!(comes(2, LAST), ("drop", 0, 2));
}

#[test]
fn fragments_of_ipv6_come_to_input_each() {
    let text = UNTRACKED.replace("-s 10.0.0.66 ", "-s 2001:db8::66 ").replace("! -f ", "");
    let text = text.replace("-A INPUT -f", "-A INPUT -m frag --fragmore");
    let options =
        LoadOptions { family: Some(rules::model::Family::Ipv6), ..LoadOptions::default() };
    let rules = Arc::new(load(&text, &options).expect("rules").ruleset);
    let config = Config { path: Some(Path::Input), ..Config::default() };
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    for (number, more) in [(1, true), (2, true)] {
        let fragment = Some(Fragment { offset: 0, more });
        let message = Message::udp(5, 6);
        let craft = craft("2001:db8::9", "2001:db8::1", message);
        let frame = Craft { fragment, payload_len: 1000, id: 7, ..craft }.frame();
        let (verdict, hits) = piece_comes(&mut evaluator, number, frame);
        assert_eq!(verdict.word(), "accept");
        assert_eq!(hits, [(0, 0, 1), (0, 1, 0), (0, 1, 1)]);
    }
}

#[test]
fn the_hosts_own_fragments_are_one_packet_without_tracking_too() {
    let (rules, config) = (ruleset(PLAIN), routed());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let part = |source, destination, cut: Cut| Craft {
        fragment: Some(Fragment { offset: cut.offset, more: cut.more }),
        payload_len: cut.payload_len,
        id: 7,
        ..craft(source, destination, Message::udp(5, 6))
    };
    let own = |cut| part("203.0.113.2", "198.51.100.7", cut).frame();
    let (first, last) = (own(FIRST), own(Cut { payload_len: 100, ..LAST }));
    let (outcome, _) = leaves(&mut evaluator, 1, first);
    assert_eq!(outcome.end.verdict, FinalVerdict::Skip(Skip::Fragment));
    let (outcome, _) = leaves(&mut evaluator, 2, last);
    assert_eq!((outcome.end.verdict.word(), outcome.len), ("accept", 20 + 8 + 1000 + 100));
    // What came in and goes on passes each by itself.
    let came = part("10.0.0.9", "198.51.100.7", FIRST).frame();
    assert_eq!(comes(&mut evaluator, 3, came).end.verdict.word(), "accept");
}

/// Options between hops that come after a fragment header are not tested (measured: type 7 is refused before the hooks where it
/// comes first): the packet has a flow, whose answers would be those of the next flow from its source.
#[test]
fn options_after_a_fragment_header_are_not_tested() {
    let text = "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j DNAT --to-destination 2001:db8::5\nCOMMIT\n";
    let options = LoadOptions { family: Some(Family::Ipv6), ..LoadOptions::default() };
    let rules = Arc::new(load(text, &options).expect("rules").ruleset);
    let ct = conntrack::Config { mode: conntrack::Mode::Kernel, ..conntrack::Config::default() };
    let program =
        Program::new([rules], Config { ct, path: Some(Path::Forward), ..Config::default() });
    let mut evaluator = Evaluator::new(&program);
    let mut verdict = |number: u64, next: u8, to: u16, payload: &[u8]| {
        let mut bytes = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
        for last in [1, to] {
            bytes.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            bytes.extend_from_slice(&u16::to_be_bytes(last));
        }
        bytes.extend_from_slice(payload);
        let arrival = arrival(number, &bytes);
        evaluator.handle(&mut bytes, &arrival, &mut Hits::default()).outcome.end.verdict
    };
    let fragment = [0, 0, 0, 0, 0, 0, 0, 2];
    let hop_by_hop = [33, 0, 7, 4, 0, 0, 0, 0];
    let first = verdict(1, 44, 0x100, &[&fragment[..], &hop_by_hop, &[0; 16]].concat());
    assert!(matches!(first, FinalVerdict::Accept(_)), "{first:?}");
    assert_eq!(verdict(2, 33, 0x200, &[0; 16]), FinalVerdict::Drop(DropReason::Conntrack));
}
