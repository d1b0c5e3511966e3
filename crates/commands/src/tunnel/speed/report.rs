//! What was measured, as text and as JSON.

use std::time::Duration;

use live::answers::Peer;
use serde_json::{Value, json};

use super::measure::{Delays, Measured};

/// A peer that was measured, and how it is reached.
pub(super) struct Report<'r> {
    /// The peer, as its user names it.
    pub(super) peer: &'r str,
    /// How it is reached, in words.
    pub(super) way: &'r str,
    pub(super) measured: &'r Measured,
}

impl Report<'_> {
    pub(super) fn text(&self) -> String {
        let Measured { delays: [idle, sending, receiving], sent, received } = self.measured;
        let rows = [
            ("idle".to_owned(), String::new(), idle),
            (format!("to {}", self.peer), format!("{:.1}", sent.mbit_s()), sending),
            (format!("from {}", self.peer), format!("{:.1}", received.mbit_s()), receiving),
        ];
        let head = "round trips in ms";
        let names = rows.iter().map(|row| row.0.chars().count());
        let wide = names.chain([head.len()]).max().unwrap_or_default();
        let mut text = format!(
            "{}\n{head:wide$}  {:>9}  {:>9}  {:>9}  {:>9}  lost\n",
            self.way, "Mbit/s", "least", "median", "99 %"
        );
        for (name, rate, delays) in rows {
            let [least, median, most] = [0, 50, 99].map(|percent| shown(delays.at(percent)));
            text += &format!(
                "{name:wide$}  {rate:>9}  {least:>9}  {median:>9}  {most:>9}  {} of {}\n",
                delays.lost(),
                delays.sent
            );
        }
        text
    }
}

fn shown(trip: Option<Duration>) -> String {
    trip.map_or_else(|| "–".to_owned(), |trip| format!("{:.2}", millis(trip)))
}

fn millis(trip: Duration) -> f64 {
    (trip.as_secs_f64() * 1e6).round() / 1e3
}

/// The document.
pub(super) fn document(
    (name, address): (&str, std::net::IpAddr),
    peer: Option<&Peer>,
    measured: &Measured,
) -> Value {
    let Measured { delays: [idle, sending, receiving], sent, received } = measured;
    let rate = |mbit_s: f64| (mbit_s * 1e3).round() / 1e3;
    let mut send = trips(sending);
    send["mbit_s"] = rate(sent.mbit_s()).into();
    let mut receive = trips(receiving);
    receive["mbit_s"] = rate(received.mbit_s()).into();
    json!({
        "schema": "tamis.tunnel_speed/1",
        "peer": name,
        "address": address,
        "path": peer.and_then(|peer| peer.path.as_deref()),
        "endpoint": peer.and_then(|peer| peer.endpoint.as_deref()),
        "idle": trips(idle),
        "send": send,
        "receive": receive,
    })
}

fn trips(delays: &Delays) -> Value {
    let [least, median, most] = [0, 50, 99].map(|percent| delays.at(percent).map(millis));
    json!({ "min_ms": least, "median_ms": median, "p99_ms": most, "probes": delays.sent, "lost": delays.lost() })
}

#[cfg(test)]
mod tests {
    use super::super::blocks::Rate;
    use super::*;

    #[test]
    fn what_was_measured_is_shown_in_four_lines_and_a_document() {
        let delays = |least: u64, sent| {
            let trips = vec![Duration::from_micros(least), Duration::from_millis(12)];
            Delays { sent, trips }
        };
        let measured = Measured {
            delays: [delays(310, 2), delays(4_000, 3), Delays { sent: 5, trips: Vec::new() }],
            sent: Rate { bytes: 117_625_000, nanos: 1_000_000_000 },
            received: Rate { bytes: 12_500, nanos: 1_000_000_000 },
        };
        let report = Report { peer: "nas", way: "direct", measured: &measured };
        assert_eq!(
            report.text(),
            "direct\n\
             round trips in ms     Mbit/s      least     median       99 %  lost\n\
             idle                               0.31       0.31      12.00  0 of 2\n\
             to nas                 941.0       4.00       4.00      12.00  1 of 3\n\
             from nas                 0.1          –          –          –  5 of 5\n"
        );
        let peer = Peer { path: Some("direct".to_owned()), ..Peer::default() };
        let document = document(("nas", [10, 99, 0, 3].into()), Some(&peer), &measured);
        assert_eq!(document["send"]["mbit_s"], 941.0);
        assert_eq!(document["path"], "direct");
        let idle =
            json!({ "min_ms": 0.31, "median_ms": 0.31, "p99_ms": 12.0, "probes": 2, "lost": 0 });
        assert_eq!(document["idle"], idle);
        assert_eq!(document["receive"]["median_ms"], Value::Null);
    }
}
