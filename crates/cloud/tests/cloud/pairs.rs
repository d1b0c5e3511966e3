//! The list of `pairs.txt` in namespaces: two nodes behind real routers get what it says. `make nat-matrix` plays
//! all of it, and these tests some. Needs root, `ping`, `nft` and `dig`.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::namespaces::{Hosts, PUBLIC};
use crate::reached::{allow, answer};
use crate::routers;

/// Time in which two nodes have tried three times to reach each other.
const ATTEMPTS: Duration = Duration::from_secs(130);

/// Pairs that each run of the tests plays.
const SOME: [[&str; 2]; 17] = [
    ["cone", "random"],
    ["random", "cone"],
    ["restricted", "open"],
    ["open", "restricted"],
    ["plain", "plain"],
    ["plain", "open"],
    ["open", "plain"],
    ["range", "open"],
    ["open", "open"],
    ["address", "restricted"],
    ["plain", "address"],
    ["plain", "sequential"],
    ["sequential", "open"],
    ["blocked", "plain"],
    ["carrier", "plain"],
    ["firewall", "firewall"],
    ["plain", "brief"],
];

/// The pairs of the list, with what they get.
fn list() -> Vec<([&'static str; 2], &'static str)> {
    let text = include_str!("../../../overlay/tests/overlay/pairs.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut rows = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let columns = rows.find(|row| !row.is_empty()).unwrap();
    let rows = rows.filter(|row| !row.is_empty());
    let cells = |row: Vec<&'static str>| {
        let cells = columns.clone().into_iter().zip(row[1..].to_vec());
        cells.map(move |(other, what)| ([row[0], other], what)).collect::<Vec<_>>()
    };
    rows.flat_map(cells).collect()
}

/// A cloud, and nodes a and b, which are not up.
fn network(test: &str) -> Option<Hosts> {
    let hosts = Hosts::new(test, &["a", "b"])?;
    routers::lay_v6(&hosts, &["a", "b"]);
    let config = hosts.config();
    hosts.cloud(&format!("all {config} --init --public {PUBLIC}:51900 --domain home.internal"));
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("# tcp = 443", "tcp = 443")).unwrap();
    allow(&hosts, "a", "b");
    Some(hosts)
}

fn enrol(hosts: &mut Hosts) {
    hosts.start_cloud();
    ["a", "b"].iter().for_each(|node| hosts.masquerades(node, ""));
    let printed = hosts.cloud(&format!("enrol a b --config {}", hosts.config()));
    for node in ["a", "b"] {
        let joined = hosts.join_as(node, &printed);
        assert!(joined.status.success(), "{joined:?}");
    }
}

/// What `why` says of the other node.
fn why(hosts: &Hosts, node: &str, other: &str) -> Value {
    let line = format!("{} tunnel why {other} --json --tunnel", hosts.tamis());
    let said = hosts.says(node, &format!("{line} {}", hosts.node_config(node).display()));
    serde_json::from_slice(&said.stdout).unwrap_or_default()
}

/// Whether a node has a session with the directory, which lists its registration of before as present for a while.
fn is_met(hosts: &Hosts, node: &str) -> bool {
    let config = hosts.node_config(node);
    let said =
        hosts.says(node, &format!("{} tunnel peers --json {}", hosts.tamis(), config.display()));
    let peers: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
    let mut sessions =
        peers.pointer("/tunnels/0/peers").and_then(Value::as_array).into_iter().flatten();
    sessions.any(|peer| peer["handshake_s"].is_f64())
}

fn path(why: &Value) -> &str {
    why["path"]["path"].as_str().unwrap_or_default()
}

/// Whether an attempt has ended, at this node and the other one.
fn is_decided([one, other]: &[Value; 2]) -> bool {
    let ended = |why: &Value| {
        let direct = &why["path"]["direct"];
        direct["attempts"].as_u64() > Some(0) && direct["trying"] == false
    };
    ended(one) && ended(other)
}

/// Whether two nodes reach each other as the list says that they do.
fn is_right(both: &[Value; 2], what: &str) -> bool {
    let got = both.each_ref().map(path);
    match what {
        "direct" | "predict" => got == ["direct"; 2],
        "cross" => got[0] == got[1],
        _ => got == ["relay"; 2],
    }
}

/// Plays a pair; returns what is wrong about it.
fn play(hosts: &mut Hosts, [one, other]: [&str; 2], what: &str) -> Option<String> {
    for (node, number, kind) in [("a", 1, one), ("b", 2, other)] {
        hosts.kill(node);
        let has_device = |hosts: &Hosts| hosts.says(node, "ip link show dev tam").status.success();
        hosts.wait("the end of the device", |hosts| !has_device(hosts));
        routers::becomes(hosts, (node, number), kind);
    }
    ["a", "b"].iter().for_each(|node| hosts.up(node));
    hosts.wait("sessions with the directory", |hosts| {
        ["a", "b"].iter().all(|node| is_met(hosts, node))
    });
    // What a router does is found out within a second of the registration, and that it forgets in seconds five seconds later.
    let is_brief = [one, other].contains(&"brief");
    thread::sleep(Duration::from_secs(if is_brief { 12 } else { 2 }));
    let asked = Instant::now();
    let told = |hosts: &Hosts| [why(hosts, "a", "b"), why(hosts, "b", "a")];
    // A node that was up a moment ago may be listed by what it said then.
    let found = answer("NOERROR", "10.99.0.3");
    hosts.wait("the name", |hosts| hosts.dig("a", "b.home.internal", "A") == found);
    hosts.wait("a ping", |hosts| hosts.pings("a", "10.99.0.3"));
    let pinged = asked.elapsed().as_millis();
    let mut both = told(hosts);
    // An attempt may fail, of which the next one is 35 s later.
    while !(is_decided(&both) && is_right(&both, what)) && asked.elapsed() < ATTEMPTS {
        thread::sleep(Duration::from_millis(50));
        both = told(hosts);
    }
    let decided = asked.elapsed().as_millis();
    let (got, is_right) = (both.each_ref().map(path), is_right(&both, what));
    let pings = hosts.says("a", "ping -n -i 0.2 -W 1 -c 5 10.99.0.3");
    let pings = String::from_utf8(pings.stdout).unwrap();
    eprintln!(
        "{one:<11}{other:<11}{what:<8} {got:?}: pinged after {pinged} ms, decided after {decided} ms"
    );
    if is_right && pings.contains(" 0% packet loss") {
        return None;
    }
    Some(format!(
        "{one}, {other}: {what}, got {got:?}\n{pings}\n{:#}\n",
        Value::from(both.to_vec())
    ))
}

fn all(test: &str, is_played: impl Fn(&[&str; 2]) -> bool) {
    let Some(mut hosts) = network(test) else { return };
    enrol(&mut hosts);
    let mut wrong = Vec::new();
    for (pair, what) in list().into_iter().filter(|(pair, _)| is_played(pair)) {
        wrong.extend(play(&mut hosts, pair, what));
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.concat());
}

#[test]
fn pairs_of_routers_get_what_the_list_says() {
    all("pairs", |pair| SOME.contains(pair));
}

#[test]
#[ignore = "make nat-matrix: it takes half an hour"]
fn every_pair_of_routers_gets_what_the_list_says() {
    let times = std::env::var("TAMIS_NAT_TIMES").map_or(1, |times| times.parse().unwrap());
    // TAMIS_NAT_KIND=open plays the pairs of one kind.
    let kind = std::env::var("TAMIS_NAT_KIND").ok();
    for _ in 0..times {
        // Both carriers would be one host, whose rules cannot follow each other.
        all("matrix", |pair| {
            *pair != ["carrier"; 2] && kind.as_deref().is_none_or(|kind| pair.contains(&kind))
        });
    }
}
