//! The study's figure for each preset, a panel for each way to share work, and its table of stripes; what it published as
//! rings.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::drivers::{DRIVERS, THREADS};
use super::super::figure::{self, Axes, Caption, Panel, Point, Scale, Series};
use super::super::published::STUDY1_STRIPES;
use super::{ENGINES, MODELS};
use crate::bench::recorded::{Measured, Recorded, runs};

/// Draws what the document has figures for.
///
/// # Errors
/// A picture cannot be written.
pub fn draw(recorded: &Recorded, dir: &Path) -> Result<(), String> {
    let axes = Axes { x: ("threads", Scale::Linear), y: ("times serial", Scale::Linear) };
    for preset in 1..=8 {
        let rows: Vec<_> = speed_ups(recorded, preset).collect();
        if rows.is_empty() {
            continue;
        }
        let title = format!("speed-up over serial, preset {preset}");
        let panels = MODELS.map(|model| panel(model, preset, &rows));
        let file = dir.join(format!("study1-speedup-preset{preset}.svg"));
        figure::panels(&file, &caption(recorded, &title, &rows), axes, &panels)?;
    }
    let rows: Vec<_> = recorded.named("access.stripes").collect();
    if rows.is_empty() {
        return Ok(());
    }
    let caption = caption(recorded, "time by stripes, task pool, preset 1, 10 threads", &rows);
    let axes = Axes { x: ("stripes", Scale::Logarithmic), y: ("milliseconds", Scale::Logarithmic) };
    figure::panels(&dir.join("study1-stripes.svg"), &caption, axes, &[stripes(&rows)])
}

/// The rows of a preset that stand beside the serial firewall, as the study counts.
fn speed_ups(recorded: &Recorded, preset: usize) -> impl Iterator<Item = &Measured> {
    let name = format!("access.c.preset{preset}");
    let is_of =
        |row: &&Measured| row.peer.as_deref() == Some("serial") && row.word("bins") == "shared_map";
    recorded.results.iter().filter(move |row| row.name == name).filter(is_of)
}

fn caption(recorded: &Recorded, title: &str, rows: &[&Measured]) -> Caption {
    let sizes: BTreeSet<u64> = rows.iter().map(|row| row.number("packets") as u64).collect();
    let sizes: Vec<_> = sizes.iter().map(u64::to_string).collect();
    let runs = runs(rows.iter().copied());
    let how =
        format!("{} packets, variant C, {runs} runs: median, least and most", sizes.join(", "));
    Caption { title: format!("Study 1: {title}"), note: recorded.note(&how) }
}

fn model(row: &Measured) -> &str {
    if row.word("source") == "per_worker" { "per_worker" } else { row.word("orchestration") }
}

/// All engines under one way to share work, and the study's four as its authors measured them.
fn panel(name: &str, preset: usize, rows: &[&Measured]) -> Panel {
    let ours = ENGINES.map(|engine| {
        let of = rows.iter().filter(|row| row.engine == engine.name() && model(row) == name);
        let speed_up =
            |row: &&Measured| Some(Point::of(row.number("threads"), row, 1.0 / row.peer_value?));
        let points = of.filter_map(speed_up).collect();
        Series { name: engine.name().to_owned(), points, is_published: false }
    });
    let theirs = DRIVERS.iter().filter(|driver| driver.model == name).map(|driver| {
        let points = THREADS.into_iter().zip(driver.speed_ups);
        let point =
            |(threads, values): (usize, [f64; 8])| Point::sole(threads as f64, values[preset - 1]);
        let (name, points) = (driver.engine.name().to_owned(), points.map(point).collect());
        Series { name, points, is_published: true }
    });
    Panel { title: name.to_owned(), series: ours.into_iter().chain(theirs).collect() }
}

fn stripes(rows: &[&Measured]) -> Panel {
    let ours = rows.iter().map(|row| Point::of(row.number("stripes"), row, 1.0)).collect();
    let theirs =
        STUDY1_STRIPES.iter().map(|(stripes, millis)| Point::sole(*stripes as f64, *millis));
    let name = "striped".to_owned();
    let series = vec![
        Series { name: name.clone(), points: ours, is_published: false },
        Series { name, points: theirs.collect(), is_published: true },
    ];
    Panel { title: "ours; as published with 10 million packets".to_owned(), series }
}
