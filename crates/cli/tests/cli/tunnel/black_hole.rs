//! A router that drops what is too long for the way on, and says nothing (RFC 2923, section 2.1): the length of the path
//! is found by probes. Needs root, `ping` and `iptables`; without, it says so and skips.

use std::time::{Duration, Instant};

use super::host::wait_until;
use super::hosts::{Hosts, INSIDE, INSIDE_V6, OUTSIDE, OUTSIDE_V6, PORT};

/// Bytes of the longest packet on the narrow link, and of the longest packet inside that it takes: 28 of UDP over IPv4
/// and 32 of ours go off. That of IPv6 outside has 20 more.
const NARROW: u64 = 1_340;
const MOST: u64 = NARROW - 28 - 32;
/// A search ends as close to that.
const STEP: u64 = 16;
/// A path is asked again each 5 s while long packets go, and fails three times by a second. TCP repeats what was lost after
/// 6 s, 13 s, 25 s.
const GOES_ON: Duration = Duration::from_secs(30);

fn hosts(test: &str) -> Option<Hosts> {
    Hosts::with_tools(test, &["ping", "iptables", "ip6tables"])
}

/// Narrows the link to the second host, and has the router say nothing of it.
fn narrow(hosts: &Hosts) {
    for (program, protocol, kind) in
        [("iptables", "icmp", "--icmp-type"), ("ip6tables", "icmpv6", "--icmpv6-type")]
    {
        let kinds = if protocol == "icmp" { "fragmentation-needed" } else { "packet-too-big" };
        let ran =
            hosts.routes(program, &["-A", "OUTPUT", "-p", protocol, kind, kinds, "-j", "DROP"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let mtu = NARROW.to_string();
    hosts.routes("ip", &["link", "set", "r1", "mtu", &mtu]);
    hosts.does(1, "ip", &["link", "set", "eth0", "mtu", &mtu]);
}

fn is_found(hosts: &Hosts, most: u64) -> bool {
    let found = hosts.peer(0)["path_mtu"].as_u64().unwrap();
    found <= most && found > most - STEP
}

/// What the router has to say of the narrow link, and drops.
fn kept_back(hosts: &Hosts, program: &str) -> bool {
    let counts = hosts.routes(program, &["-L", "OUTPUT", "-nvx"]).out;
    let count =
        counts.lines().nth(2).and_then(|line| line.split_whitespace().next().map(str::to_owned));
    count.is_some_and(|count| count != "0")
}

#[test]
fn the_length_of_a_silent_path_is_found_by_probes() {
    for (place, program, most) in [
        (format!("{}:{PORT}", OUTSIDE[1]), "iptables", MOST),
        (format!("[{}]:{PORT}", OUTSIDE_V6[1]), "ip6tables", MOST - 20),
    ] {
        let Some(mut hosts) = hosts("tunnel-hole") else { return };
        narrow(&hosts);
        hosts.join(&place);
        wait_until("an answer", || hosts.pings(0, INSIDE[1], &[]));
        // While the length is looked for, and afterwards.
        for to in [INSIDE[1], INSIDE_V6[1]] {
            hosts.transfer(0, to, 1 << 20);
        }
        wait_until("its length is known", || is_found(&hosts, most));
        assert!(kept_back(&hosts, program), "the router had nothing to say");
    }
}

#[test]
fn a_path_that_becomes_narrow_in_silence_is_searched_again() {
    let Some(mut hosts) = hosts("tunnel-narrows") else { return };
    hosts.join(&format!("{}:{PORT}", OUTSIDE[1]));
    wait_until("an answer", || hosts.pings(0, INSIDE[1], &[]));
    hosts.transfer(0, INSIDE[1], 1 << 20);
    assert_eq!(hosts.peer(0)["path_mtu"], 1_420);
    narrow(&hosts);
    let began = Instant::now();
    // It has to go on by itself: nobody else says what is wrong.
    hosts.transfer(0, INSIDE[1], 1 << 20);
    let took = began.elapsed();
    assert!(took < GOES_ON, "{took:?}");
    wait_until("its length is known", || is_found(&hosts, MOST));
}
