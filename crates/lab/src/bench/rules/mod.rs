//! `tamis-bench rules`: walks, memory, load and changes of large rulesets, and the kernel on the same work.
//!
//! Contract: figures without a peer are of this process; those with one are taken in turn with the peer, whose
//! rules stand in a network namespace that ends with its thread. [`figure`] draws a document, measuring nothing.
//!
//! Source: "Xtables2: Love for blobs" (Engelhardt, NFWS 2010); the experiments and both shapes are its own.

mod clock;
mod count;
pub mod fan;
pub mod figure;
mod growth;
mod memory;
#[cfg(target_os = "linux")]
mod peers;
mod readers;
mod resident;
mod study;
mod update;
mod walk;
pub mod workload;

use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use crate::bench::document::{Row, Runs};
use crate::bench::rows::Rows;

pub use resident::child as resident;

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
    /// Bytes and allocations.
    Memory,
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
    pub const ALL: [(Self, &'static str, &'static str); 10] = [
        (Self::Linear, "linear", "100 chains of 1,000 rules, matching or not"),
        (Self::Layouts, "layouts", "The same in every layout with every kind of counter"),
        (Self::Memory, "memory", "Bytes and allocations"),
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
    fn has(self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    fn runs(self) -> usize {
        if self.quick { 3 } else { 7 }
    }

    /// Single changes of one kind.
    fn changes(self) -> usize {
        if self.quick { 101 } else { 1001 }
    }
}

/// Measures; `itself` is this program, which is asked for what layouts take in a process of their own. Where peers are measured, too, `peers` is the `tamis` whose whole commands stand beside theirs.
///
/// # Errors
/// Scratch files cannot be written, or a whole command of ours fails.
pub fn run(itself: &Path, peers: Option<&Path>, plan: Plan, out: &mut Rows) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Some(tamis) = peers {
        peers::all(tamis, plan, out)?;
    }
    #[cfg(not(target_os = "linux"))]
    if let Some(tamis) = peers {
        let why = format!("only Linux has them; {} runs elsewhere", tamis.display());
        out.lacks("iptables, nft", why);
    }
    alone(plan, out);
    if plan.has(Part::Memory) && out.begins("rules.resident") {
        out.extend(resident::rows(itself)?);
    }
    Ok(())
}

/// What needs no peer, or does without.
fn alone(plan: Plan, rows: &mut Rows) {
    let fans = if plan.quick { &[fan::SMALL][..] } else { &[fan::SMALL, fan::LARGE] };
    for (part, name, _) in Part::ALL.into_iter().filter(|(part, ..)| plan.has(*part)) {
        if !rows.begins(format!("rules, part {name}")) {
            continue;
        }
        match part {
            Part::Linear => walk::linear(plan, rows),
            Part::Layouts => walk::layouts(plan, rows),
            Part::Counters => walk::counters(plan, rows),
            Part::Fan => fans.iter().for_each(|fan| walk::fan(plan, fan, rows)),
            Part::Memory => {
                memory::linear(rows);
                fans.iter().for_each(|fan| memory::fan(fan, rows));
            }
            Part::Load => update::load_rows(plan, rows),
            Part::Update => update::all(plan, rows),
            Part::Bulk => update::bulk(plan, rows),
            Part::Growth => growth::all(plan, rows),
            Part::Readers => readers::rows(plan, rows),
        }
    }
}

fn row(
    name: &'static str,
    engine: &'static str,
    params: Map<String, Value>,
    runs: Runs,
    unit: &'static str,
) -> Row {
    Row { name: name.into(), engine, params, runs, unit, peer: None }
}

/// The members of a JSON object.
fn params(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(params) => params,
        _ => Map::new(),
    }
}
