//! Translated connections on several workers: everything that comes out is what one worker makes of them.
//!
//! `TAMIS_SHARDS=N cargo test --release -p tamis-replay --test replay shards` tries N random captures instead of a few.

mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use conntrack::{Listing, Mode};
use dataplane::{Config, Start};
use host::{Host, Network};
use proptest::prelude::*;
use proptest::test_runner::{Config as Runs, TestRunner};
use replay::run::{self, Wanted};
use replay::walk::Setup;
use replay::{Alone, RulesFile};
use rules::save::LoadOptions;
use tempfile::TempDir;

use world::{Net, World, address, worlds};

/// Rules of a nat table: some keep ports, some have ports that count as one, and some need one worker.
fn nat_rules(v6: bool) -> Vec<(u32, String)> {
    let own = address(Net::Own, 1, v6);
    let to = |net, host: u8, ports: &str| match (v6, ports) {
        (_, "") => address(net, host, v6).to_string(),
        (false, ports) => format!("{}:{ports}", address(net, host, v6)),
        (true, ports) => format!("[{}]:{ports}", address(net, host, v6)),
    };
    let net = |net| format!("{}/{}", address(net, 0, v6), if v6 { 112 } else { 24 });
    let (lan, mapped) = (net(Net::Lan), net(Net::Mapped));
    let pre = "-A PREROUTING";
    let post = "-A POSTROUTING";
    vec![
        (
            4,
            format!(
                "{pre} -d {own} -p tcp --dport 8080 -j DNAT --to-destination {}",
                to(Net::Lan, 9, "80")
            ),
        ),
        (
            3,
            format!(
                "{pre} -d {own} -p tcp --dport 22 -j DNAT --to-destination {}",
                to(Net::Lan, 9, "8080")
            ),
        ),
        (
            3,
            format!(
                "{pre} -d {own} -p udp --dport 53 -j DNAT --to-destination {}",
                to(Net::Lan, 9, "")
            ),
        ),
        (3, format!("{pre} -p tcp --dport 80 -j REDIRECT --to-ports 8080")),
        (2, format!("{pre} -p udp -m multiport --dports 53,80 -j REDIRECT --to-ports 22")),
        (2, format!("{pre} -p udp --dport 53 -j REDIRECT")),
        (
            2,
            format!(
                "{pre} -d {own} -j DNAT --to-destination {}-{}",
                to(Net::Lan, 8, ""),
                to(Net::Lan, 9, "")
            ),
        ),
        (3, format!("{pre} -d {mapped} -j NETMAP --to {lan}")),
        (
            2,
            format!(
                "-A OUTPUT -p tcp --dport 80 -j DNAT --to-destination {}",
                to(Net::Lan, 9, "8080")
            ),
        ),
        (1, format!("-A INPUT -p udp -j SNAT --to-source {}", to(Net::Lan, 7, ""))),
        (3, format!("{post} -d {} -j SNAT --to-source {own}", address(Net::Wan, 1, v6))),
        (3, format!("{post} -s {lan} -j SNAT --to-source {own}")),
        (4, format!("{post} -o wan0 -j MASQUERADE")),
        (2, format!("{post} -s {lan} -j NETMAP --to {}", net(Net::Own))),
        (1, format!("{post} -o wan0 -j MASQUERADE --random")),
        (1, format!("{post} -s {lan} -j SNAT --to-source {own}-{}", to(Net::Own, 3, ""))),
        (1, format!("{post} -p tcp -s {lan} -j SNAT --to-source {}", to(Net::Own, 1, "1000-1001"))),
    ]
}

const FILTER: [&str; 9] = [
    "-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
    "-A FORWARD -m conntrack --ctstate INVALID -j DROP",
    "-A FORWARD -p tcp --dport 22 -j REJECT",
    "-A FORWARD -p udp --dport 80 -j DROP",
    "-A INPUT -p tcp -j REJECT --reject-with tcp-reset",
    "-A FORWARD -p tcp -m conntrack --ctstate NEW -j CONNMARK --set-mark 5",
    "-A FORWARD -m connmark --mark 5 -m conntrack --ctdir REPLY -j ACCEPT",
    "-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT",
    "-A FORWARD -p udp -m geoip --source-country DE -j DROP",
];

/// What is replayed.
#[derive(Debug, Clone)]
struct Case {
    world: World,
    rules: String,
    mode: Mode,
    max: usize,
    /// What the host's address is, is given.
    is_told: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let chosen = |most| prop::collection::vec(any::<prop::sample::Index>(), 1..most);
    let filter = prop::collection::vec(0..FILTER.len(), 0..5);
    let rest = (
        prop_oneof![3 => Just(Mode::Kernel), 1 => Just(Mode::Midstream)],
        prop_oneof![6 => Just(4096usize), 1 => 2usize..30],
        prop::bool::weighted(0.9),
    );
    (worlds(), chosen(5), filter, rest).prop_map(|(world, nat, filter, (mode, max, is_told))| {
        let rules = ruleset(world.v6, &nat, &filter);
        Case { world, rules, mode, max, is_told }
    })
}

/// Each rule is drawn as often as its weight says.
fn ruleset(v6: bool, nat: &[prop::sample::Index], filter: &[usize]) -> String {
    let rules = nat_rules(v6);
    let weighted: Vec<&String> =
        rules.iter().flat_map(|(weight, rule)| (0..*weight).map(move |_| rule)).collect();
    let nat: String = nat.iter().map(|at| format!("{}\n", at.get(&weighted))).collect();
    let filter: String = filter.iter().map(|at| format!("{}\n", FILTER[*at])).collect();
    let chains = ":PREROUTING ACCEPT\n:INPUT ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT\n";
    let hooks = ":INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n";
    format!("*nat\n{chains}{nat}COMMIT\n*filter\n{hooks}{filter}COMMIT\n")
}

fn setup(case: &Case) -> Setup {
    let v6 = case.world.v6;
    let own = address(Net::Own, 1, v6);
    let network = |text: String| Network::parse(&text).unwrap();
    let lan = format!("{}/{}", address(Net::Lan, 0, v6), if v6 { 112 } else { 24 });
    let all = if v6 { "::/0" } else { "0.0.0.0/0" };
    let local = network(own.to_string());
    let listing = case.world.listing().map(|text| Arc::new(Listing::parse(&text).unwrap()));
    let connections = listing.filter(|listing| !listing.is_empty());
    let addresses = case.is_told.then(|| ("wan0".to_owned(), local.addr));
    let config = Config {
        nets: vec![("lan0".to_owned(), network(lan)), ("wan0".to_owned(), network(all.to_owned()))],
        ct: conntrack::Config { mode: case.mode, max: case.max, ..Default::default() },
        host: Host {
            local: Some(vec![local]),
            addresses: addresses.into_iter().collect(),
            ..Host::default()
        },
        ..Config::default()
    };
    Setup { config, start: Start { connections, ..Start::default() } }
}

/// Everything that came out, and why one worker did it all.
struct Outcome {
    files: BTreeMap<&'static str, Vec<u8>>,
    one_worker: Option<Alone>,
    class: String,
}

fn outcome(case: &Case, captures: &[String], threads: usize) -> Outcome {
    let family =
        if case.world.v6 { rules::model::Family::Ipv6 } else { rules::model::Family::Ipv4 };
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    let rules = [RulesFile::from_text("rules", case.rules.clone(), &options).unwrap()];
    let setup = setup(case);
    let [mut verdicts, mut packets] = [const { Vec::new() }; 2];
    let mut wanted = Wanted {
        verdicts: Some(&mut verdicts),
        packets: Some(&mut packets),
        threads,
        ..Wanted::default()
    };
    let mut report = run::replay(&rules, captures, &setup, &mut wanted).unwrap();
    drop(wanted);
    report.elapsed_s = 1.0;
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    let counters = report.saved_counters(0).into_bytes();
    let files =
        [("json", json), ("counters", counters), ("verdicts", verdicts), ("packets", packets)];
    Outcome {
        files: BTreeMap::from(files),
        one_worker: report.one_worker,
        class: report.class.to_string(),
    }
}

/// How cases were evaluated.
#[derive(Debug, Default)]
struct Ran {
    several: u32,
    again: u32,
    global: u32,
}

impl Ran {
    fn count(&mut self, outcome: &Outcome) {
        match (&*outcome.class, outcome.one_worker) {
            ("global", _) => self.global += 1,
            (_, Some(_)) => self.again += 1,
            (_, None) => self.several += 1,
        }
    }
}

/// Replays a case with one worker and with several, which have to give the same; why one did it all.
fn try_case(case: &Case, ran: &mut Ran) -> Result<Option<Alone>, TestCaseError> {
    let mut one_worker = None;
    let dir = TempDir::new().unwrap();
    let captures = case.world.captures().into_iter().enumerate().map(|(index, bytes)| {
        let path = dir.path().join(format!("{index:03}.pcapng"));
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    });
    let captures: Vec<String> = captures.collect();
    let alone = outcome(case, &captures, 1);
    for threads in [2, 3] {
        let several = outcome(case, &captures, threads);
        for (name, bytes) in &alone.files {
            prop_assert!(
                several.files.get(name) == Some(bytes),
                "{} threads: {}: {:?} {}",
                threads,
                name,
                several.one_worker,
                several.class
            );
        }
        ran.count(&several);
        one_worker = several.one_worker;
    }
    Ok(one_worker)
}

/// Why one worker evaluated connections through these rules of the nat table.
fn one_worker(nat: &[&str], world: World) -> Option<Alone> {
    let rules: String = nat.iter().map(|rule| format!("{rule}\n")).collect();
    let rules = format!("*nat\n:PREROUTING ACCEPT\n:POSTROUTING ACCEPT\n{rules}COMMIT\n");
    let case = Case { world, rules, mode: Mode::Kernel, max: 4096, is_told: true };
    try_case(&case, &mut Ran::default()).unwrap()
}

#[test]
fn connections_that_keep_their_ports_are_shared_out() {
    let masquerade = "-A POSTROUTING -o wan0 -j MASQUERADE";
    let out = [(0, 0, [1000, 80]), (1, 0, [1001, 80]), (1, 1, [22, 53]), (2, 1, [1000, 53])];
    // Sent, answered to the translated address, and an error about it.
    assert_eq!(one_worker(&[masquerade], World::of(&out, &[0, 5, 8])), None);
    let forwards = [
        "-A PREROUTING -d 192.0.2.1 -p tcp --dport 8080 -j DNAT --to-destination 10.0.0.9:80",
        "-A PREROUTING -d 192.0.2.1 -p tcp --dport 22 -j DNAT --to-destination 10.0.0.9:80",
    ];
    let inward = [(0, 3, [1000, 8080]), (1, 3, [1001, 22]), (2, 3, [53, 8080])];
    // The server behind answers from port 80.
    let both = [forwards[0], forwards[1], masquerade];
    assert_eq!(one_worker(&both, World::of(&inward, &[0, 7, 10])), None);
    // Two that want one port of one address: the kernel draws another for the second.
    let clash = [(0, 0, [1000, 80]), (1, 0, [1000, 80])];
    assert_eq!(one_worker(&[masquerade], World::of(&clash, &[0, 5])), Some(Alone::Translation));
    assert_eq!(one_worker(&[], World::of(&clash, &[0, 4])), None);
}

#[test]
fn translated_connections_come_out_the_same() {
    let cases_wanted = std::env::var("TAMIS_SHARDS").ok().and_then(|text| text.parse().ok());
    let runs =
        Runs { cases: cases_wanted.unwrap_or(150), failure_persistence: None, ..Runs::default() };
    let ran = std::cell::RefCell::new(Ran::default());
    let result = TestRunner::new(runs)
        .run(&cases(), |case| try_case(&case, &mut ran.borrow_mut()).map(|_| ()));
    let ran = ran.into_inner();
    println!("{ran:?}");
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(ran.several > 80 && ran.again > 0 && ran.global > 0, "{ran:?}");
}
