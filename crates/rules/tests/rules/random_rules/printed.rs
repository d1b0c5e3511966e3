//! What is printed loads again, and prints the same: of random rulesets and of those from the wild.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, Loaded, load, print_ruleset};

use super::made::tables;

fn loaded(text: &str, family: Option<Family>) -> Result<Loaded, String> {
    let options = LoadOptions { family, ..LoadOptions::default() };
    load(text, &options).map_err(|error| format!("{error}\n{text}"))
}

/// With the counters of the file.
fn printed(rules: &Ruleset) -> String {
    print_ruleset(rules, true, |table, chain, rule| rules.counters(table, chain, rule))
}

/// Prints, loads and prints once more.
fn settles(rules: &Ruleset) -> Result<(), String> {
    let first = printed(rules);
    let again = loaded(&first, Some(rules.family))?;
    let second = printed(&again.ruleset);
    if first != second {
        return Err(format!("{first}\nbecomes\n{second}"));
    }
    Ok(())
}

#[test]
fn random_rules_print_as_they_load() {
    let config = Config { cases: 1000, failure_persistence: None, ..Config::default() };
    let test = |table: super::made::Table| {
        let rules = loaded(&table.text(), Some(Family::Ipv4)).map_err(TestCaseError::fail)?.ruleset;
        prop_assert_eq!(rules.rule_count(), table.chains.iter().map(Vec::len).sum::<usize>());
        settles(&rules).map_err(TestCaseError::fail)
    };
    TestRunner::new(config).run(&tables(), test).unwrap();
}

#[test]
fn rulesets_from_the_wild_print_as_they_load() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/rulesets");
    let Ok(files) = std::fs::read_dir(&dir) else {
        eprintln!("SKIPPED: {} is not here", dir.display());
        return;
    };
    let mut compared = 0;
    for file in files.map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&file).unwrap();
        // tests/rulesets.rs says which of them load.
        let Ok(first) = load(&text, &LoadOptions::default()) else { continue };
        settles(&first.ruleset).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        compared += 1;
    }
    println!("{compared} rulesets print as they load");
    assert!(compared >= 12, "only {compared} rulesets");
}
