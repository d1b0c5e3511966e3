//! The study's eight figures, its own values as rings beside ours.

use std::path::Path;

use super::super::figure::{self, Axes, Caption, Panel, Point, Scale, Series, Strip};
use super::super::published::{STUDY2, Study2System};
use super::system::{System, TABLES, systems};
use crate::bench::recorded::{Measured, Recorded, runs};

const BOTH: [usize; 2] = [100, 1_000];
const SERIAL: &str = "serial";
const THREADS: &str = "worker_pool";
const STREAMS: &str = "stream";

/// Draws all of them.
pub(super) fn draw(recorded: &Recorded, dir: &Path) -> Result<(), String> {
    let times: Vec<_> = recorded.named("access.study2.critical").collect();
    let figures = Figures { dir, recorded, times };
    figures.overall_less_critical()?;
    if figures.times.is_empty() {
        return Ok(());
    }
    figures.lines(1, "serial, and streams", &figures.serial_and_streams(), usize::MAX)?;
    figures.lines(3, "threads and streams", &figures.threads_and_streams(), usize::MAX)?;
    figures.lines(4, "all tables with streams", &figures.by_addresses(STREAMS), usize::MAX)?;
    figures.lines(5, "all tables with threads", &figures.by_addresses(THREADS), usize::MAX)?;
    figures.all_combinations()?;
    figures.lines(7, "threads, close", &figures.by_addresses(THREADS), 100_000)?;
    figures.lines(8, "streams, close", &figures.by_addresses(STREAMS), 100_000)
}

struct Figures<'f> {
    dir: &'f Path,
    recorded: &'f Recorded,
    /// Critical times.
    times: Vec<&'f Measured>,
}

/// A table under a way, over a number of addresses, by a name.
struct Line<'l> {
    name: &'l str,
    table: &'l str,
    way: &'l str,
    addresses: usize,
}

impl Figures<'_> {
    /// Ours, and the published second pass where there is one.
    fn line(&self, line: &Line<'_>) -> Vec<Series> {
        let of = |row: &&&Measured| {
            system(row) == (line.table, line.way) && addresses(row) == line.addresses
        };
        let ours = self.times.iter().filter(of);
        let ours: Vec<_> = ours.map(|row| Point::of(row.number("packets"), row, 1.0)).collect();
        let most = ours.iter().map(|point| point.x).fold(0.0, f64::max);
        let published = STUDY2.iter().filter(|one| (one.table, one.way) == (line.table, line.way));
        let theirs: Vec<_> = published
            .flat_map(|one| one.pass(1))
            .map(|((packets, addresses), time)| (packets as f64, addresses, time.0))
            .filter(|(packets, addresses, _)| *addresses == line.addresses && *packets <= most)
            .map(|(packets, _, critical)| Point::sole(packets, critical))
            .collect();
        let name = line.name.to_owned();
        let mut series = vec![Series { name: name.clone(), points: ours, is_published: false }];
        if !theirs.is_empty() {
            series.push(Series { name, points: theirs, is_published: true });
        }
        series
    }

    fn panel(&self, title: String, lines: &[Line<'_>]) -> Panel {
        Panel { title, series: lines.iter().flat_map(|line| self.line(line)).collect() }
    }

    fn serial_and_streams(&self) -> Vec<Panel> {
        let panel = |addresses| {
            let line = |table, way| Line { name: table, table, way, addresses };
            let lines =
                [line(SERIAL, SERIAL), line("concurrent_map", STREAMS), line("tamis", STREAMS)];
            self.panel(format!("{addresses} addresses"), &lines)
        };
        BOTH.map(panel).to_vec()
    }

    /// The study shows the matrix alone.
    fn threads_and_streams(&self) -> Vec<Panel> {
        let panel = |table: &str| {
            let line = |name, way| Line { name, table, way, addresses: 100 };
            self.panel(table.to_owned(), &[line("threads", THREADS), line("streams", STREAMS)])
        };
        TABLES.map(|table| panel(table.name())).to_vec()
    }

    fn by_addresses(&self, way: &str) -> Vec<Panel> {
        let panel = |addresses| {
            let line = |name| Line { name, table: name, way, addresses };
            let lines = TABLES.map(|table| line(table.name()));
            self.panel(format!("{addresses} addresses"), &lines)
        };
        BOTH.map(panel).to_vec()
    }

    fn lines(&self, number: u32, title: &str, panels: &[Panel], most: usize) -> Result<(), String> {
        let mut panels = panels.to_vec();
        let series = panels.iter_mut().flat_map(|panel| &mut panel.series);
        series.for_each(|one| one.points.retain(|point| point.x <= most as f64));
        let scale = if most == usize::MAX { Scale::Logarithmic } else { Scale::Linear };
        let axes = Axes { x: ("packets", scale), y: ("critical milliseconds", scale) };
        figure::panels(&self.file(number), &self.caption(number, title), axes, &panels)
    }

    fn file(&self, number: u32) -> std::path::PathBuf {
        self.dir.join(format!("study2-figure{number}.svg"))
    }

    fn caption(&self, number: u32, title: &str) -> Caption {
        let of = |row: &&Measured| row.name.starts_with("access.study2.");
        let sized = self
            .recorded
            .results
            .iter()
            .filter(of)
            .filter(|row| !row.word("orchestration").is_empty());
        let loops = runs(sized);
        let how = format!("8 threads, {loops} loops at most: median, least and most");
        Caption {
            title: format!("Study 2, figure {number}: {title}"),
            note: self.recorded.note(&how),
        }
    }

    /// Of every size, as the study's distribution is of every row.
    fn overall_less_critical(&self) -> Result<(), String> {
        let rows: Vec<_> = self.recorded.named("access.study2.difference").collect();
        if rows.is_empty() {
            return Ok(());
        }
        let rows = strips(&rows, |one| {
            let passes = (0..2).flat_map(|pass| one.pass(pass));
            passes.map(|(_, (critical, overall))| overall - critical).collect()
        });
        let caption = self.caption(2, "overall less critical time, of every size");
        let axis = ("milliseconds; as published to 0.01, 0 at the left edge", Scale::Logarithmic);
        figure::strips(&self.file(2), &caption, axis, &rows)
    }

    fn all_combinations(&self) -> Result<(), String> {
        let most = self.times.iter().map(|row| row.number("packets")).fold(0.0, f64::max);
        let many = if most > 1_000.0 { 1_000 } else { 100 };
        let is_of = |row: &&&Measured| row.number("packets") == most && addresses(row) == many;
        let rows: Vec<_> = self.times.iter().filter(is_of).copied().collect();
        let rows = strips(&rows, |one| {
            let of = one.pass(1).filter(|(size, _)| *size == (most as usize, many));
            of.map(|(_, (critical, _))| critical).collect()
        });
        let title = format!("every combination, {most} packets, {many} addresses");
        let axis = ("critical milliseconds", Scale::Linear);
        figure::strips(&self.file(6), &self.caption(6, &title), axis, &rows)
    }
}

/// A row for each system: least, median and most of each of some rows.
fn strips(rows: &[&Measured], published: impl Fn(&Study2System) -> Vec<f64>) -> Vec<Strip> {
    let strip = |(table, way): System| {
        let (table, way) = (table.name(), way.name());
        let these = rows.iter().filter(|row| system(row) == (table, way));
        let theirs = STUDY2.iter().find(|one| (one.table, one.way) == (table, way));
        Strip {
            label: if table == way { table.to_owned() } else { format!("{table}, {}", words(way)) },
            name: table.to_owned(),
            values: these.flat_map(|row| [row.min, row.value, row.max]).collect(),
            published: theirs.map_or_else(Vec::new, &published),
        }
    };
    systems().map(strip).collect()
}

/// Table and way to share work of a row.
fn system(row: &Measured) -> (&str, &str) {
    (&row.engine, row.word("orchestration"))
}

/// The study's number of addresses that stands for the power of two of a row.
fn addresses(row: &Measured) -> usize {
    if row.number("addresses") == 128.0 { BOTH[0] } else { BOTH[1] }
}

/// What the study calls a way to share work.
fn words(way: &str) -> &str {
    match way {
        THREADS => "threads",
        STREAMS => "streams",
        other => other,
    }
}
