//! Legacy xtables and nf_tables on upper layers that are cut, fragmented or after an authentication
//! header. Each row was measured: the packet sent to raw PREROUTING of Linux 6.18 under
//! iptables-legacy and iptables-nft 1.8.9, and the counters read back.

use host::Host;
use packet::{Checksums, Link, Packet};
use rules::eval::{Alive, Memories, Observer, RuleRef, walk};
use rules::model::{Family, Hook};
use rules::save::{LoadOptions, load};
use rules::{Backend, Iface, Outcome, Transit};

const TCP: [u8; 20] = [3, 232, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 100, 0, 0, 0, 0];
const UDP: [u8; 8] = [3, 232, 0, 80, 0, 8, 0, 0];
const AH: [u8; 24] = [6, 4, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// An IPv4 packet; `fragment` in 8-byte units.
fn v4(protocol: u8, payload: &[u8], fragment: u8) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 20 + payload.len() as u8, 0, 1, 0, fragment, 64, protocol];
    bytes.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(payload);
    bytes
}

/// An IPv6 packet with a flow label whose low bits are `flow`.
fn v6(next: u8, flow: u8, payload: &[&[u8]]) -> Vec<u8> {
    let payload = payload.concat();
    let mut bytes = vec![0x60, 0, 0, flow, 0, payload.len() as u8, next, 64];
    for host in [1, 2] {
        bytes.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    bytes.extend(payload);
    bytes
}

#[derive(Default)]
struct Seen(Option<Outcome>);

impl Observer for Seen {
    fn rule(&mut self, _: RuleRef, outcome: Outcome, _: Alive, _: &Transit<'_, '_>) {
        self.0 = Some(outcome);
    }
}

/// What a rule with these tests says about a packet.
fn outcome(family: Family, tests: &str, backend: Backend, bytes: &[u8]) -> Outcome {
    let text = format!("*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING {tests}\nCOMMIT\n");
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    let mut ruleset = load(&text, &options).unwrap().ruleset;
    ruleset.evaluate_as(backend);
    let mut bytes = bytes.to_vec();
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let mut transit = Transit {
        input: Iface::Named("eth0"),
        output: Iface::Absent,
        ..Transit::new(&mut packet, family, Hook::Prerouting, &host)
    };
    let mut seen = Seen::default();
    walk(&ruleset, 0, &mut transit, Alive::Certain, &mut Memories::of(&ruleset), &mut seen);
    seen.0.unwrap()
}

const YES: Outcome = Outcome::YES;
const NO: Outcome = Outcome::NO;
const HOT: Outcome = Outcome::HOT_DROP;

/// For each packet, what both backends answer.
fn check(family: Family, tests: &str, rows: &[(&str, &[u8], Outcome, Outcome)]) {
    for (name, bytes, legacy, nft) in rows {
        let said =
            [Backend::Legacy, Backend::Nft].map(|backend| outcome(family, tests, backend, bytes));
        assert_eq!(said, [*legacy, *nft], "{tests} on {name}: legacy, nft");
    }
}

#[test]
fn a_native_field_that_is_there_decides_and_one_that_is_not_does_not_match() {
    let [whole, cut14, cut13, cut4, cut3, none] =
        [20, 14, 13, 4, 3, 0].map(|len| v4(6, &TCP[..len], 0));
    let later = v4(6, &TCP, 2);
    let first_bytes = v4(6, &TCP, 1);
    check(
        Family::Ipv4,
        "-p tcp --dport 80",
        &[
            ("20 bytes", &whole, YES, YES),
            ("4 bytes", &cut4, HOT, YES),
            ("3 bytes", &cut3, HOT, NO),
            ("0 bytes", &none, HOT, NO),
            ("fragment at 8", &first_bytes, HOT, YES),
            ("fragment at 16", &later, NO, YES),
        ],
    );
    check(
        Family::Ipv4,
        "-p tcp --syn --dport 80",
        &[
            ("14 bytes", &cut14, HOT, YES),
            ("13 bytes", &cut13, HOT, NO),
            ("fragment at 16", &later, NO, YES),
        ],
    );
    check(
        Family::Ipv4,
        "-p tcp ! --dport 81",
        &[("4 bytes", &cut4, HOT, YES), ("0", &none, HOT, NO)],
    );
}

#[test]
fn what_stays_an_xtables_match_hot_drops_under_both() {
    let [cut8, none] = [8, 0].map(|len| v4(6, &TCP[..len], 0));
    for tests in ["-p tcp -m tcp", "-p tcp --tcp-option 5", "-p tcp --dport 0:65535"] {
        check(Family::Ipv4, tests, &[("8 bytes", &cut8, HOT, HOT), ("0 bytes", &none, HOT, HOT)]);
    }
    let option = "-p tcp --tcp-option 5 --dport 80";
    check(Family::Ipv4, option, &[("8 bytes", &cut8, HOT, HOT)]);
    let multiport = "-p tcp -m multiport --dports 80";
    check(Family::Ipv4, multiport, &[("8", &cut8, YES, YES), ("0", &none, HOT, HOT)]);
    check(Family::Ipv4, "-p udp -m udp", &[("4 bytes", &v4(17, &UDP[..4], 0), HOT, HOT)]);
    let udp = "-p udp --dport 80";
    let rows = [("4", v4(17, &UDP[..4], 0), YES), ("2", v4(17, &UDP[..2], 0), NO)];
    for (name, bytes, nft) in rows {
        check(Family::Ipv4, udp, &[(name, &bytes, HOT, nft)]);
    }
}

#[test]
fn a_test_that_every_packet_passes_is_left_out_even_when_inverted() {
    let whole = v4(6, &TCP, 0);
    for tests in ["-p tcp ! --dport 0:65535", "-p tcp ! --tcp-flags NONE NONE"] {
        check(Family::Ipv4, tests, &[("20 bytes", &whole, NO, YES)]);
    }
}

#[test]
fn two_inverted_ports_are_unknown_where_versions_differ() {
    let one_equal = v4(6, &TCP, 0);
    let tests = "-p tcp ! --sport 1 ! --dport 80";
    check(Family::Ipv4, tests, &[("dport 80", &one_equal, NO, Outcome::MAYBE)]);
    let tests = "-p tcp ! --sport 1000 ! --dport 80";
    check(Family::Ipv4, tests, &[("both equal", &one_equal, NO, NO)]);
}

#[test]
fn nf_tables_stops_at_an_authentication_header() {
    let packet = v6(51, 0, &[&AH, &TCP]);
    check(Family::Ipv6, "-p tcp", &[("ah", &packet, YES, NO)]);
    check(Family::Ipv6, "! -p tcp", &[("ah", &packet, NO, YES)]);
    check(Family::Ipv6, "-p ah", &[("ah", &packet, NO, YES)]);
    check(Family::Ipv6, "-p tcp --dport 80", &[("ah", &packet, YES, NO)]);
}

#[test]
fn a_broken_chain_is_a_hot_drop_or_no_match_even_inverted() {
    let cut = v6(60, 0, &[&[6]]);
    for tests in ["-p tcp", "! -p tcp"] {
        check(Family::Ipv6, tests, &[("chain cut", &cut, HOT, NO)]);
    }
}

#[test]
fn a_later_fragment_of_ipv6_is_read_at_its_ipv6_header() {
    let packet = v6(44, 80, &[&[6, 0, 0, 8, 0, 0, 0, 1], &TCP]);
    let rows = |nft| [("fragment", &*packet, NO, nft)];
    check(Family::Ipv6, "-p tcp --dport 80", &rows(YES));
    check(Family::Ipv6, "-p tcp --sport 24576", &rows(YES));
    check(Family::Ipv6, "-p tcp --sport 80", &rows(NO));
    check(Family::Ipv6, "-p tcp -m tcp", &rows(NO));
}
