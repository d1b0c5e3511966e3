//! A rule's tests one by one, each with its text and its answer.

use host::Host;
use packet::craft::{Addresses, Craft, Message};
use packet::{Checksums, Link, Packet};
use rules::eval::{tests_of, tests_of_text};
use rules::model::{Family, Hook, Rule};
use rules::save::{LoadOptions, load};
use rules::{Iface, Outcome, Transit};

/// The first rule of FORWARD.
fn rule(family: Family, text: &str) -> Rule {
    let text = format!("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD {text} -j DROP\nCOMMIT\n");
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    let rules = load(&text, &options).unwrap().ruleset;
    Rule::clone(&rules.tables[0].chains[0].rules[0])
}

/// What each test says of a datagram from 10.0.0.1 that came in on eth0.
fn answers(family: Family, rule: &Rule) -> Vec<(String, Option<Outcome>)> {
    let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
    let mut bytes = Craft::new(addresses, Message::udp(1, 2)).frame();
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Ethernet, Checksums::Ignore);
    let host = Host { bridge: Some("br0".to_owned()), ..Host::default() };
    let base = Transit::new(&mut packet, family, Hook::Forward, &host);
    let transit = Transit { input: Iface::Named("eth0"), ..base };
    let tests = tests_of(family, rule, &transit);
    assert_eq!(
        tests.iter().map(|test| test.text.clone()).collect::<Vec<_>>(),
        tests_of_text(family, rule)
    );
    tests.into_iter().map(|test| (test.text, test.outcome)).collect()
}

fn expected(tests: &[(&str, Option<Outcome>)]) -> Vec<(String, Option<Outcome>)> {
    tests.iter().map(|(text, outcome)| ((*text).to_owned(), *outcome)).collect()
}

const YES: Option<Outcome> = Some(Outcome::YES);
const NO: Option<Outcome> = Some(Outcome::NO);
const MAYBE: Option<Outcome> = Some(Outcome::MAYBE);

#[test]
fn each_test_of_a_rule_has_its_words_and_its_answer() {
    let text = "-s 10.0.0.1/32 -d 10.0.0.9/32 -i eth0 -o eth1 -p udp -f \
                -m limit --limit 1/hour -m mark --mark 0x0";
    let tests = [
        ("-s 10.0.0.1/32", YES),
        ("-d 10.0.0.9/32", NO),
        ("-i eth0", YES),
        ("-o eth1", MAYBE),
        ("-p udp", YES),
        ("-f", NO),
        ("-m limit --limit 1/hour", None),
        ("-m mark --mark 0x0", YES),
    ];
    let rule = rule(Family::Ipv4, text);
    assert_eq!(answers(Family::Ipv4, &rule), expected(&tests));
}

#[test]
fn bridges_and_single_fields_are_tests_of_their_own() {
    let rule = rule(
        Family::Bridge,
        "-p IPv4 -i eth0 -o eth1 --logical-in br0 --logical-out br1 -s 02:00:00:00:00:09",
    );
    let found = answers(Family::Bridge, &rule);
    let said = |start: &str| {
        let test = found.iter().find(|(text, _)| text.starts_with(start));
        test.unwrap_or_else(|| panic!("{start}: {found:?}")).1
    };
    assert_eq!(found.len(), 6, "{found:?}");
    assert_eq!(["-s", "-i", "-o", "-p"].map(said), [NO, YES, MAYBE, YES]);
    assert_eq!(["--logical-in", "--logical-out"].map(said), [YES, NO]);
}

/// Both halves of an address count.
#[test]
fn addresses_of_ipv6_are_told_apart_to_the_last_bit() {
    let addresses = Addresses::V6 {
        source: [0x20, 1, 0xd, 0xb8, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1],
        destination: [0x20, 1, 0xd, 0xb8, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2],
    };
    let mut bytes = Craft { ethernet: None, ..Craft::new(addresses, Message::udp(1, 2)) }.frame();
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let transit = Transit::new(&mut packet, Family::Ipv6, Hook::Forward, &host);
    for (text, expected) in [
        ("-s 2001:db8:0:7::1/128 -d 2001:db8:0:7::2/128", [YES, YES]),
        ("-s 2001:db8:0:7::2/128 -d 2001:db8:0:7::3/128", [NO, NO]),
        ("-s 2001:db8:0:6::1/128 -d 2001:db8:0:3::2/128", [NO, NO]),
        ("-s 2001:db8:0:7::/64 ! -d 2001:db8:0:7::/127", [YES, YES]),
        ("! -s 2001:db8:0:7::/127 -d 2001:db8:0:7::/126", [NO, YES]),
    ] {
        let rule = rule(Family::Ipv6, text);
        let found = tests_of(Family::Ipv6, &rule, &transit);
        let found: Vec<_> = found.iter().map(|test| test.outcome).collect();
        assert_eq!(found, expected, "{text}");
    }
}
