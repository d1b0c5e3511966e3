//! Lists of `-m recent` that rules of both families name, shared by workers: one from the first rule that names it
//! until none of either family does.

use dataplane::publish::{Published, Worker};
use dataplane::{Config, FinalVerdict, Path};
use packet::craft::{Addresses, Craft, Message};
use rules::model::Family;
use rules::save::{LoadOptions, load};

use super::{arrival, verdict};

/// A rule that begins a list in which the first byte of an address counts, also of an IPv6 address.
const SHORT: &str =
    "-A FORWARD -p udp -m udp --dport 9 -m recent --name L --mask 255.0.0.0 --set -j DROP\n";
const V6: &str = "-A FORWARD -p udp -m udp --dport 1 -m recent --name L --set -j DROP\n\
    -A FORWARD -p udp -m udp --dport 2 -m recent --name L --rcheck -j ACCEPT\n";

fn table(rules: &str) -> String {
    format!("*filter\n:FORWARD DROP [0:0]\n{rules}COMMIT\n")
}

fn published() -> Published {
    let read = |rules: &str, family| {
        let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
        load(&table(rules), &options).unwrap().ruleset
    };
    let (v4, v6) = (read(SHORT, Family::Ipv4), read(V6, Family::Ipv6));
    let config = Config { path: Some(Path::Forward), ..Config::default() };
    Published::new([&v4, &v6], config)
}

/// Other rules in force for both workers.
fn restored(published: &Published, family: Family, rules: &str) {
    let text = format!("*filter\n-F FORWARD\n{rules}COMMIT\n");
    published.commit_text(published.program().number(), family, &text).unwrap();
}

/// Whether a worker accepts a datagram of a host of fd01::/16 or fd02::/16.
fn accepts(worker: &mut Worker, net: u8, port: u16) -> bool {
    let ends = [[0xfd, net], [0xfd, 9]].map(|start| {
        let mut address = [1; 16];
        address[..2].copy_from_slice(&start);
        address
    });
    let addresses = Addresses::V6 { source: ends[0], destination: ends[1] };
    let frame = Craft { ethernet: None, ..Craft::new(addresses, Message::udp(4000, port)) }.frame();
    let time = arrival(1, 1_000_000_000, frame.len()).time.unwrap();
    matches!(verdict(&mut worker.burst(), frame, (1, time)), FinalVerdict::Accept(_))
}

#[test]
fn a_list_is_that_of_both_families_until_neither_names_it() {
    let published = published();
    let [mut one, mut other] = [published.worker(), published.worker()];
    assert!(!accepts(&mut one, 1, 1), "entered");
    assert!(accepts(&mut other, 1, 2) && accepts(&mut other, 2, 2), "by the IPv4 rule's mask");
    restored(&published, Family::Ipv4, "");
    assert!(accepts(&mut one, 2, 2), "IPv6 rules still name it");
    restored(&published, Family::Ipv4, SHORT);
    restored(&published, Family::Ipv6, "");
    assert!(!accepts(&mut one, 2, 2) && !accepts(&mut other, 2, 2), "no rules");
    restored(&published, Family::Ipv6, V6);
    assert!(accepts(&mut one, 2, 2), "IPv4 rules named it all the while");
    for family in [Family::Ipv4, Family::Ipv6] {
        restored(&published, family, "");
        _ = [accepts(&mut one, 1, 2), accepts(&mut other, 1, 2)];
    }
    restored(&published, Family::Ipv6, V6);
    assert!(!accepts(&mut one, 1, 2), "it began anew");
    assert!(!accepts(&mut one, 1, 1), "entered");
    assert!(accepts(&mut other, 1, 2) && !accepts(&mut other, 2, 2), "by the IPv6 rule's mask");
}
