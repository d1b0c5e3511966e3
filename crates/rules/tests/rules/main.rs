//! Rules by text: what is read, printed and refused, what walks make of packets, what changes keep. Connection tracking
//! has a program of its own.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod backends;
mod bridge_policies;
mod edits;
mod given_up;
mod hot_drops;
mod ipset;
mod odd_words;
mod proved;
mod random_rules;
mod remembered;
mod revision;
mod rulesets;
mod save_tool;
mod states;
mod supported;
mod taken_apart;
mod targets;
mod turns;
mod unknown_extensions;
mod walks;
mod xtables_cases;
