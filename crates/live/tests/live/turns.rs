//! Workers that take turns at one table of connections: what leaves, what rules count and which connections there are
//! is what one worker makes of the same frames, in envelopes or not, also while rules change.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dataplane::Unresolved;
use live::config::{Cores, OnPanic, Order, Other, Workers};
use live::{BoxedPort, Run, WireSpec};
use pktio::{Burst, Envelope, Frame, Lost, Port, PortError, Readiness, Stats};
use rules::model::{Counters, Family};
use serde_json::json;

use super::workers::{Recording, conversations, counters};
use super::{config, filter, ruleset};

/// Rules whose answer depends on what came before, of the same connection and of others.
const TRACKING: &str = "-A FORWARD -m conntrack --ctstate INVALID -j DROP\n\
    -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -m conntrack --ctdir REPLY -j ACCEPT\n\
    -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT\n\
    -A FORWARD -m statistic --mode nth --every 3 --packet 0 -p tcp -j DROP\n\
    -A FORWARD -m recent --name seen --update --seconds 3600 --hitcount 5 -j DROP\n\
    -A FORWARD -m recent --name seen --set -j ACCEPT\n";
/// Fewer than programs may wait for who reads of the frames that they dropped: nobody does before the run is waited for.
const CHANGES: usize = 40;

/// A recording that does not end before it may.
struct Held {
    port: Recording,
    may_end: Arc<AtomicBool>,
    is_enveloped: bool,
}

/// An envelope around nothing: frames in it are frames.
struct Plain;

impl Envelope for Plain {
    fn open(&mut self, _: &mut Burst, _: &mut dyn FnMut(Lost, Frame<'_>)) {}

    fn seal(&mut self, _: &mut Burst, _: &mut dyn FnMut(Lost, Frame<'_>)) -> usize {
        0
    }
}

impl Port for Held {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let received = self.port.rx_burst(burst)?;
        burst.metas_mut().for_each(|meta| meta.timestamp = None);
        Ok(received)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.port.tx_burst(burst)
    }

    fn readiness(&self) -> Readiness<'_> {
        match self.port.at < self.port.frames.len() || self.may_end.load(Ordering::Acquire) {
            true => Readiness::Always,
            false => Readiness::After(Duration::from_millis(1)),
        }
    }

    fn stats(&self) -> Stats {
        self.port.stats()
    }

    fn envelope(&self) -> Option<Box<dyn Envelope>> {
        self.is_enveloped.then(|| Box::new(Plain) as Box<dyn Envelope>)
    }
}

/// What a run makes of frames.
#[derive(Debug, PartialEq)]
struct Made {
    left: Vec<Vec<u8>>,
    accounted: String,
    counters: Vec<Counters>,
    /// Both directions of each connection, its state, and what translates it.
    connections: BTreeSet<String>,
}

fn connections(run: &Run) -> BTreeSet<String> {
    let (mut all, mut from) = (BTreeSet::new(), serde_json::Value::Null);
    loop {
        let answer = run.answer(
            &json!({ "command": "conntrack_list", "flows": {}, "from": from, "most": 1000 })
                .to_string(),
        );
        let flows = answer["flows"].as_array().unwrap_or_else(|| panic!("{answer}"));
        all.extend(flows.iter().map(|flow| {
            let kept = ["protocol", "state", "original", "reply", "assured", "mark"];
            kept.map(|key| flow[key].to_string()).join(" ")
        }));
        from = answer["next"].clone();
        if from.is_null() {
            return all;
        }
    }
}

/// Runs frames past rules; `meanwhile` gets the run while they are on their way.
fn made(
    workers: usize,
    envelopes: [bool; 2],
    text: &str,
    frames: &[Vec<u8>],
    meanwhile: impl FnOnce(&Run),
) -> Made {
    let (left, may_end) = (Arc::<Mutex<Vec<Vec<u8>>>>::default(), Arc::<AtomicBool>::default());
    let port = |frames: &[Vec<u8>], left: &Arc<_>, is_enveloped| {
        let port = Recording { frames: frames.to_vec(), at: 0, left: Arc::clone(left) };
        Box::new(Held { port, may_end: Arc::clone(&may_end), is_enveloped }) as BoxedPort
    };
    let ports = [
        ("left".to_owned(), port(frames, &Arc::default(), envelopes[0])),
        ("right".to_owned(), port(&[], &left, envelopes[1])),
    ];
    let ends = vec![WireSpec {
        ports,
        crossings: Default::default(),
        other: Other::Pass,
        order: Order::Wire,
    }];
    let wanted = Workers { cores: Cores::Any, count: Some(workers) };
    let rules = [ruleset(Family::Ipv4, text)];
    let config = config(Unresolved::Drop, Vec::new());
    let run = Run::start_on(ends, (&rules, config), OnPanic::Closed, &wanted).unwrap();
    meanwhile(&run);
    let frames = frames.len() as u64;
    let is_done = || {
        let counted = run.status().directions[0].frames;
        counted.received == frames && counted.balances()
    };
    while !is_done() {
        std::thread::yield_now();
    }
    let (counters, connections) = (counters(run.published()), connections(&run));
    may_end.store(true, Ordering::Release);
    let (status, ended) = run.wait(&AtomicBool::new(false), |told| panic!("{told}"));
    assert!(ended.is_ok() && status.workers.len() == workers, "{ended:?}");
    let accounted = format!("{:?}", status.directions[0].frames);
    let left = std::mem::take(&mut *left.lock().unwrap());
    Made { left, accounted, counters, connections }
}

/// By one worker, and by several: with envelopes nowhere, where frames come from, where they leave, and on both sides.
fn agree(text: &str, frames: &[Vec<u8>], meanwhile: impl Fn(&Run)) {
    let one = made(1, [false, false], text, frames, |_| {});
    assert!(one.left.len() > 50 && one.connections.len() > 10, "{}", one.accounted);
    for envelopes in [[false, false], [true, false], [false, true], [true, true]] {
        for workers in [2, 3] {
            let all = made(workers, envelopes, text, frames, &meanwhile);
            assert!(all.left == one.left, "what leaves, in its order: {workers}, {envelopes:?}");
            assert_eq!(all.accounted, one.accounted, "{workers}, {envelopes:?}");
            assert_eq!(all.counters, one.counters, "{workers}, {envelopes:?}");
            assert_eq!(all.connections, one.connections, "{workers}, {envelopes:?}");
        }
    }
}

#[test]
fn several_workers_make_of_frames_what_one_makes() {
    let frames = conversations(21, None);
    agree(&filter("DROP", TRACKING), &frames, |_| {});
}

/// Rules that need one worker elsewhere: its ports are drawn, and connections are expected.
#[test]
fn rules_that_need_all_packets_do() {
    let text = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -j CT --helper ftp\nCOMMIT\n\
        *nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -j SNAT --to-source 192.0.2.1\nCOMMIT\n";
    agree(text, &conversations(22, None), |_| {});
}

/// Whatever moment a change is made at, each burst meets the rules before it or those after it, which say the same.
#[test]
fn rules_that_change_meanwhile_lose_no_count_and_no_connection() {
    let text = filter("DROP", TRACKING);
    let changed = |run: &Run| {
        let published = run.published();
        for change in 0..CHANGES {
            let now = published.program().number();
            // No frame is for that port.
            let how = if change.is_multiple_of(2) { "-A" } else { "-D" };
            let text = format!("*filter\n{how} FORWARD -p sctp --dport 9 -j DROP\nCOMMIT\n");
            published.commit_text(now, Family::Ipv4, &text).unwrap();
            std::thread::yield_now();
        }
    };
    agree(&text, &conversations(23, None), changed);
}
