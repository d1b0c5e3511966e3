//! A router between two hosts that translates addresses (RFC 4787), and gives a session another outer port while it lasts,
//! as routers do when they restart or forget. Needs root, `ping`, `iptables` and `conntrack`; without, it says so and
//! skips.

use std::time::Duration;

use super::host::wait_until;
use super::hosts::{Hosts, INSIDE, INSIDE_V6, OUTSIDE, PORT, allowed};
use super::impaired::flow;
use crate::ran::skipped;

const PACKETS: u64 = 4_000;

/// Source ports of the router for a session, before and afterwards.
pub(super) const BEFORE: &str = "20000-20999";
pub(super) const AFTER: &str = "30000-30999";
/// The router, as the second host sees it.
const ROUTER: &str = "198.51.100.254";

/// Two hosts that speak through a translating router; only the first knows where the other is.
fn hosts(test: &str, keepalive: &str) -> Option<Hosts> {
    let mut hosts = Hosts::with_tools(test, &["ping", "iptables", "conntrack"])?;
    if hosts.routes("iptables", &["-t", "nat", "-S"]).code != Some(0) {
        skipped(&format!("{test}: this kernel translates no addresses"));
        return None;
    }
    translate(&hosts, BEFORE);
    let place = format!("endpoint = \"{}:{PORT}\"", OUTSIDE[1]);
    hosts.write(0, "", &format!("{place}\n{}\n{keepalive}", allowed(1)));
    hosts.write(1, "", &allowed(0));
    (0..2).for_each(|side| hosts.up(side));
    wait_until("an answer", || hosts.pings(0, INSIDE[1], &[]));
    assert!(is_at(&hosts, BEFORE), "{}", hosts.peer(1));
    Some(hosts)
}

/// Makes the router give sessions these ports, and forget the present ones.
pub(super) fn translate(hosts: &Hosts, ports: &str) {
    let to = format!("{ROUTER}:{ports}");
    let rule = ["-A", "POSTROUTING", "-o", "r1", "-p", "udp", "-j", "SNAT", "--to-source", &to];
    // Nothing passes meanwhile, or the kernel might remember a packet that the old ports sent on.
    let steps: [(&str, Vec<&str>); 5] = [
        ("iptables", vec!["-I", "FORWARD", "-j", "DROP"]),
        ("iptables", vec!["-t", "nat", "-F", "POSTROUTING"]),
        ("iptables", [&["-t", "nat"][..], &rule].concat()),
        ("conntrack", vec!["-F"]),
        ("iptables", vec!["-D", "FORWARD", "-j", "DROP"]),
    ];
    for (program, args) in steps {
        let ran = hosts.routes(program, &args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

/// Whether the second host speaks to the first at one of these ports of the router.
fn is_at(hosts: &Hosts, ports: &str) -> bool {
    let endpoint = hosts.peer(1)["endpoint"].as_str().map(str::to_owned).unwrap_or_default();
    let port = endpoint.strip_prefix(&format!("{ROUTER}:")).and_then(|port| port.parse().ok());
    let (first, last) = ports.split_once('-').unwrap();
    let range = first.parse::<u16>().unwrap()..=last.parse().unwrap();
    port.is_some_and(|port| range.contains(&port))
}

#[test]
fn a_session_goes_on_by_the_next_packet_from_another_port() {
    let Some(hosts) = hosts("tunnel-port", "") else { return };
    let made = age_of_session(&hosts);
    for (round, ports) in [AFTER, BEFORE, AFTER].into_iter().enumerate() {
        translate(&hosts, ports);
        // One packet, and it is the first: nothing may be lost.
        assert!(hosts.pings(0, INSIDE[1], &[]), "round {round}");
        assert!(is_at(&hosts, ports), "round {round}: {}", hosts.peer(1));
        assert!(hosts.pings(1, INSIDE_V6[0], &[]), "round {round}: the way back");
        hosts.transfer(1, INSIDE[0], 1 << 20);
    }
    assert!(age_of_session(&hosts) > made, "it is the session that there was");
}

#[test]
fn a_keepalive_tells_of_another_port() {
    let Some(hosts) = hosts("tunnel-port-told", "keepalive = 1") else { return };
    translate(&hosts, AFTER);
    // What the second host says meanwhile goes nowhere, and the router says so by ICMP: that changes nothing.
    hosts.does(1, "ping", &["-n", "-c", "3", "-i", "0.1", "-W", "1", INSIDE[0]]);
    wait_until("the next keepalive", || is_at(&hosts, AFTER));
    assert!(hosts.pings(1, INSIDE[0], &[]), "the way back");
}

/// A router that balances, or is confused: now and then a packet comes from another port, and the next one does not. Two
/// ports are two sockets here, so each has an order of its own, as it has on the way.
#[test]
fn what_comes_from_two_ports_in_turn_comes_whole_and_in_order_by_port() {
    let Some(mut hosts) = Hosts::with_tools("tunnel-two-ports", &["ping", "nft", "ethtool"]) else {
        return;
    };
    // Each twentieth datagram, and not one out of twenty messages of many.
    hosts.one_by_one();
    hosts.join(&format!("{}:{PORT}", OUTSIDE[1]));
    (0..2).for_each(|side| hosts.on_one_processor(side, "tam"));
    wait_until("an answer", || hosts.pings(0, INSIDE[1], &[]));
    let rules = format!(
        "table ip two {{ chain passed {{ type filter hook forward priority 0; \
         iifname r0 udp length {} numgen inc mod 20 0 udp sport set 40000 counter; }}; }}",
        flow::SEALED + 8
    );
    let ran = hosts.routes("nft", &[&rules]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let came = flow::run(&hosts, PACKETS, Duration::from_micros(1_000));
    let seen = hosts.routes("nft", &["list", "table", "ip", "two"]).out;
    assert!(seen.contains("counter packets ") && !seen.contains("packets 0 "), "{seen}");
    let (strays, others): (Vec<u64>, Vec<u64>) = came.iter().partition(|number| *number % 20 == 0);
    assert!(strays.iter().copied().eq((0..PACKETS).step_by(20)), "{strays:?}");
    assert!(
        others.iter().copied().eq((0..PACKETS).filter(|number| number % 20 != 0)),
        "{others:?}"
    );
}

fn age_of_session(hosts: &Hosts) -> f64 {
    hosts.peer(1)["handshake_s"].as_f64().unwrap()
}
