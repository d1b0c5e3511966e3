//! `tamis-bench tunnel --only workers`: one end of a tunnel between ports in memory, by one worker and by more: packets that
//! it seals or opens in a second, and processor time for each.
//!
//! Contract: needs no root, and no network. A run's packets come from memory, and are looked at where they leave: the numbers
//! of opened packets follow each other, and no counter of a sealed datagram is further behind than a receiver remembers, or
//! the run is an error. Numbers of workers take turns, round by round. A round ends with packets that two ends seal and open,
//! whose order is looked at.

mod load;
mod packets;
mod ports;

use std::io;

use self::load::{Load, Rules, Took};
use self::packets::{KINDS, Kind};
use super::plan::Plan;
use super::rounds::OURS;
use crate::bench::document::Row;
use crate::bench::limit;
use crate::bench::rows::Rows;

/// Packets of a run, and of the look at the order.
const PACKETS: u64 = 1_000_000;
const ORDERED: u64 = 5_000_000;
/// Packets of short runs, and of their look at the order.
const FEW: u64 = 100_000;
const FEW_ORDERED: u64 = 200_000;
/// Numbers of workers.
const WORKERS: [usize; 2] = [1, 2];

/// A run of one way.
type Run = fn(Load) -> io::Result<Took>;

/// What an end does.
const WAYS: [(&str, Run); 2] = [("seal", Load::seal), ("open", Load::open)];

/// Measures.
///
/// # Errors
/// A packet was lost, or left out of its order, or a run did not start.
pub(super) fn run(plan: &Plan, out: &mut Rows, say: &mut dyn FnMut(&str)) -> io::Result<()> {
    let workers = if plan.workers.is_empty() { &WORKERS[..] } else { &plan.workers };
    for (way, takes) in WAYS {
        for kind in KINDS {
            for (rules, rules_name) in Rules::ALL {
                if !out.begins(format!("tunnel, workers that {way}")) {
                    return Ok(());
                }
                say(&format!("workers: {way}, {} bytes, {rules_name}", kind.bytes));
                let packets = whole(kind, if plan.quick { FEW } else { PACKETS });
                let mut took: Vec<Vec<Took>> = vec![Vec::new(); workers.len()];
                for _ in limit::rounds(plan.rounds()) {
                    for (workers, took) in workers.iter().zip(&mut took) {
                        took.push(takes(Load { kind, rules, workers: *workers, packets })?);
                    }
                }
                let labelled = |row: Row| {
                    let row = row.with("way", way).with("bytes", kind.bytes);
                    row.with("joined", kind.joined).with("rules", rules_name)
                };
                out.extend(rows(workers, &took).map(labelled));
            }
        }
    }
    order(plan, workers, out, say)
}

/// Rates and costs by the number of workers, each beside the first number's.
fn rows(workers: &[usize], took: &[Vec<Took>]) -> impl Iterator<Item = Row> {
    let figures = |of: fn(Took) -> f64, took: &[Took]| took.iter().map(|it| of(*it)).collect();
    let first: Vec<Took> = took.first().cloned().unwrap_or_default();
    workers.iter().zip(took).flat_map(move |(workers, took)| {
        let (rates, costs): (Vec<f64>, Vec<f64>) =
            (figures(Took::rate, took), figures(Took::cost, took));
        let by = |of: fn(Took) -> f64| -> Vec<f64> {
            took.iter().zip(&first).map(|(it, first)| of(*it) / of(*first)).collect()
        };
        [
            Row::new("tunnel.workers", OURS, "packets/s", &rates),
            Row::new("tunnel.workers.cost", OURS, "ns", &costs),
            Row::new("tunnel.workers.gain", OURS, "times", &by(Took::rate)),
            Row::new("tunnel.workers.cost_by_one", OURS, "times", &by(Took::cost)),
        ]
        .map(|row| row.with("workers", *workers))
    })
}

/// Packets through two ends, by the most workers: how many left out of their order.
fn order(
    plan: &Plan,
    workers: &[usize],
    out: &mut Rows,
    say: &mut dyn FnMut(&str),
) -> io::Result<()> {
    let workers = workers.iter().copied().max().unwrap_or(1);
    let packets = if plan.quick { FEW_ORDERED } else { ORDERED };
    let (mut came, mut reordered, mut sent) = (0, 0, 0);
    for round in limit::rounds(plan.rounds()) {
        let kind = KINDS[round % KINDS.len()];
        let (rules, name) = Rules::ALL[round / KINDS.len() % Rules::ALL.len()];
        say(&format!("workers: order, {} bytes, {name}", kind.bytes));
        let load = Load { kind, rules, workers, packets: whole(kind, packets) };
        let [packets, out_of_order] = load.through()?;
        (came, reordered, sent) = (came + packets, reordered + out_of_order, sent + load.packets);
    }
    let row = Row::new("tunnel.workers.reordered", OURS, "packets", &[reordered as f64]);
    out.push(row.with("workers", workers).with("packets", came).with("dropped", sent - came));
    Ok(())
}

/// As many packets as make whole frames.
fn whole(kind: Kind, packets: u64) -> u64 {
    packets.next_multiple_of(kind.joined as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slice of what the benchmark looks at; a packet that is lost or out of its order is an error.
    #[test]
    fn by_any_number_of_workers_what_is_sealed_and_opened_is_what_came_in_order() {
        for workers in [1, 2, 3] {
            for kind in KINDS {
                for (rules, _) in Rules::ALL {
                    let load = Load { kind, rules, workers, packets: whole(kind, 20_000) };
                    for (way, takes) in WAYS {
                        let took = takes(load);
                        assert!(took.is_ok(), "{way} {load:?}: {took:?}");
                    }
                    let [came, reordered] = load.through().expect("two runs");
                    assert!(
                        came > load.packets / 2 && reordered == 0,
                        "{load:?}: {came}, {reordered}"
                    );
                }
            }
        }
    }
}
