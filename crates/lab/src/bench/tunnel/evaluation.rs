//! The study's evaluation as figures, drawn from a document: what arrives and how late it is by the number of initiators
//! (its slide 17), and what the responder has from second to second (its slide 18).

use std::path::Path;

use crate::bench::figure::{self, Axes, Caption, Panel, Point, Scale, by_engine};
use crate::bench::recorded::{Measured, Recorded, runs};

const MEGA: f64 = 1e-6;
const MEBI: f64 = 1.0 / (1 << 20) as f64;

/// A panel's title, and the rows that it shows.
type Shown<'r> = (&'static str, Vec<&'r Measured>);

/// Where a row's point is.
type Place = fn(&Measured) -> Point;

/// Draws what the document has figures for.
///
/// # Errors
/// A picture cannot be written.
pub fn draw(recorded: &Recorded, directory: &Path) -> Result<(), String> {
    let initiators = ("initiators at once", Scale::Linear);
    let rates = [("TCP", "ten_tcp"), ("UDP", "ten_udp_most"), ("UDP, 20 Mbit/s each", "ten_udp")];
    let rate = |(title, name)| (title, rows(recorded, name, |_| true));
    draw_one(
        recorded,
        &directory.join("study5-throughput.svg"),
        "what arrives at the responder",
        Axes { x: initiators, y: ("Mbit/s in sum", Scale::Logarithmic) },
        (rates.map(rate), |row| Point::of(row.number("initiators"), row, MEGA)),
    )?;
    let median = |row: &Measured| row.number("percentile") == 50.0;
    let delay = |(title, name)| (title, rows(recorded, &format!("{name}_ping"), median));
    draw_one(
        recorded,
        &directory.join("study5-delay.svg"),
        "ping of all initiators meanwhile, the median",
        Axes { x: initiators, y: ("ms there and back", Scale::Logarithmic) },
        (rates.map(delay), |row| Point::of(row.number("initiators"), row, 1.0)),
    )?;
    let trend = rows(recorded, "trend", |_| true);
    let most = trend.iter().map(|row| row.number("initiators")).fold(0.0, f64::max);
    let of = |(load, _): (&'static str, _)| {
        let is = |row: &&&Measured| row.word("load") == load && row.number("initiators") == most;
        (load, trend.iter().filter(is).copied().collect())
    };
    let seconds = ("seconds since the loads began", Scale::Linear);
    draw_one(
        recorded,
        &directory.join("study5-memory.svg"),
        &format!("memory of the responder, loads of {most} initiators"),
        Axes { x: seconds, y: ("MiB", Scale::Logarithmic) },
        (rates.map(of), |row| Point::of(row.number("second"), row, MEBI)),
    )?;
    draw_one(
        recorded,
        &directory.join("study5-threads.svg"),
        &format!("threads of the responder, loads of {most} initiators"),
        Axes { x: seconds, y: ("threads", Scale::Linear) },
        (rates.map(of), |row| Point::sole(row.number("second"), row.number("threads"))),
    )
}

/// The rows of a name without its `tunnel.`.
fn rows<'r>(
    recorded: &'r Recorded,
    name: &str,
    is: impl Fn(&Measured) -> bool,
) -> Vec<&'r Measured> {
    recorded.named(&format!("tunnel.{name}")).filter(|row| is(row)).collect()
}

/// A picture with a panel for each load, if there are rows.
fn draw_one(
    recorded: &Recorded,
    path: &Path,
    title: &str,
    axes: Axes,
    (shown, place): ([Shown<'_>; 3], Place),
) -> Result<(), String> {
    if shown.iter().all(|(_, rows)| rows.is_empty()) {
        return Ok(());
    }
    let all = shown.iter().flat_map(|(_, rows)| rows.iter().copied());
    let how = format!("namespaces of one machine, 1 Gbit/s, 1 GiB; {} rounds", runs(all));
    let caption = Caption { title: format!("CYPHONIC client: {title}"), note: recorded.note(&how) };
    let panels = shown
        .map(|(title, rows)| Panel { title: title.to_owned(), series: by_engine(rows, place) });
    figure::panels(path, &caption, axes, &panels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Row, Rows};

    #[test]
    fn each_load_has_its_panel_and_each_engine_its_line() {
        let mut out = Rows::kept();
        for (engine, initiators) in [("tamis", 10), ("tamis", 1), ("mutex", 1), ("mutex", 10)] {
            let row = |name: &'static str| {
                Row::new(name, engine, "", &[2e7]).with("initiators", initiators)
            };
            out.push(row("tunnel.ten_tcp"));
            out.push(row("tunnel.ten_udp_most_ping").with("percentile", 50.0));
            for second in [0, 1] {
                let trend = row("tunnel.trend").with("second", second).with("threads", 6);
                out.push(trend.with("load", "UDP, 20 Mbit/s each"));
            }
        }
        let recorded = Recorded::of(&out).unwrap();
        let series = by_engine(rows(&recorded, "ten_tcp", |_| true), |row| {
            Point::of(row.number("initiators"), row, MEGA)
        });
        let [tamis, mutex] = &series[..] else { panic!("{series:?}") };
        assert_eq!((&*tamis.name, &*mutex.name), ("tamis", "mutex"));
        assert_eq!(tamis.points, [Point::sole(1.0, 20.0), Point::sole(10.0, 20.0)]);
        let directory = tempfile::tempdir().unwrap();
        draw(&recorded, directory.path()).unwrap();
        for name in ["throughput", "delay", "memory", "threads"] {
            let path = directory.path().join(format!("study5-{name}.svg"));
            let text = std::fs::read_to_string(path).unwrap();
            for words in ["tamis", "mutex", "TCP", "UDP, 20 Mbit/s each"] {
                assert!(text.lines().any(|line| line.trim() == words), "{name}: {words}");
            }
        }
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut out = Rows::kept();
        out.push(Row::new("tunnel.tcp1", "tamis", "", &[1.0]));
        draw(&Recorded::of(&out).unwrap(), directory.path()).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
