//! More addresses than the study had, doubled as far as a matrix is laid out: what making a table costs, and looking
//! up in it, and how large it is.
//!
//! Packets are of one mix at every number of addresses: the head of config packets, as many as there are addresses, is
//! told before the clock starts, and there are eight packets for each address. Track (a) with one worker, so that
//! look-ups are seen and not fingerprints or the starting of threads.

use std::path::Path;

use engines::catalogue::{Built, Kind};
use engines::matrix;

use super::super::figure::{self, Axes, Panel, Point, Scale, Series};
use super::super::{Plan, Prepared, Row, Setting, Start, Tuning, run_once};
use super::system::{Loop, TABLES, pass};
use crate::bench::Rows;
use crate::bench::recorded::{Measured, Recorded, runs};
use crate::workload::{PRESETS, Preset, Variant};

/// Packets, at least; and for each address.
const PACKETS: usize = 20_000;
const EACH: usize = 8;
/// Names of the rows.
const OVERALL: &str = "access.study2.grown";
const CRITICAL: &str = "access.study2.grown.critical";
/// Logarithms of the addresses. One more would not be laid out: variant D counts from 1.
const LOGS: std::ops::Range<u32> = 7..16;

/// A stream over this number of addresses.
pub(super) fn stream(log: u32) -> Prepared {
    let preset = Preset { addresses_log: log, ..PRESETS[0] };
    let packets = PACKETS.max(EACH << log);
    Prepared::from(Start::Steady, Variant::D, &preset, true, packets)
}

pub(super) fn run(plan: &Plan, out: &mut Rows) -> Result<(), String> {
    for log in LOGS {
        if !out.begins(format!("{OVERALL}, 2^{log} addresses")) {
            continue;
        }
        let prepared = stream(log);
        let settings = TABLES.map(|table| Setting::pool(table, 1));
        let found = pass(&settings, &prepared, plan.runs.min(5))?;
        for (table, loops) in TABLES.into_iter().zip(found) {
            rows(table, &prepared, &loops, bytes(table, &prepared)?, out);
        }
    }
    out.push(bound());
    Ok(())
}

/// Of a table that has seen the stream.
fn bytes(table: Kind, prepared: &Prepared) -> Result<usize, String> {
    let mut engine = prepared.engine(table, Tuning::default())?;
    run_once(&Setting::pool(table, 1), prepared, &mut engine)?;
    match engine {
        Built::Shared(engine) => Ok(engine.bytes()),
        Built::Alone(_) => Err(format!("{}: expected a table that threads share", table.name())),
    }
}

fn rows(table: Kind, prepared: &Prepared, loops: &[Loop], bytes: usize, out: &mut Rows) {
    let (addresses, packets) = (1u32 << prepared.preset.addresses_log, prepared.packets().len());
    let each = |of: fn(&Loop) -> f64| -> Vec<f64> {
        loops.iter().map(|one| of(one) * 1e6 / packets as f64).collect()
    };
    for (name, figures) in
        [(OVERALL, each(|one| one.overall)), (CRITICAL, each(|one| one.critical))]
    {
        out.push(
            Row::new(name, table.name(), "ns/packet", &figures)
                .with("addresses", addresses)
                .with("packets", packets)
                .with("decisions", prepared.decisions())
                .with("bytes", bytes),
        );
    }
}

/// The most addresses whose matrix, a bit for each pair, fits this machine's memory; beside the most that is laid out.
fn bound() -> Row {
    let kibibytes = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    });
    let most = kibibytes.map_or(f64::NAN, |kibibytes| (kibibytes * 1024.0 * 8.0).sqrt().floor());
    Row::new("access.study2.bound", "matrix", "addresses", &[most]).with("laid_out", matrix::MOST)
}

/// The figure that the study left to others.
pub(super) fn draw(recorded: &Recorded, dir: &Path) -> Result<(), String> {
    let rows: Vec<_> = recorded.named(OVERALL).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let series = |name: &str, of: fn(&Measured) -> Point| {
        let series = |table: Kind| {
            let these = recorded.named(name).filter(|row| row.engine == table.name());
            let (name, points) = (table.name().to_owned(), these.map(of).collect());
            Series { name, points, is_published: false }
        };
        TABLES.map(series).to_vec()
    };
    let panel = |title: &str, series| Panel { title: title.to_owned(), series };
    let runs = runs(rows);
    let caption = |title: &str| {
        figure::Caption {
        title: format!("Study 2, more addresses: {title}"),
        note: recorded.note(&format!(
            "{EACH} packets an address, at least {PACKETS}; one worker, no fingerprints; least of {runs} runs, and most"
        )),
    }
    };
    let time = |row: &Measured| Point::least(row.number("addresses"), row, 1.0);
    let held = |row: &Measured| Point::sole(row.number("addresses"), row.number("bytes"));
    let x = ("addresses", Scale::Logarithmic);
    let axes = Axes { x, y: ("ns a packet", Scale::Logarithmic) };
    let times = [
        panel("making and looking up", series(OVERALL, time)),
        panel("looking up", series(CRITICAL, time)),
    ];
    figure::panels(&dir.join("study2-addresses.svg"), &caption("time"), axes, &times)?;
    let axes = Axes { x, y: ("bytes", Scale::Logarithmic) };
    let bytes = [panel("the table alone", series(OVERALL, held))];
    figure::panels(&dir.join("study2-addresses-memory.svg"), &caption("memory"), axes, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_addresses_sees_the_same_mix() {
        for log in [7, 11, 15] {
            let prepared = stream(log);
            let share = prepared.decisions() as f64 / prepared.packets().len() as f64;
            assert!((0.77..0.80).contains(&share), "2^{log}: {share}");
            assert!(prepared.packets().len() >= 8 << log);
        }
        // From the stream's first packet on there would be none.
        let preset = Preset { addresses_log: 15, ..PRESETS[0] };
        let cold = Prepared::from(Start::Cold, Variant::D, &preset, true, 20_000);
        assert_eq!(cold.decisions(), 0);
    }
}
