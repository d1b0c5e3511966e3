//! Findings and differences against the reference walk.

mod brute_force;
mod codes;
mod differences;
mod edits;
mod one_rule;
mod predicates;
mod reach;
mod reach_routed;
mod wild;

use rules::model::Ruleset;
use rules::save::{LoadOptions, load};

/// The rules of a text.
fn ruleset(text: &str) -> Ruleset {
    match load(text, &LoadOptions::default()) {
        Ok(loaded) => loaded.ruleset,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Rules of a family's filter table.
fn filter(rules: &str) -> Ruleset {
    ruleset(&format!(
        "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n{rules}COMMIT\n"
    ))
}
