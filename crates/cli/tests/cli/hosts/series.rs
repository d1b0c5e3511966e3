//! A short piece of `make series`: tamis and this machine's kernel one after the other, in both orders, count alike.

use std::path::Path;

use lab::series::compare::{Played, compare};
use lab::series::{Backend, Order, SETTINGS, Setting, Wire, forwarding, lacking, play};

use crate::ran::{Scratch, TAMIS, skipped};

/// Refuses host b what host a may do, by every kind of end.
const RULES: &str = "*filter\n:FORWARD DROP [0:0]\n:new - [0:0]\n\
    -A FORWARD -m conntrack --ctstate INVALID -j DROP\n\
    -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A FORWARD -m conntrack --ctstate NEW -g new\n\
    -A new -i eth1 -p tcp -m multiport --dports 21,22,53,80,443,5201 -j ACCEPT\n\
    -A new -i eth1 -p udp -m multiport --dports 53,5201 -j ACCEPT\n\
    -A new -i eth1 -p icmp -m icmp --icmp-type echo-request -j ACCEPT\n\
    -A new -p tcp -j REJECT --reject-with tcp-reset\n\
    -A new -p icmp -m length --length 0:100 -j ACCEPT\n\
    -A new -p udp -j REJECT --reject-with icmp-port-unreachable\nCOMMIT\n";

#[test]
fn the_kernel_and_tamis_count_alike_in_series() {
    count_alike("ferm-dmz-router", |_| forwarding(RULES));
}

#[test]
fn the_kernel_and_tamis_count_ipv6_alike_in_series() {
    // Rules of ours lie in no folder.
    count_alike("ipv6-own", |setting| setting.rules(Path::new("")).unwrap());
}

/// The hosts of a setting, under these rules.
fn count_alike(name: &str, rules: impl Fn(&Setting) -> String) {
    if let Some(reason) = lacking() {
        return skipped(&format!("in series with the kernel: {reason}"));
    }
    let setting = SETTINGS.iter().find(|setting| setting.ruleset == name).unwrap();
    let folder = Scratch::new(&format!("series-{name}"));
    let wire = Wire { tamis: Path::new(TAMIS), backend: Backend::AfPacket };
    let runs = Order::ALL.map(|order| {
        let dir = folder.path().join(order.name());
        play(setting, &rules(setting), order, &dir, wire, 100_000).unwrap();
        Played::read(&dir, setting, order).unwrap()
    });
    let compared = compare(&runs);
    assert!(compared.packets > 1000 && compared.hit > 8, "{compared:?}");
    assert!(compared.dropped > 20, "something is refused: {compared:?}");
    let findings: Vec<String> = compared.findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{findings:#?}");
}
