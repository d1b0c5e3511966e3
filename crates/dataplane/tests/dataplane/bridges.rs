//! What bridges pass on, and what they hand to rules.

use std::sync::Arc;

use dataplane::{Arrival, Config, DropReason, Evaluator, FinalVerdict, Origin, Program};
use host::routes::Routes;
use host::{Addresses as Assigned, Host, Links, Refused};
use packet::craft::Message;
use rules::eval::RuleRef;

use crate::ways::{Hits, arrival, craft, ruleset};

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
    let none = "sysctl: cannot stat /proc/sys/net/bridge: No such file or directory\na = 1\n";
    assert_eq!(crosses(none, "10.0.0.77", seen), (vec![], vec![], "skip"));

    // Where nothing says whether they do, rules may have seen it.
    let (certain, maybe, verdict) = crosses("net.ipv4.ip_forward = 0\n", "10.0.0.77", seen);
    assert_eq!((certain, verdict), (vec![], "accept"));
    assert!([(0, 0), (1, 0), (1, 1), (1, 2)].iter().all(|rule| maybe.contains(rule)), "{maybe:?}");
}

/// A host with a bridge of two ports, whose hairpin and bridge-nf-call-iptables are given.
fn with_bridge(hairpins: [&str; 2], nf_call: u8) -> Config {
    let port = |(index, hairpin): (usize, &&str)| {
        let number = index + 3;
        format!(
            "{number}: v{index}@if2: <BROADCAST,UP> mtu 1500 master br0\\    link/ether 02:00:00:00:00:0{number} brd \
             ff:ff:ff:ff:ff:ff \\    veth \\    bridge_slave state forwarding {hairpin} guard off\n"
        )
    };
    let ports: String = hairpins.iter().enumerate().map(port).collect();
    let links = format!(
        "2: br0: <BROADCAST,UP> mtu 1500\\    link/ether 02:00:00:00:01:01 brd ff:ff:ff:ff:ff:ff \\    bridge forward_delay 1500\n{ports}"
    );
    let routes = "172.17.0.0/16 dev br0 proto kernel scope link src 172.17.0.1
local 172.17.0.1 dev br0 table local proto kernel scope host src 172.17.0.1
local 198.51.100.1 dev lo table local proto kernel scope host src 198.51.100.1
";
    let sysctl = format!(
        "net.ipv4.ip_forward = 1\nnet.ipv4.conf.all.forwarding = 1\nnet.ipv4.conf.br0.forwarding = 1\n\
         net.ipv4.conf.all.rp_filter = 0\nnet.ipv4.conf.br0.rp_filter = 0\nnet.bridge.bridge-nf-call-iptables = {nf_call}\n"
    );
    let assigned = "1: lo    inet 198.51.100.1/32 scope global lo\n2: br0    inet 172.17.0.1/16 scope global br0\n";
    Config {
        host: Host {
            routes: Some(Routes::parse(routes).expect("routes")),
            links: Links::parse(&links).expect("links"),
            assigned: Some(Assigned::parse(assigned).expect("addresses")),
            sysctl: Some(host::Sysctl::parse(&sysctl).expect("settings")),
            ..Host::default()
        },
        ..Config::default()
    }
}

/// Certain hits of the rules that a published port meets when its server asks for it, three times: DNAT, FORWARD, FORWARD of
/// what the bridge passes on itself, FORWARD with the time to live lowered, POSTROUTING of nat; and the last verdict.
fn comes_back(config: &Config, server: &str) -> ([usize; 5], FinalVerdict) {
    let rules = ruleset(&format!(
        "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
         -A PREROUTING -d 198.51.100.1/32 -p udp -m udp --dport 8080 -j DNAT --to-destination {server}:80\n\
         -A POSTROUTING -p udp\nCOMMIT\n*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -i br0 -o br0\n\
         -A FORWARD -m physdev --physdev-is-bridged\n-A FORWARD -m ttl --ttl-eq 63\nCOMMIT\n"
    ));
    let mut config = config.clone();
    config.ct.mode = conntrack::Mode::Kernel;
    let program = Program::new([Arc::clone(&rules)], config);
    let mut evaluator = Evaluator::new(&program);
    let mut hits = Hits::default();
    let mut verdict = None;
    for number in 1..=3 {
        let mut bytes = craft("172.17.0.2", "198.51.100.1", Message::udp(4000, 8080)).frame();
        let given = Arrival { interface: Some("br0"), ..arrival(number, &bytes) };
        verdict = Some(evaluator.handle(&mut bytes, &given, &mut hits).outcome.end.verdict);
    }
    let of = |table, chain, rule| {
        let at = RuleRef { table, chain, rule };
        hits.certain.iter().filter(|hit| **hit == at).count()
    };
    let counted = [of(0, 0, 0), of(1, 0, 0), of(1, 0, 1), of(1, 0, 2), of(0, 1, 0)];
    (counted, verdict.expect("three packets"))
}

/// Counters of Linux 6.18 with iptables-legacy 1.8.9.
#[test]
fn a_bridge_sends_what_is_translated_back_to_its_sender_only_by_a_hairpin() {
    let (on, off) = ("hairpin on", "hairpin off");
    let refused = FinalVerdict::Drop(DropReason::Route(Refused::Hairpin));
    let accepted = |(counted, verdict)| {
        assert!(matches!(verdict, FinalVerdict::Accept(_)), "{verdict:?}");
        counted
    };
    let back = "172.17.0.2";
    // Never confirmed, so that each packet asks nat again.
    assert_eq!(comes_back(&with_bridge([off, off], 1), back), ([3, 0, 0, 0, 0], refused));
    // The bridge passes it on: its time to live stays.
    assert_eq!(accepted(comes_back(&with_bridge([on, on], 1), back)), [1, 3, 3, 0, 1]);
    // It is routed.
    assert_eq!(accepted(comes_back(&with_bridge([off, off], 0), back)), [1, 3, 0, 3, 1]);
    // To another one.
    assert_eq!(accepted(comes_back(&with_bridge([off, off], 1), "172.17.0.3")), [1, 3, 3, 0, 1]);
    assert_eq!(accepted(comes_back(&with_bridge([off, off], 0), "172.17.0.3")), [1, 3, 0, 3, 1]);
    // The port of arrival is not known, or not whether it is a hairpin.
    for ports in [[on, off], ["", ""]] {
        let (counted, verdict) = comes_back(&with_bridge(ports, 1), back);
        assert_eq!((counted[4], verdict), (0, FinalVerdict::Unknown));
    }
}
