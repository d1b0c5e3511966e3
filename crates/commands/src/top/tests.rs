//! Screens of fixed readings, as they are on a terminal of that size.

use std::time::Duration;

use live::answers::{self, Peers};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::command::{drawn, seconds, size, text};
use super::figures::{Count, Figures};
use super::reading::Reading;
use super::view::Shown;
use crate::top::svg;

fn direction(from: &str, to: &str, of: [u64; 4], dropped: &Value) -> Value {
    let [received, bytes, sent, accepted] = of;
    json!({
        "in": from, "out": to, "received": received, "received_bytes": bytes, "sent": sent,
        "sent_bytes": 0, "dropped": dropped,
        "verdicts": { "accept": accepted, "drop": received - accepted, "reject": 0, "unknown": 0 },
    })
}

fn reading(uptime: f64, frames: u64) -> Reading {
    let dropped = json!({ "rule": frames / 10, "policy": frames / 5, "tx_full": 3 });
    let left = [frames, frames * 1000, frames / 10 * 7, frames / 10 * 7];
    let worker = |number: u64, awake: f64| {
        json!({
            "number": number, "state": "busy", "awake_seconds": awake, "waiting": 4,
            "connections": 600,
        })
    };
    let rule = |number: u64, text: &str, packets: u64| {
        json!({
            "family": "ip", "table": "filter", "chain": "FORWARD", "number": number, "text": text,
            "packets": packets, "bytes": packets * 1000,
        })
    };
    let mail =
        "-A FORWARD -i lan -p tcp -m tcp --dport 25 -m comment --comment \"by the relay\" -j DROP";
    Reading {
        status: read(json!({
            "uptime_seconds": uptime, "program": 7, "panicked": false,
            "workers": [worker(0, uptime / 2.0), worker(1, uptime / 20.0)],
            "ports": [{ "port": "wan", "device": "eth2", "state": "down", "lost": 12 }],
            "wires": [direction("lan", "wan", left, &dropped), direction("wan", "lan", [0; 4], &json!({}))],
        })),
        counters: read(json!({ "rules": [
            rule(1, mail, frames / 10),
            rule(2, "-A FORWARD -p tcp -j ACCEPT\u{202e}", frames / 10 * 7),
        ] })),
        talkers: read(json!({
            "seconds": 2.0,
            "sources": [{ "address": "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff", "frames": 8000, "bytes": 8_000_000 }],
            "services": [
                { "protocol": "tcp", "port": 443, "frames": 6000, "bytes": 7_000_000 },
                { "protocol": "icmp", "port": null, "frames": 2000, "bytes": 1_000_000 },
            ],
        })),
        peers: Peers::default(),
    }
}

/// An answer as a run of 0.1 gives it, as far as it is shown.
fn read<A: DeserializeOwned>(answer: Value) -> A {
    answers::read(answer).unwrap()
}

fn shown() -> Shown {
    let figures = Figures::of(&reading(3603.0, 30_000), Some(&reading(3601.0, 10_000)));
    Shown { figures: Some(figures), ..Shown::default() }
}

#[test]
fn a_small_screen_has_all_of_it() {
    let expected = r#"
tamis  up 1:00:03  program 7  10.0k frames/s, 80.0 Mbit/s  connections 1.20k
wan: eth2 is down
wan: lost 12 frames that came
WIRE                  IN/s    bit/s    OUT/s   accept     drop   reject  unknown
lan > wan            10.0k    80.0M    7.00k    7.00k    3.00k        0        0
wan > lan                0        0        0        0        0        0        0

  PKTS/s    bit/s RULE
   7.00k    56.0M -A FORWARD -p tcp -j ACCEPT\u{202e}
   1.00k    8.00M -A FORWARD -i lan -p tcp -m tcp --dport 25 -m comment --comme…




DROPPED BY   FRAMES/s  SOURCE              F/s  bit/s  SERVICE        F/s  bit/s
policy          2.00k  2001:db8:aaaa:bb  4.00k  32.0M  tcp/443      3.00k  28.0M
rule            1.00k                                  icmp         1.00k  4.00M
tx_full             0


WORKER STATE  BUSY                                           WAITING CONNECTIONS
     0 busy    50 % ██████████                                     4         600
     1 busy     5 % █                                              4         600
q quit  t totals  p pause
"#;
    assert_eq!(text(&drawn(&shown(), (80, 24))), expected.trim_start());
}

/// The busiest senders stand first, between wires and rules.
#[test]
fn peers_of_tunnels_are_shown_where_there_are_any() {
    let peer = |name: &str, heard: Value, bytes: u64| {
        json!({
            "tunnel": "office", "name": name, "key": name, "heard_s": heard, "lost": 3,
            "received_bytes": bytes, "sent_bytes": bytes / 2, "reorder_depth": 1, "path_mtu": 1420,
        })
    };
    let at = |uptime: f64, bytes: u64| Reading {
        peers: read(
            json!({ "peers": [peer("road", Value::Null, 0), peer("home", json!(0.42), bytes)] }),
        ),
        ..reading(uptime, bytes)
    };
    let figures = Figures::of(&at(12.0, 30_000), Some(&at(10.0, 10_000)));
    let screen = drawn(&Shown { figures: Some(figures), ..Shown::default() }, (80, 24));
    let screen = text(&screen);
    let lines: Vec<_> =
        screen.lines().skip_while(|line| !line.starts_with("PEER")).take(3).collect();
    let expected = [
        "PEER                  HEARD bit/s in      out     lost    depth path MTU",
        "office home           0.4 s    80.0k    40.0k        3        1     1420",
        "office road           never        0        0        3        1     1420",
    ];
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(lines.iter().map(|line| squeezed(line)).collect::<Vec<_>>(), expected.map(squeezed));
    assert!(screen.contains("RULE") && screen.contains("WORKER"));
}

#[test]
fn totals_are_shown_where_they_are_asked_for() {
    let screen = text(&drawn(&Shown { totals: true, paused: true, ..shown() }, (80, 24)));
    let line = |start: &str| {
        let line = screen.lines().find(|line| line.trim_start().starts_with(start));
        line.unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("lan > wan"), "lan > wan 30.0k 30.0M 21.0k 21.0k 9.00k 0 0");
    assert_eq!(line("PACKETS"), "PACKETS bytes RULE");
    assert!(line("policy").starts_with("policy 6.00k"));
    assert_eq!(line("q quit"), "q quit t rates p go on");
}

/// Any size, and any silence, has a screen: nothing panics where there is no room.
#[test]
fn every_size_has_a_screen() {
    for columns in [1, 3, 20, 79, 300] {
        for rows in [1, 2, 5, 10, 60] {
            let silence = "no tamis listens at /run/tamis/control.sock: gone".to_owned();
            drawn(&Shown { silence, ..Shown::default() }, (columns, rows));
            drawn(&shown(), (columns, rows));
        }
    }
    let silent =
        drawn(&Shown { silence: "no tamis".to_owned(), still: true, ..Shown::default() }, (20, 3));
    assert_eq!(text(&silent), "no tamis\n");
}

/// A run that is younger than before is another one, and a rule of another text in the same place another rule.
#[test]
fn rates_are_of_one_run_and_of_one_rule() {
    let restarted = Figures::of(&reading(5.0, 100), Some(&reading(3601.0, 10_000)));
    assert_eq!(restarted.wires[0].received, Count { total: 100, rate: None });
    assert_eq!(restarted.workers[0].busy, None);
    let before = reading(10.0, 1000);
    let mut now = reading(12.0, 3000);
    now.counters.rules[0].text = "-A FORWARD -p udp -j DROP".to_owned();
    let figures = Figures::of(&now, Some(&before));
    let rate = |text: &str| {
        figures.rules.iter().find(|rule| rule.text.contains(text)).unwrap().packets.rate
    };
    assert_eq!((rate("udp"), rate("ACCEPT")), (Some(150.0), Some(700.0)));
}

/// Rules of several tables say of which they are.
#[test]
fn what_rules_have_not_in_common_is_shown() {
    let mut now = reading(12.0, 3000);
    now.counters.rules[0].table = "raw".to_owned();
    let figures = Figures::of(&now, None);
    assert_eq!(figures.rules[0].text, "filter -A FORWARD -p tcp -j ACCEPT\\u{202e}");
    assert!(figures.rules[1].text.starts_with("raw -A FORWARD -i lan"));
}

#[test]
fn answers_that_say_nothing_are_no_figures() {
    let odd = json!({ "wires": [{}], "workers": [{ "new": 1 }], "ports": [{}], "news": [] });
    let odd = Reading { status: read(odd), ..Reading::default() };
    for reading in [Reading::default(), odd] {
        let figures = Figures::of(&reading, Some(&reading));
        drawn(&Shown { figures: Some(figures), ..Shown::default() }, (80, 24));
    }
}

#[test]
fn a_picture_has_every_word_in_its_place_and_colour() {
    let screen = drawn(&shown(), (80, 24));
    let svg = svg::picture(&screen);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<_> = document.descendants().filter(|node| node.has_tag_name("text")).collect();
    let of = |word: &str| texts.iter().find(|node| node.text().unwrap_or_default().contains(word));
    let drops = of("DROPPED").unwrap();
    assert_eq!(drops.attribute("font-weight"), Some("bold"));
    assert_ne!(drops.attribute("fill"), of("policy").unwrap().attribute("fill"));
    // A row lies below those before it, in the order of the screen.
    let y = |word: &str| of(word).unwrap().attribute("y").unwrap().parse::<u32>().unwrap();
    assert!(y("WIRE") < y("lan") && y("lan") < y("DROPPED") && svg.contains(">&gt;</text>"));
    let x = |word: &str| of(word).unwrap().attribute("x").unwrap().parse::<u32>().unwrap();
    assert!(x("DROPPED") < x("SOURCE") && x("SOURCE") < x("SERVICE"));
}

#[test]
fn sizes_and_delays_are_bounded() {
    assert_eq!(size("80x24").unwrap(), (80, 24));
    for wrong in ["80", "x", "0x0", "80x24x1", "1000x24", "-1x24"] {
        assert!(size(wrong).is_err(), "{wrong}");
    }
    assert_eq!(seconds("0.5").unwrap(), Duration::from_millis(500));
    for wrong in ["0", "-1", "nan", "inf", "1e9", "one"] {
        assert!(seconds(wrong).is_err(), "{wrong}");
    }
}
