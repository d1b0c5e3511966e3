//! A test's predicate says of a packet what the test says when it is asked.

use lint::{walked, walked_among};
use proptest::prelude::*;
use rules::Backend;
use rules::eval::Memories;
use rules::ipset::Sets;
use rules::model::{Family, Hook, Rule, Ruleset};
use rules::predicate::{Field, Form, Predicate, Values};
use rules::save::{LoadOptions, load};

/// Rules with tests that have a predicate, at their edges.
const V4: &[&str] = &[
    "-s 10.0.0.0/30",
    "! -s 10.0.0.0/30 -d 10.0.0.1",
    "-s 10.0.0.1/255.0.0.255",
    "-i eth0",
    "-i eth+ ! -o lo",
    "-p tcp",
    "! -p tcp",
    "-f",
    "! -f",
    "-p tcp -m tcp --sport 0:22 --dport 22",
    "-p tcp -m tcp ! --dport 22",
    "-p tcp -m tcp --syn",
    "-p tcp -m tcp ! --tcp-flags FIN,SYN SYN",
    "-p udp -m udp ! --sport 22:24 --dport 21",
    "-p udp -m multiport --dports 21,23:65535",
    "-p tcp -m multiport ! --ports 22,24",
    "-p icmp -m icmp --icmp-type 8",
    "-p icmp -m icmp ! --icmp-type 3/1",
    "-p icmp -m icmp --icmp-type any",
    "-m iprange --src-range 10.0.0.1-10.0.0.2 ! --dst-range 10.0.0.2-10.0.0.3",
    "-m state --state NEW,INVALID",
    "-m conntrack ! --ctstate RELATED,ESTABLISHED",
    "-m mac --mac-source 02:00:00:00:00:01",
    "-m mac ! --mac-source 02:00:00:00:00:01",
    "-m comment --comment x",
    "-m mark --mark 0x35/0xff",
    "-m mark ! --mark 0x1",
    "-m connmark --mark 0x2/0x3",
    "-m connmark ! --mark 0x35",
    "-m conntrack --ctstate RELATED,DNAT",
    "-m conntrack ! --ctstate SNAT",
    "-m length --length 61:62",
    "-m length ! --length 60",
    "-m ttl --ttl-eq 3",
    "-m ttl ! --ttl-eq 64",
    "-m ttl --ttl-lt 3",
    "-m ttl --ttl-gt 63",
    "-m dscp --dscp 0x2e",
    "-m tos ! --tos 0x10/0x3f",
    "-m pkttype --pkt-type multicast",
    "-m pkttype ! --pkt-type unicast",
    "-m addrtype --dst-type LOCAL",
    "-m addrtype ! --src-type LOCAL,BROADCAST",
    "-m addrtype --src-type UNICAST --dst-type BROADCAST,MULTICAST",
];

const V6: &[&str] = &[
    "-s 2001:db8::/127",
    "-p tcp -m tcp --dport 22",
    "! -p tcp",
    "-p ipv6-icmp -m icmp6 --icmpv6-type 8",
    "-m iprange --src-range 2001:db8::1-2001:db8::2",
    "-m mark ! --mark 0x35/0xf0",
    "-m length --length 101:",
    "-m hl --hl-eq 3",
    "-m hl --hl-gt 63",
    "-m dscp ! --dscp 0x2e",
    "-m addrtype --dst-type LOCAL",
    "-m addrtype --dst-type LOCAL,UNICAST",
    "-m addrtype ! --src-type ANYCAST,UNREACHABLE",
    "-m addrtype --src-type MULTICAST",
];

fn rules(family: Family, texts: &[&str]) -> Ruleset {
    let lines: Vec<String> = texts.iter().map(|text| format!("-A FORWARD {text}\n")).collect();
    let text = format!("*filter\n:FORWARD ACCEPT [0:0]\n{}COMMIT\n", lines.concat());
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    match load(&text, &options) {
        Ok(loaded) => loaded.ruleset,
        Err(error) => panic!("{error}\n{text}"),
    }
}

fn predicate(family: Family, rule: &Rule) -> Predicate {
    let header = rule.header.as_ref().map(|header| header.predicate(family).expect("a predicate"));
    let matches = rule.matches.iter().map(|used| used.body.predicate().expect("a predicate"));
    Predicate::All(header.into_iter().chain(matches).collect())
}

/// A packet with values near what the rules ask for.
fn packet(family: Family) -> impl Strategy<Value = Values> {
    let icmp: u128 = if family == Family::Ipv6 { 58 } else { 1 };
    let base: u128 = if family == Family::Ipv6 { 0x2001_0db8 << 96 } else { 10 << 24 };
    let port = || prop_oneof![20_u128..26, Just(0), Just(65_535)];
    let name = || prop_oneof![Just("eth0"), Just("eth"), Just("lo"), Just("e")];
    let numbers = (0_u128..5, 0_u128..5, port(), port());
    let small = (0_u128..256, prop_oneof![Just(8_u128), Just(3)], 0_u128..3, 1_u128..3);
    let rest = (
        prop_oneof![Just(6_u128), Just(17), Just(icmp), Just(132)],
        prop_oneof![3 => Just(Form::Whole), 1 => Just(Form::LaterFragment)],
        proptest::sample::select(conntrack::CtState::ALL.to_vec()),
        any::<bool>(),
    );
    let marks = || prop_oneof![Just(0_u128), Just(0x35), Just(1), Just(2), Just(0x135)];
    let types = || match family {
        Family::Ipv6 => prop_oneof![Just(1_u128), Just(2), Just(4), Just(7)],
        _ => prop_oneof![Just(1_u128), Just(1), Just(2), Just(3)],
    };
    let sizes = (
        prop_oneof![Just(1_u128), Just(2), Just(3), Just(4), Just(63), Just(64), Just(65)],
        prop_oneof![Just(0_u128), Just(0xb8), Just(0xba), Just(0x10), Just(0x50)],
        0_u128..4,
        0_u128..3,
    );
    let around = (marks(), marks(), 0_u128..4, types(), types());
    (numbers, small, rest, (name(), name()), sizes, around).prop_map(
        move |(numbers, small, rest, (input, output), sizes, around)| {
            let (protocol, form, state, has_mac) = rest;
            let longer = if family == Family::Ipv6 { 100 } else { 60 };
            let of_link = if has_mac { sizes.3 } else { 0 };
            // One address is of one type.
            let same = numbers.0 == numbers.1;
            let destination_type = if same { around.3 } else { around.4 };
            let mut values = Values::default();
            (values.state, values.form, values.has_mac) = (state, form, has_mac);
            (values.input, values.output) = (input.to_owned(), output.to_owned());
            values.has_flow = true;
            for (field, number) in [
                (Field::Source, base + numbers.0),
                (Field::Destination, base + numbers.1),
                (Field::SourcePort, numbers.2),
                (Field::DestinationPort, numbers.3),
                (Field::TcpFlags, small.0),
                (Field::IcmpType, small.1),
                (Field::IcmpCode, small.2),
                (Field::SourceMac, 0x0200_0000_0000 + small.3),
                (Field::Protocol, protocol),
                (Field::Ttl, sizes.0),
                (Field::Tos, sizes.1),
                (Field::Length, longer + sizes.2),
                (Field::PacketType, of_link),
                (Field::Mark, around.0),
                (Field::ConnMark, around.1),
                (Field::Translated, around.2),
                (Field::SourceType, around.3),
                (Field::DestinationType, destination_type),
            ] {
                values.set(field, number);
            }
            values
        },
    )
}

fn agrees(ruleset: &Ruleset, values: &Values) {
    let walked = walked(ruleset, 0, Hook::Forward, values).expect("a packet");
    for (index, rule) in ruleset.tables[0].chains[0].rules.iter().enumerate() {
        let is_hit = walked.hits.iter().any(|hit| hit.rule as usize == index);
        let holds = predicate(ruleset.family, rule).holds(values);
        assert_eq!(holds, is_hit, "rule {index}: {rule:?}\n{values:?}");
    }
}

/// Sets of every type that predicates know, with exceptions and prefixes within others, and a list of some.
const SETS_V4: &str = "\
create ip hash:ip family inet\nadd ip 10.0.0.1\nadd ip 10.0.0.3\n\
create ip31 hash:ip family inet netmask 31\nadd ip31 10.0.0.2\n\
create net hash:net family inet\nadd net 10.0.0.0/30\nadd net 10.0.0.1 nomatch\nadd net 10.0.0.0/31 nomatch\nadd net 10.0.0.0\n\
create ipport hash:ip,port family inet\nadd ipport 10.0.0.1,tcp:22\nadd ipport 10.0.0.2,udp:21\nadd ipport 10.0.0.2,icmp:8/0\n\
add ipport 10.0.0.1,sctp:23\nadd ipport 10.0.0.1,47:0\nadd ipport 10.0.0.2,udplite:22\n\
create ipportip hash:ip,port,ip family inet\nadd ipportip 10.0.0.1,tcp:22,10.0.0.2\nadd ipportip 10.0.0.2,icmp:3/1,10.0.0.1\n\
create ipportnet hash:ip,port,net family inet\nadd ipportnet 10.0.0.1,tcp:22,10.0.0.0/30\nadd ipportnet 10.0.0.1,tcp:22,10.0.0.2/31 nomatch\n\
create netport hash:net,port family inet\nadd netport 10.0.0.0/30,tcp:22\nadd netport 10.0.0.2/31,tcp:22 nomatch\nadd netport 10.0.0.3,tcp:22\n\
add netport 10.0.0.0/31,47:0\n\
create netnet hash:net,net family inet\nadd netnet 10.0.0.0/30,10.0.0.0/30\nadd netnet 10.0.0.2/31,10.0.0.1 nomatch\nadd netnet 10.0.0.3,10.0.0.0/31\n\
create netportnet hash:net,port,net family inet\nadd netportnet 10.0.0.0/30,tcp:22,10.0.0.0/31\nadd netportnet 10.0.0.0/31,tcp:22,10.0.0.0/31 nomatch\n\
create ipmark hash:ip,mark family inet\nadd ipmark 10.0.0.1,0x35\nadd ipmark 10.0.0.2,0x1\n\
create ipmask hash:ip,mark family inet markmask 0xff\nadd ipmask 10.0.0.1,0x35\n\
create mac hash:mac\nadd mac 02:00:00:00:00:01\n\
create ipmac hash:ip,mac family inet\nadd ipmac 10.0.0.1,02:00:00:00:00:02\n\
create bits bitmap:ip range 10.0.0.0-10.0.0.9\nadd bits 10.0.0.2\n\
create bits31 bitmap:ip range 10.0.0.0-10.0.0.9 netmask 31\nadd bits31 10.0.0.2\n\
create ports bitmap:port range 0-65535\nadd ports 22\nadd ports 65535\nadd ports 0\n\
create list list:set size 8\nadd list net\nadd list ports\nadd list ipport\n\
create other hash:ip family inet6\nadd other 2001:db8::1\n";

const SETS_V6: &str = "\
create ip hash:ip family inet6\nadd ip 2001:db8::1\nadd ip 2001:db8::3\n\
create net hash:net family inet6\nadd net 2001:db8::/126\nadd net 2001:db8::2/127 nomatch\nadd net 2001:db8::3\n\
create ipport hash:ip,port family inet6\nadd ipport 2001:db8::1,tcp:22\nadd ipport 2001:db8::2,icmpv6:8/0\nadd ipport 2001:db8::1,sctp:23\n\
add ipport 2001:db8::2,47:0\n\
create netport hash:net,port family inet6\nadd netport 2001:db8::/126,udp:22\nadd netport 2001:db8::2,udp:22 nomatch\n\
create netnet hash:net,net family inet6\nadd netnet 2001:db8::/126,2001:db8::/126\nadd netnet 2001:db8::1,2001:db8::2/127 nomatch\n\
create ipmark hash:ip,mark family inet6\nadd ipmark 2001:db8::1,0x135\n\
create ports bitmap:port range 0-65535\nadd ports 22\n\
create list list:set size 8\nadd list ports\nadd list net\n";

/// Names of sets with the ends of packets that they are looked up by.
const LOOKED_UP: &[&str] = &[
    "ip src",
    "ip dst",
    "ip31 src",
    "net src",
    "net dst --return-nomatch",
    "ipport src,src",
    "ipport src,dst",
    "ipport dst",
    "ipportip src,dst,dst",
    "ipportnet src,dst,dst",
    "ipportnet src,src,dst --return-nomatch",
    "netport src,dst",
    "netport dst,src --return-nomatch",
    "netnet src,dst",
    "netnet dst,src --return-nomatch",
    "netportnet src,dst,dst",
    "ipmark src,src",
    "ipmask dst,dst",
    "mac src",
    "ipmac src,src",
    "bits src",
    "bits31 dst",
    "ports dst",
    "ports src",
    "list src,src",
    "list dst,dst --return-nomatch",
    "other src",
];

/// Rules that ask the sets that there are, and for the contrary.
fn of_sets(family: Family, sets: &Sets) -> Ruleset {
    let known = LOOKED_UP.iter().filter(|it| {
        let name = it.split(' ').next().unwrap_or_default();
        sets.elements(name).is_some()
    });
    let texts: Vec<String> = known
        .flat_map(|it| [format!("-m set --match-set {it}"), format!("-m set ! --match-set {it}")])
        .collect();
    rules(family, &texts.iter().map(|text| &**text).collect::<Vec<_>>())
}

/// Every set that has a form says of a packet what a search says.
fn agrees_about_sets(family: Family, text: &str, values: &Values) {
    let mut sets = Sets::parse(text).expect("sets");
    let ruleset = of_sets(family, &sets);
    let predicates: Vec<Option<Predicate>> = ruleset.tables[0].chains[0]
        .rules
        .iter()
        .map(|rule| rule.matches[0].body.predicate_in(family, &sets))
        .collect();
    assert!(predicates.iter().flatten().count() >= ruleset.rule_count() - 2, "{predicates:?}");
    let mut memories = Memories::of(&ruleset);
    let place = (0, Hook::Forward);
    let walked = walked_among(&mut memories, Some(&mut sets), &ruleset, place, values);
    let walked = walked.expect("a packet");
    for (index, predicate) in predicates.iter().enumerate() {
        let Some(predicate) = predicate else { continue };
        let is_hit = walked.hits.iter().any(|hit| hit.rule as usize == index);
        let rule = &ruleset.tables[0].chains[0].rules[index];
        assert_eq!(predicate.holds(values), is_hit, "rule {index}: {rule:?}\n{values:?}");
    }
}

/// A packet that may have protocols that only sets tell apart.
fn packet_for_sets(family: Family) -> impl Strategy<Value = Values> {
    let protocols = prop_oneof![8 => Just(None), 1 => Just(Some(47)), 1 => Just(Some(136))];
    (packet(family), protocols).prop_map(|(mut values, protocol)| {
        if let Some(protocol) = protocol {
            values.set(Field::Protocol, protocol);
        }
        values
    })
}

proptest! {
    #[test]
    fn of_sets_of_ipv4(values in packet_for_sets(Family::Ipv4)) {
        agrees_about_sets(Family::Ipv4, SETS_V4, &values);
    }

    #[test]
    fn of_sets_of_ipv6(values in packet_for_sets(Family::Ipv6)) {
        agrees_about_sets(Family::Ipv6, SETS_V6, &values);
    }

    #[test]
    fn of_ipv4(values in packet(Family::Ipv4)) {
        agrees(&rules(Family::Ipv4, V4), &values);
    }

    #[test]
    fn of_ipv6(values in packet(Family::Ipv6)) {
        agrees(&rules(Family::Ipv6, V6), &values);
    }

    /// Where nf_tables reads a later fragment otherwise, predicates say nothing of it.
    #[test]
    fn under_nf_tables(values in packet(Family::Ipv4)) {
        let mut ruleset = rules(Family::Ipv4, V4);
        ruleset.evaluate_as(Backend::Nft);
        prop_assume!(values.form == Form::Whole);
        agrees(&ruleset, &values);
    }
}
