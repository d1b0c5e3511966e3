//! Peers of a tunnel, for a screen.

use std::fmt::Write;

use packet::visible;
use serde_json::Value;

/// A tunnel with its peers, and what has become of its packets where that was asked.
pub(super) fn text(tunnel: &Value) -> String {
    let word = |value: &Value| visible::word(value.as_str().unwrap_or("-")).into_owned();
    let name = word(&tunnel["name"]);
    let peers = tunnel["peers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = format!("{name}: peers {}\n", peers.len());
    if !peers.is_empty() {
        let titles = ["PEER", "ENDPOINT", "HANDSHAKE", "HEARD", "SENT", "RECEIVED", "LOST", "MTU"];
        row(&mut text, titles.map(str::to_owned), "SUITE");
    }
    for peer in peers {
        let columns = [
            word(&peer["name"]),
            word(&peer["endpoint"]),
            ago(&peer["handshake_s"]),
            ago(&peer["heard_s"]),
            bytes(&peer["sent_bytes"]),
            bytes(&peer["received_bytes"]),
            number(&peer["lost"]),
            number(&peer["path_mtu"]),
        ];
        row(&mut text, columns, &word(&peer["suite"]));
    }
    text
}

fn row(text: &mut String, columns: [String; 8], suite: &str) {
    let [peer, endpoint, handshake, heard, sent, received, lost, mtu] = columns;
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{peer:<14} {endpoint:<24} {handshake:>9} {heard:>8} {sent:>9} {received:>9} {lost:>6} {mtu:>5} \
         {suite}"
    );
}

fn number(value: &Value) -> String {
    value.as_u64().map_or("-".to_owned(), |number| number.to_string())
}

/// How long ago, in seconds, minutes or hours.
fn ago(value: &Value) -> String {
    match value.as_f64() {
        None => "never".to_owned(),
        Some(seconds) if seconds < 120.0 => format!("{seconds:.0} s"),
        Some(seconds) if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        Some(seconds) => format!("{:.0} h", seconds / 3600.0),
    }
}

/// Bytes in units of 1,024.
fn bytes(value: &Value) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let Some(bytes) = value.as_u64() else { return "-".to_owned() };
    let mut left = bytes as f64;
    let mut shown = format!("{bytes} B");
    for unit in UNITS {
        if left < 1024.0 {
            break;
        }
        left /= 1024.0;
        shown = format!("{left:.1} {unit}");
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn peers_are_rows_with_what_is_not_known_as_such() {
        let tunnel = json!({ "name": "office", "peers": [
            { "name": "home", "endpoint": "192.0.2.7:51900", "handshake_s": 61.4, "heard_s": 0.2,
              "suite": "aes-256-gcm", "sent_bytes": 1023, "received_bytes": 5_242_880, "lost": 3,
              "path_mtu": 1420 },
            { "name": "away", "endpoint": null, "handshake_s": null, "heard_s": 10_000.0,
              "suite": null, "sent_bytes": 0, "received_bytes": 2048, "lost": 0, "path_mtu": 1280 },
        ]});
        let text = text(&tunnel);
        let rows: Vec<Vec<&str>> = text.lines().map(|it| it.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["office:", "peers", "2"]);
        let home = ["home", "192.0.2.7:51900", "61", "s", "0", "s", "1023", "B", "5.0", "MiB", "3"];
        assert_eq!(rows[2], [&home[..], &["1420", "aes-256-gcm"]].concat());
        let away = ["away", "-", "never", "3", "h", "0", "B", "2.0", "KiB", "0", "1280", "-"];
        assert_eq!(rows[3], away);
    }
}
