//! The study's figures, drawn from a document: its four techniques as its two machines had them and as they are here,
//! all techniques, the realistic job by technique, and the rounds, from the first one.

use std::path::Path;

use super::technique::{FLOOR, Job};
use crate::bench::figure::{self, Axes, Caption, Panel, Point, Scale, Series, Strip};
use crate::bench::recorded::{Measured, Recorded, runs};

/// A figure of the study: its name and machine, and nanoseconds a packet of [`FOUR`].
struct Published {
    file: &'static str,
    machine: &'static str,
    nanos: [f64; 4],
}

/// Columns of the study, as its authors published them with their program: means of the rounds that they kept.
const PUBLISHED: [Published; 2] = [
    Published {
        file: "study4-figure2.svg",
        machine: "figure 2, a server (Xeon E5-2690)",
        nanos: [6918.0, 63.0, 24.0, 23.0],
    },
    Published {
        file: "study4-figure4.svg",
        machine: "figure 4, a virtual machine (i7-3615QM)",
        nanos: [14254.0, 73.0, 23.0, 22.0],
    },
];

/// The study's techniques in the order of its columns: objects, byte buffers, Unsafe into an object, direct.
const FOUR: [&str; 4] = ["object_lookup", "buffer_direct_big_endian", "unsafe_object", "direct"];

/// Shown below them: the way of the API, and the same in Rust.
const OURS: [&str; 2] = ["direct_batched", FLOOR];

/// Whose rounds are drawn.
const ROUNDS: [&str; 7] = [
    FLOOR,
    "buffer_direct",
    "mapped_varhandle",
    "unsafe_object",
    "direct",
    "direct_batched",
    "ffm_global",
];

/// Draws what the document has figures for.
///
/// # Errors
/// A picture cannot be written.
pub fn draw(recorded: &Recorded, dir: &Path) -> Result<(), String> {
    let study = rows(recorded, Job::Study, 1);
    for Published { file, machine, nanos } in PUBLISHED {
        let rings: Vec<_> = FOUR.into_iter().zip(nanos).collect();
        let shown = Shown { names: FOUR.into_iter().chain(OURS).collect(), by: &FOUR, rings };
        let title = format!("Data sharing, {machine}: nanoseconds a packet");
        strips(recorded, (Job::Study, &study), &shown, title, &dir.join(file))?;
    }
    let title = "The study's job, all techniques: nanoseconds a packet".to_owned();
    let file = dir.join("study4-techniques.svg");
    strips(recorded, (Job::Study, &study), &Shown::all(Job::Study), title, &file)?;
    let realistic = rows(recorded, Job::Realistic, 32);
    let title = "The realistic job, bursts of 32: nanoseconds a packet".to_owned();
    let file = dir.join("study4-realistic.svg");
    strips(recorded, (Job::Realistic, &realistic), &Shown::all(Job::Realistic), title, &file)?;
    rounds(recorded, &study, &dir.join("study4-rounds.svg"))
}

/// The rows of a job with so many structs, or bursts of this size.
fn rows(recorded: &Recorded, job: Job, varied: u32) -> Vec<&Measured> {
    let named = recorded.results.iter().filter(|row| row.name == format!("java.{}", job.name()));
    named.filter(|row| row.number(job.varies()) == f64::from(varied)).collect()
}

/// The JDKs of some rows.
fn jdks(rows: &[&Measured]) -> Vec<f64> {
    let mut jdks: Vec<f64> = rows.iter().map(|row| row.number("jdk")).collect();
    jdks.sort_by(f64::total_cmp);
    jdks.dedup();
    jdks
}

/// What a figure shows.
struct Shown<'n> {
    names: Vec<&'n str>,
    /// Factors are those to the fastest of these; of all ways in Java if there is none.
    by: &'n [&'n str],
    /// What was published of some.
    rings: Vec<(&'n str, f64)>,
}

impl Shown<'static> {
    fn all(job: Job) -> Self {
        let names = job.techniques().iter().map(|technique| technique.name).collect();
        Self { names, by: &[], rings: Vec::new() }
    }
}

impl Shown<'_> {
    /// Whether factors may be those to this one.
    fn counts(&self, name: &str) -> bool {
        if self.by.is_empty() { !name.starts_with(FLOOR) } else { self.by.contains(&name) }
    }
}

/// A row for each technique on each JDK with its factor; rings next to it where figures were published.
fn strips(
    recorded: &Recorded,
    (job, rows): (Job, &[&Measured]),
    shown: &Shown<'_>,
    title: String,
    path: &Path,
) -> Result<(), String> {
    let jdks = jdks(rows);
    let of = |name: &str| {
        let on = |jdk: &f64| {
            let on_it = || rows.iter().filter(|row| row.number("jdk") == *jdk);
            let row = on_it().find(|row| row.engine == name)?;
            let java = on_it().filter(|row| shown.counts(&row.engine));
            let fastest = java.map(|row| row.value).fold(f64::INFINITY, f64::min);
            let label = job.technique(name)?.label;
            let factor = row.value / fastest;
            let digits = if factor < 10.0 { 2 } else { 0 };
            let label = format!("{label}, JDK {jdk}: {factor:.digits$} x");
            let published =
                shown.rings.iter().filter(|(of, _)| *of == name).map(|(_, nanos)| *nanos);
            Some(Strip { published: published.collect(), ..Strip::of(label, row) })
        };
        jdks.iter().filter_map(on).collect::<Vec<_>>()
    };
    let strips: Vec<Strip> = shown.names.iter().copied().flat_map(of).collect();
    if strips.is_empty() {
        return Ok(());
    }
    let how = format!(
        "factors: to the fastest {}; {} rounds: least, median and most",
        if shown.by.is_empty() { "in Java" } else { "of the study's four" },
        runs(rows.iter().copied())
    );
    let caption = Caption { title, note: recorded.note(&how) };
    figure::strips(path, &caption, ("ns a packet", Scale::Logarithmic), &strips)
}

/// Each round's figure, so that it is seen how long it takes to get warm.
fn rounds(recorded: &Recorded, rows: &[&Measured], path: &Path) -> Result<(), String> {
    let series = |jdk: f64, name: &str| {
        let row = rows.iter().find(|row| row.engine == name && row.number("jdk") == jdk)?;
        let nanos = row.params.get("rounds")?.as_array()?.iter();
        let nanos = nanos.filter_map(serde_json::Value::as_f64).filter(|round| *round > 0.0);
        let points = (1u32..).zip(nanos).map(|(round, nanos)| Point::sole(round.into(), nanos));
        Some(Series { name: name.to_owned(), points: points.collect(), is_published: false })
    };
    let panel = |jdk: f64| Panel {
        title: format!("JDK {jdk}"),
        series: ROUNDS.iter().filter_map(|name| series(jdk, name)).collect(),
    };
    let panels: Vec<_> = jdks(rows).into_iter().map(panel).collect();
    if panels.iter().all(|panel| panel.series.is_empty()) {
        return Ok(());
    }
    let caption = Caption {
        title: "The study's rounds, from the first one".to_owned(),
        note: recorded
            .note("the last ten make the other figures; direct_batched is how tamis reads"),
    };
    let axes = Axes { x: ("round", Scale::Linear), y: ("ns a packet", Scale::Logarithmic) };
    figure::panels(path, &caption, axes, &panels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::published_text;

    #[test]
    fn published_columns_are_those_that_the_study_tells_of() {
        let factor = |one: &Published, column: usize| one.nanos[column] / one.nanos[3];
        let [server, machine] = &PUBLISHED;
        let said = format!("{:.2} times the direct technique", factor(server, 1));
        let objects = [factor(server, 0), factor(machine, 0)].map(|by| (by / 50.0).round() * 50.0);
        let range = format!("{} - {} times slower", objects[0], objects[1]);
        assert_eq!(
            (&*said, &*range),
            ("2.74 times the direct technique", "300 - 650 times slower")
        );
        let Some(text) = published_text("003") else { return };
        for words in
            [&*said, &*range, "Intel Xeo E5-2690", "Linux VM on Mac OS X - Intel i7-3615QM"]
        {
            assert!(text.contains(words), "{words}");
        }
    }
}
