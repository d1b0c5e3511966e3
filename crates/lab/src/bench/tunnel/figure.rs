//! Pictures of a document: what arrives, how late, and what a responder keeps in memory.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::claims::number;
use crate::bench::chart::{self, Bar, Captions, Curve, Marked, short};
use crate::bench::document::Row;

/// Bits, packets and bytes of a thousandth of what figures show.
const GIGA: f64 = 1e9;
const KILO: f64 = 1e3;
const MEBI: f64 = (1 << 20) as f64;

/// Draws what there are rows for.
///
/// # Errors
/// A picture cannot be written.
pub fn draw(rows: &[Row], directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let of = |name: &'static str| rows.iter().filter(move |row| row.name == name);
    let at = |name: &str| directory.join(format!("tunnel-{name}.svg"));
    let connections = |row: &Row| match &*row.name {
        "tunnel.tcp1" => "1 connection".to_owned(),
        _ => "8 connections".to_owned(),
    };
    let tcp = of("tunnel.tcp1").chain(of("tunnel.tcp8"));
    bars(tcp, GIGA, connections, "TCP between two hosts, Gbit/s", &at("tcp"))?;
    let length = |row: &Row| format!("{} bytes", row.name.trim_start_matches("tunnel.udp"));
    let udp = of("tunnel.udp200").chain(of("tunnel.udp1300"));
    bars(udp, KILO, length, "Datagrams that arrive, thousands a second", &at("udp"))?;
    let initiators = |row: &Row| match number(row, "initiators").unwrap_or_default() {
        1.0 => "1 initiator".to_owned(),
        number => format!("{number} initiators"),
    };
    let title = "TCP from all initiators at once, Gbit/s in sum";
    bars(of("tunnel.ten_tcp"), GIGA, initiators, title, &at("star-tcp"))?;
    for (name, percentile, file) in [
        ("tunnel.ten_tcp_ping", 50.0, "star-tcp-delay"),
        ("tunnel.ten_udp_ping", 99.0, "star-udp-delay"),
    ] {
        let rows = of(name).filter(|row| number(row, "percentile") == Some(percentile));
        delays(rows, percentile, &at(file))?;
    }
    memory(of("tunnel.memory"), &at("memory"))
}

/// A bar for each row, its length a multiple of `unit`.
fn bars<'d>(
    rows: impl Iterator<Item = &'d Row>,
    unit: f64,
    what: impl Fn(&Row) -> String,
    title: &str,
    path: &Path,
) -> io::Result<()> {
    let bars: Vec<Bar> = rows
        .map(|row| (format!("{}, {}", row.engine, what(row)), vec![row.runs.value / unit]))
        .collect();
    let note = "Both ends and all loads share the cores of one machine; medians of the rounds.";
    match bars.is_empty() {
        true => Ok(()),
        false => chart::bars(path, Captions { title, note }, &["value"], &bars),
    }
}

/// A curve for each engine over the number of initiators.
fn delays<'d>(rows: impl Iterator<Item = &'d Row>, percentile: f64, path: &Path) -> io::Result<()> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows {
        let at = (number(row, "initiators").unwrap_or_default(), row.runs.value / 1e3);
        match curves.iter_mut().find(|(engine, _)| engine == row.engine) {
            Some((_, points)) => points.push(at),
            None => curves.push((row.engine.to_owned(), vec![at])),
        }
    }
    let load = match percentile {
        50.0 => "TCP from all initiators at once",
        _ => "20 Mbit/s of datagrams from each initiator",
    };
    let title = format!("ping from all initiators beside {load}");
    let note = format!("{percentile} of a hundred answers took no longer; medians of the rounds.");
    chart::curves(
        path,
        Captions { title: &title, note: &note },
        "initiators",
        "there and back",
        &curves,
    )
}

/// What responders keep in memory after the loads of the most initiators.
fn memory<'d>(rows: impl Iterator<Item = &'d Row>, path: &Path) -> io::Result<()> {
    let is_after =
        |row: &&Row| row.params.get("when").and_then(Value::as_str) == Some("after loads");
    let rows: Vec<&Row> = rows.filter(is_after).collect();
    let initiators = |row: &Row| number(row, "initiators").unwrap_or_default();
    let most = rows.iter().map(|row| initiators(row)).fold(0.0, f64::max);
    let marked = |row: &&Row| {
        let value = row.runs.value / MEBI;
        Marked { label: row.engine.to_owned(), value, mark: format!("{} MiB", short(value)) }
    };
    let bars: Vec<Marked> = rows.iter().filter(|row| initiators(row) == most).map(marked).collect();
    let title = format!("Memory of the responder after the loads of {most} initiators, MiB");
    let note = "Resident pages of its process, logarithmic; medians of the rounds.";
    chart::logarithmic(path, Captions { title: &title, note }, &bars)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Rows;

    #[test]
    fn each_engine_has_its_bar_or_curve() {
        let mut out = Rows::kept();
        for engine in ["tamis", "peer"] {
            let row = |name: &'static str, value: f64| Row::new(name, engine, "", &[value]);
            for initiators in [1, 10] {
                let ping = row("tunnel.ten_tcp_ping", 2.0).with("percentile", 50.0);
                let memory = row("tunnel.memory", 3.0 * MEBI).with("when", "after loads");
                let tcp = row("tunnel.ten_tcp", 4e9);
                let rows = [ping, memory, tcp].map(|row| row.with("initiators", initiators));
                out.extend(rows);
            }
            out.push(row("tunnel.tcp1", 5e9));
            out.push(row("tunnel.udp200", 6e4));
        }
        let directory = tempfile::tempdir().unwrap();
        draw(out.rows(), directory.path()).unwrap();
        for (file, words) in [
            ("tunnel-tcp.svg", &["tamis, 1 connection", "peer, 1 connection", "5.00"][..]),
            ("tunnel-udp.svg", &["tamis, 200 bytes", "60.0"]),
            ("tunnel-star-tcp.svg", &["tamis, 1 initiator", "peer, 10 initiators", "4.00"]),
            ("tunnel-star-tcp-delay.svg", &["tamis", "peer"]),
            ("tunnel-memory.svg", &["tamis", "peer", "3.00 MiB"]),
        ] {
            let text = fs::read_to_string(directory.path().join(file)).unwrap();
            let has = |word: &&str| text.lines().any(|line| line.trim() == *word);
            assert!(words.iter().all(has), "{file}: {text}");
        }
        assert!(!directory.path().join("tunnel-star-udp-delay.svg").exists());
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let directory = tempfile::tempdir().unwrap();
        draw(&[], directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
