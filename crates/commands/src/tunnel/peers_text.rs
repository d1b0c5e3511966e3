//! Peers of a tunnel, for a screen.

use std::fmt::Write;

use live::answers::Peer;
use packet::visible;

/// The peers of a tunnel.
pub(super) fn text(tunnel: &str, peers: &[Peer]) -> String {
    let mut text = format!("{}: peers {}\n", visible::word(tunnel), peers.len());
    if !peers.is_empty() {
        let titles = ["PEER", "ENDPOINT", "HANDSHAKE", "HEARD", "SENT", "RECEIVED", "LOST", "MTU"];
        row(&mut text, titles.map(str::to_owned), "SUITE");
    }
    let word = |text: Option<&str>| visible::word(text.unwrap_or("-")).into_owned();
    for peer in peers {
        let columns = [
            word(Some(&peer.name)),
            endpoint(peer),
            ago(peer.handshake_s),
            ago(peer.heard_s),
            bytes(peer.sent_bytes),
            bytes(peer.received_bytes),
            peer.lost.to_string(),
            peer.path_mtu.to_string(),
        ];
        row(&mut text, columns, &word(peer.suite.as_deref()));
    }
    text
}

/// Where a peer is, and whether that is the network's relay.
fn endpoint(peer: &Peer) -> String {
    let endpoint = visible::word(peer.endpoint.as_deref().unwrap_or("-")).into_owned();
    match &peer.path {
        Some(path) => format!("{endpoint} {}", visible::word(path)),
        None => endpoint,
    }
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

/// How long ago, in seconds, minutes or hours.
fn ago(seconds: Option<f64>) -> String {
    match seconds {
        None => "never".to_owned(),
        Some(seconds) if seconds < 120.0 => format!("{seconds:.0} s"),
        Some(seconds) if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        Some(seconds) => format!("{:.0} h", seconds / 3600.0),
    }
}

/// Bytes in units of 1,024.
fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
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
    use live::answers::{self, Peers};
    use serde_json::json;

    use super::*;

    #[test]
    fn peers_are_rows_with_what_is_not_known_as_such() {
        let tunnel = json!({ "peers": [
            { "name": "home", "endpoint": "192.0.2.7:51900", "handshake_s": 61.4, "heard_s": 0.2,
              "suite": "aes-256-gcm", "sent_bytes": 1023, "received_bytes": 5_242_880, "lost": 3,
              "path_mtu": 1420 },
            { "name": "away", "endpoint": null, "handshake_s": null, "heard_s": 10_000.0,
              "suite": null, "sent_bytes": 0, "received_bytes": 2048, "lost": 0, "path_mtu": 1280 },
        ]});
        let Peers { peers } = answers::read(tunnel).unwrap();
        let text = text("office", &peers);
        let rows: Vec<Vec<&str>> = text.lines().map(|it| it.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["office:", "peers", "2"]);
        let home = ["home", "192.0.2.7:51900", "61", "s", "0", "s", "1023", "B", "5.0", "MiB", "3"];
        assert_eq!(rows[2], [&home[..], &["1420", "aes-256-gcm"]].concat());
        let away = ["away", "-", "never", "3", "h", "0", "B", "2.0", "KiB", "0", "1280", "-"];
        assert_eq!(rows[3], away);
    }
}
