//! Where rules see packets on their way, and what is kept of what became of them there.

use rules::eval::{By, RuleRef};
use rules::ext::{Alters, Course, MatchUse};
use rules::model::{Action, Hook, Policy, Rule};

use super::altered::Packets;
use crate::flow::Fate;

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
    /// Those that were let through everywhere.
    pub(super) accepted: Vec<Packets>,
    /// Those that routing saw.
    pub(super) routed: Vec<Packets>,
    pub(super) asked: Vec<Asked>,
}

/// Where rules see packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stage {
    /// Its place among those that a packet passes.
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
    /// The same without packets, and chain by chain how it came there.
    pub(super) place: String,
    /// What it shares its memory with.
    pub(super) list: Option<String>,
    pub(super) rule: (usize, RuleRef),
}

impl Asked {
    /// It is a test: its key is that of its answer.
    pub(super) fn is_answered(&self) -> bool {
        !self.place.is_empty()
    }
}

/// Nothing that happens to a packet depends on it, nor on what its tests remember.
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
