//! The directory and the relay as processes on hosts of their own: nodes reach each other by name, also after either was killed.
//! Needs root, `ping`, `nft` and `dig`; without, it says so and skips.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::direct::path;
use crate::namespaces::{Hosts, PUBLIC};
use crate::reached::{allow, answer, are_present, join_all};

/// A directory and a relay apart, with nodes a and b, and b and c, which may reach each other.
fn network(test: &str, masquerades: [&str; 2]) -> Option<Hosts> {
    network_of(test, masquerades, &["trs"])
}

/// One with relays on these hosts.
pub(crate) fn network_of(test: &str, masquerades: [&str; 2], relays: &[&str]) -> Option<Hosts> {
    let mut hosts = Hosts::new(test, &["a", "b", "c"])?;
    for (number, relay) in (114..).zip(relays) {
        hosts.add(relay, number);
    }
    for (node, how) in ["a", "b"].into_iter().zip(masquerades) {
        hosts.masquerades(node, how);
        hosts.shuts(node);
    }
    hosts.masquerades("c", "");
    let config = hosts.config();
    let init = format!("nms {config} --init --public {PUBLIC}:51900 --domain home.internal");
    let printed = hosts.cloud(&init);
    allow(&hosts, "a", "b");
    allow(&hosts, "b", "c");
    // What it prints is what the relay's host needs, and what that prints is what the directory needs.
    let line = printed.lines().find_map(|line| line.strip_prefix("tamis-cloud trs ")).unwrap();
    for (number, relay) in (114..).zip(relays) {
        let line = line.replacen("/etc/tamis/trs.toml", &relay_config(&hosts, relay), 1);
        let line = line.replace("ADDRESS", &format!("203.0.{number}.1"));
        let printed = hosts.cloud_on(relay, &format!("trs {line}"));
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, text + &printed).unwrap();
    }
    hosts.serve("cloud", "nms", &config);
    for relay in relays {
        hosts.serve(relay, "trs", &relay_config(&hosts, relay));
    }
    join_all(&mut hosts);
    hosts.wait("the relays", |hosts| relay(hosts, "present"));
    Some(hosts)
}

pub(crate) fn relay_config(hosts: &Hosts, relay: &str) -> String {
    hosts.folder.path().join(relay).join("trs.toml").display().to_string()
}

/// Whether the directory says this of all relays.
fn relay(hosts: &Hosts, state: &str) -> bool {
    let listed = hosts.cloud(&format!("devices --json --config {}", hosts.config()));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let relays = listed["relays"].as_array().unwrap();
    !relays.is_empty() && relays.iter().all(|relay| relay["state"] == state)
}

/// Waits until something is so after a server has begun again, and says how long that took.
fn back(hosts: &Hosts, what: &str, since: Instant, is_so: impl FnMut(&Hosts) -> bool) {
    hosts.wait(what, is_so);
    eprintln!("{what}: {:?}", since.elapsed());
}

#[test]
fn two_nodes_reach_each_other_by_name_with_a_relay_apart() {
    let Some(mut hosts) = network("apart", ["random", "fully-random"]) else { return };
    let (config, trs) = (hosts.config(), relay_config(&hosts, "trs"));
    assert_eq!(hosts.dig("a", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("the first ping", |hosts| hosts.pings("a", "10.99.0.3"));
    assert_eq!(path(&hosts, "a"), "relay");
    assert!(!hosts.pings("a", "10.99.0.4"), "what is denied");
    thread::sleep(Duration::from_secs(2));
    let listed = hosts.cloud(&format!("paths --json --config {trs}"));
    assert!(listed.contains("\"count\": 1") && !listed.contains("\"bytes\": 0"), "{listed}");

    // Without its directory the relay goes on.
    hosts.kill("cloud");
    thread::sleep(Duration::from_secs(4));
    assert!(hosts.pings("a", "10.99.0.3"), "by the relay, without the directory");
    let since = Instant::now();
    hosts.serve("cloud", "nms", &config);
    back(&hosts, "nodes after the directory's restart", since, are_present);
    back(&hosts, "the relay after the directory's restart", since, |it| relay(it, "present"));
    assert!(hosts.pings("a", "10.99.0.3"));

    // A relay that begins again has its paths at once, and where nodes send from.
    hosts.kill("trs");
    assert!(!hosts.pings("a", "10.99.0.3"), "nobody carries it");
    let since = Instant::now();
    hosts.serve("trs", "trs", &trs);
    back(&hosts, "a ping after the relay's restart", since, |it| it.pings("a", "10.99.0.3"));

    // While there is no relay, names fail, rather than lead to a path that nobody carries.
    hosts.kill("trs");
    hosts.wait("the end of the relay", |hosts| relay(hosts, "absent"));
    assert_eq!(hosts.dig("b", "c.home.internal", "A").0, "SERVFAIL");
    hosts.serve("trs", "trs", &trs);
    hosts.wait("the relay again", |hosts| relay(hosts, "present"));
    assert_eq!(hosts.dig("b", "c.home.internal", "A"), answer("NOERROR", "10.99.0.4"));
    hosts.wait("a ping of the other pair", |hosts| hosts.pings("b", "10.99.0.4"));
    assert!(hosts.pings("a", "10.99.0.3"));

    // What is revoked is no longer carried.
    hosts.cloud(&format!("revoke b --config {config}"));
    hosts.wait("the end of b", |hosts| !hosts.pings("a", "10.99.0.3"));
}

#[test]
fn a_direct_path_goes_on_without_a_relay() {
    let Some(mut hosts) = network("apartdirect", ["", ""]) else { return };
    assert_eq!(hosts.dig("a", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("a direct path", |hosts| {
        hosts.pings("a", "10.99.0.3") && path(hosts, "a") == "direct"
    });
    hosts.kill("trs");
    hosts.wait("the end of the relay", |hosts| relay(hosts, "absent"));
    assert!(hosts.pings("a", "10.99.0.3") && hosts.pings("b", "10.99.0.2"));
    assert_eq!(path(&hosts, "a"), "direct");
}

#[test]
fn a_server_that_the_configuration_is_not_for_says_so() {
    let Some(hosts) = Hosts::new("apartwrong", &[]) else { return };
    let config = hosts.config();
    hosts.cloud(&format!("all {config} --init --public {PUBLIC}:51900"));
    let refused = hosts.asks_cloud(&format!("nms {config}"));
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("expected [relay] or [as], of a server on another host"), "{said}");
    assert!(said.contains("trs.toml --init --public ADDRESS --nms 203.0.113.1:51900"), "{said}");
}
