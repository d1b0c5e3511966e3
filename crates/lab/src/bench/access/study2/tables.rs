//! The study's three tables of numbers, ours beside them, as a page that `make figures` writes.

use std::fmt::Write;
use std::path::Path;

use super::super::published::{STUDY2, STUDY2_SIZES};
use super::system::{System, systems};
use crate::bench::recorded::{Measured, Recorded};
use crate::studies::orchestrate::Orchestration;

/// The page's name.
const PAGE: &str = "study2-tables.md";
/// The study's tables by number, and the way to share work of each.
const WAYS: [(u32, &str, Orchestration); 3] = [
    (9, "threads", Orchestration::WorkerPool),
    (10, "streams", Orchestration::Stream),
    (11, "serial", Orchestration::Serial),
];

/// Writes the page where the document has times of all sizes.
pub(super) fn draw(recorded: &Recorded, dir: &Path) -> Result<(), String> {
    if recorded.named("access.study2.critical").next().is_none() {
        return Ok(());
    }
    let path = dir.join(PAGE);
    std::fs::write(&path, page(recorded)).map_err(|why| format!("{}: {why}", path.display()))
}

fn page(recorded: &Recorded) -> String {
    let note = recorded.note("medians of the second pass");
    let mut text = format!(
        "# Study 2: its tables of numbers, and ours\n\n\
        Made by `make figures` from study2.json. Milliseconds. The study: means of 100 loops, first and second pass, on a Core i7 \
        of 8 logical cores,\nin Java. Ours: {note}, with 128 and 1,024 addresses for 100 and 1,000. Times of two machines: what can \
        be compared is how rows of one\ncolumn stand to each other.\n"
    );
    for (number, title, way) in WAYS {
        let _ = write!(
            text,
            "\n## Table {number}: {title}\n\n\
            | table | packets | addresses | critical, published | critical, ours | overall, published | overall, ours |\n\
            |---|---:|---:|---:|---:|---:|---:|\n"
        );
        for system in systems().filter(|(_, of)| *of == way) {
            rows(recorded, system, &mut text);
        }
    }
    text
}

/// The rows of a system, in the order of the study.
fn rows(recorded: &Recorded, (table, way): System, text: &mut String) {
    let (table, way) = (table.name(), way.name());
    let published = STUDY2.iter().find(|one| (one.table, one.way) == (table, way));
    for size @ (packets, addresses) in STUDY2_SIZES {
        let pass = |pass: usize, of: fn((f64, f64)) -> f64| {
            let found = published.and_then(|one| one.pass(pass).find(|(at, _)| *at == size));
            found.map_or_else(|| "–".to_owned(), |(_, times)| of(times).to_string())
        };
        let both = |of: fn((f64, f64)) -> f64| match [pass(0, of), pass(1, of)] {
            [one, other] if one == other => one,
            [one, other] => format!("{one}, {other}"),
        };
        let ours = |name: &str| {
            let is_it = |row: &&Measured| {
                (row.engine.as_str(), row.word("orchestration")) == (table, way)
                    && row.number("packets") == packets as f64
                    && row.number("addresses") == addresses.next_power_of_two() as f64
            };
            let found = recorded.named(name).find(is_it);
            found.map_or_else(|| "–".to_owned(), |row| format!("{:.2}", row.value))
        };
        let _ = writeln!(
            text,
            "| `{table}` | {packets} | {addresses} | {} | {} | {} | {} |",
            both(|times| times.0),
            ours("access.study2.critical"),
            both(|times| times.1),
            ours("access.study2.overall"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::system::TABLES;
    use super::*;

    #[test]
    fn every_published_row_has_its_place_and_ours_beside_it() {
        let row = |packets, addresses| {
            serde_json::json!({
                "name": "access.study2.critical", "engine": "matrix", "value": 7.125, "min": 7.0, "max": 8.0, "runs": 2,
                "params": { "orchestration": "stream", "packets": packets, "addresses": addresses },
            })
        };
        let document = serde_json::json!({
            "machine": { "cpu": "x", "cores": 2 }, "date": "2026-11-28T00:00:00Z", "results": [row(1000, 128)],
        });
        let page = page(&serde_json::from_value(document).unwrap());
        assert!(
            page.contains("| `matrix` | 1000 | 100 | 4.24, 3.92 | 7.12 | 4.39, 4.24 | – |"),
            "{page}"
        );
        assert!(page.contains("| `serial` | 1000000 | 1000 | – | – | – | – |"), "{page}");
        let rows = page.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, STUDY2_SIZES.len() * (2 * TABLES.len() + 1));
        for system in &STUDY2 {
            for (_, (critical, _)) in system.pass(1) {
                assert!(page.contains(&critical.to_string()), "{} {critical}", system.table);
            }
        }
    }
}
