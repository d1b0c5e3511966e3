//! A tunnel between two hosts, as the kernel's own is tested (Linux `tools/testing/selftests/wireguard/netns.sh`): both
//! families inside and outside, narrow paths, hosts that move and restart, and what a listener sees. Needs root and
//! `ping`; without, it says so and skips.

use std::process::{Command, Stdio};

use super::host::wait_until;
use super::hosts::{Hosts, INSIDE, INSIDE_V6, OUTSIDE, OUTSIDE_V6, PORT, allowed};
use crate::ran::{TAMIS, skipped};

fn hosts(test: &str) -> Option<Hosts> {
    Hosts::with_tools(test, &["ping"])
}

fn v4(side: usize) -> String {
    format!("{}:{PORT}", OUTSIDE[side])
}

/// Each answers the other, by both families.
#[track_caller]
fn speak(hosts: &Hosts) {
    for (from, to) in [(0, 1), (1, 0)] {
        for to in [INSIDE[to], INSIDE_V6[to]] {
            wait_until(&format!("{to} answers"), || hosts.pings(from, to, &[]));
        }
    }
}

#[test]
fn both_families_go_by_both() {
    for place in [v4(1), format!("[{}]:{PORT}", OUTSIDE_V6[1])] {
        let Some(mut hosts) = hosts("tunnel-families") else { return };
        hosts.join(&place);
        speak(&hosts);
        for (from, to) in [(0, INSIDE[1]), (1, INSIDE_V6[0])] {
            hosts.transfer(from, to, 6 << 20);
            assert!(hosts.pings(from, to, &["-s", "1300"]));
        }
        assert_eq!(hosts.peer(0)["endpoint"], *place);
    }
}

/// 1,280 bytes outside is what IPv6 needs at least; for IPv6 to need no more inside, there have to be 60 more.
#[test]
fn a_narrow_path_is_found() {
    for (outside, is_enough) in [(1_280, false), (1_400, true)] {
        let Some(mut hosts) = hosts("tunnel-narrow") else { return };
        let mtu = outside.to_string();
        hosts.routes("ip", &["link", "set", "r1", "mtu", &mtu]);
        hosts.does(1, "ip", &["link", "set", "eth0", "mtu", &mtu]);
        hosts.join(&v4(1));
        speak(&hosts);
        let most = outside - 28 - 32;
        for side in [0, 1] {
            wait_until("its length is known", || {
                let found = hosts.peer(side)["path_mtu"].as_u64().unwrap();
                found <= most && found > most - 16
            });
            is_narrow(&hosts, side, is_enough);
        }
    }
}

/// Longer packets are sent in fragments, or reported and sent shorter.
#[track_caller]
fn is_narrow(hosts: &Hosts, side: usize, is_enough: bool) {
    let (to, to_v6) = (INSIDE[1 - side], INSIDE_V6[1 - side]);
    wait_until("fragments", || hosts.pings(side, to, &["-s", "1350", "-M", "dont"]));
    if is_enough {
        wait_until("the next one", || hosts.pings(side, to_v6, &["-s", "1350"]));
    }
    hosts.does(side, "ip", &["route", "flush", "cache"]);
    let told = || {
        let args = ["-n", "-c", "1", "-W", "1", "-s", "1350", "-M", "do", to];
        let ran = hosts.does(side, "ping", &args);
        let said = ran.out + &ran.err;
        said.contains("Frag needed") || said.contains("essage too long")
    };
    wait_until("its sender is told", told);
    hosts.transfer(side, to, 2 << 20);
    hosts.transfer(side, to_v6, 2 << 20);
}

#[test]
fn a_host_that_moves_is_heard_again() {
    let Some(mut hosts) = hosts("tunnel-roaming") else { return };
    hosts.join(&v4(1));
    speak(&hosts);
    assert_eq!(hosts.peer(1)["endpoint"], *v4(0));
    hosts.does(0, "ip", &["address", "add", "192.0.2.2/24", "dev", "eth0"]);
    hosts.does(0, "ip", &["address", "del", "192.0.2.1/24", "dev", "eth0"]);
    hosts.does(0, "ip", &["address", "add", "192.0.2.2/24", "dev", "eth0"]);
    hosts.does(0, "ip", &["route", "replace", "default", "via", "192.0.2.254"]);
    wait_until("an answer", || hosts.pings(0, INSIDE[1], &[]));
    assert_eq!(hosts.peer(1)["endpoint"], format!("192.0.2.2:{PORT}"));
    speak(&hosts);
}

#[test]
fn an_end_with_two_addresses_speaks_from_the_one_it_was_spoken_to() {
    let Some(mut hosts) = hosts("tunnel-sticky") else { return };
    hosts.does(1, "ip", &["address", "add", "198.51.100.7/24", "dev", "eth0"]);
    let place = format!("198.51.100.7:{PORT}");
    hosts.join(&place);
    speak(&hosts);
    hosts.transfer(1, INSIDE[0], 1 << 20);
    assert_eq!(hosts.peer(0)["endpoint"], *place);
    // Once that address is removed, it speaks from the other.
    hosts.does(1, "ip", &["address", "del", "198.51.100.7/24", "dev", "eth0"]);
    wait_until("it speaks", || hosts.pings(1, INSIDE[0], &[]));
    assert_eq!(hosts.peer(0)["endpoint"], *v4(1));
}

#[test]
fn outer_datagrams_do_not_go_into_the_tunnel() {
    let Some(mut hosts) = hosts("tunnel-loop") else { return };
    hosts.write(0, "", &format!("endpoint = \"{}\"\nallowed = [\"0.0.0.0/0\", \"::/0\"]", v4(1)));
    hosts.write(1, "", &allowed(0));
    (0..2).for_each(|side| hosts.up(side));
    let way = hosts.does(0, "ip", &["route", "get", "203.0.113.9"]).out;
    assert!(way.contains("dev tam"), "{way}");
    speak(&hosts);
    let sent = hosts.peer(0)["sent_packets"].as_u64().unwrap();
    assert!(sent < 100, "{sent} packets");
}

#[test]
fn a_peer_whose_key_changes_is_added_anew() {
    let Some(mut hosts) = hosts("tunnel-rekey") else { return };
    hosts.join(&v4(1));
    speak(&hosts);
    hosts.kill(1);
    std::fs::remove_file(hosts.folder.file("b.key")).unwrap();
    let made = hosts.does(1, TAMIS, &["tunnel", "keygen", "--out", &hosts.folder.file("b.key")]);
    assert_eq!(made.code, Some(0));
    hosts.up(1);
    assert!(!hosts.pings(0, INSIDE[1], &[]), "nobody has that key");
    let config = hosts.config(0);
    let removed = hosts.does(0, TAMIS, &["tunnel", "remove-peer", &config, "b"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let (key, place) = (hosts.public("b.key"), v4(1));
    let allowed = format!("{}/32,{}/128", INSIDE[1], INSIDE_V6[1]);
    let add =
        ["tunnel", "add-peer", &config, "b", &key, "--allowed", &allowed, "--endpoint", &place];
    let added = hosts.does(0, TAMIS, &add);
    assert_eq!(added.code, Some(0), "{added:?}");
    speak(&hosts);
}

#[test]
fn a_host_that_restarts_is_back_with_its_next_packet() {
    let Some(mut hosts) = hosts("tunnel-restart") else { return };
    hosts.write(0, "", &format!("endpoint = \"{}\"\n{}", v4(1), allowed(1)));
    hosts.write(1, "", &format!("endpoint = \"{}\"\n{}", v4(0), allowed(0)));
    (0..2).for_each(|side| hosts.up(side));
    speak(&hosts);
    for side in [0, 1] {
        hosts.kill(side);
        hosts.up(side);
        wait_until("an answer", || hosts.pings(side, INSIDE[1 - side], &[]));
        speak(&hosts);
    }
}

/// What is known in every packet inside: bytes, and a length.
const SAID: &str = "7468697320697320616e20696e6e6572";

#[test]
fn a_listener_sees_lengths_of_16_and_nothing_of_the_inside() {
    let Some(mut hosts) = hosts("tunnel-capture") else { return };
    let capture = hosts.folder.file("outside.pcap");
    let args = [
        "netns",
        "exec",
        &hosts.router,
        "tcpdump",
        "-U",
        "-s",
        "0",
        "-i",
        "r0",
        "-w",
        &capture,
        "udp",
    ];
    let Ok(mut listener) = Command::new("ip").args(args).stderr(Stdio::null()).spawn() else {
        return skipped("tunnel-capture: tcpdump is not there");
    };
    hosts.join(&v4(1));
    speak(&hosts);
    for len in ["16", "17", "500", "1111"] {
        assert!(hosts.pings(0, INSIDE[1], &["-s", len, "-p", SAID]));
    }
    wait_until("all is written", || std::fs::read(&capture).is_ok_and(|bytes| bytes.len() > 6_000));
    listener.kill().unwrap();
    listener.wait().unwrap();
    let bytes = std::fs::read(&capture).unwrap();
    let said: Vec<u8> = (0..SAID.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&SAID[at..at + 2], 16).unwrap())
        .collect();
    assert!(!bytes.windows(said.len()).any(|window| window == said));
    for inside in [[10_u8, 77, 0, 1], [10, 77, 0, 2]] {
        assert!(!bytes.windows(4).any(|window| window == inside), "an address");
    }
    let (mut at, mut data) = (24, 0);
    while let Some(head) = bytes.get(at..at + 16) {
        let len = u32::from_le_bytes(head[8..12].try_into().unwrap()) as usize;
        let Some(frame) = bytes.get(at + 16..at + 16 + len) else { break };
        at += 16 + len;
        let datagram = &frame[14 + 20 + 8..];
        if datagram.starts_with(&[0x84, 1, 0, 0]) {
            data += 1;
            assert_eq!(datagram.len() % 16, if datagram.len() == 1_452 { 12 } else { 0 });
        }
    }
    assert!(data >= 16, "{data} sealed datagrams");
}
