//! Metrics, `tamis top` and structured logs of a run, as who watches it meets them.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::ran::{Scratch, TAMIS, tamis};
use crate::started::started;

const SPECS: [&str; 3] = [
    "tcp 10.0.0.7:40000 > 10.0.0.9:80 syn",
    "tcp 10.0.0.7:40001 > 10.0.0.9:22 syn",
    "udp 10.0.0.8:40002 > 10.0.0.9:53",
];

/// Three frames of a capture that go to the right, where accepted frames come back and find no rule.
fn folder(test: &str, more: &str) -> (Scratch, String) {
    let folder = Scratch::new(test);
    let rules = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i left -p tcp --dport 80 -j ACCEPT\n\
        -A FORWARD -i left -p udp -j REJECT\nCOMMIT\n";
    folder.write("rules.v4", rules);
    folder.capture("in.pcap", "eth0", &SPECS);
    let config = folder.write(
        "live.toml",
        format!(
            "[[port]]\nname = \"left\"\nkind = \"pcap\"\nfile = \"in.pcap\"\nout = \"out.pcap\"\n\
             [[port]]\nname = \"right\"\nkind = \"loopback\"\n\
             [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
             [control]\nsocket = \"c\"\n{more}"
        ),
    );
    (folder, config)
}

/// The page at an address, which is OpenMetrics up to its end.
fn page(address: &str, query: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    write!(client, "GET /metrics{query} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(page.ends_with("\n# EOF\n"));
    page.to_owned()
}

/// The families of a page, as their samples are named, with the keys of their labels.
fn families(page: &str) -> BTreeSet<String> {
    let kinds = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let named = |line: &str| match line.split_once(' ').unwrap() {
        (name, "counter") => format!("{name}_total"),
        (name, _) => name.to_owned(),
    };
    kinds.map(named).collect()
}

/// The families that docs/metrics.md has.
fn documented() -> BTreeSet<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap().to_owned()).collect()
}

/// The value of a sample whose line begins so.
fn value(page: &str, start: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(start));
    let line = line.unwrap_or_else(|| panic!("{start}: not in {page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// A run that has given up all it can serves its metrics, and they are exactly what the page lists.
#[test]
fn a_run_serves_what_the_page_names_and_counts_every_frame() {
    let (folder, config) = folder("metrics", "[metrics]\nlisten = \"127.0.0.1:0\"\n");
    let run = started(&config);
    let status = || tamis(&["ctl", "--socket", &folder.file("c"), "--json", "status"]).json();
    let address = status()["metrics"].as_str().unwrap().to_owned();
    // One goes to the right and comes back, where the policy drops it.
    while status()["wires"][1]["dropped"]["policy"] != 1 {}
    let page_of = |query| page(&address, query);
    let all = page_of("?rules=1");
    assert_eq!(families(&all), documented(), "docs/metrics.md names what there is");
    let rules = ["rule", "policy"].map(|of| format!("tamis_{of}_"));
    let without = page_of("");
    assert!(families(&without).iter().all(|name| !rules.iter().any(|of| name.starts_with(of))));

    let left = "in=\"left\",out=\"right\"";
    assert_eq!(value(&all, &format!("tamis_received_frames_total{{{left}}}")), 3.0);
    let bytes = status()["wires"][0]["received_bytes"].as_f64().unwrap();
    assert_eq!(value(&all, &format!("tamis_received_bytes_total{{{left}}}")), bytes);
    // Two frames of TCP without options and one of UDP without payload, behind Ethernet.
    assert_eq!(bytes, 2.0 * 54.0 + 42.0);
    // What was accepted came back as it went; of the reply nothing is known here but that it left.
    let back = "in=\"right\",out=\"left\"";
    assert_eq!(value(&all, &format!("tamis_received_bytes_total{{{back}}}")), 54.0);
    for (verdict, frames) in [("accept", 1.0), ("drop", 1.0), ("reject", 1.0), ("unknown", 0.0)] {
        let sample = format!("tamis_verdicts_total{{{left},verdict=\"{verdict}\"}}");
        assert_eq!(value(&all, &sample), frames, "{verdict}");
    }
    assert_eq!(
        value(&all, &format!("tamis_dropped_frames_total{{{left},reason=\"policy\"}}")),
        1.0
    );
    let rule = "family=\"ip\",table=\"filter\",chain=\"FORWARD\",number=\"2\"";
    assert_eq!(value(&all, &format!("tamis_rule_packets_total{{{rule}}}")), 1.0);
    let policy = "tamis_policy_packets_total{family=\"ip\",table=\"filter\",chain=\"FORWARD\"}";
    assert_eq!(value(&all, policy), 2.0);
    assert!(value(&all, "tamis_worker_awake_seconds_total{worker=\"0\"}") > 0.0);
    assert_eq!(tamis(&["ctl", "--socket", &folder.file("c"), "stop"]).code, Some(0));
    assert_eq!(run.ended().code, Some(0));
}

#[test]
fn an_address_that_is_taken_is_an_error_and_one_that_others_reach_a_warning() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (_folder, config) =
        folder("metrics-taken", &format!("[metrics]\nlisten = \"{address}\"\n"));
    let ran = tamis(&["run", &config]);
    assert_eq!((ran.code, &*ran.out), (Some(1), ""));
    assert!(ran.err.contains(&format!("[metrics] listen {address}: Address already in use")));
    let (_folder, config) = folder("metrics-open", "[metrics]\nlisten = \"0.0.0.0:0\"\n");
    let checked = tamis(&["run", &config, "--check"]);
    let warning = "warning: [metrics] listen = \"0.0.0.0:0\": whoever reaches that address";
    assert!(checked.err.contains(warning), "{}", checked.err);
}

/// The dashboard asks for nothing that no run gives.
#[test]
fn the_dashboard_names_metrics_that_there_are() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/live/grafana.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let asked: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(asked.len() > 8);
    let documented = documented();
    for query in asked {
        let is_name = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let names: Vec<_> =
            query.split(is_name).filter(|word| word.starts_with("tamis_")).collect();
        assert!(!names.is_empty(), "{query}");
        for name in names {
            assert!(documented.contains(name), "{query}: {name}");
        }
    }
}

#[test]
fn top_prints_a_screen_of_a_run() {
    let (folder, config) = folder("top", "");
    let run = started(&config);
    let socket = folder.file("c");
    let top = |args: &[&str]| tamis(&[&["top", "--socket", &socket], args].concat());
    let screen = top(&["--once", "-d", "0.2"]);
    assert_eq!((screen.code, &*screen.err), (Some(0), ""));
    for word in ["left > right", "right > left", "RULE", "-j ACCEPT", "SOURCE", "WORKER"] {
        assert!(screen.out.contains(word), "{word}: {}", screen.out);
    }
    assert!(
        screen.out.lines().all(|line| line.chars().count() <= 80)
            && screen.out.lines().count() <= 24
    );
    let picture = top(&["--once", "-d", "0.2", "--svg", "--size", "100x20"]);
    let picture = roxmltree::Document::parse(&picture.out).unwrap();
    assert!(picture.root_element().has_tag_name(("http://www.w3.org/2000/svg", "svg")));
    let piped = top(&[]);
    assert!(piped.refusal().starts_with("expected a terminal"), "{}", piped.err);
    assert!(top(&["--size", "80x24"]).code == Some(2), "it is for --once");
    assert_eq!(tamis(&["ctl", "--socket", &socket, "stop"]).code, Some(0));
    assert_eq!(run.ended().code, Some(0));
    let gone = top(&["--once"]);
    let told = format!("no tamis listens at {socket}: No such file or directory");
    assert_eq!(gone.refusal(), told);
}

/// Every line is an object that says when, how grave and what; of a program or a worker, which one.
#[test]
fn logs_in_json_have_fields() {
    let (folder, config) = folder("log-json", "[log]\nformat = \"json\"\n");
    let mut child = Command::new(TAMIS)
        .args(["run", &config])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut told = Vec::<Value>::new();
    let mut until = |message: &str| loop {
        let line = lines.next().expect("it goes on").unwrap();
        told.push(serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}")));
        if told[told.len() - 1]["message"] == message {
            return;
        }
    };
    until("ready");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    until("reloaded: program 2, revision 2");
    assert_eq!(tamis(&["ctl", "--socket", &folder.file("c"), "stop"]).code, Some(0));
    assert!(child.wait().unwrap().success());
    let is_whole = |line: &Value| line["timestamp"].is_string() && line["level"].is_string();
    assert!(told.iter().all(is_whole), "{told:?}");
    assert_eq!(
        (&told[0]["level"], told.last().unwrap()["level"].as_str()),
        (&"WARN".into(), Some("INFO"))
    );
    assert!(told[0]["message"].as_str().unwrap().contains("ip6: no rules are given"));
    assert_eq!(told.last().unwrap()["span"]["revision"], 2);
}
