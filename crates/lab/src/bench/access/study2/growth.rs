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
use super::super::{Plan, Prepared, Row, Setting, Start, Tuning};
use super::{Loop, TABLES, pass};
use crate::workload::{PRESETS, Preset, Variant};

/// Packets, at least; and for each address.
const PACKETS: usize = 20_000;
const EACH: usize = 8;
/// Logarithms of the addresses. One more would not be laid out: variant D counts from 1.
const LOGS: std::ops::Range<u32> = 7..16;

/// What was found of a table: by addresses, nanoseconds a packet with making it and without, and its bytes.
pub(super) struct Grown {
    table: Kind,
    overall: Vec<Point>,
    critical: Vec<Point>,
    bytes: Vec<Point>,
}

/// A stream over this number of addresses.
pub(super) fn stream(log: u32) -> Prepared {
    let preset = Preset { addresses_log: log, ..PRESETS[0] };
    let packets = PACKETS.max(EACH << log);
    Prepared::from(Start::Steady, Variant::D, &preset, true, packets)
}

pub(super) fn run(plan: &Plan, say: &mut dyn FnMut(Row)) -> Result<Vec<Grown>, String> {
    let grown = |table| Grown { table, overall: vec![], critical: vec![], bytes: vec![] };
    let mut all = TABLES.map(grown);
    for log in LOGS {
        let prepared = stream(log);
        let settings = TABLES.map(|table| Setting::pool(table, 1));
        let found = pass(&settings, &prepared, plan.runs.min(5))?;
        for (grown, loops) in all.iter_mut().zip(found) {
            grown.add(&prepared, &loops, bytes(grown.table, &prepared)?, say);
        }
    }
    say(bound());
    Ok(all.into())
}

/// Of a table that has seen the stream.
fn bytes(table: Kind, prepared: &Prepared) -> Result<usize, String> {
    let mut engine = prepared.engine(table, Tuning::default())?;
    super::run_once(&Setting::pool(table, 1), prepared, &mut engine)?;
    match engine {
        Built::Shared(engine) => Ok(engine.bytes()),
        Built::Alone(_) => Err(format!("{}: expected a table that threads share", table.name())),
    }
}

impl Grown {
    fn add(&mut self, prepared: &Prepared, loops: &[Loop], bytes: usize, say: &mut dyn FnMut(Row)) {
        let (addresses, packets) =
            (1u32 << prepared.preset.addresses_log, prepared.packets().len());
        let each = |of: fn(&Loop) -> f64| -> Vec<f64> {
            loops.iter().map(|one| of(one) * 1e6 / packets as f64).collect()
        };
        for (name, figures, points) in [
            ("access.study2.grown", each(|one| one.overall), &mut self.overall),
            ("access.study2.grown.critical", each(|one| one.critical), &mut self.critical),
        ] {
            let row = Row::new(name, self.table.name(), "ns/packet", &figures)
                .with("addresses", addresses)
                .with("packets", packets)
                .with("decisions", prepared.decisions())
                .with("bytes", bytes);
            let spread = (row.runs.min, row.runs.max);
            points.push(Point { x: f64::from(addresses), y: row.runs.value, spread });
            say(row);
        }
        self.bytes.push(Point::sole(f64::from(addresses), bytes as f64));
    }

    fn series(&self, points: &[Point]) -> Series {
        Series { name: self.table.name().to_owned(), points: points.to_vec(), is_published: false }
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
pub(super) fn draw(dir: &Path, plan: &Plan, grown: &[Grown]) -> Result<(), String> {
    let panel = |title: &str, of: fn(&Grown) -> &[Point]| Panel {
        title: title.to_owned(),
        series: grown.iter().map(|one| one.series(of(one))).collect(),
    };
    let caption = |title: &str| figure::Caption {
        title: format!("Study 2, more addresses: {title}"),
        note: figure::note(&format!(
            "{EACH} packets for each address, at least {PACKETS}; one worker, no fingerprints; {} runs",
            plan.runs.min(5)
        )),
    };
    let x = ("addresses", Scale::Logarithmic);
    let axes = Axes { x, y: ("ns a packet", Scale::Logarithmic) };
    let times = [
        panel("making and looking up", |one| &one.overall),
        panel("looking up", |one| &one.critical),
    ];
    figure::panels(&dir.join("study2-addresses.svg"), &caption("time"), axes, &times)?;
    let axes = Axes { x, y: ("bytes", Scale::Logarithmic) };
    let bytes = [panel("the table alone", |one| &one.bytes)];
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
