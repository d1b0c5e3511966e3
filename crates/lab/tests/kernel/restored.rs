//! What `iptables-restore` leaves, and a handler that follows one program after the other: lists of `-m recent` and
//! connections. Rules are restored again and again, the same or others, with packets in between. Needs root and the
//! legacy tools; without them it says so and passes.
//!
//! Each time the kernel counts from zero, and every rule has to have as many packets as tamis says; none may be in
//! doubt. States of `limit` and `statistic` begin again in the kernel, and go on under a revision: they are left out.

use std::io;
use std::sync::Arc;

use dataplane::{Arrival, Counters, Handler, Observer, Origin, Program};
use fastrand::Rng;
use lab::oracle::counters::Reader;
use lab::oracle::load::{lacking, restore};
use lab::oracle::netns::{in_fresh, ip};
use lab::oracle::tun::Tun;
use lab::scene::{Placement, Scene, Wire};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use rules::Transit;
use rules::eval::{self, RuleRef};
use rules::model::{Family, Ruleset};
use rules::revision::{Numbers, Revision};
use rules::save::{LoadOptions, load};

use crate::setting;

/// Rules that only count.
const RULES: [&str; 8] = [
    "-p udp -m udp --dport 54 -m recent --name SEEN --set",
    "-p udp -m udp --dport 55 -m recent --name SEEN --rcheck",
    "-p udp -m udp --dport 55 -m recent --name SEEN --rcheck --hitcount 2",
    "-p udp -m udp --dport 55 -m recent --name SEEN --rcheck --hitcount 40",
    "-p udp -m udp --dport 53 -m recent --name OTHER --set --rdest",
    "-p udp -m recent --name OTHER --rcheck --rsource",
    "-m conntrack --ctstate NEW",
    "-m conntrack --ctstate ESTABLISHED",
];

const RESTORES: usize = 8;
const PACKETS: usize = 14;

pub(super) struct Hits(pub(super) Counters);

impl eval::Observer for Hits {
    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        self.0.hit_rule(at, certain, transit.packet.len() as u64, transit.time);
    }
}

impl Observer for Hits {}

#[test]
fn rules_that_are_restored_remember_what_the_kernel_s_do() {
    each_run(|rng, _| in_fresh(|| trial(rng)));
}

/// Runs, each with its own seed and number: some hit rules, and none tells of a difference.
pub(super) fn each_run(mut trial: impl FnMut(&mut Rng, u64) -> io::Result<Result<u64, String>>) {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let (mut hits, seed) = (0, setting("TAMIS_ORACLE_SEED", 1));
    for number in 0..setting("TAMIS_RESTORE_RUNS", 20) {
        let mut rng = Rng::with_seed(seed * 1_000_003 + number);
        let told = trial(&mut rng, number).unwrap_or_else(|error| panic!("run {number}: {error}"));
        hits += told.unwrap_or_else(|story| panic!("seed {seed}, run {number}:\n{story}"));
    }
    assert!(hits > 0);
}

/// A table of some of the rules.
fn draw(rng: &mut Rng) -> String {
    let mut text = "*filter\n:FORWARD ACCEPT [0:0]\n".to_owned();
    for rule in RULES.iter().filter(|_| rng.u8(..4) > 0) {
        text += &format!("-A FORWARD {rule}\n");
    }
    text + "COMMIT\n"
}

/// How often rules were hit, or what differs with what happened before.
fn trial(rng: &mut Rng) -> io::Result<Result<u64, String>> {
    let mut tun = Tun::new(&Scene::new(Family::Ipv4, Wire::Tun, Placement::Forward))?;
    ip("route add 10.1.0.0/16 dev t0\n")?;
    let (mut text, mut story) = (draw(rng), String::new());
    let mut handler: Option<Handler> = None;
    let (mut revision, mut numbers) = (None::<Arc<Revision>>, Numbers::default());
    let (mut number, mut hit) = (0, 0);
    for _ in 0..RESTORES {
        story += &text;
        restore(Family::Ipv4, &text)?;
        let ruleset = Arc::new(read(&text, Family::Ipv4)?);
        let next = revised(revision.as_deref(), read(&text, Family::Ipv4)?, &mut numbers)?;
        let next = revision.insert(Arc::new(next));
        let (number_of_it, next) = (next.number(), Arc::clone(next));
        let program = Program::of_revisions(
            number_of_it,
            [next],
            Arc::new(super::two_devices()),
            Arc::default(),
        );
        let handler = handler.get_or_insert_with(|| Handler::new(&program));
        handler.follow(&program);
        let mut hits = Hits(Counters::of(&ruleset));
        for _ in 0..PACKETS {
            number += 1;
            let (is_back, mut bytes) = packet(rng);
            if is_back { tun.send_far(&bytes) } else { tun.send(&bytes) }?;
            let arrival = Arrival {
                time: Some(1_000_000_000 + number * 1_000),
                origin: Origin::Wire,
                interface: Some(if is_back { "t1" } else { "t0" }),
                ..Arrival::new(number, Link::Raw, bytes.len())
            };
            let end = handler.handle(&program, &mut bytes, &arrival, &mut hits).outcome.end;
            story += &format!("{number} {:?} {:?}\n", &bytes[12..24], end.verdict);
        }
        match compared(&ruleset, &hits.0)? {
            Ok(packets) => hit += packets,
            Err(what) => return Ok(Err(format!("{story}{what}"))),
        }
        if rng.bool() {
            text = draw(rng);
        }
    }
    Ok(Ok(hit))
}

pub(super) fn read(text: &str, family: Family) -> io::Result<Ruleset> {
    load(text, &LoadOptions { family: Some(family), ..LoadOptions::default() })
        .map(|loaded| loaded.ruleset)
        .map_err(io::Error::other)
}

pub(super) fn revised(
    old: Option<&Revision>,
    ruleset: Ruleset,
    numbers: &mut Numbers,
) -> io::Result<Revision> {
    match old {
        Some(old) => old.replaced_by(ruleset, numbers).map_err(io::Error::other),
        None => Ok(Revision::first(&ruleset, numbers)),
    }
}

/// A datagram of one of two clients, or back to it.
fn packet(rng: &mut Rng) -> (bool, Vec<u8>) {
    let is_back = rng.u8(..4) == 0;
    let (client, server) = ([10, 1, 0, rng.u8(7..9)], [10, 2, 0, 9]);
    let (own, port) = (rng.u16(4000..4002), rng.u16(53..56));
    let (source, destination, message) = match is_back {
        true => (server, client, Message::udp(port, own)),
        false => (client, server, Message::udp(own, port)),
    };
    let addresses = Addresses::V4 { source, destination };
    (is_back, Craft { ethernet: None, ..Craft::new(addresses, message) }.frame())
}

/// How often rules of FORWARD were hit since they were restored, or where the kernel says otherwise.
pub(super) fn compared(ruleset: &Ruleset, ours: &Counters) -> io::Result<Result<u64, String>> {
    let chains = Reader::open(ruleset.family)?.read("filter")?;
    let kernel = chains.iter().find(|chain| chain.chain == "FORWARD");
    let chain = ruleset.tables[0].chains.iter().position(|chain| &*chain.name == "FORWARD");
    let (Some(kernel), Some(chain)) = (kernel, chain) else {
        return Err(io::Error::other("no chain FORWARD"));
    };
    let (mut sum, mut told) = (0, String::new());
    for (rule, counted) in (0..).zip(&kernel.entries[..kernel.entries.len() - 1]) {
        let hits = ours.rule(RuleRef { table: 0, chain: chain as u32, rule });
        sum += hits.packets;
        if (hits.packets, hits.maybe) != (counted.packets, 0) {
            told += &format!("rule {}: kernel {counted:?}, tamis {hits:?}\n", rule + 1);
        }
    }
    Ok(if told.is_empty() { Ok(sum) } else { Err(told) })
}
