//! A slice of the campaign over sets: drawn sets and rules, packets that often are in them.
//!
//! Needs root, the legacy tools and ipset; without them it says so and passes. `TAMIS_ORACLE_PACKETS` and
//! `TAMIS_ORACLE_SEED` make it longer or another.

use lab::layouts::Layouts;
use lab::oracle::sets::{lacking, run};

use crate::setting;

#[test]
fn sets_find_what_the_kernel_s_find() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let (seed, packets) =
        (setting("TAMIS_ORACLE_SEED", 1), setting("TAMIS_ORACLE_PACKETS", 40_000));
    let found = run(seed, packets, 4, Layouts::Each).unwrap();
    println!("{} hosts, {} packets, {} passed", found.rulesets, found.packets, found.passed);
    assert!(found.failures.is_empty(), "{}", found.failures.join("\n\n"));
    assert!(found.passed > 0 && found.passed < found.packets, "nothing was told apart");
}

/// One host of a campaign alone: `TAMIS_ORACLE_ONLY=348`.
#[test]
fn one_host() {
    let Some(number) = std::env::var("TAMIS_ORACLE_ONLY").ok().and_then(|n| n.parse().ok()) else {
        return;
    };
    let seed = setting("TAMIS_ORACLE_SEED", 1);
    let (.., told) = lab::oracle::sets::one(seed, number, Layouts::Each.of(number)).unwrap();
    assert_eq!(told, None);
}
