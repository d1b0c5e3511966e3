//! Two relays on hosts of their own, of which one is killed while nodes speak by it: both nodes use the other one. Needs root,
//! `ping`, `nft` and `dig`; without, it says so and skips.

use std::thread;
use std::time::Duration;

use crate::apart::{network_of, relay_config};
use crate::namespaces::Hosts;
use crate::reached::answer;

const RELAYS: [&str; 2] = ["trs", "trs2"];

/// The host of the relay by which a node of the pair reaches the other node.
fn used(hosts: &Hosts, node: &str) -> &'static str {
    let config = hosts.node_config(node);
    let printed = hosts.does(node, &format!("tamis tunnel peers --json {}", config.display()));
    let peers: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let of_the_pair = |peer: &&serde_json::Value| {
        let allowed = peer["allowed"][0].as_str().unwrap_or_default();
        ["10.99.0.2/32", "10.99.0.3/32"].contains(&allowed)
    };
    let mut peers = peers["tunnels"][0]["peers"].as_array().expect("peers").iter();
    let endpoint = peers.find(of_the_pair).and_then(|peer| peer["endpoint"].as_str());
    let [first, other] = RELAYS;
    match endpoint.and_then(|at| at.split(":520").next()) {
        Some("203.0.114.1") => first,
        Some("203.0.115.1") => other,
        _ => panic!("{printed}"),
    }
}

/// Replies of `ping`: the number of each, and when it came, in seconds.
fn replies(printed: &str) -> Vec<(u32, f64)> {
    let reply = |line: &str| {
        let at = line.strip_prefix('[')?.split(']').next()?.parse().ok()?;
        let number = line.split("icmp_seq=").nth(1)?.split(' ').next()?.parse().ok()?;
        Some((number, at))
    };
    printed.lines().filter_map(reply).collect()
}

/// Kills the relay that is used while one node pings the other one, twenty times a second; returns which it was.
fn kill_used(hosts: &mut Hosts) -> &'static str {
    let killed = used(hosts, "a");
    let printed = thread::scope(|scope| {
        let hosts = &*hosts;
        let ping = || hosts.says("a", "ping -n -D -i 0.05 -W 1 -c 160 10.99.0.3");
        let ping = scope.spawn(ping);
        thread::sleep(Duration::from_secs(2));
        hosts.kill_all(killed);
        ping.join().unwrap().stdout
    });
    hosts.kill(killed);
    let printed = String::from_utf8(printed).unwrap();
    let replies = replies(&printed);
    let gaps = replies.windows(2).map(|two| (two[1].1 - two[0].1, two[1].0 - two[0].0 - 1));
    let (gap, lost) = gaps.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
    eprintln!("{killed} was killed: nothing came for {gap:.2} s, {lost} of 160 packets were lost");
    // 8 s in all: the last replies took the other relay.
    assert_eq!(replies.last().unwrap().0, 160, "{printed}");
    assert_ne!(used(hosts, "a"), killed);
    assert_ne!(used(hosts, "b"), killed);
    killed
}

#[test]
fn pairs_are_on_another_relay_once_one_is_killed() {
    let Some(mut hosts) = network_of("relays", ["random", "fully-random"], &RELAYS) else {
        return;
    };
    assert_eq!(hosts.dig("a", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("the first ping", |hosts| hosts.pings("a", "10.99.0.3"));
    // Each relay has had the time to write down where nodes send from.
    thread::sleep(Duration::from_secs(2));
    let killed = kill_used(&mut hosts);
    let listed = |hosts: &Hosts| hosts.cloud(&format!("devices --config {}", hosts.config()));
    hosts.wait("the end of a relay", |hosts| listed(hosts).contains(", and is not there"));
    // Names are found by the other one.
    assert_eq!(hosts.dig("b", "c.home.internal", "A"), answer("NOERROR", "10.99.0.4"));
    hosts.wait("a ping of the other pair", |hosts| hosts.pings("b", "10.99.0.4"));

    // Once it is back, the other one may be killed, also without the directory.
    hosts.serve(killed, "trs", &relay_config(&hosts, killed));
    hosts.wait("both relays", |hosts| !listed(hosts).contains(", and is not there"));
    hosts.kill("cloud");
    assert_ne!(kill_used(&mut hosts), killed);
}
