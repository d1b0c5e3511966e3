//! The study's figure for each JDK: columns of all techniques on a logarithmic scale, their factors on them; the realistic
//! job by burst; and the rounds, from the first one.

use std::fs;
use std::io;
use std::path::Path;

use super::expectations::number;
use super::technique::{FLOOR, Job};
use crate::bench::chart::{self, Captions, Curve, Marked, short};
use crate::bench::document::Row;

/// Whose rounds are drawn: as many as there are colours.
const ROUNDS: [&str; 7] = [
    "floor",
    "buffer_direct",
    "mapped_varhandle",
    "unsafe_object",
    "direct",
    "direct_batched",
    "ffm_global",
];

/// Draws what there are rows for.
///
/// # Errors
/// A picture cannot be written.
pub fn draw(rows: &[Row], directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut jdks: Vec<u64> = rows.iter().filter_map(|row| number(row, "jdk")).collect();
    jdks.sort_unstable();
    jdks.dedup();
    for jdk in jdks {
        let of = |job: Job, varied: u64| rows_of(rows, job, jdk, varied);
        for (structs, ring) in [(1, "one static struct"), (1024, "a ring of 1,024 structs")] {
            let file = directory.join(format!("study-{structs}-jdk{jdk}.svg"));
            let title = format!("The study's job on JDK {jdk}, {ring}: nanoseconds a packet");
            columns(&of(Job::Study, structs), Job::Study, &title, &file)?;
        }
        for burst in super::BURSTS {
            let file = directory.join(format!("realistic-{burst}-jdk{jdk}.svg"));
            let title =
                format!("The realistic job on JDK {jdk}, bursts of {burst}: nanoseconds a packet");
            columns(&of(Job::Realistic, burst.into()), Job::Realistic, &title, &file)?;
        }
        rounds(&of(Job::Study, 1), jdk, &directory.join(format!("rounds-jdk{jdk}.svg")))?;
    }
    Ok(())
}

fn rows_of(rows: &[Row], job: Job, jdk: u64, varied: u64) -> Vec<&Row> {
    let is = |row: &&Row| {
        row.name.strip_prefix("java.") == Some(job.name())
            && number(row, "jdk") == Some(jdk)
            && number(row, job.varies()) == Some(varied)
    };
    rows.iter().filter(is).collect()
}

/// Bars with their factor to the fastest way in Java, as the study has them.
fn columns(rows: &[&Row], job: Job, title: &str, path: &Path) -> io::Result<()> {
    let java = rows.iter().filter(|row| !row.engine.starts_with(FLOOR));
    let fastest = java.map(|row| row.runs.value).fold(f64::INFINITY, f64::min);
    let bars = job.techniques().iter().filter_map(|technique| {
        let row = rows.iter().find(|row| row.engine == technique.name)?;
        let value = row.runs.value;
        let mark = format!("{} ns, {} x", short(value), short(value / fastest));
        Some(Marked { label: technique.label.to_owned(), value, mark })
    });
    let bars: Vec<Marked> = bars.collect();
    let note =
        "median of the last ten rounds, logarithmic; factors are those to the fastest way in Java";
    chart::logarithmic(path, Captions { title, note }, &bars)
}

/// Each round's figure, so that it is seen how long it takes to get warm.
fn rounds(rows: &[&Row], jdk: u64, path: &Path) -> io::Result<()> {
    let curves = ROUNDS.iter().filter_map(|name| {
        let row = rows.iter().find(|row| row.engine == *name)?;
        let rounds = row.params.get("rounds")?.as_array()?;
        let nanos =
            rounds.iter().filter_map(serde_json::Value::as_f64).filter(|round| *round > 0.0);
        let points = nanos.zip(1u32..).map(|(nanos, round)| (f64::from(round), nanos / 1e9));
        Some(((*name).to_owned(), points.collect()))
    });
    let curves: Vec<Curve> = curves.collect();
    let title = format!("The study's rounds on JDK {jdk}, from the first one");
    let captions = Captions { title: &title, note: "the last ten are those of the other figures" };
    chart::curves(path, captions, "round", "a packet", &curves)
}
