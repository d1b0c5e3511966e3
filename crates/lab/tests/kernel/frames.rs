//! Slices of the campaigns over bridge rules, ARP rules and rules of both implementations of iptables, against ebtables-nft,
//! arptables-legacy, and iptables-legacy with iptables-nft.
//!
//! Need root, those tools and namespaces; without them they say so and pass. `TAMIS_ORACLE_FRAMES` and
//! `TAMIS_ORACLE_SEED` make them longer or others.

use lab::layouts::Layouts;
use lab::oracle::below::{both, fragments, lacks_both};
use lab::oracle::ebtables::Ebtables;
use lab::oracle::frames::{FrameSummary, arp, bridge, lacks_arp, lacks_bridge};
use lab::oracle::holders::{holders, lacks_holders};

use crate::setting;

fn settle(found: &FrameSummary) {
    let FrameSummary { rulesets, frames, passed, failures } = found;
    println!("{rulesets} rulesets, {frames} frames, {passed} let through");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(0 < *passed && passed < frames, "nothing was told apart");
}

#[test]
fn frames_cross_a_bridge_as_they_cross_the_kernel_s() {
    if let Some(reason) = lacks_bridge(Ebtables::Nft) {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    settle(
        &bridge(
            setting("TAMIS_ORACLE_SEED", 1),
            setting("TAMIS_ORACLE_FRAMES", 40_000),
            Layouts::Each,
            Ebtables::Nft,
        )
        .unwrap(),
    );
}

#[test]
fn arp_rules_count_as_the_kernel_s_do() {
    if let Some(reason) = lacks_arp() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let (seed, frames) = (setting("TAMIS_ORACLE_SEED", 1), setting("TAMIS_ORACLE_FRAMES", 20_000));
    settle(&arp(seed, frames, Layouts::Each).unwrap());
}

#[test]
fn a_bridge_s_rules_and_those_of_what_it_hands_over_take_turns_as_in_the_kernel() {
    if let Some(reason) = lacks_both() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let (seed, frames) = (setting("TAMIS_ORACLE_SEED", 1), setting("TAMIS_ORACLE_FRAMES", 40_000));
    settle(&both(seed, frames, Layouts::Each).unwrap());
}

#[test]
fn fragments_are_a_bridge_s_one_by_one_and_go_on_together() {
    if let Some(reason) = lacks_both() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let (seed, frames) = (setting("TAMIS_ORACLE_SEED", 1), setting("TAMIS_ORACLE_FRAMES", 4000));
    settle(&fragments(seed, frames).unwrap());
}

#[test]
fn tables_of_both_implementations_take_turns_as_in_the_kernel() {
    if let Some(reason) = lacks_holders() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let (seed, frames) = (setting("TAMIS_ORACLE_SEED", 1), setting("TAMIS_ORACLE_FRAMES", 40_000));
    settle(&holders(seed, frames).unwrap());
}
