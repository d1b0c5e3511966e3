//! Rules by text: what is read, printed and refused, what walks make of packets, what changes keep. Connection tracking
//! has a program of its own.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod backends;
mod bridge_policies;
mod edits;
mod ipset;
mod odd_words;
mod random_rules;
mod revision;
mod rulesets;
mod save_tool;
mod states;
mod supported;
mod targets;
mod walks;
mod xtables_cases;
