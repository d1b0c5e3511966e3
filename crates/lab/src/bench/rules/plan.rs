//! [`Plan`]: what is measured, how often, and the form of the rows that come of it.

use serde_json::{Map, Value};

use crate::bench::document::{Row, Runs};

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Less of everything: within a minute.
    pub quick: bool,
    /// One part instead of all.
    pub only: Option<Part>,
}

/// Parts of the benchmark. [`Part::ALL`] is the list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// 100 chains of 1,000 rules, matching or not.
    Linear,
    /// The same in every layout with every kind of counter.
    Layouts,
    /// Ticks of the processor's counter around the loop over the rules and around each of them.
    Cycles,
    /// Misses of the D-cache while that is walked.
    Misses,
    /// Bytes and allocations.
    Memory,
    /// The study's own ping through the kernel's rules.
    Ping,
    /// From text to rules.
    Load,
    /// Single changes.
    Update,
    /// 10,000 bans in one transaction.
    Bulk,
    /// How changes grow.
    Growth,
    /// The provider's fanned trees.
    Fan,
    /// Kinds of counters.
    Counters,
    /// What those who read keep of their rate while rules are published.
    Readers,
}

impl Part {
    /// Every part, with its name on the command line and what it measures.
    pub const ALL: [(Self, &'static str, &'static str); 13] = [
        (Self::Linear, "linear", "100 chains of 1,000 rules, matching or not"),
        (Self::Layouts, "layouts", "The same in every layout with every kind of counter"),
        (
            Self::Cycles,
            "cycles",
            "Ticks of the time-stamp counter around all rules and around each",
        ),
        (Self::Misses, "misses", "Misses of the D-cache, by cachegrind; only if asked for"),
        (Self::Memory, "memory", "Bytes and allocations"),
        (Self::Ping, "ping", "Round trips through the kernel's rules, and quotas; with --peers"),
        (Self::Load, "load", "From text to rules"),
        (Self::Update, "update", "Single changes"),
        (Self::Bulk, "bulk", "10,000 bans in one transaction"),
        (Self::Growth, "growth", "How changes grow"),
        (Self::Fan, "fan", "A provider's fanned trees"),
        (Self::Counters, "counters", "Kinds of counters"),
        (Self::Readers, "readers", "Readers at 1,000 updates a second"),
    ];
}

impl Plan {
    pub(super) fn has(self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    pub(super) fn runs(self) -> usize {
        if self.quick { 3 } else { 7 }
    }

    /// Single changes of one kind.
    pub(super) fn changes(self) -> usize {
        if self.quick { 101 } else { 1001 }
    }
}

pub(super) fn row(
    name: &'static str,
    engine: &'static str,
    params: Map<String, Value>,
    runs: Runs,
    unit: &'static str,
) -> Row {
    Row { name: name.into(), engine, params, runs, unit, peer: None }
}

/// The members of a JSON object.
pub(super) fn params(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(params) => params,
        _ => Map::new(),
    }
}
