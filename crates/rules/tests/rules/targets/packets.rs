//! What targets do to a packet.

use conntrack::Side;
use host::{Host, Queues, parse_verdict};
use packet::craft::{Addresses, Craft, Message};
use packet::{Checksums, Link, Mark, Packet, Read};
use rules::eval::{Alive, Claim, Memories, Nobody, Verdict, Verdicts, walk};
use rules::model::Family::{self, Ipv4, Ipv6};
use rules::model::{Action, Hook, Ruleset};
use rules::nat::{Ports, Range, Translation, forget};
use rules::{Iface, Transit};

use super::ruleset;

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
    walked_by(rules, hook, Iface::Absent, frame, see)
}

/// Walks a packet that an interface received: see [`walked`].
fn walked_by<R>(
    rules: &Ruleset,
    hook: Hook,
    input: Iface<'_>,
    frame: &mut [u8],
    see: impl FnOnce(&Verdicts, &Transit<'_, '_>) -> R,
) -> R {
    walked_on(&Host::default(), rules, (hook, input), frame, see)
}

/// Walks a packet on a given host: see [`walked`].
fn walked_on<R>(
    host: &Host,
    rules: &Ruleset,
    (hook, input): (Hook, Iface<'_>),
    frame: &mut [u8],
    see: impl FnOnce(&Verdicts, &Transit<'_, '_>) -> R,
) -> R {
    let len = frame.len();
    let mut packet = Packet::parse(frame, len, Link::Raw, Checksums::Ignore);
    let mut transit = Transit {
        input,
        output: Iface::Absent,
        mark: Mark { value: 0x55, unknown: 0 },
        ..Transit::new(&mut packet, rules.family, hook, host)
    };
    let mut memories = Memories::of(rules);
    let verdicts = walk(rules, 0, &mut transit, Alive::Certain, &mut memories, &mut Nobody);
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
fn a_queued_packet_is_accepted_or_dropped_and_no_later_rule_gets_it() {
    for rule in ["-p udp -j QUEUE", "-p udp -j NFQUEUE --queue-bypass"] {
        let text = format!("-A FORWARD {rule}\n-A FORWARD -j REJECT");
        let rules = ruleset(Ipv4, "filter", &text).unwrap();
        walked(&rules, Hook::Forward, &mut udp(Ipv4), |verdicts, transit| {
            assert!(verdicts.may_be(Verdict::Accept) && verdicts.may_be(Verdict::Drop), "{rule}");
            assert!(!verdicts.may_be(Verdict::Reject), "{rule}");
            assert_eq!(transit.net::<1>(8), Read::Unknown);
        });
    }
}

#[test]
fn a_queued_packet_gets_the_verdict_that_is_told_of_its_queue() {
    let told = ["accept", "3=drop", "4=none", "5=unknown"].map(|text| parse_verdict(text).unwrap());
    let host = Host { queues: Queues::of(&told).unwrap(), ..Host::default() };
    for (rule, expected) in [
        ("-j QUEUE", Some(Verdict::Accept)),
        ("-j NFQUEUE --queue-num 2", Some(Verdict::Accept)),
        ("-j NFQUEUE --queue-num 3 --queue-bypass", Some(Verdict::Drop)),
        ("-j NFQUEUE --queue-num 4", Some(Verdict::Drop)),
        ("-j NFQUEUE --queue-num 4 --queue-bypass", Some(Verdict::Accept)),
        ("-j NFQUEUE --queue-num 5 --queue-bypass", None),
        // Which of several queues a packet comes to is not known.
        ("-j NFQUEUE --queue-balance 0:2", Some(Verdict::Accept)),
        ("-j NFQUEUE --queue-balance 3:4", Some(Verdict::Drop)),
        ("-j NFQUEUE --queue-balance 3:4 --queue-bypass", None),
        ("-j NFQUEUE --queue-balance 2:3 --queue-cpu-fanout", None),
    ] {
        let text = format!("-A FORWARD -p udp {rule}\n-A FORWARD -j REJECT");
        let rules = ruleset(Ipv4, "filter", &text).unwrap();
        let verdict =
            walked_on(&host, &rules, (Hook::Forward, Iface::Absent), &mut udp(Ipv4), |v, _| {
                only(v)
            });
        assert_eq!(verdict, expected, "{rule}");
    }
}

#[test]
fn an_accepted_packet_of_a_queue_in_nat_goes_without_a_translation() {
    let told = |text| Queues::of(&[parse_verdict(text).unwrap()]).unwrap();
    for (verdict, expected) in [("accept", None), ("drop", Some(Verdict::Drop)), ("none", None)] {
        let host = Host { queues: told(verdict), ..Host::default() };
        let text = "-A PREROUTING -j NFQUEUE --queue-bypass";
        let rules = ruleset(Ipv4, "nat", text).unwrap();
        let found =
            walked_on(&host, &rules, (Hook::Prerouting, Iface::Absent), &mut udp(Ipv4), |v, _| {
                only(v)
            });
        assert_eq!(found, expected, "{verdict}");
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
fn a_mapped_mark_is_unknown_without_sets() {
    let rule = "-A FORWARD -j SET --map-set s src --map-mark";
    let rules = ruleset(Ipv4, "mangle", rule).unwrap();
    let mark = walked(&rules, Hook::Forward, &mut udp(Ipv4), |_, transit| transit.mark);
    assert_eq!(mark.unknown, u32::MAX);
}

#[test]
fn the_mark_of_a_connection_s_hash_is_unknown_where_the_connection_is() {
    let rule = "-A FORWARD -j HMARK --hmark-tuple ct,src --hmark-mod 9 --hmark-rnd 1";
    let rules = ruleset(Ipv4, "mangle", rule).unwrap();
    let mark = walked(&rules, Hook::Forward, &mut udp(Ipv4), |_, transit| transit.mark);
    assert_eq!(mark.unknown, u32::MAX);
}

/// What the rule that translates the packet's flow makes of it.
fn translation(rules: &Ruleset, hook: Hook, frame: &mut [u8]) -> Option<Translation> {
    walked(rules, hook, frame, |verdicts, transit| {
        assert_eq!(only(verdicts), Some(Verdict::Accept));
        let Claim::By(at) = verdicts.translated_by() else { return None };
        let rule = &rules.tables[0].chains[at.chain as usize].rules[at.rule as usize];
        let Action::Target(target) = &rule.action else { return None };
        target.body.translation(transit)
    })
}

#[test]
fn nat_targets_leave_the_packet_and_say_what_they_make_of_its_flow() {
    let text = "-A PREROUTING -p udp -j DNAT --to-destination 10.0.0.9:7-8";
    let rules = ruleset(Ipv4, "nat", text).unwrap();
    let to = Translation::to(
        Side::Destination,
        Range {
            ports: Some(Ports { first: 7, last: 8, base: None }),
            ..Range::address([10, 0, 0, 9].into())
        },
    );
    let mut frame = udp(Ipv4);
    assert_eq!(translation(&rules, Hook::Prerouting, &mut frame), Some(to));
    assert_eq!(frame, udp(Ipv4));
}

#[test]
fn an_interface_without_an_address_leaves_the_translation_vague() {
    let rules = ruleset(Ipv6, "nat", "-A POSTROUTING -j MASQUERADE").unwrap();
    let made = translation(&rules, Hook::Postrouting, &mut udp(Ipv6));
    assert_eq!(made, Some(Translation::somewhere(Side::Source, Range::default())));
    let rules = ruleset(Ipv4, "nat", "-A PREROUTING -j REDIRECT").unwrap();
    let made = translation(&rules, Hook::Prerouting, &mut udp(Ipv4));
    let somewhere = Translation::somewhere(Side::Destination, Range::default());
    assert_eq!(made, Some(Translation { redirects: true, ..somewhere }));
}

#[test]
fn netmap_takes_its_side_from_the_hook() {
    let text =
        "-A PREROUTING -j NETMAP --to 10.9.0.0/16\n-A POSTROUTING -j NETMAP --to 10.9.0.0/16";
    let rules = ruleset(Ipv4, "nat", text).unwrap();
    let to = |side, last| Some(Translation::to(side, Range::address([10, 9, 0, last].into())));
    let made = |hook| translation(&rules, hook, &mut udp(Ipv4));
    assert_eq!(made(Hook::Prerouting), to(Side::Destination, 2));
    assert_eq!(made(Hook::Postrouting), to(Side::Source, 1));
}

#[test]
fn of_rules_that_may_translate_none_is_named() {
    let unclear = "-A PREROUTING -i eth0 -p udp -j DNAT --to-destination 10.0.0.9:7";
    let clear = "-A PREROUTING -d 10.0.0.2 -j REDIRECT";
    let claim = |text: &str| {
        let rules = ruleset(Ipv4, "nat", text).unwrap();
        walked_by(&rules, Hook::Prerouting, Iface::Unknown, &mut udp(Ipv4), |verdicts, _| {
            verdicts.translated_by()
        })
    };
    let open = |draws, redirects| Claim::Open { draws, redirects, moves_source: false };
    assert_eq!(claim("-A PREROUTING -d 10.0.0.3 -j REDIRECT"), Claim::None);
    assert!(matches!(claim(clear), Claim::By(_)));
    assert_eq!(claim(unclear), open(true, false));
    // Such a packet comes to the second rule as it was.
    assert_eq!(claim(&format!("{unclear}\n{clear}")), open(true, true));
    assert!(matches!(claim(&format!("{clear}\n{unclear}")), Claim::By(_)));
}

#[test]
fn what_a_translation_may_change_is_forgotten() {
    let forgotten = |family, frame: &mut [u8], side, places: &[usize]| -> Vec<bool> {
        let len = frame.len();
        let mut packet = Packet::parse(frame, len, Link::Raw, Checksums::Ignore);
        let host = Host::default();
        let mut transit = Transit::new(&mut packet, family, Hook::Prerouting, &host);
        forget(&mut transit, side);
        places.iter().map(|place| transit.net::<1>(*place) == Read::Unknown).collect()
    };
    // Checksum, addresses, ports, length and checksum of UDP.
    let places = [10, 12, 16, 20, 22, 24, 26];
    let destination = [true, false, true, false, true, false, true];
    assert_eq!(forgotten(Ipv4, &mut udp(Ipv4), Side::Destination, &places), destination);
    let places = [8, 24, 40, 42];
    let source = [true, false, true, false];
    assert_eq!(forgotten(Ipv6, &mut udp(Ipv6), Side::Source, &places), source);
    // An echo keeps its payload, but an error quotes a packet.
    let icmp = |kind| {
        let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
        let message = Message::Icmp { kind, code: 0, id: 7, sequence: 1 };
        let mut craft = Craft::new(addresses, message);
        craft.ethernet = None;
        craft.payload_len = 32;
        craft.frame()
    };
    let places = [20, 24, 30];
    assert_eq!(forgotten(Ipv4, &mut icmp(8), Side::Source, &places), [false, true, false]);
    assert_eq!(forgotten(Ipv4, &mut icmp(3), Side::Source, &places), [false, true, true]);
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
        ..Transit::new(&mut packet, Ipv6, Hook::Postrouting, &host)
    };
    walk(&rules, 0, &mut transit, Alive::Certain, &mut Memories::of(&rules), &mut Nobody);
    assert_eq!(transit.net::<2>(8), Read::Unknown);
    assert_eq!(transit.net(24), Read::Known(v6("2001:db8::9")));
}
