//! What does not depend on the hash itself, which the kernel tells (`make oracle`).

use crate::ext::kit::probe::{Frame, ipv4, ipv6};
use crate::outcome::Outcome;

/// Ports 1000 and 53, and a rest of 4 bytes.
const UDP: [u8; 8] = [0x03, 0xe8, 0, 53, 0, 8, 0, 0];
/// The packet in the other direction.
const BACK: [u8; 8] = [0, 53, 0x03, 0xe8, 0, 8, 0, 0];
const ALL: &str = "--hmark-tuple src,dst,sport,dport,proto --hmark-mod 0xffffffff --hmark-rnd 7";

/// What `-m mark --mark` says after the rule.
fn marked(bytes: &[u8], options: &str, mark: u32) -> Outcome {
    let rule = format!("-j HMARK {options}");
    Frame::ip(bytes).apply(&rule, &format!("-m mark --mark {mark}")).2
}

/// The mark, which is certain.
fn mark(bytes: &[u8], options: &str) -> u32 {
    let bit = |bit: u32| {
        let asked = format!("-m mark --mark {}/{}", 1_u32 << bit, 1_u32 << bit);
        let (.., outcome) = Frame::ip(bytes).apply(&format!("-j HMARK {options}"), &asked);
        assert!(outcome.is_known(), "{options}");
        u32::from(outcome == Outcome::YES) << bit
    };
    (0..32).map(bit).sum()
}

fn turned(mut bytes: Vec<u8>) -> Vec<u8> {
    let (a, b) = bytes[12..20].split_at_mut(4);
    a.swap_with_slice(b);
    bytes
}

#[test]
fn both_ways_of_a_flow_have_one_mark() {
    let (there, back) = (ipv4(17, &UDP), turned(ipv4(17, &BACK)));
    assert_eq!(mark(&there, ALL), mark(&back, ALL));
    let one_sided = "--hmark-tuple src --hmark-mod 0xffffffff --hmark-rnd 7";
    assert_ne!(mark(&there, one_sided), mark(&back, one_sided));
}

#[test]
fn a_modulus_and_an_offset_give_a_range() {
    for port in 0..200 {
        let mut udp = UDP;
        udp[1] = port;
        let mark = mark(
            &ipv4(17, &udp),
            "--hmark-tuple sport --hmark-mod 10 --hmark-offset 100 --hmark-rnd 1",
        );
        assert!((100..110).contains(&mark), "{mark}");
    }
    assert_eq!(mark(&ipv4(17, &UDP), &ALL.replace("0xffffffff", "1")), 0);
}

#[test]
fn fragments_and_icmp_have_no_ports() {
    let without = "--hmark-tuple src,dst,proto --hmark-mod 0xffffffff --hmark-rnd 7";
    let mut fragment = ipv4(17, &UDP);
    fragment[6] = 0x20;
    assert_eq!(mark(&fragment, ALL), mark(&fragment, without));
    assert_ne!(mark(&ipv4(17, &UDP), ALL), mark(&ipv4(17, &UDP), without));
    let echo = ipv4(1, &[8, 0, 0, 0, 0, 1, 0, 1]);
    assert_eq!(mark(&echo, ALL), mark(&echo, without));
}

#[test]
fn an_error_is_taken_for_the_packet_that_it_quotes() {
    let quoted = ipv4(17, &UDP);
    let error = ipv4(1, &[&[3, 3, 0, 0, 0, 0, 0, 0][..], &quoted].concat());
    assert_eq!(mark(&error, ALL), mark(&quoted, ALL));
    let quoted = ipv6(17, &UDP);
    let error = ipv6(58, &[&[1, 4, 0, 0, 0, 0, 0, 0][..], &quoted].concat());
    assert_eq!(mark(&error, ALL), mark(&quoted, ALL));
    // Where it quotes less than a header, its mark stays 0.
    let short = ipv4(1, &[&[3, 3, 0, 0, 0, 0, 0, 0][..], &quoted[..19]].concat());
    assert_eq!(mark(&short, ALL), 0);
}

#[test]
fn what_was_not_captured_leaves_the_mark_unknown() {
    let bytes = ipv4(17, &UDP);
    let cut = |options: &str| {
        let rule = format!("-j HMARK {options}");
        Frame::ip(&bytes).cut(20).apply(&rule, "-m mark --mark 1").2
    };
    assert_eq!(cut(ALL), Outcome::MAYBE);
    assert_ne!(cut("--hmark-tuple src,dst --hmark-mod 9 --hmark-rnd 7"), Outcome::MAYBE);
    assert_eq!(marked(&bytes, ALL, 1), Outcome::NO);
}
