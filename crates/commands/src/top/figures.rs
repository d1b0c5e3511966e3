//! [`Figures`]: what is shown, from two readings: how much there is of everything, and how much more in a second.
//!
//! Contract: pure. A rate is what came between the readings, by the run's own clock; without an earlier reading of the
//! same run there are none. Text from outside is made visible here.

use std::collections::HashMap;

use live::answers::{self, PortState, RuleCounters, Service, Status};
use packet::visible;

use super::reading::Reading;

/// The figures that the screen shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    /// Seconds that it has run.
    pub(super) uptime: f64,
    pub(super) program: u64,
    /// The number of the revision in force, if the run has any.
    pub(super) revision: Option<u64>,
    pub(super) connections: usize,
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
    /// Peers of tunnels.
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

/// A source or a service, with its traffic per second.
#[derive(Debug, Clone, Default)]
pub(super) struct Talker {
    pub(super) who: String,
    pub(super) frames: f64,
    pub(super) bytes: f64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Worker {
    pub(super) number: usize,
    pub(super) state: &'static str,
    /// The part of its time that it was awake, from 0 to 1.
    pub(super) busy: Option<f64>,
    pub(super) waiting: usize,
    pub(super) connections: usize,
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
    /// The most datagrams of the peer that came before an earlier one.
    pub(super) depth: u64,
    pub(super) path_mtu: u16,
}

impl Figures {
    /// Makes figures of a reading, and of the reading before it if there is one.
    pub(super) fn of(now: &Reading, before: Option<&Reading>) -> Self {
        let uptime = |reading: &Reading| reading.status.uptime_seconds;
        // A run that is younger than it was is another one.
        let before = before.filter(|before| uptime(before) < uptime(now));
        let seconds = before.map(|before| uptime(now) - uptime(before));
        let count = |now: u64, before: Option<u64>| Count::of(now, before, seconds);
        let talked = now.talkers.seconds.max(f64::MIN_POSITIVE);
        let talker = |who, frames: u64, bytes: u64| Talker {
            who,
            frames: frames as f64 / talked,
            bytes: bytes as f64 / talked,
        };
        let sources = now.talkers.sources.iter();
        let services = now.talkers.services.iter();
        let wires = wires(now, before, &count);
        let workers = workers(now, before, seconds);
        Self {
            uptime: uptime(now),
            program: now.status.program,
            revision: now.status.revision,
            connections: workers.iter().map(|worker| worker.connections).sum(),
            notes: notes(&now.status),
            rules: rules(now, before, &count),
            drops: drops(now, before, seconds),
            sources: sources.map(|it| talker(word(&it.address), it.frames, it.bytes)).collect(),
            services: services.map(|it| talker(service(it), it.frames, it.bytes)).collect(),
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
    fn of(total: u64, before: Option<u64>, seconds: Option<f64>) -> Self {
        let more = total.saturating_sub(before.unwrap_or_default());
        Self { total, rate: seconds.map(|seconds| more as f64 / seconds) }
    }

    /// What decides which comes first.
    fn weight(&self) -> (f64, u64) {
        (self.rate.unwrap_or_default(), self.total)
    }
}

type Counting<'c> = dyn Fn(u64, Option<u64>) -> Count + 'c;

fn wires(now: &Reading, before: Option<&Reading>, count: &Counting<'_>) -> Vec<Wire> {
    let of = |(at, wire): (usize, &answers::Wire)| {
        let before = before.and_then(|before| before.status.wires.get(at));
        let counted = |get: fn(&answers::Wire) -> u64| count(get(wire), before.map(get));
        let verdict = |key: &str| {
            let of = |wire: &answers::Wire| wire.verdicts.get(key).copied().unwrap_or_default();
            count(of(wire), before.map(of))
        };
        Wire {
            name: format!("{} > {}", word(&wire.input), word(&wire.output)),
            received: counted(|wire| wire.received),
            bytes: counted(|wire| wire.received_bytes),
            sent: counted(|wire| wire.sent),
            verdicts: ["accept", "drop", "reject", "unknown"].map(verdict),
        }
    };
    now.status.wires.iter().enumerate().map(of).collect()
}

fn peers(now: &Reading, before: Option<&Reading>, count: &Counting<'_>) -> Vec<Peer> {
    let earlier = before.map(|before| &*before.peers.peers).unwrap_or_default();
    let of = |peer: &answers::Peer| {
        let before = earlier.iter().find(|before| before.key == peer.key);
        let counted = |get: fn(&answers::Peer) -> u64| count(get(peer), before.map(get));
        Peer {
            name: format!("{} {}", word(&peer.tunnel), word(&peer.name)),
            heard: peer.heard_s,
            received: counted(|peer| peer.received_bytes),
            sent: counted(|peer| peer.sent_bytes),
            lost: peer.lost,
            depth: peer.reorder_depth,
            path_mtu: peer.path_mtu,
        }
    };
    let mut peers: Vec<Peer> = now.peers.peers.iter().map(of).collect();
    peers.sort_by(|a, b| descending(a.received, b.received));
    peers
}

fn rules(now: &Reading, before: Option<&Reading>, count: &Counting<'_>) -> Vec<Rule> {
    let earlier = before.map(|before| &*before.counters.rules).unwrap_or_default();
    let earlier: HashMap<_, _> = earlier.iter().map(|rule| (place(rule), rule)).collect();
    let hits = &now.counters.rules;
    // What all rules have in common tells nothing of any.
    let differs =
        |get: fn(&RuleCounters) -> &String| hits.iter().any(|it| get(it) != get(&hits[0]));
    let (families, tables) = (differs(|rule| &rule.family), differs(|rule| &rule.table));
    let of = |rule: &RuleCounters| {
        let before = earlier.get(&place(rule)).copied();
        let counted = |get: fn(&RuleCounters) -> u64| count(get(rule), before.map(get));
        let words = [(families, &rule.family), (tables, &rule.table), (true, &rule.text)];
        let words = words.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, it)| word(it));
        let text = words.collect::<Vec<_>>().join(" ");
        Rule { text, packets: counted(|it| it.packets), bytes: counted(|it| it.bytes) }
    };
    let mut rules: Vec<Rule> = hits.iter().map(of).collect();
    rules.sort_by(|a, b| descending(a.packets, b.packets));
    rules
}

/// What a rule is known by: its place and its text, as a rule that took another's place has other counters.
fn place(rule: &RuleCounters) -> ([&str; 4], usize) {
    ([&rule.family, &rule.table, &rule.chain, &rule.text], rule.number)
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
    for (reason, count) in reading.status.wires.iter().flat_map(|wire| &wire.dropped) {
        *sums.entry(word(reason)).or_default() += count;
    }
    sums
}

fn service(Service { protocol, port, .. }: &Service) -> String {
    let protocol = word(protocol);
    port.map_or_else(|| protocol.clone(), |port| format!("{protocol}/{port}"))
}

fn workers(now: &Reading, before: Option<&Reading>, seconds: Option<f64>) -> Vec<Worker> {
    let of = |(at, worker): (usize, &answers::Worker)| {
        let earlier = before.and_then(|before| before.status.workers.get(at));
        let earlier = earlier.map_or(0.0, |earlier| earlier.awake_seconds);
        let busy = |seconds: f64| ((worker.awake_seconds - earlier) / seconds).clamp(0.0, 1.0);
        Worker {
            number: worker.number,
            state: worker.state.name(),
            busy: seconds.map(busy),
            waiting: worker.waiting,
            connections: worker.connections,
        }
    };
    now.status.workers.iter().enumerate().map(of).collect()
}

/// What somebody should know.
fn notes(status: &Status) -> Vec<String> {
    let mut notes = Vec::new();
    if status.panicked {
        notes.push("a worker panicked: no rule sees a frame any more".to_owned());
    }
    for port in status.ports.iter().filter(|port| port.state != PortState::Up) {
        let [name, device] = [&port.port, &port.device].map(|it| word(it));
        notes.push(format!("{name}: {device} is {}", port.state.name()));
    }
    for port in status.ports.iter().filter(|port| port.lost > 0) {
        notes.push(format!("{}: lost {} frames that came", word(&port.port), port.lost));
    }
    notes
}

/// The one with the higher rate first, or else with more.
fn descending(a: Count, b: Count) -> std::cmp::Ordering {
    b.weight().partial_cmp(&a.weight()).unwrap_or(std::cmp::Ordering::Equal)
}

fn word(text: &str) -> String {
    visible::word(text).into_owned()
}
