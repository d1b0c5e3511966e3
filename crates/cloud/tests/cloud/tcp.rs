//! Nodes behind routers that let no UDP through join by TCP, and reach each other by name; and by UDP once their routers let it through. Needs
//! root, `ping`, `nft` and `dig`; without, it says so and skips.

use std::fs;

use crate::authority::network_on;
use crate::namespaces::{Hosts, PUBLIC};
use crate::reached::{allow, answer, are_present, join_all};

const BLOCKED: &str = "table ip blocked {\nchain forward {\ntype filter hook forward priority 0\n\
                       meta l4proto udp drop\n}\n}\n";

/// Where a node's tunnel reaches the cloud.
fn endpoint(hosts: &Hosts, node: &str) -> String {
    let config = hosts.node_config(node);
    let peers = hosts.does(node, &format!("tamis tunnel peers {}", config.display()));
    let row = peers.lines().find(|line| line.starts_with("cloud")).unwrap();
    row.split_whitespace().nth(1).unwrap().to_owned()
}

#[test]
fn nodes_whose_routers_let_no_udp_through_reach_each_other_by_name() {
    let Some(mut hosts) = Hosts::new("tcp", &["a", "b", "c"]) else { return };
    for node in ["a", "b", "c"] {
        hosts.masquerades(node, "");
    }
    let blocked = ["a", "b"];
    blocked.iter().for_each(|node| hosts.rules(&format!("r{node}"), BLOCKED));
    let config = hosts.config();
    hosts.cloud(&format!("all {config} --init --public {PUBLIC}:51900 --domain home.internal"));
    let text = fs::read_to_string(&config).unwrap();
    assert!(text.contains("# tcp = 443"));
    fs::write(&config, text.replace("# tcp = 443", "tcp = 443")).unwrap();
    allow(&hosts, "a", "b");
    allow(&hosts, "b", "c");
    hosts.start_cloud();
    join_all(&mut hosts);
    assert!(endpoint(&hosts, "a").starts_with("127.0.0.1:"));
    assert_eq!(endpoint(&hosts, "c"), format!("{PUBLIC}:51900"));

    // Both by TCP, and one of them with a node by UDP.
    assert_eq!(hosts.dig("a", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("the first ping", |hosts| hosts.pings("a", "10.99.0.3"));
    assert_eq!(hosts.dig("c", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("a ping of the other pair", |hosts| hosts.pings("c", "10.99.0.3"));
    assert!(hosts.pings("b", "10.99.0.2") && hosts.pings("b", "10.99.0.4"));

    // A cloud that begins again has no connection of theirs.
    hosts.kill("cloud");
    hosts.start_cloud();
    hosts.wait("nodes after the restart", are_present);
    hosts.wait("a ping after the restart", |hosts| hosts.pings("a", "10.99.0.3"));

    // Their routers let UDP through again.
    for node in blocked {
        hosts.does(&format!("r{node}"), "nft delete table ip blocked");
    }
    let by_udp = format!("{PUBLIC}:51900");
    hosts.wait("UDP", |hosts| blocked.iter().all(|node| endpoint(hosts, node) == by_udp));
    hosts.wait("a ping by UDP", |hosts| hosts.pings("a", "10.99.0.3"));
}

#[test]
fn servers_on_hosts_of_their_own_are_each_reached_by_tcp() {
    let block = |hosts: &Hosts| {
        ["a", "b"].iter().for_each(|node| hosts.rules(&format!("r{node}"), BLOCKED));
    };
    let Some(mut hosts) = network_on("tcpapart", true, block) else { return };
    assert_eq!(hosts.dig("a", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("the first ping", |hosts| hosts.pings("a", "10.99.0.3"));
    assert_eq!(hosts.dig("c", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("a ping of the other pair", |hosts| hosts.pings("c", "10.99.0.3"));
    for server in [("cloud", "nms"), ("trs", "trs")] {
        hosts.kill(server.0);
        let config = hosts.folder.path().join(format!("{}.toml", server.0)).display().to_string();
        hosts.serve(server.0, server.1, &config);
        hosts.wait("nodes after a restart", are_present);
        hosts.wait("a ping after a restart", |hosts| hosts.pings("a", "10.99.0.3"));
    }
}
