//! What has become of all frames: for the control socket, and for the last word of a run.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use packet::visible;
use rules::model::{Counters, Family};
use rules::save::{print_rule, print_ruleset};
use serde_json::{Map, Value, json};

use super::account::{Accounted, Reason};
use super::given_up::GivenUp;
use super::ordered::Queue;
use super::restart::Resumed;
use super::revisions::RevisionStatus;
use super::shared::Seat;
use super::watch;
use crate::publish::Snapshot;

/// What has become of all frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// How long it has run.
    pub uptime: Duration,
    /// Number of the program that is current.
    pub program: u64,
    /// The revision of its rules, where it has a configuration.
    pub revision: Option<RevisionStatus>,
    /// A worker panicked: no rule sees a frame any more.
    pub panicked: bool,
    /// How each worker is.
    pub workers: Vec<WorkerStatus>,
    /// How each port is that is a device which is waited for when it goes.
    pub ports: Vec<PortStatus>,
    /// Why one worker evaluates all packets where several were wanted.
    pub one_worker_because: Option<String>,
    /// Each direction of each wire, in the order of the configuration.
    pub directions: Vec<Direction>,
    /// How many verdicts were unknown, by what they depended on.
    pub unknown_because: BTreeMap<String, u64>,
    /// What it went on with.
    pub resumed: Resumed,
    /// What the process gave up before.
    pub given_up: GivenUp,
    /// Where metrics are to be had.
    pub metrics: Option<SocketAddr>,
}

/// How a port is that is a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortStatus {
    /// Its name.
    pub port: String,
    /// That of the device.
    pub device: String,
    /// Whether frames can pass.
    pub state: PortState,
    /// How long a frame on an idle link may wait in the kernel.
    pub idle_latency: Duration,
    /// Frames that came and were lost before a worker had them: they were too many, or too long.
    pub lost: u64,
}

/// Whether frames can pass by a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortState {
    /// It is up, and has a link.
    Up,
    /// It is down, or its link is lost.
    Down,
    /// There is none: it is waited for.
    Gone,
}

/// How a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerStatus {
    /// The processor that it runs on alone, if it is pinned.
    pub core: Option<usize>,
    /// What it does.
    pub state: WorkerState,
    /// It has panicked.
    pub panicked: bool,
    /// Turns that it has taken.
    pub turns: u64,
    /// How long it has been awake in all.
    pub awake: Duration,
    /// Frames that other workers had given it when it looked last.
    pub waiting: usize,
    /// Connections that it held then.
    pub connections: usize,
    /// The ring to its middlebox, if it has one.
    pub ring: Option<RingStatus>,
}

/// How a worker's ring to its middlebox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingStatus {
    /// Frames that may be there.
    pub room: usize,
    /// Those that were when the worker looked last.
    pub frames: usize,
    /// The most that ever were.
    pub most: usize,
}

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerState {
    /// It takes frames on their way.
    Busy,
    /// There are none.
    Asleep,
    /// It has not finished a turn for a second or longer.
    Stuck,
    /// It has ended.
    Ended,
}

/// One direction of a wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direction {
    /// The port that frames come in by.
    pub from: String,
    /// The one that they leave by.
    pub to: String,
    /// Its frames, counted by fate.
    pub frames: Accounted,
    /// What is between receiving and sending, where the wire keeps the order of all its frames.
    pub queue: Option<Queue>,
}

impl Status {
    /// As a document: `tamis.status/1`.
    #[must_use]
    pub fn json(&self) -> Value {
        let because = self.unknown_because.iter();
        let because: Vec<Value> =
            because.map(|(what, packets)| json!({ "what": what, "packets": packets })).collect();
        let workers = self.workers.iter().enumerate();
        let workers = workers.map(|(number, worker)| worker.json(number));
        json!({
            "schema": "tamis.status/1",
            "uptime_seconds": self.uptime.as_secs_f64(),
            "program": self.program,
            "revision": self.revision.map(|revision| revision.number),
            "goes_back_in": self.revision.and_then(|revision| revision.goes_back_in),
            "panicked": self.panicked,
            "workers": workers.collect::<Vec<_>>(),
            "ports": self.ports.iter().map(PortStatus::json).collect::<Vec<_>>(),
            "one_worker_because": self.one_worker_because,
            "wires": self.directions.iter().map(Direction::json).collect::<Vec<_>>(),
            "unknown_because": because,
            "resumed": { "connections": self.resumed.connections, "grace": self.resumed.grace },
            "given_up": self.given_up.json(),
            "metrics": self.metrics,
        })
    }

    /// For a screen; see [`text`].
    #[must_use]
    pub fn text(&self) -> String {
        text(&self.json())
    }
}

/// A document of [`Status::json`] for a screen.
#[must_use]
pub fn text(status: &Value) -> String {
    let listed = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let word = |value: &Value| visible::word(value.as_str().unwrap_or_default()).into_owned();
    let mut text = String::new();
    for wire in listed(&status["wires"]) {
        let (from, to) = (word(&wire["in"]), word(&wire["out"]));
        // Writing to a String cannot fail.
        let _ = write!(text, "{from} > {to}: received {}, ", wire["received"]);
        let _ = write!(text, "made {}, sent {}", wire["made"], wire["sent"]);
        if wire["unevaluated"] != 0 {
            let _ = write!(text, " ({} of them unevaluated)", wire["unevaluated"]);
        }
        let dropped = wire["dropped"].as_object().into_iter().flatten();
        let dropped: Vec<_> = dropped.map(|(reason, count)| format!("{reason} {count}")).collect();
        let dropped = if dropped.is_empty() { "none".to_owned() } else { dropped.join(", ") };
        let _ = writeln!(text, ", dropped: {dropped}");
        if let Some(queue) = wire["queue"].as_object() {
            let (bursts, room) = (&queue["bursts"], &queue["room"]);
            let _ = write!(text, "{from} > {to}: {bursts} of {room} bursts wait");
            let _ = writeln!(text, ", {} were given up", queue["overdue"]);
        }
    }
    for cause in listed(&status["unknown_because"]) {
        let (what, packets) = (word(&cause["what"]), &cause["packets"]);
        let _ = writeln!(text, "unknown because of {what}: {packets}");
    }
    let _ = writeln!(text, "program {}", status["program"]);
    if let Some(revision) = status["revision"].as_u64() {
        let _ = write!(text, "revision {revision}");
        if let Some(seconds) = status["goes_back_in"].as_u64() {
            let _ = write!(text, ", which goes back in {seconds} s unless it is confirmed");
            let _ = write!(text, " (tamis ctl confirm)");
        }
        text.push('\n');
    }
    let resumed = &status["resumed"];
    if resumed["connections"] != 0 {
        let _ = writeln!(text, "connections of the run before: {}", resumed["connections"]);
    }
    if resumed["grace"] != 0 {
        let grace = &resumed["grace"];
        let _ = writeln!(text, "connections are picked up in their middle for the first {grace} s");
    }
    if let Some(given_up) = status["given_up"].as_object() {
        let parts = given_up.iter().filter(|(_, is_gone)| **is_gone == true);
        let parts: Vec<_> = parts.map(|(what, _)| what.replace('_', " ")).collect();
        if !parts.is_empty() {
            let _ = writeln!(text, "given up: {}", parts.join(", "));
        }
    }
    for port in listed(&status["ports"]) {
        let (name, device) = (word(&port["port"]), word(&port["device"]));
        let _ = write!(text, "{name}: {device} is {}", word(&port["state"]));
        if port["lost"].as_u64().is_some_and(|lost| lost > 0) {
            let _ = write!(text, ", lost {}", port["lost"]);
        }
        text.push('\n');
    }
    let workers = listed(&status["workers"]);
    let workers = workers.iter().map(|worker| match &worker["core"] {
        Value::Null => word(&worker["state"]),
        core => format!("{} on core {core}", word(&worker["state"])),
    });
    let workers: Vec<_> = workers.collect();
    if !workers.is_empty() {
        let _ = writeln!(text, "workers: {}", workers.join(", "));
    }
    for worker in listed(&status["workers"]) {
        if worker["panicked"] == true {
            let _ = writeln!(text, "{}", watch::panicked(&worker["number"]));
        }
        if let Some(ring) = worker["ring"].as_object() {
            let (frames, room, most) = (&ring["frames"], &ring["room"], &ring["most"]);
            let _ = write!(text, "worker {}: {frames} of {room} frames ", worker["number"]);
            let _ = writeln!(text, "are at its middlebox, {most} at most so far");
        }
        if worker["state"] == WorkerState::Stuck.name() {
            let _ = writeln!(text, "worker {} is stuck in its turn", worker["number"]);
        }
    }
    if let Some(why) = status["one_worker_because"].as_str() {
        let _ = writeln!(text, "{}", super::one_worker(&visible::word(why)));
    }
    text
}

impl PortStatus {
    fn json(&self) -> Value {
        let Self { port, device, state, idle_latency, lost } = self;
        let (state, idle) = (state.name(), idle_latency.as_micros() as u64);
        json!({
            "port": port,
            "device": device,
            "state": state,
            "idle_latency_us": idle,
            "lost": lost,
        })
    }
}

impl PortState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Up, Self::Down, Self::Gone];

    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Gone => "gone",
        }
    }
}

impl WorkerStatus {
    pub(super) fn of(seat: &Seat, core: Option<usize>) -> Self {
        let state = match () {
            () if seat.has_ended() => WorkerState::Ended,
            () if seat.is_stuck() => WorkerState::Stuck,
            () if seat.is_parked() => WorkerState::Asleep,
            () => WorkerState::Busy,
        };
        Self {
            core,
            state,
            panicked: seat.has_panicked(),
            turns: seat.turns(),
            awake: seat.awake(),
            waiting: seat.waiting(),
            connections: seat.flows(),
            ring: seat.ring().map(|[room, frames, most]| RingStatus { room, frames, most }),
        }
    }

    fn json(&self, number: usize) -> Value {
        let Self { core, state, panicked, turns, awake, waiting, connections, ring } = self;
        let mut worker = json!({
            "number": number,
            "core": core,
            "state": state.name(),
            "panicked": panicked,
            "turns": turns,
            "awake_seconds": awake.as_secs_f64(),
            "waiting": waiting,
            "connections": connections,
        });
        if let Some(RingStatus { room, frames, most }) = ring {
            worker["ring"] = json!({ "room": room, "frames": frames, "most": most });
        }
        worker
    }
}

impl WorkerState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Busy, Self::Asleep, Self::Stuck, Self::Ended];

    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Asleep => "asleep",
            Self::Stuck => "stuck",
            Self::Ended => "ended",
        }
    }
}

impl Direction {
    fn json(&self) -> Value {
        let Accounted { received, taken_over, made, sent, unevaluated, .. } = self.frames;
        let dropped = dropped(&self.frames).map(|(name, count)| (name.to_owned(), json!(count)));
        let mut direction = json!({
            "in": self.from,
            "out": self.to,
            "received": received,
            "taken_over": taken_over,
            "made": made,
            "sent": sent,
            "unevaluated": unevaluated,
            "received_bytes": self.frames.received_bytes,
            "sent_bytes": self.frames.sent_bytes,
            "verdicts": self.frames.verdicts().into_iter().collect::<BTreeMap<_, _>>(),
            "dropped": dropped.collect::<Map<_, _>>(),
        });
        if let Some(Queue { bursts, held, room, released, stayed, overdue }) = self.queue {
            direction["queue"] = json!({
                "bursts": bursts,
                "held": held,
                "room": room,
                "released": released,
                "stayed_seconds": stayed.as_secs_f64(),
                "overdue": overdue,
            });
        }
        direction
    }
}

/// Reasons that there were.
fn dropped(frames: &Accounted) -> impl Iterator<Item = (&'static str, u64)> {
    let counts = Reason::ALL.into_iter().map(|reason| (reason.name(), frames.of(reason)));
    counts.filter(|(_, count)| *count > 0)
}

/// The rules with their counters as each family's save tool prints them, one after the other.
pub(super) fn saved(snapshot: &Snapshot) -> String {
    saved_by_family(snapshot).map(|(_, text)| text).collect()
}

/// The same, apart.
pub(super) fn saved_by_family(snapshot: &Snapshot) -> impl Iterator<Item = (Family, String)> {
    snapshot.program.revisions().map(|revision| {
        let ruleset = revision.ruleset();
        let family = ruleset.family;
        let text = print_ruleset(&ruleset, true, |table, chain, rule| {
            let table = &ruleset.tables[table];
            let chain = &table.chains[chain];
            match (rule, chain.base) {
                (Some(rule), _) => snapshot.rule(&chain.rules[rule]),
                (None, Some(base)) => snapshot.policy(family, table.name, base.hook),
                (None, None) => Counters::default(),
            }
        });
        (family, text)
    })
}

/// Rules that some packet matched.
pub(super) fn hit(snapshot: &Snapshot) -> Vec<Value> {
    let mut hits = Vec::new();
    for revision in snapshot.program.revisions() {
        let ruleset = revision.ruleset();
        for table in &ruleset.tables {
            for chain in &table.chains {
                for (at, rule) in chain.rules.iter().enumerate() {
                    let Counters { packets, bytes } = snapshot.rule(rule);
                    if packets == 0 {
                        continue;
                    }
                    hits.push(json!({
                        "family": ruleset.family.name(),
                        "table": table.name,
                        "chain": chain.name,
                        "number": at + 1,
                        "line": rule.line,
                        "text": print_rule(ruleset.family, table, chain, rule),
                        "packets": packets,
                        "bytes": bytes,
                    }));
                }
            }
        }
    }
    hits
}

/// Policies that decided over some packet.
pub(super) fn decided(snapshot: &Snapshot) -> Vec<Value> {
    let mut decided = Vec::new();
    for revision in snapshot.program.revisions() {
        let ruleset = revision.ruleset();
        for table in &ruleset.tables {
            let bases = table.chains.iter().filter_map(|chain| Some((chain, chain.base?)));
            for (chain, base) in bases {
                let counted = snapshot.policy(ruleset.family, table.name, base.hook);
                let Counters { packets, bytes } = counted;
                if packets == 0 {
                    continue;
                }
                decided.push(json!({
                    "family": ruleset.family.name(),
                    "table": table.name,
                    "chain": chain.name,
                    "policy": base.policy.to_string(),
                    "packets": packets,
                    "bytes": bytes,
                }));
            }
        }
    }
    decided
}
