//! The study's experiments as figures, drawn from a document: walks, memory, trees and how changes grow; what the study
//! published as rings in the same rows.

use std::path::Path;

use crate::layouts::Kind;

use super::count::Counting;
use super::study::{DRIVERS, Driver, MEMORY};
use crate::bench::figure::{self, Axes, Caption, Panel, Point, Scale, Strip, by_engine};
use crate::bench::recorded::{Measured, Recorded, runs};

/// Draws what the document has figures for.
///
/// # Errors
/// A picture cannot be written.
pub fn draw(recorded: &Recorded, directory: &Path) -> Result<(), String> {
    drivers(recorded, &directory.join("xtables2-table.svg"))?;
    linear(recorded, &directory.join("xtables2-linear.svg"))?;
    layouts(recorded, &directory.join("xtables2-layouts.svg"))?;
    memory(recorded, &directory.join("xtables2-memory.svg"))?;
    fan(recorded, &directory.join("xtables2-fan.svg"))?;
    let words = (
        "how changes grow",
        "100 chains where rules are added, chains of 100 rules where they are loaded",
    );
    growth(recorded, words, &GROWTH, &directory.join("xtables2-growth.svg"))?;
    let words = ("how deletions grow", "all of as many rules, in 100 chains; a batch: in one");
    growth(recorded, words, &DELETED, &directory.join("xtables2-deleted.svg"))
}

/// The row of a layout and a kind of counter, all IPv6 rules matching.
fn layout(recorded: &Recorded, kind: Kind, counting: Counting) -> Option<&Measured> {
    let is = |row: &&Measured| row.engine == kind.name() && row.word("counters") == counting.name();
    recorded.named("rules.layouts.v6.match").find(is)
}

/// Rows that there are, over one axis.
fn strips(
    recorded: &Recorded,
    path: &Path,
    (title, how): (&str, &str),
    axis: (&str, Scale),
    drawn: Vec<(Strip, &Measured)>,
) -> Result<(), String> {
    if drawn.is_empty() {
        return Ok(());
    }
    let (strips, rows): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
    let note = recorded.note(&format!("{how}; {} runs: least, median and most", runs(rows)));
    let caption = Caption { title: format!("Xtables2: {title}"), note };
    figure::strips(path, &caption, axis, &strips)
}

/// The study's last table, each driver by its first one; on its three machines, and what stands for it here.
fn drivers(recorded: &Recorded, path: &Path) -> Result<(), String> {
    let of = |driver: &Driver| {
        let (kind, counting) = driver.here?;
        layout(recorded, kind, counting)
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
        let mut one = Strip::of(label, row);
        one.values.iter_mut().for_each(|value| *value /= first.value);
        one.published = published(driver);
        Some((one, row))
    });
    let words = ("the last slide's drivers", "100,000 matching IPv6 rules");
    strips(
        recorded,
        path,
        words,
        ("times xt1 +2s, or table_blob", Scale::Logarithmic),
        drawn.collect(),
    )
}

/// Nanoseconds a rule beside the kernel's, where that was measured.
fn linear(recorded: &Recorded, path: &Path) -> Result<(), String> {
    let mut drawn = Vec::new();
    for (name, shape) in [
        ("rules.linear.v6.match", "v6, all match"),
        ("rules.linear.v6.nomatch", "v6, none matches"),
        ("rules.linear.v4.match", "v4, all match"),
        ("rules.linear.v4.nomatch", "v4, none matches"),
    ] {
        let Some(ours) = recorded.named(name).next() else { continue };
        drawn.push((Strip::of(format!("{shape}: {}", ours.engine), ours), ours));
        for row in recorded.named(name) {
            let Some((peer, value)) = row.peer.as_ref().zip(row.peer_value) else { continue };
            let (label, name, values) = (format!("{shape}: {peer}"), peer.clone(), vec![value]);
            drawn.push((Strip { label, name, values, published: Vec::new() }, row));
        }
    }
    let words = ("100 chains of 1,000 rules", "packets and bytes counted by all");
    strips(recorded, path, words, ("ns a rule", Scale::Logarithmic), drawn)
}

/// Every layout with every kind of counter.
fn layouts(recorded: &Recorded, path: &Path) -> Result<(), String> {
    let pairs = Kind::ALL.into_iter().flat_map(|kind| Counting::ALL.map(|of| (kind, of)));
    let drawn = pairs.filter_map(|(kind, counting)| {
        let row = layout(recorded, kind, counting)?;
        Some((Strip::of(format!("{}, {}", kind.name(), counting.name()), row), row))
    });
    let words = ("layouts and counters", "100,000 matching IPv6 rules");
    strips(recorded, path, words, ("ns a rule", Scale::Logarithmic), drawn.collect())
}

/// Bytes a rule; what is resident beside what was asked for.
fn memory(recorded: &Recorded, path: &Path) -> Result<(), String> {
    let mut drawn: Vec<(Strip, &Measured)> = Vec::new();
    let resident = |row: &Measured| {
        let is =
            |one: &&Measured| one.engine == row.engine && one.word("shape") == row.word("shape");
        recorded.named("rules.resident").find(is)
    };
    for row in recorded.named("rules.memory") {
        let label = format!("{}: {}", row.word("shape"), row.engine);
        // A row for each peer is one layout.
        if drawn.iter().any(|(one, _)| one.label == label) {
            continue;
        }
        let one = Strip { published: published_bytes(row), ..Strip::of(label.clone(), row) };
        drawn.push((one, row));
        let Some(held) = resident(row) else { continue };
        let mut one = Strip::of(format!("{label}, resident"), held);
        one.values.iter_mut().for_each(|bytes| *bytes += row.number("counters"));
        drawn.push((one, held));
    }
    let words =
        ("memory", "with one worker's counters; resident: the layout's growth of its process");
    strips(recorded, path, words, ("bytes a rule", Scale::Logarithmic), drawn)
}

/// What the study's rules took, of the ruleset and the layout that it was measured with.
fn published_bytes(row: &Measured) -> Vec<f64> {
    let study = row.number("study") / row.number("rules");
    let blob = (row.engine == Kind::TableBlob.name() && study > 0.0).then_some(study);
    let of = MEMORY.iter().find(|(kind, _)| kind.name() == row.engine);
    let linear = of.filter(|_| row.word("shape") == "100 x 1000 v6").map(|(_, bytes)| *bytes);
    blob.or(linear).into_iter().collect()
}

fn fan(recorded: &Recorded, path: &Path) -> Result<(), String> {
    let shapes = [("rules.fan.68k", "68k"), ("rules.fan.662k", "662k")];
    let of = |(name, shape): (&'static str, &'static str)| {
        recorded
            .named(name)
            .map(move |row| (Strip::of(format!("{shape}: {}", row.engine), row), row))
    };
    let words =
        ("fanned trees", "67,892 rules in 18,329 chains, 53 run; 662,160 in 151,426, 77 run");
    let drawn = shapes.into_iter().flat_map(of).collect();
    strips(recorded, path, words, ("ns a packet", Scale::Linear), drawn)
}

/// What grows: the name of the rows, what it is, and the parameter along the axis.
type Grows = (&'static str, &'static str, &'static str);

/// Changes.
const GROWTH: [Grows; 6] = [
    ("rules.growth.loaded", "one rule in, by rules loaded", "loaded"),
    ("rules.growth.chain", "one rule in, by rules a chain", "per_chain"),
    ("rules.growth.chain_deleted", "a chain deleted, by rules loaded", "loaded"),
    ("rules.growth.singly", "rules added singly", "added"),
    ("rules.growth.batch", "rules added in one batch", "added"),
    ("rules.growth.chains", "rules added chain by chain", "added"),
];

/// Deletions.
const DELETED: [Grows; 3] = [
    ("rules.growth.deleted_singly", "rules deleted singly", "added"),
    ("rules.growth.deleted_batch", "rules deleted in one batch", "added"),
    ("rules.growth.deleted_chains", "rules deleted chain by chain", "added"),
];

fn growth(
    recorded: &Recorded,
    (title, how): (&str, &str),
    grows: &[Grows],
    path: &Path,
) -> Result<(), String> {
    let panel = |(name, title, along): &Grows| {
        let place = |row: &Measured| Point::of(row.number(along), row, 1e6);
        let series = by_engine(recorded.named(name), place);
        Panel { title: (*title).to_owned(), series }
    };
    let panels: Vec<_> = grows.iter().map(panel).filter(|one| !one.series.is_empty()).collect();
    if panels.is_empty() {
        return Ok(());
    }
    let caption = Caption {
        title: format!("Xtables2: {title}"),
        note: recorded.note(&format!("{how}; whiskers: least and most")),
    };
    let axes = Axes { x: ("rules", Scale::Logarithmic), y: ("µs", Scale::Logarithmic) };
    figure::panels(path, &caption, axes, &panels)
}
