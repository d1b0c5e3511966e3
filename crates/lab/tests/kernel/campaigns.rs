//! A slice of each campaign against this machine's kernel: random rulesets, both families, every scene, every layout
//! and the rules as read; and conversations under rulesets with state.
//!
//! Needs root and the legacy tools; without them it says so and passes. `TAMIS_ORACLE_PACKETS` (for each
//! family) and `TAMIS_ORACLE_SEED` make it longer or another, `TAMIS_ORACLE_LAYOUT` has rules walked as one layout,
//! or as `model`.

use std::time::{Duration, Instant};

use lab::layouts::Kind;
use lab::layouts::{Layouts, name_of};
use lab::oracle::campaign::{Plan, run};
use lab::oracle::load::{lacking, running};
use lab::oracle::state::{self, StatePlan};
use rules::model::Family;

use crate::setting;

/// What rules are walked as.
fn layouts() -> Layouts {
    let name = std::env::var("TAMIS_ORACLE_LAYOUT").unwrap_or_else(|_| "each".to_owned());
    Layouts::from_name(&name).unwrap_or_else(|| panic!("expected a layout, model or each: {name}"))
}

#[test]
fn tamis_and_the_kernel_agree() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let plan = Plan {
        seed: setting("TAMIS_ORACLE_SEED", 1),
        packets: setting("TAMIS_ORACLE_PACKETS", 100_000),
        families: vec![Family::Ipv4, Family::Ipv6],
        until: std::env::var_os("TAMIS_ORACLE_PACKETS")
            .is_none()
            .then(|| Instant::now() + Duration::from_secs(60)),
        layouts: layouts(),
        kernel: running().unwrap_or_default(),
        threads: 8,
        most_failures: 3,
    };
    let (summary, failures) = run(&plan).unwrap();
    print!("{}", summary.json_lines());
    let stories: Vec<&str> = failures.iter().map(|failure| failure.story.as_str()).collect();
    assert!(stories.is_empty(), "{}", stories.join("\n\n"));
    println!("{:?}", summary.layouts);
    for layout in Kind::ALL.into_iter().map(Some).chain([None]) {
        let is_asked = layouts() == Layouts::Each || layouts() == Layouts::Only(layout);
        let packets = summary.layouts.get(name_of(layout)).copied().unwrap_or(0);
        assert_eq!(packets > 0, is_asked, "{}", name_of(layout));
    }
}

#[test]
fn tamis_and_the_kernel_agree_on_conversations() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let plan = StatePlan {
        seed: setting("TAMIS_ORACLE_SEED", 1),
        packets: setting("TAMIS_ORACLE_PACKETS", 20_000),
        families: vec![Family::Ipv4, Family::Ipv6],
        layouts: layouts(),
        kernel: running().unwrap_or_default(),
        threads: 4,
        until: std::env::var_os("TAMIS_ORACLE_PACKETS")
            .is_none()
            .then(|| Instant::now() + Duration::from_secs(30)),
        most_failures: 3,
    };
    let summary = state::run(&plan).unwrap();
    let stories: Vec<&str> = summary.failures.iter().map(|found| found.story.as_str()).collect();
    assert!(stories.is_empty(), "{}", stories.join("\n\n"));
    for ((tool, sort), heard) in &summary.heard {
        println!("{tool}{sort}: {heard:?}");
        assert!(!sort.is_strict() || heard.certain == heard.packets, "{tool}: {heard:?}");
    }
    assert!(!summary.heard.is_empty(), "nothing was compared");
}
