//! [`Figures`]: what is shown, from two readings: how much there is of everything, and how much more in a second.
//!
//! Contract: pure. A rate is what came between the readings, by the run's own clock; without an earlier reading of the
//! same run there are none. Text from outside is made visible here.

use std::collections::HashMap;

use packet::visible;
use serde_json::Value;

use super::reading::Reading;

/// What is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    /// Seconds that it has run.
    pub(super) uptime: f64,
    pub(super) program: u64,
    /// The number of the revision in force, if the run has any.
    pub(super) revision: Option<u64>,
    pub(super) connections: u64,
    /// What somebody should know: each in a line.
    pub(super) notes: Vec<String>,
    pub(super) wires: Vec<Wire>,
    /// Rules that packets matched, the fastest first.
    pub(super) rules: Vec<Rule>,
    /// Reasons that there were, the fastest first.
    pub(super) drops: Vec<(String, Count)>,
    pub(super) sources: Vec<Talker>,
    pub(super) services: Vec<Talker>,
    pub(super) workers: Vec<Worker>,
    /// Of tunnels.
    pub(super) peers: Vec<Peer>,
}

/// How much there is, and how much more in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Count {
    pub(super) total: u64,
    pub(super) rate: Option<f64>,
}

/// One direction of a wire.
#[derive(Debug, Clone, Default)]
pub(super) struct Wire {
    pub(super) name: String,
    pub(super) received: Count,
    pub(super) bytes: Count,
    pub(super) sent: Count,
    /// accept, drop, reject, unknown
    pub(super) verdicts: [Count; 4],
}

#[derive(Debug, Clone, Default)]
pub(super) struct Rule {
    pub(super) text: String,
    pub(super) packets: Count,
    pub(super) bytes: Count,
}

/// Who talks; in a second.
#[derive(Debug, Clone, Default)]
pub(super) struct Talker {
    pub(super) who: String,
    pub(super) frames: f64,
    pub(super) bytes: f64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Worker {
    pub(super) number: u64,
    pub(super) state: String,
    /// The part of its time that it was awake, from 0 to 1.
    pub(super) busy: Option<f64>,
    pub(super) waiting: u64,
    pub(super) connections: u64,
}

/// A peer of a tunnel.
#[derive(Debug, Clone, Default)]
pub(super) struct Peer {
    pub(super) name: String,
    /// Seconds since anything genuine came from it, if that ever was.
    pub(super) heard: Option<f64>,
    /// Bytes of inner packets.
    pub(super) received: Count,
    pub(super) sent: Count,
    pub(super) lost: u64,
    /// Of its datagrams at most, how many came before one that was sent before them.
    pub(super) depth: u64,
    pub(super) path_mtu: u64,
}

impl Figures {
    /// Of a reading, and one before it if there is one.
    pub(super) fn of(now: &Reading, before: Option<&Reading>) -> Self {
        let uptime = |reading: &Reading| number(&reading.status["uptime_seconds"]);
        // A run that is younger than it was is another one.
        let before = before.filter(|before| uptime(before) < uptime(now));
        let seconds = before.map(|before| uptime(now) - uptime(before));
        let count = |now: &Value, before: Option<&Value>| Count::of(now, before, seconds);
        let wires = wires(now, before, &count);
        let workers = workers(now, before, seconds);
        Self {
            uptime: uptime(now),
            program: now.status["program"].as_u64().unwrap_or_default(),
            revision: now.status["revision"].as_u64(),
            connections: workers.iter().map(|worker| worker.connections).sum(),
            notes: notes(&now.status),
            rules: rules(now, before, &count),
            drops: drops(now, before, seconds),
            sources: talkers(now, "sources", |who| word(&who["address"])),
            services: talkers(now, "services", service),
            peers: peers(now, before, &count),
            wires,
            workers,
        }
    }

    /// Frames that came in, and their bytes.
    pub(super) fn received(&self) -> [Count; 2] {
        let sum = |get: fn(&Wire) -> Count| {
            self.wires.iter().map(get).fold(Count::default(), |sum, more| Count {
                total: sum.total + more.total,
                rate: more.rate.map(|rate| sum.rate.unwrap_or_default() + rate),
            })
        };
        [sum(|wire| wire.received), sum(|wire| wire.bytes)]
    }
}

impl Count {
    /// What there is now, and was before; where there was nothing of it before, all of it is new.
    fn of(now: &Value, before: Option<&Value>, seconds: Option<f64>) -> Self {
        let total = now.as_u64().unwrap_or_default();
        let before = before.and_then(Value::as_u64).unwrap_or_default();
        Self { total, rate: seconds.map(|seconds| total.saturating_sub(before) as f64 / seconds) }
    }

    /// What decides which comes first.
    fn weight(&self) -> (f64, u64) {
        (self.rate.unwrap_or_default(), self.total)
    }
}

type Counting<'c> = dyn Fn(&Value, Option<&Value>) -> Count + 'c;

fn wires(now: &Reading, before: Option<&Reading>, count: &Counting<'_>) -> Vec<Wire> {
    let of = |(at, wire): (usize, &Value)| {
        let before = before.map(|before| &before.status["wires"][at]);
        let counted = |key: &str| count(&wire[key], before.map(|before| &before[key]));
        let verdict = |key: &str| {
            let before = before.map(|before| &before["verdicts"][key]);
            count(&wire["verdicts"][key], before)
        };
        Wire {
            name: format!("{} > {}", word(&wire["in"]), word(&wire["out"])),
            received: counted("received"),
            bytes: counted("received_bytes"),
            sent: counted("sent"),
            verdicts: ["accept", "drop", "reject", "unknown"].map(verdict),
        }
    };
    list(&now.status["wires"]).iter().enumerate().map(of).collect()
}

fn peers(now: &Reading, before: Option<&Reading>, count: &Counting<'_>) -> Vec<Peer> {
    let earlier = before.map(|before| list(&before.peers["peers"])).unwrap_or_default();
    let of = |peer: &Value| {
        let before = earlier.iter().find(|before| before["key"] == peer["key"]);
        let counted = |key: &str| count(&peer[key], before.map(|before| &before[key]));
        let total = |key: &str| peer[key].as_u64().unwrap_or_default();
        Peer {
            name: format!("{} {}", word(&peer["tunnel"]), word(&peer["name"])),
            heard: peer["heard_s"].as_f64(),
            received: counted("received_bytes"),
            sent: counted("sent_bytes"),
            lost: total("lost"),
            depth: total("reorder_depth"),
            path_mtu: total("path_mtu"),
        }
    };
    let mut peers: Vec<Peer> = list(&now.peers["peers"]).iter().map(of).collect();
    peers.sort_by(|a, b| descending(a.received, b.received));
    peers
}

fn rules(now: &Reading, before: Option<&Reading>, count: &Counting<'_>) -> Vec<Rule> {
    let earlier = before.map(|before| list(&before.counters["rules"])).unwrap_or_default();
    let earlier: HashMap<_, _> = earlier.iter().map(|rule| (place(rule), rule)).collect();
    let hits = list(&now.counters["rules"]);
    // What all rules have in common tells nothing of any.
    let differs = |key: &str| hits.iter().any(|rule| rule[key] != hits[0][key]);
    let named = ["family", "table"].into_iter().filter(|key| differs(key)).collect::<Vec<_>>();
    let of = |rule: &Value| {
        let before = earlier.get(&place(rule));
        let counted = |key: &str| count(&rule[key], before.map(|before| &before[key]));
        let words = named.iter().chain(&["text"]).map(|key| word(&rule[*key]));
        let text = words.collect::<Vec<_>>().join(" ");
        Rule { text, packets: counted("packets"), bytes: counted("bytes") }
    };
    let mut rules: Vec<Rule> = hits.iter().map(of).collect();
    rules.sort_by(|a, b| descending(a.packets, b.packets));
    rules
}

/// What a rule is known by: its place and its text, as a rule that took another's place has other counters.
fn place(rule: &Value) -> [String; 5] {
    ["family", "table", "chain", "number", "text"].map(|key| rule[key].to_string())
}

/// Reasons, of all wires together.
fn drops(now: &Reading, before: Option<&Reading>, seconds: Option<f64>) -> Vec<(String, Count)> {
    let (sums, earlier) = (dropped(now), before.map(dropped).unwrap_or_default());
    let count = |(reason, total): (&String, &u64)| {
        let before = earlier.get(reason).copied().unwrap_or_default();
        let rate = seconds.map(|seconds| total.saturating_sub(before) as f64 / seconds);
        (reason.clone(), Count { total: *total, rate })
    };
    let mut drops: Vec<_> = sums.iter().map(count).collect();
    drops.sort_by(|a, b| descending(a.1, b.1).then_with(|| a.0.cmp(&b.0)));
    drops
}

fn dropped(reading: &Reading) -> HashMap<String, u64> {
    let mut sums = HashMap::new();
    for wire in list(&reading.status["wires"]) {
        for (reason, count) in wire["dropped"].as_object().into_iter().flatten() {
            let reason = visible::word(reason).into_owned();
            *sums.entry(reason).or_default() += count.as_u64().unwrap_or_default();
        }
    }
    sums
}

fn talkers(now: &Reading, key: &str, name: impl Fn(&Value) -> String) -> Vec<Talker> {
    let seconds = number(&now.talkers["seconds"]).max(f64::MIN_POSITIVE);
    let of = |who: &Value| Talker {
        who: name(who),
        frames: number(&who["frames"]) / seconds,
        bytes: number(&who["bytes"]) / seconds,
    };
    list(&now.talkers[key]).iter().map(of).collect()
}

fn service(who: &Value) -> String {
    let protocol = word(&who["protocol"]);
    who["port"].as_u64().map_or_else(|| protocol.clone(), |port| format!("{protocol}/{port}"))
}

fn workers(now: &Reading, before: Option<&Reading>, seconds: Option<f64>) -> Vec<Worker> {
    let awake = |worker: &Value| number(&worker["awake_seconds"]);
    let of = |(at, worker): (usize, &Value)| {
        let earlier = before.map_or(0.0, |before| awake(&before.status["workers"][at]));
        let busy = |seconds: f64| ((awake(worker) - earlier) / seconds).clamp(0.0, 1.0);
        Worker {
            number: worker["number"].as_u64().unwrap_or_default(),
            state: word(&worker["state"]),
            busy: seconds.map(busy),
            waiting: worker["waiting"].as_u64().unwrap_or_default(),
            connections: worker["connections"].as_u64().unwrap_or_default(),
        }
    };
    list(&now.status["workers"]).iter().enumerate().map(of).collect()
}

/// What somebody should know.
fn notes(status: &Value) -> Vec<String> {
    let mut notes = Vec::new();
    if status["panicked"] == true {
        notes.push("a worker panicked: no rule sees a frame any more".to_owned());
    }
    for port in list(&status["ports"]).iter().filter(|port| port["state"] != "up") {
        let (name, device) = (word(&port["port"]), word(&port["device"]));
        notes.push(format!("{name}: {device} is {}", word(&port["state"])));
    }
    let lost = |port: &Value| port["lost"].as_u64().filter(|lost| *lost > 0);
    for (port, lost) in list(&status["ports"]).iter().filter_map(|port| Some((port, lost(port)?))) {
        notes.push(format!("{}: lost {lost} frames that came", word(&port["port"])));
    }
    notes
}

/// The one with the higher rate first, or else with more.
fn descending(a: Count, b: Count) -> std::cmp::Ordering {
    b.weight().partial_cmp(&a.weight()).unwrap_or(std::cmp::Ordering::Equal)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn word(value: &Value) -> String {
    visible::word(value.as_str().unwrap_or_default()).into_owned()
}
