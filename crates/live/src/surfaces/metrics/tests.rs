//! A page is OpenMetrics, whatever names there are, and hostile clients keep nobody from it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pktio::{MemoryPort, Pool, Port};

use super::figures::OfRules;
use super::*;
use crate::answers::{
    self, DroppedPrivileges, Peer, PortState, Queue, Resumed, Worker, WorkerState,
};
use crate::config::{OnPanic, Order, Other};
use crate::forward::account::{Accounted, Reason};
use crate::rules::revisions::RevisionStatus;
use crate::run::life::Run;
use crate::run::wire_spec::WireSpec;
use crate::surfaces::serving::{Clients, Guest};
use crate::workers::status::Direction;
use dataplane::config::Config;

/// Names as nobody gives them.
const HOSTILE: &str = "a\"b\\c\nd{e=\"f\"} # EOF";

fn figures(frames: Accounted) -> Figures {
    let queue =
        Queue { bursts: 5, held: 2, room: 64, released: 9, stayed_seconds: 1.5, overdue: 1 };
    let direction = |from: &str, to: &str, queue| Direction {
        from: from.to_owned(),
        to: to.to_owned(),
        frames,
        queue,
    };
    let port = answers::Port {
        port: HOSTILE.to_owned(),
        device: "eth0".to_owned(),
        state: PortState::Down,
        idle_latency_us: 0,
        lost: 3,
    };
    let worker = Worker {
        number: 0,
        core: None,
        state: WorkerState::Asleep,
        panicked: false,
        turns: 7,
        awake_seconds: 0.25,
        waiting: 4,
        connections: 11,
        ring: None,
    };
    let counters = rules::model::Counters { packets: 2, bytes: 80 };
    let of = vec![("family", "ip".to_owned()), ("chain", HOSTILE.to_owned())];
    Figures {
        status: crate::api::status::Status {
            revision: Some(RevisionStatus { number: 2, goes_back_in: None }),
            uptime: Duration::from_secs(2),
            program: 3,
            panicked: false,
            workers: vec![worker; 2],
            ports: vec![port],
            one_worker_because: None,
            directions: vec![
                direction("left", HOSTILE, Some(queue)),
                direction(HOSTILE, "left", None),
            ],
            unknown_because: BTreeMap::from([(HOSTILE.to_owned(), 6)]),
            resumed: Resumed::default(),
            given_up: DroppedPrivileges::default(),
            metrics: None,
        },
        most_connections: 100,
        connections: [(("tcp", "ESTABLISHED"), 3)].into(),
        held: Some(super::process::Held { anonymous: 5, files: 7, threads: 6 }),
        peers: vec![Peer {
            round_trip_s: None,
            tunnel: "office".to_owned(),
            name: HOSTILE.to_owned(),
            key: String::new(),
            endpoint: None,
            path: None,
            direct: None,
            allowed: Vec::new(),
            handshake_s: Some(1.5),
            suite: None,
            heard_s: Some(0.5),
            sent_packets: 2,
            sent_bytes: 80,
            received_packets: 3,
            received_bytes: 120,
            lost: 1,
            reorder_depth: 2,
            unsent: [("too_long".to_owned(), 4)].into(),
            path_mtu: 1420,
            waiting: 0,
        }],
        counters: Some(OfRules {
            rules: vec![(of.clone(), counters)],
            policies: vec![(of, counters)],
            left_out: 1,
        }),
    }
}

/// A sample: the family that it is of, its labels as they stand, its value.
type Sample = (String, String, f64);

/// Reads a page as strictly as the specification has it: its families with their kinds, and its samples.
fn read(page: &str) -> (BTreeMap<String, String>, Vec<Sample>) {
    let (mut kinds, mut samples, mut seen) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
    let (mut current, mut helped) = (String::new(), String::new());
    let body = page.strip_suffix("# EOF\n").expect("a page ends");
    for line in body.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match &*words {
            ["#", "HELP", name, rest] => {
                assert!(rest.ends_with('.') && rest.len() > 10, "{line}: a sentence");
                helped = (*name).to_owned();
            }
            ["#", "TYPE", name, kind @ ("counter" | "gauge")] => {
                assert_eq!(helped, *name, "what it is stands before its kind");
                current = (*name).to_owned();
                assert!(
                    kinds.insert(current.clone(), (*kind).to_owned()).is_none(),
                    "{line}: twice"
                );
            }
            ["#", "UNIT", name, unit] => {
                assert!(*name == current && name.ends_with(&format!("_{unit}")), "{line}");
            }
            _ => {
                let (name, rest) = line.split_at(line.find(['{', ' ']).expect("a name"));
                let suffix = if kinds[&current] == "counter" { "_total" } else { "" };
                assert_eq!(
                    name,
                    format!("{current}{suffix}"),
                    "{line}: samples follow their family"
                );
                let (labels, value) = labels(rest).unwrap_or_else(|| panic!("{line}"));
                assert!(seen.insert((name.to_owned(), labels.clone())), "{line}: twice");
                samples.push((current.clone(), labels, value.parse().expect(line)));
            }
        }
    }
    (kinds, samples)
}

/// Labels, up to the brace that closes them, and the value after it.
fn labels(rest: &str) -> Option<(String, &str)> {
    let Some(inner) = rest.strip_prefix('{') else {
        return Some((String::new(), rest.strip_prefix(' ')?));
    };
    let (mut in_value, mut escaped) = (false, false);
    for (at, byte) in inner.char_indices() {
        match byte {
            _ if escaped => {
                assert!(matches!(byte, 'n' | '\\' | '"'), "{rest}: an escape");
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => in_value = !in_value,
            '}' if !in_value => {
                return Some((inner[..at].to_owned(), inner[at + 1..].strip_prefix(' ')?));
            }
            _ => {}
        }
    }
    None
}

#[test]
fn a_page_is_openmetrics_whatever_names_there_are() {
    let (kinds, samples) = read(&figures(Accounted::default()).text().unwrap());
    assert_eq!(kinds["tamis_received_bytes"], "counter");
    assert_eq!(kinds["tamis_uptime_seconds"], "gauge");
    // Each family has a sample here; three directions, reasons, states.
    let of = |name: &str| samples.iter().filter(|(family, _, _)| family == name).count();
    assert!(kinds.keys().all(|name| of(name) > 0));
    assert_eq!(of("tamis_dropped_frames"), 2 * Reason::ALL.len());
    assert_eq!((of("tamis_worker_state"), of("tamis_queue_bursts")), (8, 1));
    let value = |name: &str, labels: &str| {
        let is_it = |sample: &&Sample| sample.0 == name && sample.1.contains(labels);
        samples.iter().find(is_it).map(|sample| sample.2)
    };
    assert_eq!(value("tamis_queue_stayed_seconds", "in=\"left\""), Some(1.5));
    assert_eq!(value("tamis_worker_awake_seconds", "worker=\"1\""), Some(0.25));
    assert_eq!(value("tamis_rule_bytes", r#"chain="a\"b\\c\nd{e=\"f\"} # EOF""#), Some(80.0));
    assert_eq!(value("tamis_port_state", "state=\"down\""), Some(1.0));
    assert_eq!(value("tamis_peer_path_mtu_bytes", "tunnel=\"office\""), Some(1420.0));
    assert_eq!(value("tamis_port_state", "state=\"up\""), Some(0.0));
}

/// Every reason is one verdict's or none's, and the sum of all verdicts is that of the frames that got one.
#[test]
fn verdicts_are_sums_of_what_is_counted() {
    let mut frames = Accounted { accepted: 1000, ..Accounted::default() };
    frames.dropped.iter_mut().enumerate().for_each(|(at, count)| *count = 1 << at);
    let (_, samples) = read(&figures(frames).text().unwrap());
    let of = |verdict: &str| {
        let labels =
            format!("in=\"left\",out=\"{}\",verdict=\"{verdict}\"", HOSTILE.escape_default());
        let is_it = |sample: &&Sample| sample.0 == "tamis_verdicts" && sample.1 == labels;
        samples.iter().find(is_it).expect(verdict).2 as u64
    };
    let bits = |reasons: &[Reason]| reasons.iter().map(|reason| 1 << *reason as u64).sum::<u64>();
    use Reason::*;
    let drops = [Rule, Policy, HotDrop, Stack, Conntrack, Denied, Ttl, TooBig, Refused];
    assert_eq!(of("accept"), 1000 + bits(&[NotKnown]));
    assert_eq!(of("drop"), bits(&drops));
    assert_eq!((of("reject"), of("unknown")), (bits(&[Reject]), bits(&[Unknown])));
}

/// A run of two ports that receive nothing, whose metrics are served.
fn served() -> (Run, Serving<TcpStream>, SocketAddr) {
    let pool = Pool::new(16, 2048, 0);
    let ports = ["left", "right"].map(|name| {
        let port: Box<dyn Port + Send> = Box::new(MemoryPort::looped(&pool, 8, 8));
        (name.to_owned(), port)
    });
    let wire =
        WireSpec { ports, crossings: Default::default(), other: Other::Pass, order: Order::Flow };
    let run = Run::start(vec![wire], (&[], Config::default()), OnPanic::Closed).unwrap();
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let metrics =
        Metrics::open(&MetricsSettings { listen, rules: false, names: vec!["a".to_owned()] })
            .unwrap();
    let address = metrics.address().unwrap();
    let serving = metrics.serve(&run.running().0).unwrap();
    (run, serving, address)
}

/// The answer to these bytes.
fn answered(address: SocketAddr, bytes: &[u8]) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    // It may close before it has read all.
    let _ = client.write_all(bytes);
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn what_is_no_request_for_the_page_gets_its_status_alone() {
    let (run, _serving, address) = served();
    let page = answered(address, GET);
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with(
        "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0;"
    ));
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    assert!(read(body).0.contains_key("tamis_verdicts") && !body.contains("tamis_rule_packets"));
    let with_rules = answered(address, b"GET /metrics?rules=1 HTTP/1.0\r\n\r\n");
    assert!(with_rules.contains("tamis_rule_packets"));
    let long = [&b"GET /metrics HTTP/1.1\r\nA: "[..], &[b'a'; http::LONGEST + 2048]].concat();
    let cases: [(&[u8], &str); 9] = [
        (b"GET /metrics?rules=1 HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"),
        (b"GET / HTTP/1.1\r\n\r\n", "404"),
        (b"GET /metrics?rules=2 HTTP/1.1\r\n\r\n", "404"),
        (b"GET http://a/metrics HTTP/1.1\r\n\r\n", "404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
        (b"GET /metrics\r\n\r\n", "400"),
        (b"\xff\xfe /metrics HTTP/1.1\r\n\r\n", "400"),
        (b"\r\n\r\n", "400"),
        (b"GET /metrics HTTP/2.0\r\n\r\n", "400"),
    ];
    for (bytes, status) in cases {
        let answer = answered(address, bytes);
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected) && !answer.contains("tamis_"), "{status}: {answer}");
    }
    let answer = answered(address, &long);
    // What it did not read makes the system reset the connection, be it before the answer has come.
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    drop(run);
}

/// Many more than are served at a time say nothing, or next to nothing, and come again once they are sent away: who asks
/// has the page.
#[test]
fn silent_clients_hold_up_nobody() {
    let (run, _serving, address) = served();
    let silent = |at: usize| {
        let mut client = TcpStream::connect(address).unwrap();
        let _ = client.write_all(&GET[..at % 8]);
        client
    };
    let mut clients: Vec<TcpStream> = (0..4 * TcpStream::MOST).map(silent).collect();
    let start = Instant::now();
    for (round, client) in clients.iter_mut().enumerate().take(8) {
        let page = answered(address, GET);
        assert!(page.contains(" 200 "), "{page}");
        *client = silent(round);
    }
    assert!(start.elapsed() < http::PATIENCE, "nobody waited for those");
    drop(clients);
    drop(run);
}

/// A client that asks, and does not take what it asked for, is let go.
#[test]
fn who_takes_nothing_is_let_go() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(GET).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let page = "a".repeat(64 << 20);
    let served = Arc::<Clients<TcpStream>>::default().admit(accepted).unwrap();
    let ended = http::serve(&served, &["a".to_owned()], |_| (Status::Ok, page));
    assert!(ended.is_err(), "it took all of it");
}
