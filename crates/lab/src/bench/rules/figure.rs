//! The study's tables and curves, drawn from a document.

use std::fs;
use std::io;
use std::path::Path;

use rules::layout::Kind;

use super::count::Counting;
use super::study::{DRIVERS, Driver, MEMORY};
use crate::bench::chart::{self, Bar, Captions, Curve, short};
use crate::bench::document::{Document, Row};

/// Draws what the document has figures for.
///
/// # Errors
/// A picture cannot be written.
pub fn draw(document: &Document, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let rows = Rows(&document.results);
    drivers(rows, &directory.join("study-table.svg"))?;
    linear(rows, &directory.join("linear.svg"))?;
    for family in ["v6", "v4"] {
        split(rows, family, &directory.join(format!("layouts-{family}.svg")))?;
    }
    memory(rows, &directory.join("memory.svg"))?;
    fan(rows, &directory.join("fan.svg"))?;
    for growth in GROWTH {
        growth.draw(rows, directory)?;
    }
    Ok(())
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

/// The study's last table beside ours.
fn drivers(rows: Rows<'_>, path: &Path) -> io::Result<()> {
    let of = |driver: &Driver| match driver.here {
        Some((kind, counting)) => {
            let row = rows.layout("rules.layouts.v6.match", kind, counting)?;
            Some((format!("{}, {}", kind.name(), counting.name()), row.runs.value))
        }
        None => {
            let mut peers = rows.named("rules.linear.v6.match").filter_map(|row| row.peer.as_ref());
            let nft = peers.find(|peer| peer.peer == "nft")?;
            Some(("the kernel's nft".to_owned(), nft.value))
        }
    };
    let Some((_, first)) = of(&DRIVERS[0]) else { return Ok(()) };
    let cells = DRIVERS.iter().map(|driver| {
        let times = |value: f64, of: f64| format!("{} x", short(value / of));
        let study = [short(driver.k7), times(driver.k7, DRIVERS[0].k7)];
        let others = [driver.i7, driver.vm].map(|of| of.map_or("-".to_owned(), short));
        let here = match of(driver) {
            // Two walks, as in a round trip.
            Some((name, nanos)) => [name, short(nanos * 2.0 * 0.1), times(nanos, first)],
            None => ["-".to_owned(), "-".to_owned(), "-".to_owned()],
        };
        std::iter::once(driver.name.to_owned()).chain(study).chain(others).chain(here).collect()
    });
    let cells: Vec<Vec<String>> = cells.collect();
    let captions = Captions {
        title: "100,000 matching IPv6 rules: the study's round trips, and two walks here",
        note: "ms; s: simple local counters, Q: a lock and a quota for each rule; each side relative to its first row",
    };
    let head = [
        ("driver", 180),
        ("K7, ms", 80),
        ("to xt1", 80),
        ("i7, ms", 80),
        ("VM, ms", 80),
        ("here", 200),
        ("ms", 80),
        ("to table_blob", 110),
    ];
    chart::table(path, captions, &head, &cells)
}

/// Nanoseconds a rule beside the kernel's.
fn linear(rows: Rows<'_>, path: &Path) -> io::Result<()> {
    let mut bars: Vec<Bar> = Vec::new();
    for (name, shape) in [
        ("rules.linear.v6.match", "v6, all match"),
        ("rules.linear.v6.nomatch", "v6, none matches"),
        ("rules.linear.v4.match", "v4, all match"),
        ("rules.linear.v4.nomatch", "v4, none matches"),
    ] {
        let Some(ours) = rows.named(name).next() else { continue };
        bars.push((format!("{shape}: {}", ours.engine), vec![ours.runs.value]));
        for peer in rows.named(name).filter_map(|row| row.peer.as_ref()) {
            bars.push((peer.peer.to_owned(), vec![peer.value]));
        }
    }
    if bars.is_empty() {
        return Ok(());
    }
    let captions = Captions {
        title: "100 chains of 1,000 rules: nanoseconds a rule",
        note: "packets and bytes counted by all; the kernel's by datagrams over loopback, less what they take without rules",
    };
    chart::bars(path, captions, &["ns"], &bars)
}

/// Where the time goes, by layout and kind of counter.
fn split(rows: Rows<'_>, family: &str, path: &Path) -> io::Result<()> {
    let name = format!("rules.layouts.{family}.match");
    let mut bars: Vec<Bar> = Vec::new();
    for kind in Kind::ALL {
        for counting in Counting::ALL {
            let Some(row) = rows.layout(&name, kind, counting) else { continue };
            let [header, rest, counter] =
                ["header", "rest", "counter"].map(|part| number(row, part));
            // Noise may make the whole a little faster than its part.
            let parts = vec![header.min(header + rest), rest, counter];
            bars.push((format!("{}, {}", kind.name(), counting.name()), parts));
        }
    }
    if bars.is_empty() {
        return Ok(());
    }
    let title = format!("100,000 matching {family} rules: nanoseconds a rule, and where they go");
    let note = "header match: what 800 rules in cache take; rest: chains and waiting for memory; counter: what counting adds";
    let captions = Captions { title: &title, note };
    chart::bars(path, captions, &["header match", "rest", "counter"], &bars)
}

fn memory(rows: Rows<'_>, path: &Path) -> io::Result<()> {
    let mut bars: Vec<Bar> = Vec::new();
    for shape in ["100 x 1000 v6", "100 x 1000 v4", "fan 68k", "fan 662k"] {
        let here = rows.named("rules.memory").filter(|row| word(row, "shape") == shape);
        for row in here {
            let label = format!("{shape}: {}", row.engine);
            // A row for each peer is one layout.
            if bars.iter().any(|(drawn, _)| *drawn == label) {
                continue;
            }
            let (rules, counters) = (number(row, "rules"), number(row, "counters"));
            let layout = row.runs.value - counters;
            bars.push((label, vec![layout, counters]));
            let study = number(row, "study");
            if row.engine == Kind::PackedChain.name() && study > 0.0 {
                bars.push((format!("{shape}: the study's blob"), vec![study / rules, 0.0]));
            }
        }
        let peers = rows.named("rules.memory").filter(|row| word(row, "shape") == shape);
        bars.extend(peers.filter_map(|row| {
            let peer = row.peer.as_ref()?;
            Some((format!("{shape}: {}", peer.peer), vec![peer.value, 0.0]))
        }));
    }
    if bars.is_empty() {
        return Ok(());
    }
    let ratio = |kind: Kind| {
        let mut rows = rows.named("rules.memory");
        let row = rows.find(|row| row.engine == kind.name())?;
        Some(number(row, "layout"))
    };
    let times = match (ratio(Kind::Linked), ratio(Kind::TableBlob)) {
        (Some(linked), Some(blob)) if blob > 0.0 => short(linked / blob),
        _ => "?".to_owned(),
    };
    let note = format!(
        "the study's {} took {} x its {}; linked takes {times} x table_blob here, allocators' own bytes aside",
        MEMORY[1].0, MEMORY[1].1, MEMORY[0].0
    );
    let captions = Captions { title: "Bytes a rule, with one worker's counters", note: &note };
    chart::bars(path, captions, &["layout", "counters"], &bars)
}

fn fan(rows: Rows<'_>, path: &Path) -> io::Result<()> {
    let mut bars: Vec<Bar> = Vec::new();
    for (name, shape) in [("rules.fan.68k", "68k"), ("rules.fan.662k", "662k")] {
        for row in rows.named(name) {
            bars.push((format!("{shape}: {}", row.engine), vec![row.runs.value]));
        }
    }
    if bars.is_empty() {
        return Ok(());
    }
    let captions = Captions {
        title: "Fanned trees: nanoseconds a packet",
        note: "67,892 rules in 18,329 chains, 53 run per packet; 662,160 in 151,426, 77 run; a thousand flows or fewer",
    };
    chart::bars(path, captions, &["ns"], &bars)
}

/// A curve of each engine.
struct Growth {
    name: &'static str,
    file: &'static str,
    title: &'static str,
    note: &'static str,
    /// The parameter along the axis, and its name there.
    along: &'static str,
    axis: &'static str,
}

const GROWTH: [Growth; 5] = [
    Growth {
        name: "rules.growth.loaded",
        file: "growth-loaded.svg",
        title: "One rule inserted, by rules loaded",
        note: "chains of 100 rules; the revision includes its transaction and its text",
        along: "loaded",
        axis: "rules loaded",
    },
    Growth {
        name: "rules.growth.chain",
        file: "growth-chain.svg",
        title: "One rule inserted, by rules of the chain",
        note: "65,536 rules loaded; segments of 1,024 keep long chains cheap",
        along: "per_chain",
        axis: "rules of each chain",
    },
    Growth {
        name: "rules.growth.singly",
        file: "growth-singly.svg",
        title: "Rules added singly, in turn to 100 chains",
        note: "twice the rules in four times the time is O(n²)",
        along: "added",
        axis: "rules added",
    },
    Growth {
        name: "rules.growth.batch",
        file: "growth-batch.svg",
        title: "Rules added in one reserved batch",
        note: "to one chain",
        along: "added",
        axis: "rules added",
    },
    Growth {
        name: "rules.growth.chains",
        file: "growth-chains.svg",
        title: "Rules added chain by chain",
        note: "a batch to each of 100 chains",
        along: "added",
        axis: "rules added",
    },
];

impl Growth {
    fn draw(&self, rows: Rows<'_>, directory: &Path) -> io::Result<()> {
        let mut curves: Vec<Curve> = Vec::new();
        for row in rows.named(self.name) {
            let point = (number(row, self.along), row.runs.value);
            match curves.iter_mut().find(|(engine, _)| engine == row.engine) {
                Some((_, points)) => points.push(point),
                None => curves.push((row.engine.to_owned(), vec![point])),
            }
        }
        let captions = Captions { title: self.title, note: self.note };
        chart::curves(&directory.join(self.file), captions, self.axis, "time", &curves)
    }
}
