//! A slice of `make campaign`, over what the checkout has: rules, captures and options that are drawn from seeds, replayed in
//! ways that have to agree.

use std::path::Path;

use lab::campaign::{Campaign, Materials, Played};

use crate::ran::{Scratch, TAMIS};

#[test]
fn all_ways_to_replay_a_case_agree() {
    let scratch = Scratch::new("campaign");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let materials = Materials::of_checkout(&root);
    assert!(materials.rules.len() > 20 && materials.captures.len() > 10);
    let folder = scratch.path().to_owned();
    let campaign = Campaign { tamis: TAMIS.into(), materials, folder };
    let (mut replayed, mut refused) = (0, 0);
    for seed in 1..=40 {
        match campaign.play(seed).unwrap() {
            Ok(Played::Replayed(packets)) => replayed += packets,
            Ok(Played::Refused) => refused += 1,
            Err(wrong) => panic!("{wrong}"),
        }
    }
    assert!(replayed > 0 && refused > 0, "{replayed} packets, {refused} refused");
}
