//! The route of packets: by their origin, by what is given of the host, by their size; and what the host sends for
//! packets that it refuses.

use std::net::IpAddr;
use std::sync::Arc;

use dataplane::{
    Answer, Arrival, Config, DropReason, Evaluator, FinalVerdict, Left, Observer, Origin, Program,
};
use dataplane::{Outcome, Path, Skip};
use host::routes::Routes;
use host::{Addresses as Assigned, Host, Links, Network, Refused};
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link, icmpv4};
use rules::eval::{self, RuleRef};
use rules::model::Ruleset;
use rules::save::{LoadOptions, load};
use rules::{Iface, Transit};

pub(crate) fn ruleset(text: &str) -> Arc<Ruleset> {
    Arc::new(load(text, &LoadOptions::default()).expect("rules").ruleset)
}

/// Counts certain and possible hits of all rules.
#[derive(Default)]
pub(crate) struct Hits {
    pub(crate) certain: Vec<RuleRef>,
    pub(crate) maybe: Vec<RuleRef>,
}

impl eval::Observer for Hits {
    fn hit(&mut self, at: RuleRef, certain: bool, _: &Transit<'_, '_>) {
        if certain { self.certain.push(at) } else { self.maybe.push(at) }
    }
}

impl Observer for Hits {}

pub(crate) fn craft(source: &str, destination: &str, message: Message) -> Craft {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let addresses = Addresses::new(address(source), address(destination)).expect("one family");
    Craft { ethernet: None, ..Craft::new(addresses, message) }
}

pub(crate) fn arrival<'a>(number: u64, bytes: &[u8]) -> Arrival<'a> {
    let time = Some(1_000_000_000 + number * 1_000_000);
    Arrival { time, ..Arrival::new(number, Link::Raw, bytes.len()) }
}

/// The result of a packet that `eth0` received.
pub(crate) fn comes<'a>(
    evaluator: &mut Evaluator<'a>,
    number: u64,
    mut bytes: Vec<u8>,
) -> Outcome<'a> {
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

pub(crate) fn routed() -> Config {
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

pub(crate) const PLAIN: &str = "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -m udp --dport 9 -j MARK --set-mark 1\n\
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
pub(crate) fn leaves<'a>(
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
    error_quoting(&bytes[..28], source, destination)
}

/// An ICMP error that quotes these bytes.
pub(crate) fn error_quoting(bytes: &[u8], source: &str, destination: &str) -> Vec<u8> {
    let mut frame = craft(source, destination, Message::udp(0, 0));
    frame.payload_len = bytes.len();
    let mut error = frame.frame();
    error[9] = icmpv4::PROTOCOL;
    error[20..28].copy_from_slice(&[3, 3, 0, 0, 0, 0, 0, 0]);
    error[28..].copy_from_slice(bytes);
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
    // A redirect about a packet that returns on its link of arrival, and is dropped there.
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
    fn enters(&mut self, _: u32, _: Option<u32>, hook: rules::model::Hook) {
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

/// A host with two uplinks, whose policy rules send what is marked 2, or has TOS 0x10, by the second.
fn of_two_uplinks() -> Config {
    let routes = "default via 192.0.2.1 dev up0
default via 198.51.100.1 dev up1 table 102
192.0.2.0/24 dev up0 proto kernel scope link src 192.0.2.2
198.51.100.0/24 dev up1 proto kernel scope link src 198.51.100.2
local 192.0.2.2 dev up0 table local proto kernel scope host src 192.0.2.2
local 198.51.100.2 dev up1 table local proto kernel scope host src 198.51.100.2
";
    let policy = "0:\tfrom all lookup local\n100:\tfrom all fwmark 0x2 lookup 102\n101:\tfrom all tos 0x10 lookup 102
32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n";
    let assigned = "2: up0    inet 192.0.2.2/24 scope global up0\n3: up1    inet 198.51.100.2/24 scope global up1\n";
    let mut config = Config {
        host: Host {
            routes: Some(Routes::parse(routes).expect("routes")),
            policy: Some(host::Policy::parse(policy).expect("policy rules")),
            assigned: Some(Assigned::parse(assigned).expect("addresses")),
            ..Host::default()
        },
        ..Config::default()
    };
    config.ct.mode = conntrack::Mode::Kernel;
    config
}

/// Rules that tell the interface in each table of OUTPUT and in POSTROUTING, with these before or after them: a table's
/// name and a rule each.
fn telling(rules: &[(&str, &str)]) -> Arc<Ruleset> {
    let of = |table: &str| {
        let own = rules.iter().filter(|(name, _)| *name == table);
        own.map(|(_, rule)| format!("-A OUTPUT -p udp {rule}\n")).collect::<String>()
    };
    let tell = |chain: &str| format!("-A {chain} -o up0\n-A {chain} -o up1\n");
    let output = tell("OUTPUT");
    ruleset(&format!(
        "*raw\n:OUTPUT ACCEPT [0:0]\n{output}{}COMMIT\n*mangle\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n{}{output}{}\
         COMMIT\n*nat\n:OUTPUT ACCEPT [0:0]\n{output}{}COMMIT\n*filter\n:OUTPUT ACCEPT [0:0]\n{output}{}COMMIT\n",
        of("raw"),
        of("mangle"),
        tell("POSTROUTING"),
        of("nat"),
        of("filter"),
    ))
}

/// The interfaces that rules of OUTPUT and of POSTROUTING certainly saw, once each; and how many may have matched.
fn interfaces_seen(rules: &Ruleset, hits: &Hits) -> (Vec<String>, Vec<String>, usize) {
    let mut seen = (Vec::new(), Vec::new(), 0);
    let rule = |at: &RuleRef| {
        let chain = &rules.tables[at.table as usize].chains[at.chain as usize];
        (&*chain.name, &chain.rules[at.rule as usize])
    };
    for (chain, rule) in hits.certain.iter().map(rule) {
        let Some(output) = rule.header.as_ref().and_then(|header| header.output()) else {
            continue;
        };
        let list = if chain == "OUTPUT" { &mut seen.0 } else { &mut seen.1 };
        if !list.contains(&output.name.to_string()) {
            list.push(output.name.to_string());
        }
    }
    let tells =
        |at: &&RuleRef| rule(at).1.header.as_ref().is_some_and(|header| header.output().is_some());
    seen.2 = hits.maybe.iter().filter(tells).count();
    seen
}

/// What the kernel (6.18, iptables-legacy 1.8.9) counted for `203.0.113.9`, port 5000.
const OWN: &[(&[(&str, &str)], &str)] = &[
    (&[], "up0"),
    (&[("raw", "-j MARK --set-mark 2")], "up0"),
    (&[("mangle", "-j MARK --set-mark 2")], "up1"),
    (&[("nat", "-j MARK --set-mark 2")], "up0"),
    (&[("filter", "-j MARK --set-mark 2")], "up0"),
    (&[("raw", "-j MARK --set-mark 2"), ("mangle", "-j TOS --set-tos 0x08")], "up1"),
    (&[("raw", "-j MARK --set-mark 2"), ("nat", "-j DNAT --to 203.0.113.10")], "up1"),
    (&[("nat", "-j DNAT --to 198.51.100.1")], "up1"),
    (&[("raw", "-j MARK --set-mark 2"), ("nat", "-j DNAT --to 203.0.113.9:99")], "up0"),
    (&[("filter", "-j MARK --set-mark 2"), ("nat", "-j DNAT --to 203.0.113.10")], "up0"),
    (&[("mangle", "-j TOS --set-tos 0x10")], "up1"),
];

#[test]
fn own_packets_see_the_first_route_in_all_of_output_and_the_second_after_it() {
    let config = of_two_uplinks();
    for (rules, second) in OWN {
        let rules = telling(rules);
        let program = Program::new([Arc::clone(&rules)], config.clone());
        let bytes = craft("192.0.2.2", "203.0.113.9", Message::udp(5, 5000)).frame();
        let mut hits = Hits::default();
        let mut evaluator = Evaluator::new(&program);
        let outcome = evaluator.handle(&mut bytes.clone(), &arrival(1, &bytes), &mut hits).outcome;
        assert_eq!(outcome.end.path, Some(Path::Output));
        let seen = interfaces_seen(&rules, &hits);
        assert_eq!(seen, (vec!["up0".into()], vec![(*second).into()], 0), "{rules:?}");
    }
}

#[test]
fn a_packet_to_the_host_itself_goes_out_once_it_is_translated() {
    let rules = telling(&[("nat", "-d 192.0.2.2 -j DNAT --to 198.51.100.7")]);
    let program = Program::new([Arc::clone(&rules)], of_two_uplinks());
    let bytes = craft("192.0.2.2", "192.0.2.2", Message::udp(5, 5000)).frame();
    let mut hits = Hits::default();
    let mut evaluator = Evaluator::new(&program);
    let outcome = evaluator.handle(&mut bytes.clone(), &arrival(1, &bytes), &mut hits).outcome;
    assert_eq!((outcome.end.path, outcome.output), (Some(Path::Output), Iface::Named("up1")));
    assert_eq!(interfaces_seen(&rules, &hits), (vec![], vec!["up1".into()], 0), "first by lo");
}

#[test]
fn a_recorded_own_packet_shows_the_interface_of_its_last_route_only() {
    let config = of_two_uplinks();
    // What is translated is recorded with its new destination, and nobody could say which one it had.
    let marked = OWN.iter().filter(|(rules, _)| rules.iter().all(|(table, _)| *table != "nat"));
    for (rules, second) in marked {
        let rules = telling(rules);
        let program = Program::new([Arc::clone(&rules)], config.clone());
        let bytes = craft("192.0.2.2", "203.0.113.9", Message::udp(5, 5000)).frame();
        let own = Arrival { origin: Origin::Host, interface: Some(second), ..arrival(1, &bytes) };
        let mut hits = Hits::default();
        Evaluator::new(&program).handle(&mut bytes.clone(), &own, &mut hits);
        let seen = interfaces_seen(&rules, &hits);
        assert_eq!(seen, (vec!["up0".into()], vec![(*second).into()], 0), "{rules:?}");
    }
    // It is bound to its interface, or has a mark of its own: no rule had it routed again.
    let rules = telling(&[("mangle", "-m mark --mark 7 -j MARK --set-mark 2")]);
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let bytes = craft("192.0.2.2", "203.0.113.9", Message::udp(5, 5000)).frame();
    let own = Arrival { origin: Origin::Host, interface: Some("up1"), ..arrival(1, &bytes) };
    let mut hits = Hits::default();
    Evaluator::new(&program).handle(&mut bytes.clone(), &own, &mut hits);
    let seen = interfaces_seen(&rules, &hits);
    assert_eq!(seen, (vec!["up1".into()], vec!["up1".into()], 0));
    // Whether one does depends on its connection.
    let rules = telling(&[("mangle", "-j CONNMARK --restore-mark")]);
    let program = Program::new([Arc::clone(&rules)], config);
    let mut hits = Hits::default();
    Evaluator::new(&program).handle(&mut bytes.clone(), &own, &mut hits);
    let (output, postrouting, maybe) = interfaces_seen(&rules, &hits);
    assert_eq!((output, postrouting, maybe), (vec![], vec!["up1".into()], 8));
}

#[test]
fn what_a_target_that_nobody_knows_makes_of_a_connection_is_not_known() {
    for chain in ["PREROUTING", "POSTROUTING"] {
        let rules = ruleset(&format!(
            "*nat\n:{chain} ACCEPT [0:0]\n-A {chain} -p udp -j SAME --to 203.0.113.2\nCOMMIT\n*filter\n:INPUT DROP [0:0]\n\
             :FORWARD ACCEPT [0:0]\n-A INPUT -p udp -m conntrack --ctstate ESTABLISHED -j ACCEPT\nCOMMIT\n"
        ));
        let program = Program::new([Arc::clone(&rules)], routed());
        let mut evaluator = Evaluator::new(&program);
        let mut verdict = |number, source: &str, destination: &str, ports: (u16, u16)| {
            let bytes = craft(source, destination, Message::udp(ports.0, ports.1)).frame();
            comes(&mut evaluator, number, bytes).end.verdict
        };
        let unknown = FinalVerdict::Unknown;
        assert_eq!(verdict(1, "10.0.0.9", "198.51.100.7", (5, 6)), unknown, "{chain}");
        assert_eq!(verdict(2, "10.0.0.9", "198.51.100.7", (5, 6)), unknown, "{chain}");
        // It may answer the source that the target gave.
        assert_eq!(verdict(3, "198.51.100.7", "203.0.113.2", (6, 5)), unknown, "{chain}");
    }
}
