//! Every layout against the reference walk, by the tests of the one that tamis walks (`rules/tests/rules/random_rules`).
#![expect(clippy::unwrap_used, reason = "the tests of `rules` may")]

#[path = "../../../rules/tests/rules/random_rules/laid.rs"]
mod laid;
#[path = "../../../rules/tests/rules/random_rules/made.rs"]
mod made;
#[path = "../../../rules/tests/rules/random_rules/naive.rs"]
mod naive;
#[path = "../../../rules/tests/rules/random_rules/sound.rs"]
mod sound;

use lab::layouts;
