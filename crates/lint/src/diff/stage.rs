//! Where rules see packets on their way, and what is kept of what became of them there.

use super::altered::Packets;
use crate::flow::Fate;
use rules::eval::{By, RuleRef};
use rules::ext::{Alters, Course, MatchUse};
use rules::model::{Action, Hook, Policy, Rule};

/// Where packets come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Another host.
    Arriving,
    /// This host.
    Sent,
}

/// What became of packets.
#[derive(Debug, Default)]
pub(super) struct Passed {
    pub(super) decided: Vec<Decided>,
    /// Packets that were let through everywhere.
    pub(super) accepted: Vec<Packets>,
    /// Packets that routing saw.
    pub(super) routed: Vec<Packets>,
    pub(super) asked: Vec<Asked>,
}

/// Where rules see packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stage {
    /// Place among the stages that a packet passes.
    pub(super) turn: u32,
    pub(super) table: &'static str,
    pub(super) hook: Hook,
}

/// What a chain decided of packets.
#[derive(Debug, Clone)]
pub(super) struct Decided {
    pub(super) stage: Stage,
    pub(super) by: By,
    pub(super) fate: Fate,
    pub(super) packets: Packets,
}

/// A test that remembers packets, asked about some.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asked {
    /// Text, packets and how often before.
    pub(super) key: String,
    /// For a test, its text and how often before, without packets, and chain by chain the way to it; empty for a
    /// target.
    pub(super) place: String,
    /// What it shares its memory with.
    pub(super) list: Option<String>,
    pub(super) rule: (usize, RuleRef),
}

impl Asked {
    /// Whether this is a test, whose answer has the same key, and not a target that changes sets.
    pub(super) fn is_answered(&self) -> bool {
        !self.place.is_empty()
    }
}

/// Whether nothing that happens to a packet depends on a rule, nor on what its tests remember.
pub(super) fn is_idle(rule: &Rule) -> bool {
    let watches = match &rule.action {
        Action::None => true,
        Action::Target(target) => target.body.course() == Course::Passes(Alters::Nothing),
        _ => false,
    };
    let of_its_own = |used: &MatchUse| {
        ["limit", "statistic", "quota", "connlimit"].contains(&&*used.name)
            || used.body.memory().is_none()
    };
    watches && rule.matches.iter().all(of_its_own)
}

pub(super) fn policy_fate(policy: Policy) -> Fate {
    match policy {
        Policy::Accept => Fate::Accept,
        Policy::Drop => Fate::Drop,
    }
}

/// The name of the built-in chain at a hook.
pub(super) fn hook_name(hook: Hook) -> String {
    format!("{hook:?}").to_uppercase()
}
