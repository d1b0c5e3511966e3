//! Oracles and generators: what tamis is held to.
//!
//! [`oracle`] asks the kernel what it does with a packet under a ruleset, [`evaluator`] asks tamis, and a
//! campaign compares the two over rulesets and packets that [`generate`] draws. What they once differed
//! on is kept as a [`case`] and replayed through tamis alone, without root. [`conformance`] turns a
//! campaign's counts into `docs/conformance.md`. [`programs`] lets real programs talk through the kernel and
//! replays what was recorded; [`series`] lets them talk through tamis and the kernel both. A [`mod@campaign`] draws cases for the built
//! binary. [`mod@bench`] measures tamis beside its peers, and beside what other [`studies`]
//! built.

pub mod aimed;
pub mod bench;
pub mod campaign;
pub mod case;
pub mod conformance;
pub mod device;
pub mod evaluator;
pub mod failure;
pub mod fuzz;
pub mod generate;
mod hex;
pub mod layouts;
#[cfg(target_os = "linux")]
pub mod oracle;
pub mod programs;
pub mod real;
pub mod rule_counters;
pub mod scene;
pub mod series;
pub mod state;
pub mod studies;
pub mod summary;
pub mod workload;
