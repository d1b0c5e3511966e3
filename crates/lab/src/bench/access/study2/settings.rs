//! The settings of the study's own map, which it names as the gain over a library's: how many buckets, and so locks, it
//! begins with, how long a bucket may be, and how many full ones make it double. Each is varied, the others as usual.
//!
//! Track (a) with one worker and with eight, on preset 1 with 1,024 addresses, so that the map is seen and not the
//! fingerprint.

use std::path::Path;

use engines::catalogue::Kind;
use engines::striped_map::Settings;

use super::super::contest::contest;
use super::super::figure::{self, Axes, Panel, Point, Scale, Series};
use super::super::{Plan, Prepared, Row, Setting, Start, Tuning};
use super::system::{THREADS, preset};
use crate::bench::Rows;
use crate::bench::recorded::{Measured, Recorded};
use crate::workload::Variant;

/// The most packets of a run.
const PACKETS: usize = 200_000;
const ADDRESSES: usize = 1_000;
const ROWS: &str = "access.study2.settings";

/// A setting of the map: its name, the values it is given, and how.
struct Knob {
    name: &'static str,
    values: &'static [usize],
    turned: fn(Settings, usize) -> Settings,
}

const KNOBS: [Knob; 3] = [
    Knob {
        name: "initial",
        values: &[1, 4, 16, 64, 256, 1024, 4096],
        turned: |usual, initial| Settings { initial, ..usual },
    },
    Knob {
        name: "longest",
        values: &[1, 2, 4, 8, 16, 64],
        // From few buckets on, or none would ever be long.
        turned: |usual, longest| Settings { longest, initial: 16, ..usual },
    },
    Knob {
        name: "full_percent",
        values: &[1, 3, 10, 30, 100],
        turned: |usual, full_percent| Settings { full_percent, initial: 16, ..usual },
    },
];

pub(super) fn run(plan: &Plan, out: &mut Rows) -> Result<(), String> {
    let packets = plan.packets.min(PACKETS);
    let prepared = Prepared::from(Start::Steady, Variant::D, &preset(ADDRESSES), true, packets);
    for Knob { name, values, turned } in KNOBS {
        if !out.begins(format!("{ROWS}, {name}")) {
            continue;
        }
        let all = values.iter().flat_map(|value| [(*value, 1), (*value, THREADS)]);
        let all: Vec<_> = all.collect();
        let setting = |(value, threads): &(usize, usize)| {
            let striped_map = turned(Settings::default(), *value);
            let tuning = Tuning { striped_map, ..Tuning::default() };
            Setting { tuning, ..Setting::pool(Kind::StripedMap, *threads) }
        };
        let settings: Vec<_> = all.iter().map(setting).collect();
        let (figures, _) = contest(&settings, &prepared, plan.runs.min(9))?;
        for ((value, threads), figures) in all.into_iter().zip(figures) {
            let nanos: Vec<f64> = figures.rates.iter().map(|rate| 1e9 / rate).collect();
            out.push(
                Row::new(ROWS, Kind::StripedMap.name(), "ns/packet", &nanos)
                    .with("setting", name)
                    .with("to", value)
                    .with("threads", threads)
                    .with("packets", packets)
                    .with("bytes", figures.bytes),
            );
        }
    }
    Ok(())
}

/// A panel for each setting.
pub(super) fn draw(recorded: &Recorded, dir: &Path) -> Result<(), String> {
    let rows: Vec<_> = recorded.named(ROWS).collect();
    let Some(first) = rows.first() else { return Ok(()) };
    let series = |knob: &str, threads: usize| {
        let is_of = |row: &&&Measured| {
            row.word("setting") == knob && row.number("threads") == threads as f64
        };
        let name = if threads == 1 { "one worker" } else { "8 workers" };
        let points = rows.iter().filter(is_of).map(|row| Point::least(row.number("to"), row, 1.0));
        Series { name: name.to_owned(), points: points.collect(), is_published: false }
    };
    let panel = |Knob { name, .. }: Knob| {
        let series = vec![series(name, 1), series(name, THREADS)];
        Panel { title: name.to_owned(), series }
    };
    let (packets, runs) = (first.number("packets"), first.runs);
    let caption = figure::Caption {
        title: "Study 2: settings of striped_map".to_owned(),
        note: recorded.note(&format!(
            "{packets} packets of preset 1, 1,024 addresses, no fingerprints; least of {runs} runs, and most"
        )),
    };
    let axes = Axes { x: ("", Scale::Logarithmic), y: ("ns a packet", Scale::Logarithmic) };
    figure::panels(&dir.join("study2-settings.svg"), &caption, axes, &KNOBS.map(panel))
}
