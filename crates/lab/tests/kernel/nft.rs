//! A slice of the campaign under random rulesets of nft: every family, every item. Needs root and nft; without them it says
//! so and passes. `TAMIS_NFT_PACKETS` (for each family) and `TAMIS_ORACLE_SEED` make it longer or another;
//! `oracle nft` has the rest.

use std::time::{Duration, Instant};

use lab::generate::nft::TableFamily;
use lab::oracle::nft::campaign::{Plan, run};
use lab::oracle::nft::compare::Reads;
use lab::oracle::nft::kernel::lacking;

use crate::setting;

#[test]
fn tamis_and_the_kernel_agree_under_rulesets_of_nft() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let packets = setting("TAMIS_NFT_PACKETS", 30_000);
    let plan = Plan {
        seed: setting("TAMIS_ORACLE_SEED", 1),
        packets,
        families: TableFamily::ALL.to_vec(),
        until: std::env::var_os("TAMIS_NFT_PACKETS")
            .is_none()
            .then(|| Instant::now() + Duration::from_secs(30)),
        threads: 4,
        most_failures: 3,
        only: Vec::new(),
        reads: Reads::Commands,
        shrinks: true,
    };
    let summary = run(&plan).unwrap();
    let stories: Vec<String> = summary
        .failures
        .iter()
        .map(|(number, story)| format!("ruleset {number}\n{story}"))
        .collect();
    assert!(stories.is_empty(), "{}", stories.join("\n\n"));
    for family in TableFamily::ALL {
        let tally = &summary.families[family.name()];
        println!("{}: {} packets, {} rules", family.name(), tally.packets, tally.rules);
        assert!(tally.packets > 0 && tally.rules > 0, "nothing was compared of {}", family.name());
        let both = tally.items.values().filter(|answers| answers.yes > 0 && answers.no > 0).count();
        assert!(both > 10, "{both} items of {} answered yes and no", family.name());
    }
}
