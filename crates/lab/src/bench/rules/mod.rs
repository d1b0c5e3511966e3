//! `tamis-bench rules`: walks, memory, load and changes of large rulesets, and the kernel on the same work.
//!
//! Contract: figures without a peer are of this process; those with one are taken in turn with the peer, whose
//! rules stand in a network namespace that ends with its thread. [`figure`] draws a document, measuring nothing.
//!
//! Source: "Xtables2: Love for blobs" (Engelhardt, NFWS 2010); the experiments and both shapes are its own.

mod clock;
mod count;
mod cycles;
pub mod fan;
pub mod figure;
mod growth;
mod memory;
mod misses;
#[cfg(target_os = "linux")]
mod peers;
mod plan;
mod readers;
mod resident;
mod study;
mod sys;
mod update;
mod walk;
pub mod workload;

use std::io;
use std::path::Path;

use crate::bench::rows::Rows;

pub use misses::child as walked;
pub use plan::{Part, Plan};
pub use resident::child as resident;

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
    // Minutes under cachegrind.
    if plan.only == Some(Part::Misses) && out.begins("rules, part misses") {
        match misses::rows(itself) {
            Ok(rows) => out.extend(rows),
            Err(error) => out.lacks("valgrind", error.to_string()),
        }
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
            Part::Cycles => cycles::rows(plan, rows),
            Part::Fan => fans.iter().for_each(|fan| walk::fan(plan, fan, rows)),
            Part::Memory => {
                memory::linear(rows);
                fans.iter().for_each(|fan| memory::fan(fan, rows));
            }
            Part::Load => update::load_rows(plan, rows),
            Part::Update => update::all(plan, rows),
            Part::Bulk => update::bulk(plan, rows),
            Part::Growth => growth::all(plan, rows),
            // By processes of their own, or the kernel's, in `run`.
            Part::Misses | Part::Ping => {}
            Part::Readers => {
                readers::rows(plan, rows);
                readers::shared_rows(plan, rows);
            }
        }
    }
}
