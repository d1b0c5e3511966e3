//! Matches that go by the clock, by what came before, or by what the host is, against the kernel: `hashlimit`, `quota`,
//! `time`, `cluster`, `devgroup` and `realm`. Needs root and the legacy tools; without them it says so and passes.
//!
//! Drawn rules that only count get packets with pauses in between. After each batch every rule has to have as many packets
//! as tamis says, or, where the clock's tick leaves it open, a number between those that surely and those that maybe hit.
//! `TAMIS_TIMED_PACKETS` says how many packets each family gets, `TAMIS_TIMED_FAMILY` which one alone (4, 6); the shares
//! that were open are written out.

mod rulesets;
mod trial;

use std::collections::BTreeMap;

use fastrand::Rng;
use lab::oracle::load::lacking;
use lab::oracle::netns::in_fresh;
use rules::model::Family;

use crate::setting;
use trial::{Told, Trial};

/// Packets of one ruleset.
const PACKETS: u64 = 2000;
/// Of so many packets every match has to hit some.
const MANY: u64 = 40_000;

/// What rules of a match were asked about, hit surely and maybe, by its name.
type Shares = BTreeMap<String, Share>;

#[derive(Debug, Clone, Copy, Default)]
struct Share {
    packets: u64,
    hits: u64,
    open: u64,
}

#[test]
fn what_goes_by_the_clock_is_as_in_the_kernel() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let (packets, seed) =
        (setting("TAMIS_TIMED_PACKETS", PACKETS), setting("TAMIS_ORACLE_SEED", 1));
    let which = setting("TAMIS_TIMED_FAMILY", 0);
    let families = [(4, Family::Ipv4), (6, Family::Ipv6)].into_iter();
    for (_, family) in families.filter(|(number, _)| which == 0 || which == *number) {
        let (mut shares, mut sent, mut late) = (Shares::new(), 0, 0);
        for number in 0..packets.div_ceil(PACKETS) * 2 {
            if sent >= packets {
                break;
            }
            let mut rng = Rng::with_seed(seed * 1_000_003 + number);
            let told = in_fresh(|| Trial::new(&mut rng, family, number)?.run(&mut rng, PACKETS));
            match told.unwrap_or_else(|error| panic!("run {number}: {error}")) {
                Told::Agrees(found) => {
                    sent += PACKETS;
                    found.into_iter().for_each(|(name, share)| add(&mut shares, name, share));
                }
                // The machine was too busy to say when the kernel saw a packet.
                Told::Late => late += 1,
                Told::Differs(story) => panic!("{family:?}, seed {seed}, run {number}:\n{story}"),
            }
        }
        eprintln!("{}: {sent} packets, {late} runs were late", family.name());
        for (name, Share { packets, hits, open }) in &shares {
            eprintln!("  {name}: {packets} packets at its rules, {hits} surely hit, {open} maybe");
        }
        assert!(sent >= packets, "the machine is too busy: {late} runs were late");
        for name in rulesets::names(family).iter().filter(|_| packets >= MANY) {
            let share = shares.get(*name).copied().unwrap_or_default();
            assert!(share.hits > 0, "{name} never hit");
        }
    }
}

fn add(shares: &mut Shares, name: String, share: Share) {
    let sum = shares.entry(name).or_default();
    sum.packets += share.packets;
    sum.hits += share.hits;
    sum.open += share.open;
}
