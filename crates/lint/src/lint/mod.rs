//! Findings in rules, each checked before it is one.
//!
//! Whatever depends on packets is found with all of them at once ([`crate::flow()`]), and then held to the reference
//! walk: packets drawn from what a rule that never matches would match have to get past it. A finding that the walk
//! contradicts is none; it is counted, as a fault of ours.

mod chains;
mod check;
mod code;
mod dead;
mod effort;
mod examined;
mod exposed;
mod finding;
mod names;
mod redundant;
mod tables;
mod wide;

pub use code::{Code, Severity};
pub use finding::{Finding, Findings};
pub use names::OnHost;
pub use tables::{lint, lint_on, lint_text};
