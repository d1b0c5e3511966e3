//! What targets do to a packet.

use host::Host;
use packet::craft::{Addresses, Craft, Message};
use packet::{Checksums, Link, Mark, Packet, Read};
use rules::eval::{Alive, Memories, Observer, Verdict, Verdicts, walk};
use rules::model::Family::{self, Ipv4, Ipv6};
use rules::model::{Hook, Ruleset};
use rules::{Backend, Iface, Transit};

use super::ruleset;

struct Silent;

impl Observer for Silent {}

fn udp(family: Family) -> Vec<u8> {
    let addresses = match family {
        Ipv6 => Addresses::V6 { source: v6("fd00:1::2"), destination: v6("2001:db8::9") },
        _ => Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] },
    };
    let message = Message::Udp { source_port: 1000, destination_port: 53 };
    let mut craft = Craft::new(addresses, message);
    craft.ethernet = None;
    craft.frame()
}

fn v6(text: &str) -> [u8; 16] {
    text.parse::<std::net::Ipv6Addr>().expect("an address").octets()
}

/// Walks one packet with mark 0x55 through the chain at `hook` and lets `see` look at it afterwards.
fn walked<R>(
    rules: &Ruleset,
    hook: Hook,
    frame: &mut [u8],
    see: impl FnOnce(&Verdicts, &Transit<'_, '_>) -> R,
) -> R {
    let len = frame.len();
    let mut packet = Packet::parse(frame, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let mut transit = Transit {
        input: Iface::Absent,
        output: Iface::Absent,
        mark: Mark { value: 0x55, unknown: 0 },
        backend: Backend::Legacy,
        ..Transit::new(&mut packet, rules.family, hook, &host)
    };
    let mut memories = Memories::of(rules);
    let verdicts = walk(rules, 0, &mut transit, Alive::Certain, &mut memories, &mut Silent);
    see(&verdicts, &transit)
}

fn only(verdicts: &Verdicts) -> Option<Verdict> {
    verdicts.only().map(|(verdict, _)| verdict)
}

#[test]
fn targets_that_watch_go_on_to_the_next_rule() {
    for rule in [
        "-j AUDIT --type drop",
        "-j IDLETIMER --timeout 1 --label x",
        "-j TEE --gateway 10.0.0.9",
        "-j CLASSIFY --set-class 1:1",
        "-j CONNMARK --save-mark",
        "-j SET --add-set s src",
    ] {
        let text = format!("-A FORWARD {rule}\n-A FORWARD -p udp -m mark --mark 0x55 -j DROP");
        let rules = ruleset(Ipv4, "mangle", &text).unwrap();
        let verdict = walked(&rules, Hook::Forward, &mut udp(Ipv4), |v, _| only(v));
        assert_eq!(verdict, Some(Verdict::Drop), "{rule}");
    }
}

#[test]
fn a_queued_packet_may_get_any_verdict() {
    for rule in ["-p udp -j QUEUE", "-p udp -j NFQUEUE --queue-bypass"] {
        let rules = ruleset(Ipv4, "filter", &format!("-A FORWARD {rule}")).unwrap();
        walked(&rules, Hook::Forward, &mut udp(Ipv4), |verdicts, transit| {
            assert!(verdicts.may_be(Verdict::Accept) && verdicts.may_be(Verdict::Drop), "{rule}");
            assert_eq!(transit.net::<1>(8), Read::Unknown);
        });
    }
}

#[test]
fn restoring_a_mark_makes_only_the_masked_bits_unknown() {
    let rule = "-A FORWARD -j CONNMARK --restore-mark --nfmask 0xf0 --ctmask 0x0f";
    let rules = ruleset(Ipv4, "mangle", rule).unwrap();
    let mark = walked(&rules, Hook::Forward, &mut udp(Ipv4), |_, transit| transit.mark);
    // 0x50 may be cleared, 0x0f may be flipped, 0xa0 stays 0.
    assert_eq!(mark, Mark { value: 0, unknown: 0x5f });
}

#[test]
fn a_hashed_or_mapped_mark_is_unknown() {
    for rule in [
        "-j HMARK --hmark-tuple src --hmark-mod 9 --hmark-rnd 1",
        "-j SET --map-set s src --map-mark",
    ] {
        let rules = ruleset(Ipv4, "mangle", &format!("-A FORWARD {rule}")).unwrap();
        let mark = walked(&rules, Hook::Forward, &mut udp(Ipv4), |_, transit| transit.mark);
        assert_eq!(mark.unknown, u32::MAX, "{rule}");
    }
}

#[test]
fn destination_nat_accepts_and_hides_destination_port_and_checksums() {
    let rules = ruleset(Ipv4, "nat", "-A PREROUTING -j DNAT --to-destination 10.0.0.9").unwrap();
    walked(&rules, Hook::Prerouting, &mut udp(Ipv4), |verdicts, transit| {
        assert_eq!(only(verdicts), Some(Verdict::Accept));
        assert_eq!(transit.net(12), Read::Known([10, 0, 0, 1]), "source");
        assert_eq!(transit.net::<1>(16), Read::Unknown, "destination");
        assert_eq!(transit.net::<1>(11), Read::Unknown, "header checksum");
        assert_eq!(transit.net(20), Read::Known(1000_u16.to_be_bytes()), "source port");
        assert_eq!(transit.net::<2>(22), Read::Unknown, "destination port");
        assert_eq!(transit.net(24), Read::Known(8_u16.to_be_bytes()), "length");
        assert_eq!(transit.net::<2>(26), Read::Unknown, "checksum");
    });
}

#[test]
fn source_nat_hides_the_source() {
    let rules = ruleset(Ipv6, "nat", "-A POSTROUTING -j MASQUERADE").unwrap();
    walked(&rules, Hook::Postrouting, &mut udp(Ipv6), |_, transit| {
        assert_eq!(transit.net::<16>(8), Read::Unknown);
        assert_eq!(transit.net(24), Read::Known(v6("2001:db8::9")));
        assert_eq!(transit.net::<2>(40), Read::Unknown);
        assert_eq!(transit.net(42), Read::Known(53_u16.to_be_bytes()));
    });
}

#[test]
fn netmap_takes_its_side_from_the_hook() {
    let text =
        "-A PREROUTING -j NETMAP --to 10.9.0.0/16\n-A POSTROUTING -j NETMAP --to 10.9.0.0/16";
    let rules = ruleset(Ipv4, "nat", text).unwrap();
    let unknown = |hook| {
        walked(&rules, hook, &mut udp(Ipv4), |_, transit| {
            [12, 16].map(|offset| transit.net::<4>(offset) == Read::Unknown)
        })
    };
    assert_eq!(unknown(Hook::Prerouting), [false, true]);
    assert_eq!(unknown(Hook::Postrouting), [true, false]);
}

#[test]
fn an_echo_keeps_its_payload_but_an_error_may_not() {
    let icmp = |kind| {
        let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
        let message = Message::Icmp { kind, code: 0, id: 7, sequence: 1 };
        let mut craft = Craft::new(addresses, message);
        craft.ethernet = None;
        craft.payload_len = 32;
        craft.frame()
    };
    let rules = ruleset(Ipv4, "nat", "-A POSTROUTING -j MASQUERADE").unwrap();
    let reads = |kind| {
        walked(&rules, Hook::Postrouting, &mut icmp(kind), |_, transit| {
            [20, 24, 30].map(|offset| transit.net::<1>(offset) == Read::Unknown)
        })
    };
    assert_eq!(reads(8), [false, true, false]);
    assert_eq!(reads(3), [false, true, true]);
}

#[test]
fn a_prefix_is_translated_in_place_and_checksums_still_hold() {
    let rule = "-A POSTROUTING -j SNPT --src-pfx fd00:1::/48 --dst-pfx 2001:db8:7::/48";
    let rules = ruleset(Ipv6, "mangle", rule).unwrap();
    let mut frame = udp(Ipv6);
    let before = packet::checksum::sum(&frame[8..40]);
    let verdict = walked(&rules, Hook::Postrouting, &mut frame, |v, _| only(v));
    assert_eq!(verdict, Some(Verdict::Accept));
    assert_eq!(frame[8..14], v6("2001:db8:7::")[..6]);
    assert_eq!(packet::checksum::sum(&frame[8..40]), before);
}

#[test]
fn a_translation_that_is_not_certain_makes_the_address_unknown() {
    let rule = "-A POSTROUTING -o eth0 -j SNPT --src-pfx fd00:1::/48 --dst-pfx 2001:db8:7::/48";
    let rules = ruleset(Ipv6, "mangle", rule).unwrap();
    let mut frame = udp(Ipv6);
    let len = frame.len();
    let mut packet = Packet::parse(&mut frame, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let mut transit = Transit {
        input: Iface::Absent,
        backend: Backend::Legacy,
        ..Transit::new(&mut packet, Ipv6, Hook::Postrouting, &host)
    };
    walk(&rules, 0, &mut transit, Alive::Certain, &mut Memories::of(&rules), &mut Silent);
    assert_eq!(transit.net::<2>(8), Read::Unknown);
    assert_eq!(transit.net(24), Read::Known(v6("2001:db8::9")));
}
