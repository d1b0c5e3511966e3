//! Two nodes behind routers that masquerade reach each other without the relay, once their routers let them; and through it
//! again, when that path ends.

use std::time::Instant;

use crate::namespaces::{Hosts, skipped};
use crate::reached::{answer, network_on};

/// How a node reaches its only peer by the directory.
pub(crate) fn path(hosts: &Hosts, node: &str) -> String {
    let config = hosts.node_config(node);
    let peers = hosts.does(node, &format!("tamis tunnel peers --json {}", config.display()));
    let path = peers.split("\"path\":").nth(1).and_then(|rest| rest.split('"').nth(1));
    path.unwrap_or_default().to_owned()
}

/// Datagrams that came to the relay.
fn relayed(hosts: &Hosts) -> u64 {
    let devices = hosts.cloud(&format!("devices --json --config {}", hosts.config()));
    let devices: serde_json::Value = serde_json::from_str(&devices).unwrap();
    let relay = &devices["relays"][0];
    relay["forwarded"].as_u64().unwrap() + relay["dropped"].as_u64().unwrap()
}

fn is_direct(hosts: &Hosts) -> bool {
    path(hosts, "a") == "direct" && path(hosts, "b") == "direct"
}

/// What `ping` says of `count` packets, five a second.
fn ping(hosts: &Hosts, count: u32) -> String {
    let output = hosts.says("a", &format!("ping -n -i 0.2 -W 1 -c {count} 10.99.0.3"));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn two_nodes_reach_each_other_directly_and_by_the_relay_where_that_ends() {
    let shut = |hosts: &Hosts| ["a", "b"].into_iter().for_each(|node| hosts.shuts(node));
    let Some(hosts) = network_on("direct", ["", ""], shut) else { return };
    let asked = Instant::now();
    assert_eq!(hosts.dig("a", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("the first ping", |hosts| hosts.pings("a", "10.99.0.3"));
    let moving = ping(&hosts, 10);
    hosts.wait("a direct path", is_direct);
    eprintln!("from the question to a direct path: {} ms", asked.elapsed().as_millis());
    assert!(moving.contains(" 0% packet loss"), "nothing is lost on the way: {moving}");

    let before = relayed(&hosts);
    let direct = ping(&hosts, 10);
    assert!(direct.contains(" 0% packet loss"), "{direct}");
    assert_eq!(relayed(&hosts), before, "nothing goes through the relay any more");

    // The direct path ends; the nodes find out by themselves.
    let cut = "table ip cut {\nchain forward {\ntype filter hook forward priority 0\n\
               ip saddr 198.51.0.0/16 ip daddr 198.51.0.0/16 drop\n}\n}\n";
    hosts.rules("net", cut);
    let cut = Instant::now();
    hosts.wait("the relay", |hosts| hosts.pings("a", "10.99.0.3"));
    eprintln!("from the end of the direct path to the relay: {} ms", cut.elapsed().as_millis());
    let through = ping(&hosts, 5);
    assert!(through.contains(" 0% packet loss"), "{through}");
    assert!(relayed(&hosts) > before && path(&hosts, "a") == "relay");
}

#[test]
fn two_nodes_on_one_network_reach_each_other_there_whatever_their_routers_do() {
    let join =
        |hosts: &Hosts| hosts.join(("a", "lan0", "10.77.0.1/24"), ("b", "lan0", "10.77.0.2/24"));
    let Some(hosts) = network_on("near", ["random", "random"], join) else { return };
    assert_eq!(hosts.dig("a", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("a direct path", is_direct);
    let config = hosts.node_config("a");
    let peers = hosts.does("a", &format!("tamis tunnel peers {}", config.display()));
    assert!(peers.contains(" 10.77.0.2:") && peers.contains(" direct "), "{peers}");
    assert!(ping(&hosts, 5).contains(" 0% packet loss"));
}

/// Routers that give each destination another port pass nothing directly, but where one of them maps a port.
#[test]
fn two_nodes_reach_each_other_directly_where_one_router_maps_a_port() {
    let daemon = "/usr/sbin/miniupnpd";
    if !std::path::Path::new(daemon).exists() {
        return skipped("mapped: no miniupnpd (package miniupnpd-nftables)");
    }
    let maps = |hosts: &Hosts| {
        hosts.rules("ra", MAPPING);
        let file = hosts.folder.path().join("miniupnpd.conf");
        let pid = hosts.folder.path().join("miniupnpd.pid");
        std::fs::write(&file, MINIUPNPD).unwrap();
        hosts.does("ra", &format!("{daemon} -f {} -P {}", file.display(), pid.display()));
    };
    let Some(hosts) = network_on("mapped", ["random", "random"], maps) else { return };
    hosts.wait("a mapping", |hosts| hosts.log("a").contains("the router maps 198.51.1.1:"));
    assert!(!hosts.log("b").contains("maps"), "the other router has no such server");
    assert_eq!(hosts.dig("b", "a.home.internal", "A"), answer("NOERROR", "10.99.0.2"));
    hosts.wait("a direct path", is_direct);
    assert!(ping(&hosts, 5).contains(" 0% packet loss"));
    // It ends with the tunnel.
    let is_mapped =
        |hosts: &Hosts| hosts.does("ra", "nft list table inet mapping").contains("dnat");
    assert!(is_mapped(&hosts));
    hosts.does("a", &format!("tamis tunnel down {}", hosts.node_config("a").display()));
    hosts.wait("the end of the mapping", |hosts| !is_mapped(hosts));
}

const MINIUPNPD: &str = "ext_ifname=wan\nlistening_ip=lan\nenable_natpmp=yes\nenable_upnp=no\nsecure_mode=yes\n\
    upnp_table_name=mapping\nupnp_nat_table_name=mapping\nupnp_forward_chain=forwarded\nupnp_nat_chain=mapped\n\
    upnp_nat_postrouting_chain=back\nallow 1024-65535 10.0.0.0/8 1024-65535\ndeny 0-65535 0.0.0.0/0 0-65535\n";
const MAPPING: &str = "table inet mapping {\nchain forwarded {\n}\nchain mapped {\n}\nchain back {\n}\n\
    chain pre {\ntype nat hook prerouting priority dstnat\njump mapped\n}\n\
    chain post {\ntype nat hook postrouting priority srcnat - 1\njump back\n}\n}\n";
