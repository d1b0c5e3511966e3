//! Nodes with IPv4 alone and nodes with IPv6 alone reach each other by a relay that has both. Needs root, `ping`, `nft` and
//! `dig`; without, it says so and skips.

use std::fs;

use crate::direct::path;
use crate::namespaces::{Hosts, PUBLIC};
use crate::reached::{allow, answer};
use crate::routers::{becomes, lay_v6};

/// Where the cloud is by IPv6.
const PUBLIC6: &str = "2001:db8:ff::1";

#[test]
fn one_node_has_ipv4_alone_and_the_other_one_ipv6_alone() {
    let nodes = ["a", "b"];
    let Some(mut hosts) = Hosts::new("families", &nodes) else { return };
    lay_v6(&hosts, &nodes);
    becomes(&hosts, ("a", 1), "plain");
    becomes(&hosts, ("b", 2), "firewall");
    hosts.does("b", "ip -4 address flush dev eth0");
    hosts.does("cloud", &format!("ip -6 address add {PUBLIC6}/64 dev eth0 nodad"));
    hosts.does("net", "ip -6 address add 2001:db8:ff::2/64 dev cloud nodad");
    hosts.does("cloud", "ip -6 route add default via 2001:db8:ff::2");

    let config = hosts.config();
    hosts.cloud(&format!("all {config} --init --public {PUBLIC}:51900 --domain home.internal"));
    let text = fs::read_to_string(&config).unwrap();
    let given = text.replace("# public6 = \"2001:db8::1\"", &format!("public6 = \"{PUBLIC6}\""));
    assert_ne!(given, text);
    fs::write(&config, given).unwrap();
    allow(&hosts, "a", "b");
    hosts.start_cloud();
    let printed = hosts.cloud(&format!("enrol a b --config {config}"));
    let printed6 = printed.replace(&format!("{PUBLIC}:"), &format!("[{PUBLIC6}]:"));
    for (node, printed) in [("a", &printed), ("b", &printed6)] {
        let joined = hosts.join_as(node, printed);
        assert!(joined.status.success(), "{joined:?}");
        hosts.up(node);
    }
    let are_there = |hosts: &Hosts| {
        let listed = hosts.cloud(&format!("devices --config {config}"));
        listed.lines().filter(|line| line.ends_with("present")).count() == 2
    };
    hosts.wait("registrations", are_there);
    assert_eq!(hosts.dig("a", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("the first ping", |hosts| hosts.pings("a", "10.99.0.3"));
    assert!(hosts.pings("b", "10.99.0.2"), "the way back");
    assert_eq!(["a", "b"].map(|node| path(&hosts, node)), ["relay", "relay"]);

    // Both are shown the relay of their family by a cloud that began again, too.
    hosts.kill("cloud");
    hosts.start_cloud();
    hosts.wait("registrations again", are_there);
    hosts.kill("b");
    hosts.up("b");
    hosts.wait("the node again", |hosts| hosts.pings("a", "10.99.0.3"));
}
