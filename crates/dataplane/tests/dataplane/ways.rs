//! Which way packets take: by where they come from, by what is given of the host, by their size; and what the host
//! sends for those that it refuses.

use std::net::IpAddr;
use std::sync::Arc;

use dataplane::{
    Answer, Arrival, Config, DropReason, Evaluator, FinalVerdict, Left, Observer, Origin, Program,
};
use dataplane::{Outcome, Path, Skip};
use host::routes::Routes;
use host::{Addresses as Assigned, Host, Links, Network, Refused};
use packet::craft::{Addresses, Craft, Fragment, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link, icmpv4};
use rules::eval::{self, RuleRef};
use rules::model::Ruleset;
use rules::save::{LoadOptions, load};
use rules::{Iface, Transit};

fn ruleset(text: &str) -> Arc<Ruleset> {
    Arc::new(load(text, &LoadOptions::default()).expect("rules").ruleset)
}

/// Counts certain and possible hits of all rules.
#[derive(Default)]
struct Hits {
    certain: Vec<RuleRef>,
    maybe: Vec<RuleRef>,
}

impl eval::Observer for Hits {
    fn hit(&mut self, at: RuleRef, certain: bool, _: &Transit<'_, '_>) {
        if certain { self.certain.push(at) } else { self.maybe.push(at) }
    }
}

impl Observer for Hits {}

fn craft(source: &str, destination: &str, message: Message) -> Craft {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let addresses = Addresses::new(address(source), address(destination)).expect("one family");
    Craft { ethernet: None, ..Craft::new(addresses, message) }
}

fn arrival<'a>(number: u64, bytes: &[u8]) -> Arrival<'a> {
    let time = Some(1_000_000_000 + number * 1_000_000);
    Arrival { time, ..Arrival::new(number, Link::Raw, bytes.len()) }
}

/// The result of a packet that came in by `eth0`.
fn comes<'a>(evaluator: &mut Evaluator<'a>, number: u64, mut bytes: Vec<u8>) -> Outcome<'a> {
    let from_wire =
        Arrival { origin: Origin::Wire, interface: Some("eth0"), ..arrival(number, &bytes) };
    evaluator.handle(&mut bytes, &from_wire, &mut Hits::default()).outcome
}

const ROUTES: &str = "default via 203.0.113.1 dev wan0
10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.1
203.0.113.0/24 dev wan0 proto kernel scope link src 203.0.113.2
blackhole 10.66.0.0/16
prohibit 10.67.0.0/16
local 10.0.0.1 dev eth0 table local proto kernel scope host src 10.0.0.1
broadcast 10.0.0.255 dev eth0 table local proto kernel scope link src 10.0.0.1
local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1
local 203.0.113.2 dev wan0 table local proto kernel scope host src 203.0.113.2
broadcast 203.0.113.255 dev wan0 table local proto kernel scope link src 203.0.113.2
";

const LINKS: &str = "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000\\    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000\\    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff
3: wan0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400 qdisc noqueue state UP mode DEFAULT group default qlen 1000\\    link/ether 02:00:00:00:00:03 brd ff:ff:ff:ff:ff:ff
";

fn routed() -> Config {
    let assigned = "2: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0
3: wan0    inet 203.0.113.2/24 brd 203.0.113.255 scope global wan0
";
    Config {
        host: Host {
            routes: Some(Routes::parse(ROUTES).expect("routes")),
            links: Links::parse(LINKS).expect("links"),
            assigned: Some(Assigned::parse(assigned).expect("addresses")),
            ..Host::default()
        },
        ..Config::default()
    }
}

const PLAIN: &str = "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -m udp --dport 9 -j MARK --set-mark 1\n\
    COMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
    -A INPUT -p udp -m udp --dport 7 -j DROP\n-A FORWARD -p udp -m udp --dport 7 -j DROP\n\
    -A FORWARD -p udp -m udp --dport 8 -j DROP\nCOMMIT\n";

#[test]
fn routes_decide_where_an_arrival_goes_and_by_which_interface() {
    let (rules, config) = (ruleset(PLAIN), routed());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let mut went = |source: &str, destination: &str| {
        let outcome =
            comes(&mut evaluator, 1, craft(source, destination, Message::udp(5, 6)).frame());
        (outcome.end.path, outcome.output, outcome.end.verdict)
    };
    let accept = |verdict| matches!(verdict, FinalVerdict::Accept(_));
    let refused = |why| (None, Iface::Absent, FinalVerdict::Drop(DropReason::Route(why)));

    let (path, output, verdict) = went("10.0.0.9", "198.51.100.7");
    assert_eq!((path, output), (Some(Path::Forward), Iface::Named("wan0")));
    assert!(accept(verdict));
    for destination in ["10.0.0.1", "203.0.113.2", "10.0.0.255", "203.0.113.255"] {
        let (path, _, verdict) = went("10.0.0.9", destination);
        assert_eq!(path, Some(Path::Input), "{destination}");
        assert!(accept(verdict));
    }
    assert_eq!(went("10.0.0.1", "198.51.100.7"), refused(Refused::Martian), "an own source");
    assert_eq!(went("127.0.0.1", "10.0.0.1"), refused(Refused::Martian));
    assert_eq!(went("10.0.0.9", "10.66.1.1"), refused(Refused::Blackhole));
    assert_eq!(went("10.0.0.9", "10.67.1.1"), refused(Refused::Prohibit));
}

#[test]
fn the_host_answers_what_routes_prohibit_but_not_what_they_swallow() {
    let (rules, config) = (ruleset(PLAIN), routed());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let mut answer = |destination: &str, ttl| {
        let craft = Craft { ttl, ..craft("10.0.0.9", destination, Message::udp(5, 6)) };
        comes(&mut evaluator, 1, craft.frame()).answer
    };
    assert_eq!(answer("10.66.1.1", 64), None);
    assert_eq!(answer("10.67.1.1", 64), Some(Answer::Icmp { kind: 3, code: 13 }));
    assert_eq!(answer("198.51.100.7", 1), Some(Answer::Icmp { kind: 11, code: 0 }));
    assert_eq!(answer("198.51.100.7", 2), None);
}

#[test]
fn a_source_of_the_host_is_its_own_only_where_it_did_not_come_in() {
    let (rules, config) = (ruleset(PLAIN), routed());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let bytes = craft("203.0.113.2", "198.51.100.7", Message::udp(5, 6)).frame();
    for (origin, path) in [
        (Origin::Host, Some(Path::Output)),
        (Origin::Addresses, Some(Path::Output)),
        (Origin::Wire, None),
    ] {
        let given = Arrival { origin, ..arrival(1, &bytes) };
        let outcome = evaluator.handle(&mut bytes.clone(), &given, &mut Hits::default()).outcome;
        assert_eq!(outcome.end.path, path, "{origin:?}");
    }
    let own = Arrival { origin: Origin::Host, ..arrival(1, &bytes) };
    let outcome = evaluator.handle(&mut bytes.clone(), &own, &mut Hits::default()).outcome;
    assert_eq!(outcome.output, Iface::Named("wan0"), "by routes");
}

#[test]
fn rules_on_both_ways_make_a_packet_certain_only_where_they_agree() {
    let (rules, config) = (ruleset(PLAIN), Config::default());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let mut verdict = |port, left| {
        let mut bytes = craft("10.0.0.9", "10.0.0.1", Message::udp(5, port)).frame();
        let given = Arrival { left, ..arrival(1, &bytes) };
        let mut hits = Hits::default();
        let outcome = evaluator.handle(&mut bytes, &given, &mut hits).outcome;
        (outcome.end.verdict.word(), outcome.end.path, hits.certain.len(), hits.maybe.len())
    };
    assert_eq!(verdict(6, None), ("accept", None, 0, 0));
    assert_eq!(verdict(7, None), ("drop", None, 0, 2), "on either way");
    assert_eq!(verdict(8, None), ("unknown", None, 0, 1), "only if it is forwarded");
    let left = Left {
        number: 2,
        interface: Some("wan0"),
        source: [10, 0, 0, 9].into(),
        destination: [10, 0, 0, 1].into(),
        ports: None,
        bridged: false,
        let_go: true,
    };
    assert_eq!(verdict(8, Some(left)), ("drop", Some(Path::Forward), 1, 0), "it was seen leaving");
}

#[test]
fn rules_on_one_way_alone_are_meant_for_it() {
    for (chain, path) in [("INPUT", Path::Input), ("FORWARD", Path::Forward)] {
        let text = format!(
            "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n-A {chain} -j ACCEPT\nCOMMIT\n"
        );
        let (rules, config) = (ruleset(&text), Config::default());
        let program = Program::new([Arc::clone(&rules)], config.clone());
        let mut evaluator = Evaluator::new(&program);
        let mut bytes = craft("10.0.0.9", "10.0.0.1", Message::udp(5, 6)).frame();
        let given = arrival(1, &bytes);
        let outcome = evaluator.handle(&mut bytes, &given, &mut Hits::default()).outcome;
        assert_eq!(outcome.end.path, Some(path));
        assert!(matches!(outcome.end.verdict, FinalVerdict::Accept(_)));
    }
}

#[test]
fn what_does_not_fit_the_link_is_dropped_unless_it_may_be_cut() {
    let (rules, config) = (ruleset(PLAIN), routed());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let mut verdict = |message, payload_len, dont_fragment| {
        let craft =
            Craft { payload_len, dont_fragment, ..craft("10.0.0.9", "198.51.100.7", message) };
        let outcome = comes(&mut evaluator, 1, craft.frame());
        (outcome.end.verdict.word(), outcome.answer)
    };
    let too_big = ("drop", Some(Answer::Icmp { kind: 3, code: 4 }));
    assert_eq!(verdict(Message::udp(5, 6), 1372, true), ("accept", None));
    assert_eq!(verdict(Message::udp(5, 6), 1373, true), too_big);
    assert_eq!(verdict(Message::udp(5, 6), 1373, false), ("accept", None));
    let data = || Message::tcp(5, 6, Flags::ACK);
    assert_eq!(verdict(data(), 1400, true), too_big);
    assert_eq!(verdict(data(), 4000, true), ("unknown", None), "of segments up to 1500");
    assert_eq!(verdict(data(), 4000, false), ("accept", None));
}

const REJECTS: &str = "*raw\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -m conntrack --ctstate RELATED\nCOMMIT\n*filter\n\
    :INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
    -A INPUT -p tcp -j REJECT --reject-with tcp-reset\n-A FORWARD -p tcp -j REJECT --reject-with tcp-reset\n\
    -A FORWARD -p udp -j REJECT\n-A OUTPUT -m conntrack --ctstate RELATED -j ACCEPT\n\
    -A OUTPUT -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n";

/// The host's frame, as a capture shows it leave.
fn leaves<'a>(
    evaluator: &mut Evaluator<'a>,
    number: u64,
    mut bytes: Vec<u8>,
) -> (Outcome<'a>, usize) {
    let own = Arrival { origin: Origin::Host, ..arrival(number, &bytes) };
    let mut hits = Hits::default();
    let outcome = evaluator.handle(&mut bytes, &own, &mut hits).outcome;
    (outcome, hits.certain.len())
}

fn error_about(bytes: &[u8], source: &str, destination: &str) -> Vec<u8> {
    let mut frame = craft(source, destination, Message::udp(0, 0));
    frame.payload_len = 28;
    let mut error = frame.frame();
    error[9] = icmpv4::PROTOCOL;
    error[20..28].copy_from_slice(&[3, 3, 0, 0, 0, 0, 0, 0]);
    error[28..56].copy_from_slice(&bytes[..28]);
    error
}

#[test]
fn answers_to_rejected_packets_are_related_from_raw_output_on() {
    let (rules, config) = (ruleset(REJECTS), routed());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let syn = craft("10.0.0.9", "198.51.100.7", Message::tcp(5000, 80, Flags::SYN)).frame();
    let reset = craft("198.51.100.7", "10.0.0.9", Message::tcp(80, 5000, Flags::RST)).frame();
    assert_eq!(comes(&mut evaluator, 1, syn.clone()).answer, Some(Answer::Reset));
    let (outcome, hits) = leaves(&mut evaluator, 2, reset.clone());
    assert_eq!(
        (outcome.end.verdict.word(), outcome.end.path, hits),
        ("accept", Some(Path::Output), 2)
    );
    let (outcome, _) = leaves(&mut evaluator, 3, reset.clone());
    assert_eq!(outcome.end.verdict.word(), "drop", "each packet is answered once");
    comes(&mut evaluator, 4, syn.clone());
    let (outcome, _) = leaves(&mut evaluator, 2_000, reset.clone());
    assert_eq!(outcome.end.verdict.word(), "drop", "it would have come at once");
    let datagram = craft("10.0.0.9", "198.51.100.7", Message::udp(5000, 53)).frame();
    assert_eq!(
        comes(&mut evaluator, 2_001, datagram.clone()).answer,
        Some(Answer::Icmp { kind: 3, code: 3 })
    );
    let (outcome, hits) =
        leaves(&mut evaluator, 2_002, error_about(&datagram, "10.0.0.1", "10.0.0.9"));
    assert_eq!((outcome.end.verdict.word(), hits), ("accept", 2));
}

#[test]
fn errors_about_packets_of_no_connection_carry_the_one_of_the_packet() {
    let (rules, config) = (ruleset(REJECTS), routed());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let syn = craft("10.0.0.77", "10.0.0.1", Message::tcp(5000, 80, Flags::SYN)).frame();
    let reset = craft("10.0.0.1", "10.0.0.77", Message::tcp(80, 5000, Flags::RST)).frame();
    comes(&mut evaluator, 1, syn);
    leaves(&mut evaluator, 2, reset.clone());
    // Three seconds later nobody has the forged address: the host tells itself.
    let (outcome, _) = leaves(&mut evaluator, 3_002, error_about(&reset, "10.0.0.1", "10.0.0.1"));
    let accept = ("accept", Some(Path::Loopback));
    assert_eq!((outcome.end.verdict.word(), outcome.end.path), accept);
    // A capture does not show the reset where there is no neighbour.
    let other = craft("10.0.0.78", "10.0.0.1", Message::tcp(5000, 80, Flags::SYN)).frame();
    let unseen = craft("10.0.0.1", "10.0.0.78", Message::tcp(80, 5000, Flags::RST)).frame();
    comes(&mut evaluator, 3_003, other);
    let error = error_about(&unseen, "10.0.0.1", "10.0.0.1");
    assert_eq!(leaves(&mut evaluator, 6_003, error).0.end.verdict.word(), "accept");
    let error = error_about(&reset, "10.0.0.1", "10.0.0.1");
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    assert_eq!(leaves(&mut evaluator, 1, error).0.end.verdict.word(), "drop");
    // A redirect about what goes back by the link that it came by, and is dropped there.
    let datagram =
        craft("10.0.0.9", "10.0.0.77", Message::Icmp { kind: 8, code: 0, id: 5, sequence: 1 })
            .frame();
    let plain = REJECTS.replace(":FORWARD ACCEPT", ":FORWARD DROP");
    let rules = ruleset(&plain);
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    assert_eq!(comes(&mut evaluator, 1, datagram.clone()).end.verdict.word(), "drop");
    let (outcome, _) = leaves(&mut evaluator, 2, error_about(&datagram, "10.0.0.1", "10.0.0.9"));
    assert_eq!(outcome.end.verdict.word(), "accept");
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
    // The other way round it is the first one that brings the packet, its own mark on it.
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

/// A bridge of three ports under rules for what it passes on.
const BRIDGED: &str = "*mangle\n:PREROUTING ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n\
    -A PREROUTING -m physdev --physdev-in pa\n-A PREROUTING -m physdev --physdev-is-bridged\n\
    -A FORWARD -m physdev --physdev-is-bridged\n-A FORWARD -m physdev --physdev-out pb\n-A FORWARD -i br0 -o br0\n\
    COMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";

/// Certain and possible hits of the rules of mangle PREROUTING and FORWARD, by chain and rule, and the verdict.
type Bridged = (Vec<(u32, u32)>, Vec<(u32, u32)>, &'static str);

fn crosses(sysctl: &str, destination: &str, bridge: dataplane::Bridge<'_>) -> Bridged {
    let links = "2: br0: <UP> mtu 1500\\    link/ether 02:00:00:00:00:02 \\    bridge forward_delay 1500\n\
        3: pa: <UP> mtu 1500 master br0\\    link/ether 02:00:00:00:00:03\n\
        4: pb: <UP> mtu 1500 master br0\\    link/ether 02:00:00:00:00:04\n\
        5: pc: <UP> mtu 1500 master br0\\    link/ether 02:00:00:00:00:05\n";
    let routes = "10.0.0.0/24 dev br0 proto kernel scope link src 10.0.0.1\n\
        local 10.0.0.1 dev br0 table local proto kernel scope host src 10.0.0.1\n\
        broadcast 10.0.0.255 dev br0 table local proto kernel scope link src 10.0.0.1\n";
    let host = Host {
        links: Links::parse(links).expect("links"),
        routes: Some(Routes::parse(routes).expect("routes")),
        sysctl: Some(host::Sysctl::parse(sysctl).expect("settings")),
        ..Host::default()
    };
    let (rules, config) = (ruleset(BRIDGED), Config { host, ..Config::default() });
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let mut bytes = craft("10.0.0.9", destination, Message::udp(5, 6)).frame();
    let arrival =
        Arrival { origin: Origin::Wire, interface: Some("br0"), bridge, ..arrival(1, &bytes) };
    let mut hits = Hits::default();
    let outcome = evaluator.handle(&mut bytes, &arrival, &mut hits).outcome;
    let of = |hits: &[RuleRef]| hits.iter().map(|at| (at.chain, at.rule)).collect();
    (of(&hits.certain), of(&hits.maybe), outcome.end.verdict.word())
}

#[test]
fn a_bridge_passes_a_packet_on_once_for_each_port() {
    const CALLS: &str = "net.bridge.bridge-nf-call-iptables = 1\nnet.ipv4.ip_forward = 0\n";
    let names: Vec<Option<std::sync::Arc<str>>> =
        ["pa", "pb", "pc"].into_iter().map(|name| Some(name.into())).collect();
    let mut ports = host::sighting::Ports::default();
    [2, 3].into_iter().for_each(|port| ports.add(port));
    let bridge = dataplane::Bridge { port: Some("pa"), names: &names, ..Default::default() };

    // Two were seen. What crosses a bridge is not routed: that the host forwards nothing does not matter.
    let seen = dataplane::Bridge { ports, is_passed_on: true, ..bridge };
    let passed = [(1, 0), (1, 2), (1, 0), (1, 1), (1, 2)];
    let expected = [&[(0, 0)][..], &passed].concat();
    assert_eq!(crosses(CALLS, "10.0.0.77", seen), (expected, vec![], "accept"));

    // One surely, another one perhaps.
    let unseen = dataplane::Bridge { more: 1, is_passed_on: true, ..bridge };
    let (certain, maybe, verdict) = crosses(CALLS, "10.0.0.77", unseen);
    assert_eq!(certain, [(0, 0), (1, 0), (1, 2)]);
    assert_eq!((maybe, verdict), (vec![(1, 0), (1, 1), (1, 2), (1, 1)], "accept"));

    // A broadcast is for the host, and may be passed on: that is no part of its verdict.
    let broadcast = dataplane::Bridge { more: 2, ..bridge };
    let (certain, maybe, verdict) = crosses(CALLS, "10.0.0.255", broadcast);
    assert_eq!((certain, verdict), (vec![(0, 0)], "accept"));
    let copy = [(1, 0), (1, 1), (1, 2)];
    assert_eq!(maybe, [copy, copy].concat());

    // Where bridges hand nothing over, there is no note, and rules see only what is for the host.
    let off = CALLS.replace("iptables = 1", "iptables = 0");
    assert_eq!(crosses(&off, "10.0.0.255", broadcast), (vec![], vec![], "accept"));
    assert_eq!(crosses(&off, "10.0.0.77", seen), (vec![], vec![], "skip"));
}

#[test]
fn a_wrong_checksum_counts_where_the_packet_came_in() {
    const INVALID: &str = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
        -A INPUT -m conntrack --ctstate INVALID -j DROP\n\
        -A OUTPUT -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n";
    let rules = ruleset(INVALID);
    let mut config = Config { checksums: Checksums::Arrivals, ..routed() };
    config.ct.checksums = Checksums::Arrivals;
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let good = craft("10.0.0.9", "10.0.0.1", Message::udp(5, 6)).frame();
    let verdict = |outcome: Outcome<'_>| outcome.end.verdict.word();
    assert_eq!(verdict(comes(&mut evaluator, 1, good.clone())), "accept");
    let with = |at: usize, value: u16| {
        let mut frame = good.clone();
        frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
        frame
    };
    assert_eq!(verdict(comes(&mut evaluator, 2, with(26, 0x1111))), "drop");
    // Left to a network card: the sum of the pseudo header alone.
    let pseudo = 0x0a00_u32 + 9 + 0x0a00 + 1 + 17 + (good.len() as u32 - 20);
    assert_eq!(verdict(comes(&mut evaluator, 3, with(26, pseudo as u16))), "accept");
    // Of the network header it is the stack's to drop.
    let outcome = comes(&mut evaluator, 4, with(10, 0x1234));
    assert!(matches!(outcome.end.verdict, FinalVerdict::Drop(DropReason::Stack(_))));
    // The host's own and what nobody says of are taken as right.
    let own = craft("10.0.0.1", "10.0.0.9", Message::udp(5, 6)).frame();
    let mut wrong = own;
    wrong[26] ^= 0x55;
    assert_eq!(verdict(leaves(&mut evaluator, 5, wrong).0), "accept");
}

#[test]
fn a_reset_is_not_answered_and_a_foreign_one_is_no_answer() {
    let (rules, config) = (ruleset(REJECTS), routed());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let reset = craft("10.0.0.9", "198.51.100.7", Message::tcp(5000, 80, Flags::RST)).frame();
    assert_eq!(comes(&mut evaluator, 1, reset).answer, None);
    let syn = craft("10.0.0.9", "198.51.100.7", Message::tcp(5000, 80, Flags::SYN)).frame();
    comes(&mut evaluator, 2, syn);
    let back = craft("198.51.100.7", "10.0.0.9", Message::tcp(80, 5000, Flags::RST)).frame();
    assert_eq!(comes(&mut evaluator, 3, back).end.path, Some(Path::Forward), "it came in");
}

#[test]
fn frames_of_other_hosts_are_left_out() {
    let (rules, config) = (ruleset(PLAIN), Config::default());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let packet = craft("10.0.0.9", "10.0.0.1", Message::udp(5, 6)).frame();
    let mut cooked = vec![0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 8, 0];
    cooked.extend(packet);
    let given = Arrival::new(1, Link::Sll, cooked.len());
    let outcome = evaluator.handle(&mut cooked, &given, &mut Hits::default()).outcome;
    assert_eq!(outcome.end.verdict, FinalVerdict::Skip(Skip::OtherHost));
}

#[test]
fn the_capture_names_the_input_interface_before_networks_do() {
    let (rules, net) = (ruleset(PLAIN), |text: &str| Network::parse(text).expect("a network"));
    let nets = vec![("lan0".to_owned(), net("10.0.0.0/8")), ("wan0".to_owned(), net("0.0.0.0/0"))];
    let config = Config { nets, path: Some(Path::Forward), ..Config::default() };
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let forged = craft("10.0.0.9", "10.0.0.1", Message::udp(5, 6)).frame();
    let mut input = |interface, origin| {
        let given = Arrival { interface, origin, ..arrival(1, &forged) };
        evaluator.handle(&mut forged.clone(), &given, &mut Hits::default()).outcome.input
    };
    assert_eq!(input(Some("wan0"), Origin::Wire), Iface::Named("wan0"));
    assert_eq!(input(Some("wan0"), Origin::Addresses), Iface::Named("wan0"));
    assert_eq!(input(Some("any"), Origin::Wire), Iface::Named("lan0"));
    assert_eq!(input(None, Origin::Wire), Iface::Named("lan0"));
}

/// Names the hooks of a walk.
#[derive(Default)]
struct Hooks(Vec<rules::model::Hook>);

impl eval::Observer for Hooks {}

impl Observer for Hooks {
    fn enters(&mut self, _: u32, hook: rules::model::Hook) {
        self.0.push(hook);
    }
}

#[test]
fn what_is_captured_on_lo_is_one_walk_out_and_in() {
    use rules::model::Hook::{Input, Output, Postrouting, Prerouting};
    let text = "*mangle\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
        :POSTROUTING ACCEPT [0:0]\nCOMMIT\n";
    let (rules, config) = (ruleset(text), Config::default());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let mut bytes = craft("10.0.0.1", "10.0.0.1", Message::udp(5, 6)).frame();
    let given = Arrival { interface: Some("lo"), ..arrival(1, &bytes) };
    let mut hooks = Hooks::default();
    let outcome = evaluator.handle(&mut bytes, &given, &mut hooks).outcome;
    assert_eq!(outcome.end.path, Some(Path::Loopback));
    assert_eq!(hooks.0, [Output, Postrouting, Prerouting, Input]);
}
