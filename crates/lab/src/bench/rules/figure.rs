//! The study's experiments as figures, drawn from a document: walks, memory, trees and how changes grow; what the study
//! published as rings in the same rows.

use std::fs;
use std::io;
use std::path::Path;

use rules::layout::Kind;

use super::count::Counting;
use super::study::{DRIVERS, Driver};
use crate::bench::document::{Document, Row};
use crate::bench::figure::{self, Axes, Caption, Panel, Point, Scale, Series, Strip};

/// Draws what the document has figures for.
///
/// # Errors
/// A picture cannot be written.
pub fn draw(document: &Document, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let rows = Rows(&document.results);
    let all = || {
        drivers(rows, &directory.join("xtables2-table.svg"))?;
        linear(rows, &directory.join("xtables2-linear.svg"))?;
        layouts(rows, &directory.join("xtables2-layouts.svg"))?;
        memory(rows, &directory.join("xtables2-memory.svg"))?;
        fan(rows, &directory.join("xtables2-fan.svg"))?;
        growth(rows, &directory.join("xtables2-growth.svg"))
    };
    all().map_err(io::Error::other)
}

/// Rows of a document.
#[derive(Clone, Copy)]
struct Rows<'d>(&'d [Row]);

impl<'d> Rows<'d> {
    fn named(self, name: &str) -> impl Iterator<Item = &'d Row> + use<'d, '_> {
        self.0.iter().filter(move |row| row.name == name)
    }

    /// The row of a layout and a kind of counter.
    fn layout(self, name: &str, kind: Kind, counting: Counting) -> Option<&'d Row> {
        let is = |row: &&Row| row.engine == kind.name() && word(row, "counters") == counting.name();
        self.named(name).find(is)
    }
}

fn word<'r>(row: &'r Row, name: &str) -> &'r str {
    row.params.get(name).and_then(|value| value.as_str()).unwrap_or_default()
}

fn number(row: &Row, name: &str) -> f64 {
    row.params.get(name).and_then(serde_json::Value::as_f64).unwrap_or_default()
}

/// A row of a figure, of the least, the median and the most of a row of the document.
fn strip(label: String, row: &Row) -> Strip {
    let values = [row.runs.min, row.runs.value, row.runs.max].to_vec();
    Strip { label, name: row.engine, values, published: Vec::new() }
}

fn caption(title: &str, how: &str, rows: &[&Row]) -> Caption {
    let runs = rows.iter().map(|row| row.runs.runs).max().unwrap_or_default();
    let note = figure::note(&format!("{how}; {runs} runs: least, median and most"));
    Caption { title: format!("Xtables2: {title}"), note }
}

/// Rows that there are, over one axis.
fn strips(
    path: &Path,
    words: (&str, &str),
    axis: (&str, Scale),
    drawn: Vec<(Strip, &Row)>,
) -> Result<(), String> {
    if drawn.is_empty() {
        return Ok(());
    }
    let (strips, rows): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
    figure::strips(path, &caption(words.0, words.1, &rows), axis, &strips)
}

/// The study's last table, each driver by its first one; on its three machines, and what stands for it here.
fn drivers(rows: Rows<'_>, path: &Path) -> Result<(), String> {
    let of = |driver: &Driver| {
        let (kind, counting) = driver.here?;
        rows.layout("rules.layouts.v6.match", kind, counting)
    };
    let Some(first) = of(&DRIVERS[0]) else { return Ok(()) };
    let published = |driver: &Driver| {
        let of = |one: Option<f64>, first: Option<f64>| Some(one? / first?);
        let [k7, i7, vm] = [
            of(Some(driver.k7), Some(DRIVERS[0].k7)),
            of(driver.i7, DRIVERS[0].i7),
            of(driver.vm, DRIVERS[0].vm),
        ];
        [k7, i7, vm].into_iter().flatten().collect()
    };
    let drawn = DRIVERS.iter().filter_map(|driver| {
        let row = of(driver)?;
        let label = format!("{}: {}", driver.name, row.engine);
        let mut one = strip(label, row);
        one.values.iter_mut().for_each(|value| *value /= first.runs.value);
        one.published = published(driver);
        Some((one, row))
    });
    let words = ("the last slide's drivers", "100,000 matching IPv6 rules");
    strips(path, words, ("times xt1 +2s, or table_blob", Scale::Logarithmic), drawn.collect())
}

/// Nanoseconds a rule beside the kernel's, where that was measured.
fn linear(rows: Rows<'_>, path: &Path) -> Result<(), String> {
    let mut drawn = Vec::new();
    for (name, shape) in [
        ("rules.linear.v6.match", "v6, all match"),
        ("rules.linear.v6.nomatch", "v6, none matches"),
        ("rules.linear.v4.match", "v4, all match"),
        ("rules.linear.v4.nomatch", "v4, none matches"),
    ] {
        let Some(ours) = rows.named(name).next() else { continue };
        drawn.push((strip(format!("{shape}: {}", ours.engine), ours), ours));
        for row in rows.named(name) {
            let Some(peer) = &row.peer else { continue };
            let (label, values) = (format!("{shape}: {}", peer.peer), vec![peer.value]);
            drawn.push((Strip { label, name: peer.peer, values, published: Vec::new() }, row));
        }
    }
    let words = ("100 chains of 1,000 rules", "packets and bytes counted by all");
    strips(path, words, ("ns a rule", Scale::Logarithmic), drawn)
}

/// Every layout with every kind of counter.
fn layouts(rows: Rows<'_>, path: &Path) -> Result<(), String> {
    let pairs = Kind::ALL.into_iter().flat_map(|kind| Counting::ALL.map(|of| (kind, of)));
    let drawn = pairs.filter_map(|(kind, counting)| {
        let row = rows.layout("rules.layouts.v6.match", kind, counting)?;
        Some((strip(format!("{}, {}", kind.name(), counting.name()), row), row))
    });
    let words = ("layouts and counters", "100,000 matching IPv6 rules");
    strips(path, words, ("ns a rule", Scale::Logarithmic), drawn.collect())
}

/// Bytes a rule; what is resident beside what was asked for.
fn memory(rows: Rows<'_>, path: &Path) -> Result<(), String> {
    let mut drawn: Vec<(Strip, &Row)> = Vec::new();
    let resident = |row: &Row| {
        let is = |one: &&Row| one.engine == row.engine && word(one, "shape") == word(row, "shape");
        rows.named("rules.resident").find(is)
    };
    for row in rows.named("rules.memory") {
        let label = format!("{}: {}", word(row, "shape"), row.engine);
        // A row for each peer is one layout.
        if drawn.iter().any(|(one, _)| one.label == label) {
            continue;
        }
        let published = number(row, "study") / number(row, "rules");
        let mut one = strip(label.clone(), row);
        if row.engine == Kind::PackedChain.name() && published > 0.0 {
            one.published.push(published);
        }
        drawn.push((one, row));
        let held = resident(row).map(|row| (strip(format!("{label}, resident"), row), row));
        drawn.extend(held);
    }
    let words = ("memory", "with one worker's counters; resident: the layout's growth of its process");
    strips(path, words, ("bytes a rule; ring: the study's blob", Scale::Logarithmic), drawn)
}

fn fan(rows: Rows<'_>, path: &Path) -> Result<(), String> {
    let shapes = [("rules.fan.68k", "68k"), ("rules.fan.662k", "662k")];
    let of = |(name, shape): (&'static str, &'static str)| {
        rows.named(name).map(move |row| (strip(format!("{shape}: {}", row.engine), row), row))
    };
    let words = (
        "fanned trees",
        "67,892 rules in 18,329 chains, 53 run; 662,160 in 151,426, 77 run",
    );
    let drawn = shapes.into_iter().flat_map(of).collect();
    strips(path, words, ("ns a packet", Scale::Linear), drawn)
}

/// What grows: the name of the rows, what it is, and the parameter along the axis.
const GROWTH: [(&str, &str, &str); 6] = [
    ("rules.growth.loaded", "one rule in, by rules loaded", "loaded"),
    ("rules.growth.chain", "one rule in, by rules a chain", "per_chain"),
    ("rules.growth.chain_deleted", "a chain deleted, by rules loaded", "loaded"),
    ("rules.growth.singly", "rules added singly", "added"),
    ("rules.growth.batch", "rules added in one batch", "added"),
    ("rules.growth.chains", "rules added chain by chain", "added"),
];

fn growth(rows: Rows<'_>, path: &Path) -> Result<(), String> {
    let panel = |(name, title, along): &(&str, &str, &str)| {
        let mut series: Vec<Series> = Vec::new();
        for row in rows.named(name) {
            let micros = |seconds: f64| seconds * 1e6;
            let spread = (micros(row.runs.min), micros(row.runs.max));
            let point = Point { x: number(row, along), y: micros(row.runs.value), spread };
            match series.iter_mut().find(|one| one.name == row.engine) {
                Some(one) => one.points.push(point),
                None => series.push(Series {
                    name: row.engine.to_owned(),
                    points: vec![point],
                    is_published: false,
                }),
            }
        }
        Panel { title: (*title).to_owned(), series }
    };
    let panels = GROWTH.map(|growth| panel(&growth));
    if panels.iter().all(|panel| panel.series.is_empty()) {
        return Ok(());
    }
    let how = "100 chains where rules are added, chains of 100 rules where they are loaded";
    let caption = Caption {
        title: "Xtables2: how changes grow".to_owned(),
        note: figure::note(&format!("{how}; whiskers: least and most")),
    };
    let axes = Axes { x: ("rules", Scale::Logarithmic), y: ("µs", Scale::Logarithmic) };
    figure::panels(path, &caption, axes, &panels)
}
