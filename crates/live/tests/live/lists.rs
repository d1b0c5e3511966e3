//! Bans, sets and connections by the control socket while frames pass.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use access::list::Schedule;
use dataplane::Start;
use live::config::{OnPanic, Order, Other, Workers};
use live::{
    BanAction, FlowWords, Loaded, Reason, Refusal, Request, Run, RunError, Status, WireSpec, ask,
};
use packet::craft::Message;
use packet::tcp::Flags;
use pktio::MemoryPort;
use rules::ipset::Sets;
use rules::model::Family;
use serde_json::Value;

use super::{NAMES, Rig, config, craft, datagram, filter, received, ruleset, send};

/// A run that is served, with the ends of its wire that are not its own.
pub(super) struct Served {
    pub(super) far: [MemoryPort; 2],
    pub(super) socket: PathBuf,
    pub(super) folder: PathBuf,
    stop: Arc<AtomicBool>,
    waits: Option<JoinHandle<(Status, Result<(), RunError>)>>,
}

impl Served {
    /// A served run of these rules in FORWARD, with workers and sets.
    pub(super) fn new(test: &str, rules: &str, workers: usize, change: fn(&mut Start)) -> Self {
        let folder = std::env::temp_dir().join(format!("tamis-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let socket = folder.join("c");
        let rig = Rig::of([ruleset(Family::Ipv4, &filter("ACCEPT", rules))]);
        let Rig { far, near: [left, right], crossings, rules, unknown, .. } = rig;
        let ports = [(NAMES[0].to_owned(), left), (NAMES[1].to_owned(), right)];
        let ends = vec![WireSpec { ports, crossings, other: Other::Pass, order: Order::Flow }];
        let mut loaded = Loaded::from((rules, config(unknown, Vec::new())));
        change(&mut loaded.start);
        let workers = Workers { count: Some(workers), ..Workers::default() };
        let run = Run::start_on(ends, loaded, OnPanic::Closed, &workers);
        let run = run.expect("a run").controlled(&socket).expect("a socket");
        let stop = Arc::<AtomicBool>::default();
        let raised = Arc::clone(&stop);
        let waits = Some(thread::spawn(move || run.wait(&raised, |_| {})));
        let served = Self { far, socket, folder, stop, waits };
        while served.try_ask(&Request::Status {}).is_none() {}
        served
    }

    fn try_ask(&self, request: &Request) -> Option<Result<Value, Refusal>> {
        ask(&self.socket, request).ok()
    }

    pub(super) fn ask(&self, request: &Request) -> Value {
        ask(&self.socket, request).expect("an answer").expect("no refusal")
    }

    fn refusal(&self, request: &Request) -> String {
        ask(&self.socket, request).expect("an answer").expect_err("a refusal").what
    }

    fn bans(&self, action: BanAction, text: &str) -> Value {
        self.ask(&Request::Bans { text: text.to_owned(), action: Some(action), line: 1 })
    }

    fn restore(&self, text: &str) -> Value {
        self.ask(&Request::SetsRestore { text: text.to_owned(), line: 1 })
    }

    /// Waits until `frames` frames were received from the left, and have left or were dropped.
    pub(super) fn has_received(&self, frames: u64) {
        let is_over = |status: Value| {
            let wire = &status["wires"][0];
            let dropped = wire["dropped"].as_object().into_iter().flatten();
            let dropped: u64 = dropped.filter_map(|(_, count)| count.as_u64()).sum();
            wire["received"] == frames
                && wire["sent"].as_u64().map(|sent| sent + dropped) == Some(frames)
        };
        while !is_over(self.ask(&Request::Status {})) {}
    }

    pub(super) fn finish(mut self) -> Status {
        self.stop.store(true, Ordering::Relaxed);
        let (status, ended) = self.waits.take().expect("once").join().expect("no panic");
        ended.expect("no failure");
        let _ = std::fs::remove_dir_all(&self.folder);
        status
    }
}

/// A datagram from the source of this number.
fn from(source: u32) -> Vec<u8> {
    let source = std::net::Ipv4Addr::from(0x0a01_0000 + source).to_string();
    datagram([&source, "10.0.0.9"], 53)
}

/// Bans 1,000 sources, each before its frame is sent, among frames of another source; then permits each again.
#[test]
fn a_ban_is_in_force_for_the_next_frame() {
    // Without a list in the configuration, and with one.
    let changes: [fn(&mut Start); 2] =
        [|_| {}, |start| start.bans = Some(Schedule::new("bans", Vec::new()))];
    for (at, change) in changes.into_iter().enumerate() {
        let mut served = Served::new(&format!("ban-{at}"), "", 1 + at, change);
        let address = |source: u32| std::net::Ipv4Addr::from(0x0a01_0000 + source).to_string();
        for source in 1..=1000 {
            let banned = served.bans(BanAction::Ban, &address(source))["banned_ranges"].clone();
            assert_eq!(banned, 1, "neighbours are one range");
            send(&mut served.far[0], &[from(source), from(0)]);
        }
        served.has_received(2000);
        assert!(received(&mut served.far[1]) == vec![from(0); 1000], "of nobody else");
        for source in 1..=1000 {
            served.bans(BanAction::Unban, &address(source));
            send(&mut served.far[0], &[from(source)]);
        }
        served.has_received(3000);
        // Workers keep the order of a flow alone.
        let sorted = |mut frames: Vec<Vec<u8>>| {
            frames.sort();
            frames
        };
        let left = sorted(received(&mut served.far[1]));
        assert!(left == sorted((1..=1000).map(from).collect()), "of all");
        let status = served.finish();
        let frames = &status.directions[0].frames;
        assert_eq!((frames.of(Reason::Denied), frames.sent), (1000, 2000));
    }
}

#[test]
fn ten_thousand_bans_are_one_moment_and_a_wrong_one_is_none() {
    let mut served = Served::new("bans", "", 1, |_| {});
    let lines: Vec<String> =
        (0..10_000).map(|at| format!("10.{}.{}.7", at / 250, at % 250)).collect();
    let wrong = format!("{}\nunban 10.0.0.0/33", lines[1..].join("\n"));
    let request = |text: String| Request::Bans { text, action: Some(BanAction::Ban), line: 10_001 };
    assert_eq!(
        served.refusal(&request(wrong)),
        "20000:7: expected ADDRESS or ADDRESS/BITS, found \"10.0.0.0/33\""
    );
    let frame = |source: &str| datagram([source, "10.0.0.9"], 53);
    send(&mut served.far[0], &[frame("10.39.249.7")]);
    served.has_received(1);
    let more = format!("{}\n192.0.2.1", lines.join("\n"));
    assert!(served.refusal(&request(more)).starts_with("20001:1: expected at most 10000 changes"));

    let answer = served.ask(&request(lines.join("\n")));
    assert_eq!((&answer["changes"], &answer["banned_ranges"]), (&10_000.into(), &10_000.into()));
    send(&mut served.far[0], &[frame("10.39.249.7"), frame("10.0.0.7"), frame("10.0.0.8")]);
    served.has_received(4);
    // Acceptance is by destination.
    served.bans(BanAction::Deny, "10.0.0.8 10.0.0.9");
    let other = datagram(["10.0.0.8", "10.0.0.10"], 53);
    send(&mut served.far[0], &[frame("10.0.0.8"), other.clone()]);
    served.has_received(6);
    let left = received(&mut served.far[1]);
    assert_eq!(left, [frame("10.39.249.7"), frame("10.0.0.8"), other]);
    assert_eq!(served.finish().directions[0].frames.of(Reason::Denied), 3);
}

#[test]
fn sets_change_for_the_next_frame_and_all_workers() {
    const SETS: &str = "create bad hash:ip\ncreate next hash:ip\nadd next 10.1.0.200\n";
    let rules = "-A FORWARD -m set --match-set bad src -j DROP\n";
    let mut served =
        Served::new("sets", rules, 2, |start| start.sets = Some(Sets::parse(SETS).unwrap()));
    for source in 1..=100 {
        let address = std::net::Ipv4Addr::from(0x0a01_0000 + source);
        assert_eq!(served.restore(&format!("add bad {address}"))["added"], 1);
        send(&mut served.far[0], &[from(source)]);
    }
    served.has_received(100);
    assert_eq!(received(&mut served.far[1]), [] as [Vec<u8>; 0]);
    let wrong =
        Request::SetsRestore { text: "flush bad\nadd bad 10.1.0.1\nadd bad x".to_owned(), line: 1 };
    assert!(served.refusal(&wrong).starts_with("Error in line 3, column 9: expected"));
    send(&mut served.far[0], &[from(1)]);
    served.has_received(101);
    served.restore("swap bad next");
    send(&mut served.far[0], &[from(1), from(200)]);
    served.has_received(103);
    assert_eq!(received(&mut served.far[1]), [from(1)]);

    let list = |set: Option<&str>, most| {
        served.ask(&Request::SetsList { set: set.map(str::to_owned), most })["sets"].clone()
    };
    let heads = list(None, 0);
    assert_eq!((&heads[0]["name"], &heads[0]["entries"]), (&"bad".into(), &1.into()));
    assert_eq!((&heads[1]["entries"], &heads[1]["members"]), (&100.into(), &Value::Array(vec![])));
    assert_eq!(list(Some("next"), 7)[0]["members"].as_array().unwrap().len(), 7);
    let none = Request::SetsList { set: Some("none".to_owned()), most: 0 };
    assert!(served.refusal(&none).starts_with("The set with the given name does not exist"));
    served.finish();
}

/// Workers sleep, and each has connections of its own.
#[test]
fn connections_of_all_workers_are_listed_and_ended() {
    let rules = "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
        -A FORWARD -p tcp --syn -j ACCEPT\n-A FORWARD -p udp -j ACCEPT\n-A FORWARD -j DROP\n";
    let mut served = Served::new("flows", rules, 2, |_| {});
    let flows: Vec<Vec<u8>> = (1..=600).map(from).collect();
    send(&mut served.far[0], &flows);
    let tcp = |flags| craft(["10.0.0.7", "10.0.0.9"], Message::tcp(40000, 80, flags)).frame();
    send(&mut served.far[0], &[tcp(Flags::SYN)]);
    served.has_received(601);
    let told = |key: &str| -> f64 {
        let status = served.ask(&Request::Status {});
        let workers = status["workers"].as_array().into_iter().flatten();
        workers.filter_map(|worker| worker[key].as_f64()).sum()
    };
    let until = Instant::now() + Duration::from_secs(20);
    while told("connections") != 601.0 && Instant::now() < until {}
    assert_eq!(told("connections"), 601.0, "what each holds is told");
    assert!(told("awake_seconds") > 0.0, "they have worked");

    let list = |words: FlowWords, most| {
        let (mut from, mut flows) = (None, Vec::new());
        loop {
            let request = Request::ConntrackList { flows: words.clone(), from, most };
            let answer = served.ask(&request);
            assert_eq!(answer["count"], 601);
            flows.extend(answer["flows"].as_array().unwrap().clone());
            from = serde_json::from_value(answer["next"].clone()).ok();
            if from.is_none() {
                return flows;
            }
        }
    };
    let mut sources: Vec<String> = list(FlowWords::default(), 50)
        .iter()
        .map(|flow| flow["original"]["src"].to_string())
        .collect();
    sources.sort();
    sources.dedup();
    assert_eq!(sources.len(), 601, "each once");
    let words =
        |protocol: &str| FlowWords { protocol: Some(protocol.to_owned()), ..FlowWords::default() };
    let found = list(words("tcp"), 1024);
    assert_eq!((found.len(), &found[0]["state"]), (1, &"SYN_SENT".into()));
    assert!(found[0]["text"].as_str().unwrap().contains(" sport=40000 dport=80 "), "{found:?}");

    let delete = |flows| Request::ConntrackDelete { flows, from: None };
    assert!(served.refusal(&delete(FlowWords::default())).contains("conntrack_flush"));
    assert!(served.refusal(&delete(words("tpc"))).contains("found \"tpc\""));
    assert_eq!(served.ask(&delete(words("tcp")))["ended"], 1);
    let from_few = FlowWords { src: Some("10.1.0.0/28".to_owned()), ..words("udp") };
    assert_eq!(served.ask(&delete(from_few))["ended"], 15);
    assert_eq!(served.ask(&Request::ConntrackFlush { from: None })["ended"], 585);
    let first = Request::ConntrackList { flows: FlowWords::default(), from: None, most: 9 };
    assert_eq!(served.ask(&first)["count"], 0);
    // What was established is not any more.
    send(
        &mut served.far[1],
        &[craft(["10.0.0.9", "10.0.0.7"], Message::tcp(80, 40000, Flags::ACK)).frame()],
    );
    while served.ask(&Request::Status {})["wires"][1]["received"] != 1 {}
    assert_eq!(served.finish().directions[1].frames.of(Reason::Rule), 1);
}
