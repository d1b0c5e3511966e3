//! Rules of a bridge together with the rules of what its frames hold. The lab's tests check the kernel's own order
//! (`lab/tests/kernel/frames.rs`); these check what no tool of the lab can, and what only a run has.

use std::sync::Arc;

use live::Reason;
use packet::craft::{Ethernet, Message, arp_frame};
use rules::model::{Family, Ruleset};

use super::{Rig, craft, datagram, filter, inside, ruleset, syn};

fn bridge(rules: &str) -> Arc<Ruleset> {
    let filter = "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n";
    ruleset(Family::Bridge, &rules.replace("*filter\n", filter))
}

fn arp(sender: [u8; 4]) -> Vec<u8> {
    arp_frame(Ethernet::default(), 1, sender, [10, 0, 0, 2])
}

/// A mark that each hook raises by one bit: only in the kernel's order are all of them set.
#[test]
fn all_hooks_have_their_turns_and_share_the_mark() {
    let of_bridge = "*broute\n:BROUTING ACCEPT\n\
        -A BROUTING --mark 0x0 -j mark --mark-or 0x1 --mark-target ACCEPT\n\
        *nat\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT\n\
        -A PREROUTING --mark 0x1 -j mark --mark-or 0x2 --mark-target ACCEPT\n\
        -A POSTROUTING --mark 0x1f -j mark --mark-or 0x20 --mark-target ACCEPT\n\
        *filter\n-A FORWARD --mark 0x7 -j mark --mark-or 0x8 --mark-target ACCEPT\n";
    let of_held = "*mangle\n:PREROUTING ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:POSTROUTING DROP [0:0]\n\
        -A PREROUTING -m mark --mark 0x3 -j MARK --or-mark 0x4\n\
        -A FORWARD -m mark --mark 0xf -j MARK --or-mark 0x10\n\
        -A POSTROUTING -m mark --mark 0x3f -j ACCEPT\nCOMMIT\n";
    let rules = || [bridge(of_bridge), ruleset(Family::Ipv4, of_held)];
    let frames = [syn(80), inside(&syn(80), &[0x81, 0, 0, 5, 8, 0])];
    assert_eq!(Rig::of(rules()).sends(0, &frames).run().frames[1], frames);
    assert_eq!(Rig::of(rules()).sends(1, &frames).run().frames[0], frames);
}

#[test]
fn the_bridge_sees_what_is_translated_as_it_is_by_then() {
    let of_bridge = "*nat\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT\n\
        -A PREROUTING -p IPv4 --ip-dst 192.0.2.1 -j DROP\n\
        -A POSTROUTING -p IPv4 --ip-src 192.0.2.7 -j DROP\n\
        *filter\n-A FORWARD -p IPv4 --ip-dst ! 192.0.2.1 -j DROP\n";
    let of_held = "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
        -A PREROUTING -p udp --dport 53 -j DNAT --to-destination 192.0.2.1\n\
        -A POSTROUTING -p udp -j SNAT --to-source 192.0.2.7\nCOMMIT\n";
    let rules = [bridge(of_bridge), ruleset(Family::Ipv4, of_held)];
    let ends = ["10.0.0.7", "10.0.0.9"];
    let left = Rig::of(rules).sends(0, &[datagram(ends, 53), datagram(ends, 54)]).run();
    let [out] = &left.frames[1][..] else { panic!("{:?}", left.frames) };
    assert_eq!(out[26..34], [192, 0, 2, 7, 192, 0, 2, 1]);
    assert_eq!(left.direction(0).of(Reason::Rule), 1);
}

/// A frame that the bridge drops has no connection; the bridge saw before what the others drop.
#[test]
fn what_the_bridge_drops_is_not_tracked() {
    let of_bridge = "*filter\n-A FORWARD -i left -p IPv4 --ip-proto udp --ip-dport 23 -j DROP\n";
    let of_held = filter(
        "DROP",
        "-A FORWARD -i left -j ACCEPT\n-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n",
    );
    let there = |port| datagram(["10.0.0.7", "10.0.0.9"], port);
    let back = |port| craft(["10.0.0.9", "10.0.0.7"], Message::udp(port, 4000)).frame();
    let rules = [bridge(of_bridge), ruleset(Family::Ipv4, &of_held)];
    let rig = Rig::of(rules).sends(0, &[there(23), there(80)]);
    let left = rig.sends(1, &[back(23), back(80)]).run();
    assert_eq!(left.frames, [vec![back(80)], vec![there(80)]]);
}

#[test]
fn what_brouting_takes_passes_the_other_rules_alone() {
    let of_bridge = "*broute\n:BROUTING ACCEPT\n-A BROUTING -p IPv4 --ip-proto udp -j DROP\n\
        *filter\n-A FORWARD -p IPv4 -j DROP\n";
    let of_held = filter("DROP", "-A FORWARD -p udp --dport 53 -j ACCEPT\n");
    let rules = [bridge(of_bridge), ruleset(Family::Ipv4, &of_held)];
    let ends = ["10.0.0.7", "10.0.0.9"];
    let left = Rig::of(rules).sends(0, &[datagram(ends, 53), datagram(ends, 54), syn(53)]).run();
    assert_eq!(left.frames[1], [datagram(ends, 53)]);
    let dropped = left.direction(0);
    assert_eq!((dropped.of(Reason::Rule), dropped.of(Reason::Policy)), (1, 1));
}

#[test]
fn arp_passes_both_and_what_no_others_are_for_the_bridge_s_alone() {
    let of_bridge = "*filter\n-A FORWARD -p ARP --arp-ip-src 10.0.0.3 -j DROP\n\
        -A FORWARD -p IPv6 -j DROP\n";
    let of_arp = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.0.0.4 -j DROP\n";
    let rules = [bridge(of_bridge), ruleset(Family::Arp, of_arp)];
    let frames = [
        arp([10, 0, 0, 1]),
        arp([10, 0, 0, 3]),
        arp([10, 0, 0, 4]),
        datagram(["fd00::7", "fd00::9"], 53),
        syn(80),
    ];
    let left = Rig::of(rules).sends(0, &frames).run();
    assert_eq!(left.frames[1], [arp([10, 0, 0, 1]), syn(80)]);
    assert_eq!(left.direction(0).of(Reason::Rule), 3);
}

/// A bridge's PREROUTING comes before anybody looks into the packet.
#[test]
fn headers_that_lie_are_the_bridge_s_first() {
    let of_bridge = "*nat\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT\n\
        -A PREROUTING -s 02:00:00:00:00:66 -j DROP\n*filter\n";
    let rules = [bridge(of_bridge), ruleset(Family::Ipv4, &filter("ACCEPT", ""))];
    let mut wrong = syn(80);
    wrong[24] ^= 1;
    let mut first = wrong.clone();
    first[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 0x66]);
    // Nobody sends from a group.
    let mut group = syn(80);
    group[6] |= 1;
    let left = Rig::of(rules).sends(0, &[first, wrong, group]).run();
    let dropped = left.direction(0);
    assert_eq!((dropped.of(Reason::Rule), dropped.of(Reason::Stack)), (1, 2));
}
