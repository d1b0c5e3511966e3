//! Two nodes behind routers that masquerade reach each other by name. Needs root, `ping`, `nft` and `dig`; without, it says
//! so and skips.

use std::fs::OpenOptions;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use crate::direct::path;
use crate::namespaces::{Hosts, PUBLIC};

/// A cloud with nodes a and b, which may reach each other, and c, which may reach nobody; all are up.
pub(crate) fn network(test: &str, masquerades: [&str; 2]) -> Option<Hosts> {
    network_on(test, masquerades, |_| {})
}

/// A [`network`] on hosts that `lay` has changed first.
pub(crate) fn network_on(
    test: &str,
    masquerades: [&str; 2],
    lay: impl FnOnce(&Hosts),
) -> Option<Hosts> {
    let mut hosts = Hosts::new(test, &["a", "b", "c"])?;
    lay(&hosts);
    let [a, b] = masquerades;
    for (node, how) in [("a", a), ("b", b), ("c", "")] {
        hosts.masquerades(node, how);
    }
    let config = hosts.config();
    hosts.cloud(&format!("all {config} --init --public {PUBLIC}:51900 --domain home.internal"));
    allow(&hosts, "a", "b");
    hosts.start_cloud();
    join_all(&mut hosts);
    Some(hosts)
}

/// Makes a, b and c nodes, and brings them up.
pub(crate) fn join_all(hosts: &mut Hosts) {
    let config = hosts.config();
    let printed = hosts.cloud(&format!("enrol a b c --config {config}"));
    for node in ["a", "b", "c"] {
        let joined = hosts.join_as(node, &printed);
        assert!(joined.status.success(), "{joined:?}");
    }
    for node in ["a", "b", "c"] {
        hosts.up(node);
    }
    hosts.wait("registrations", are_present);
}

/// Whether all nodes are there.
pub(crate) fn are_present(hosts: &Hosts) -> bool {
    let listed = hosts.cloud(&format!("devices --config {}", hosts.config()));
    listed.lines().filter(|line| line.ends_with("present")).count() == 3
}

pub(crate) fn allow(hosts: &Hosts, one: &str, other: &str) {
    let mut file = OpenOptions::new().append(true).open(hosts.config()).unwrap();
    writeln!(file, "[[allow]]\nbetween = [\"{one}\", \"{other}\"]").unwrap();
}

pub(crate) fn answer(status: &str, data: &str) -> (String, String) {
    (status.to_owned(), data.to_owned())
}

#[test]
fn two_nodes_behind_two_routers_reach_each_other_by_name() {
    let Some(mut hosts) = network("names", ["", ""]) else { return };
    let asked = Instant::now();
    assert_eq!(hosts.dig("a", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("the first ping", |hosts| hosts.pings("a", "10.99.0.3"));
    eprintln!("from the question to the first ping: {} ms", asked.elapsed().as_millis());
    assert!(hosts.pings("b", "10.99.0.2"), "the way back");

    // The other answers of a resolver.
    assert!(hosts.dig("a", "b.home.internal", "AAAA").1.starts_with("fd"));
    assert_eq!(hosts.dig("a", "b.home.internal", "MX"), answer("NOERROR", ""));
    let pointer = hosts.dig("a", "3.0.99.10.in-addr.arpa", "PTR");
    assert_eq!(pointer, answer("NOERROR", "b.home.internal."));
    assert_eq!(hosts.dig("a", "a.home.internal", "A"), answer("NOERROR", "10.99.0.2"));
    assert_eq!(hosts.dig("a", "example.org", "A").0, "REFUSED", "there is no other server");
    let by_tcp = hosts.does("a", "dig +tcp +short @10.99.0.2 b.home.internal");
    assert_eq!(by_tcp, "10.99.0.3\n");
    // What is denied is as what is not there.
    for name in ["c.home.internal", "nobody.home.internal"] {
        assert_eq!(hosts.dig("a", name, "A"), answer("NXDOMAIN", ""));
    }
    assert!(!hosts.pings("a", "10.99.0.4"));
    assert!(hosts.cloud(&format!("log --config {}", hosts.config())).contains("a asked for c"));

    survives_a_restart(&mut hosts, "a", "10.99.0.3");

    // A node that starts again learns its peers.
    hosts.kill("b");
    hosts.up("b");
    hosts.wait("the node again", |hosts| hosts.pings("a", "10.99.0.3"));

    // A revoked node is forgotten while it is spoken to.
    hosts.cloud(&format!("revoke b --config {}", hosts.config()));
    hosts.wait("the end of b", |hosts| !hosts.pings("a", "10.99.0.3"));
    assert_eq!(hosts.dig("a", "b.home.internal", "A").0, "NXDOMAIN");
}

/// kill -9 of the cloud: the session of a node and the pinged one goes on by the relay, and all nodes are there again.
fn survives_a_restart(hosts: &mut Hosts, pinging: &str, pinged: &str) {
    // The relay has had the time to write down where nodes send from.
    thread::sleep(Duration::from_secs(2));
    hosts.kill("cloud");
    let started = Instant::now();
    hosts.start_cloud();
    hosts.wait("the relay again", |hosts| hosts.pings(pinging, pinged));
    hosts.wait("registrations after the restart", are_present);
    let took = started.elapsed();
    eprintln!("from the start of the killed cloud to all nodes and the session: {took:?}");
}

#[test]
fn routers_that_give_each_destination_another_port_are_no_hindrance() {
    let Some(mut hosts) = network("ports", ["random", "fully-random"]) else { return };
    assert_eq!(hosts.dig("b", "a.home.internal", "A"), answer("NOERROR", "10.99.0.2"));
    hosts.wait("a ping", |hosts| hosts.pings("b", "10.99.0.2"));
    // Neither can know where the other one's router sends from: the attempt ends, and the relay stays.
    thread::sleep(Duration::from_secs(4));
    assert_eq!((path(&hosts, "a"), path(&hosts, "b")), ("relay".into(), "relay".into()));
    assert!(hosts.pings("b", "10.99.0.2"));
    survives_a_restart(&mut hosts, "b", "10.99.0.2");
}

#[test]
fn a_one_time_key_is_good_for_one_device() {
    let Some(hosts) = network("onetime", ["", ""]) else { return };
    let config = hosts.config();
    let printed = hosts.cloud(&format!("enrol d --config {config}"));
    // As node d, on the hosts of a and b.
    let join = |host: &str| {
        let config = hosts.node_config(host);
        std::fs::remove_file(config.with_extension("key")).unwrap();
        std::fs::remove_file(config).unwrap();
        hosts.join_as(host, &printed.replace("# d,", &format!("# {host},")))
    };
    assert!(join("a").status.success());
    let again = join("b");
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stderr).contains("was used already"), "{again:?}");
    let log = hosts.cloud(&format!("log --config {config}"));
    assert!(log.contains("alarm: the one-time key of d was used a second time"), "{log}");
}
