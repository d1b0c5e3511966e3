//! The study's eight figures, its own values as rings beside ours.

use std::path::Path;

use super::super::figure::{self, Axes, Caption, Panel, Point, Scale, Series, Strip};
use super::super::published::{STUDY2, Study2System};
use super::{Loop, Plan, TABLES, Times, systems};
use crate::bench::document::Runs;

const BOTH: [usize; 2] = [100, 1_000];
const SERIAL: &str = "serial";
const THREADS: &str = "worker_pool";
const STREAMS: &str = "stream";

/// Draws all of them.
pub(super) fn draw(dir: &Path, plan: &Plan, times: &Times) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|why| format!("{}: {why}", dir.display()))?;
    let figures = Figures { dir, plan, times };
    figures.lines(1, "serial, and streams", &figures.serial_and_streams(), usize::MAX)?;
    figures.overall_less_critical()?;
    figures.lines(3, "threads and streams", &figures.threads_and_streams(), usize::MAX)?;
    figures.lines(4, "all tables with streams", &figures.by_addresses(STREAMS), usize::MAX)?;
    figures.lines(5, "all tables with threads", &figures.by_addresses(THREADS), usize::MAX)?;
    figures.all_combinations()?;
    figures.lines(7, "threads, close", &figures.by_addresses(THREADS), 100_000)?;
    figures.lines(8, "streams, close", &figures.by_addresses(STREAMS), 100_000)
}

struct Figures<'f> {
    dir: &'f Path,
    plan: &'f Plan,
    times: &'f Times,
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
        let points = self.times.iter().filter(|((table, way, _, addresses), _)| {
            (*table, *way, *addresses) == (line.table, line.way, line.addresses)
        });
        let ours = points.map(|((_, _, packets, _), loops)| point(*packets, loops)).collect();
        let published = STUDY2.iter().filter(|one| (one.table, one.way) == (line.table, line.way));
        let theirs = published
            .flat_map(|one| one.pass(1))
            .filter(|((packets, addresses), _)| {
                *addresses == line.addresses && *packets <= self.plan.packets
            })
            .map(|((packets, _), time)| Point::sole(packets as f64, time.0));
        let name = line.name.to_owned();
        let theirs: Vec<_> = theirs.collect();
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
        let loops = self.times.values().map(Vec::len).max().unwrap_or_default();
        Caption {
            title: format!("Study 2, figure {number}: {title}"),
            note: figure::note(&format!("8 threads, up to {loops} loops")),
        }
    }

    /// Of every loop of every size, as the study's distribution is of every row.
    fn overall_less_critical(&self) -> Result<(), String> {
        let difference = |one: &Loop| one.overall - one.critical;
        let rows = self.strips(
            |_| true,
            difference,
            |one| {
                let passes = (0..2).flat_map(|pass| one.pass(pass));
                passes.map(|(_, (critical, overall))| overall - critical).collect()
            },
        );
        let caption = self.caption(2, "overall less critical time, every loop");
        let axis = ("milliseconds; as published to 0.01, 0 at the left edge", Scale::Logarithmic);
        figure::strips(&self.file(2), &caption, axis, &rows)
    }

    fn all_combinations(&self) -> Result<(), String> {
        let most = self.times.keys().map(|(_, _, packets, _)| *packets).max().unwrap_or_default();
        let addresses = if most > 1_000 { 1_000 } else { 100 };
        let rows = self.strips(
            |size| size == (most, addresses),
            |one| one.critical,
            |one| {
                let of = one.pass(1).filter(|(size, _)| *size == (most, addresses));
                of.map(|(_, (critical, _))| critical).collect()
            },
        );
        let title = format!("every combination, {most} packets, {addresses} addresses");
        let axis = ("critical milliseconds", Scale::Linear);
        figure::strips(&self.file(6), &self.caption(6, &title), axis, &rows)
    }

    /// A row for each system, of the loops of some sizes.
    fn strips(
        &self,
        takes: impl Fn((usize, usize)) -> bool,
        of: fn(&Loop) -> f64,
        published: impl Fn(&Study2System) -> Vec<f64>,
    ) -> Vec<Strip> {
        let strip = |(table, way): super::System| {
            let (table, way) = (table.name(), way.name());
            let these = self.times.iter().filter(|((t, w, packets, addresses), _)| {
                (*t, *w) == (table, way) && takes((*packets, *addresses))
            });
            let theirs = STUDY2.iter().find(|one| (one.table, one.way) == (table, way));
            let label =
                if table == way { table.to_owned() } else { format!("{table}, {}", words(way)) };
            Strip {
                label,
                name: table,
                values: these.flat_map(|(_, loops)| loops.iter().map(of)).collect(),
                published: theirs.map_or_else(Vec::new, &published),
            }
        };
        systems().map(strip).collect()
    }
}

/// What the study calls a way to share work.
fn words(way: &str) -> &str {
    match way {
        THREADS => "threads",
        STREAMS => "streams",
        other => other,
    }
}

/// Median and spread of the critical time.
fn point(packets: usize, loops: &[Loop]) -> Point {
    let Runs { value, min, max, .. } = Runs::of(loops.iter().map(|one| one.critical).collect());
    Point { x: packets as f64, y: value, spread: (min, max) }
}
