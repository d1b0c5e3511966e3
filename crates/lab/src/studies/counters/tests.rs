//! What is compared counts the same.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use dataplane::publish::tally::Local;
use dataplane::publish::{Published, Worker};
use dataplane::{Config, Start};
use host::Host;
use packet::{Checksums, Link, Packet};
use rules::Transit;
use rules::eval::Alive;
use rules::model::{Counters, Family, Hook, Ruleset};
use rules::save::{LoadOptions, load};

use super::*;

const THREE: &str = "*mangle\n:PREROUTING ACCEPT [100:1]\n[7:70] -A PREROUTING -p udp\n\
                     -A PREROUTING -s 10.0.0.1\n-A PREROUTING -s 10.9.0.1\nCOMMIT\n";

/// Bytes of every packet.
const BYTES: u64 = 40;

fn ruleset(text: &str) -> Ruleset {
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    load(text, &options).unwrap().ruleset
}

/// Walks a packet from 10.0.0.1 through PREROUTING of mangle.
fn walk<T: Tally>(worker: &mut Worker<T>) {
    let mut bytes = [0; BYTES as usize];
    (bytes[0], bytes[3], bytes[8], bytes[9]) = (0x45, BYTES as u8, 64, 17);
    bytes[12..16].copy_from_slice(&[10, 0, 0, 1]);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
    let host = Host::default();
    let mut packet = Packet::parse(&mut bytes, BYTES as usize, Link::Raw, Checksums::Ignore);
    let mut transit = Transit::new(&mut packet, Family::Ipv4, Hook::Prerouting, &host);
    worker.burst().walk(0, &mut transit, Alive::Certain);
}

/// Packets of the three rules, and of the policy.
fn packets<T: Tally>(published: &Published<T>) -> (Vec<u64>, u64) {
    let snapshot = published.snapshot().unwrap();
    let revision = snapshot.program.revision(Family::Ipv4).unwrap();
    let rules = (0..).map_while(|at| revision.rule("mangle", "PREROUTING", at));
    let rules = rules.map(|rule| snapshot.rule(rule).packets).collect();
    (rules, snapshot.policy(Family::Ipv4, "mangle", Hook::Prerouting).packets)
}

/// What two workers have counted after a packet each, and after one more of the one that is left.
fn counted<T: Tally>() -> [(Vec<u64>, u64); 2] {
    let published =
        Published::<T>::counting([&ruleset(THREE)], Config::default(), Start::default());
    let (mut one, mut other) = (published.worker(), published.worker());
    walk(&mut one);
    walk(&mut other);
    drop(one);
    let found = packets(&published);
    walk(&mut other);
    [found, packets(&published)]
}

#[test]
fn every_kind_counts_the_same() {
    let expected = [(vec![9, 2, 0], 102), (vec![10, 3, 0], 103)];
    assert_eq!(counted::<Local>(), expected);
    assert_eq!(counted::<Shared>(), expected);
    assert_eq!(counted::<Elsewhere>(), expected);
    assert_eq!(counted::<Uncounted>()[1], (vec![7, 0, 0], 100));
}

/// A match that says yes but for its counting: verdicts stay, and two of them count twice the same.
#[test]
fn locked_counters_are_matches() {
    let mut rules = ruleset(THREE);
    let locked = locked::add(&mut rules, 2);
    let published = Published::new([&rules], Config::default());
    let (mut one, mut other) = (published.worker(), published.worker());
    walk(&mut one);
    walk(&mut other);
    assert_eq!(packets(&published).0, [9, 2, 0]);
    let twice = Counters { packets: 2, bytes: 2 * BYTES };
    let found: Vec<Vec<Counters>> = (0..3).map(|slot| locked.rule(slot).collect()).collect();
    assert_eq!(found, [vec![twice; 2], vec![twice; 2], vec![Counters::default(); 2]]);
}
