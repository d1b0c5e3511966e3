//! Pictures of a document: delays by the part of the frames that were later, and frames per second as bars.

use std::fs;
use std::io;
use std::path::Path;

use crate::bench::chart::{self, Bar, Captions, Curve};
use crate::bench::document::Row;

/// Draws what there are rows for.
///
/// # Errors
/// A picture cannot be written.
pub fn draw(rows: &[Row], directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut rates: Vec<f64> = named(rows, "live.latency").map(|row| number(row, "rate")).collect();
    rates.dedup();
    for rate in rates {
        let of_rate = || named(rows, "live.latency").filter(move |row| number(row, "rate") == rate);
        delays(of_rate, rate, &directory.join(format!("latency-{rate}.svg")))?;
    }
    forwarding(rows, &directory.join("forward.svg"))
}

fn named<'r>(rows: &'r [Row], name: &'static str) -> impl Iterator<Item = &'r Row> {
    rows.iter().filter(move |row| row.name == name)
}

fn number(row: &Row, name: &str) -> f64 {
    row.params.get(name).and_then(serde_json::Value::as_f64).unwrap_or_default()
}

/// What a row of ours is called, by what it varies.
fn ours(row: &Row) -> String {
    let backend = row.params.get("backend").and_then(serde_json::Value::as_str);
    let backend = backend.unwrap_or(row.name.rsplit("veth_").next().unwrap_or_default());
    match number(row, "rules") {
        0.0 => format!("tamis, {backend}"),
        rules => format!("tamis, {backend}, {rules} rules"),
    }
}

/// What its peer is called, on the same work; the kernel forwards without any back end.
fn theirs(row: &Row, peer: &str) -> String {
    match number(row, "rules") {
        0.0 if peer == "kernel" => peer.to_owned(),
        rules if peer.starts_with("iptables") => format!("{peer}, {rules} rules"),
        _ => ours(row).replacen("tamis", peer, 1),
    }
}

/// A curve for each forwarder: how late, over one in how many frames is later.
fn delays<'d, R: Iterator<Item = &'d Row>>(
    rows: impl Fn() -> R,
    rate: f64,
    path: &Path,
) -> io::Result<()> {
    let mut curves: Vec<Curve> = Vec::new();
    let mut add = |name: String, at: (f64, f64)| match curves.iter_mut().find(|(of, _)| *of == name)
    {
        Some((_, points)) => points.push(at),
        None => curves.push((name, vec![at])),
    };
    for row in rows() {
        let one_in = 100.0 / (100.0 - number(row, "percentile"));
        add(ours(row), (one_in, row.runs.value / 1e9));
        if let Some(peer) = &row.peer {
            add(theirs(row, peer.peer), (one_in, peer.value / 1e9));
        }
    }
    let title = format!("From one end to the other, {rate} frames a second");
    let note =
        "64 bytes over two veth pairs. One in so many frames takes longer; medians of the runs.";
    let captions = Captions { title: &title, note };
    chart::curves(path, captions, "one frame in", "takes longer than", &curves)
}

/// A bar for each forwarder.
fn forwarding(rows: &[Row], path: &Path) -> io::Result<()> {
    let mut bars: Vec<Bar> = Vec::new();
    for row in rows.iter().filter(|row| row.name.starts_with("live.forward.veth_")) {
        let millions = |value: f64| vec![value / 1e6];
        let peer = row.peer.as_ref().map(|peer| (theirs(row, peer.peer), millions(peer.value)));
        for bar in [Some((ours(row), millions(row.runs.value))), peer].into_iter().flatten() {
            if !bars.iter().any(|(name, _)| *name == bar.0) {
                bars.push(bar);
            }
        }
    }
    let title = "Frames forwarded, millions a second";
    let note = "64 bytes over two veth pairs, one direction, the source on another core; medians of the runs.";
    match bars.is_empty() {
        true => Ok(()),
        false => chart::bars(path, Captions { title, note }, &["frames"], &bars),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Rows;

    #[test]
    fn a_peer_has_a_curve_and_a_bar_of_its_own_and_the_kernel_no_back_end() {
        let mut out = Rows::kept();
        let delay = |rules: u64, percentile: f64| {
            Row::new("live.latency", "tamis", "ns", &[1000.0 * percentile])
                .with("backend", "af_xdp")
                .with("rules", rules)
                .with("rate", 50)
                .with("percentile", percentile)
        };
        for percentile in [50.0, 99.0] {
            let theirs = [("testpmd io", vec![7.0])].into_iter();
            out.push_beside(delay(0, percentile), &[1.0], theirs);
            let theirs = [("iptables-nft", vec![8.0])].into_iter();
            out.push_beside(delay(20, percentile), &[1.0], theirs);
        }
        let rate =
            Row::new("live.forward.veth_af_xdp", "tamis", "packets/s", &[2e6]).with("rules", 0);
        out.push_beside(rate, &[2e6], [("kernel", vec![1e6])].into_iter());
        let directory = tempfile::tempdir().unwrap();
        draw(out.rows(), directory.path()).unwrap();
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        let delays = read("latency-50.svg");
        for name in [
            "tamis, af_xdp",
            "testpmd io, af_xdp",
            "tamis, af_xdp, 20 rules",
            "iptables-nft, 20 rules",
        ] {
            assert_eq!(delays.lines().filter(|line| line.trim() == name).count(), 1, "{name}");
        }
        let bars = read("forward.svg");
        let names: Vec<_> = ["tamis, af_xdp", "kernel", "2.00", "1.00"].into();
        assert!(names.iter().all(|name| bars.lines().any(|line| line.trim() == *name)), "{bars}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let directory = tempfile::tempdir().unwrap();
        draw(&[], directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
