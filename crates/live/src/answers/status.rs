//! The answer to `status`, and its form on a screen.

#![expect(missing_docs, reason = "docs/control.md says what the keys mean")]

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};
use std::net::SocketAddr;

use packet::visible;
use serde::{Deserialize, Serialize};

/// The answer to `status`: the fates of all frames, and the state of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.status/1", default)]
pub struct Status {
    /// How long the run has lasted.
    pub uptime_seconds: f64,
    pub program: u64,
    /// Number of the revision in force, where the run has a configuration.
    pub revision: Option<u64>,
    /// Seconds until the revision is reverted, unless it is confirmed.
    pub goes_back_in: Option<u64>,
    /// Whether a worker panicked: no rule sees a frame any more.
    pub panicked: bool,
    pub workers: Vec<Worker>,
    pub ports: Vec<Port>,
    /// Why one worker evaluates all packets where several were wanted.
    pub one_worker_because: Option<String>,
    pub wires: Vec<Wire>,
    pub unknown_because: Vec<UnknownCause>,
    pub resumed: Resumed,
    pub given_up: DroppedPrivileges,
    pub metrics: Option<SocketAddr>,
}

/// The state of a worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Worker {
    pub number: usize,
    /// The processor that it runs on alone, if it is pinned.
    pub core: Option<usize>,
    pub state: WorkerState,
    pub panicked: bool,
    pub turns: u64,
    pub awake_seconds: f64,
    /// Frames that other workers had given it when it looked last.
    pub waiting: usize,
    pub connections: usize,
    /// The ring to its middlebox, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring: Option<Ring>,
}

/// The activity of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// The worker processes frames.
    Busy,
    /// The worker sleeps: no frames come.
    Asleep,
    /// The worker has not finished a turn for a second or longer.
    Stuck,
    /// The worker has ended.
    Ended,
    /// A state that this release does not know.
    #[default]
    #[serde(other)]
    Other,
}

/// The state of a worker's ring to its middlebox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ring {
    pub room: usize,
    /// Frames in the ring when the worker looked last.
    pub frames: usize,
    /// The highest number of frames so far.
    pub most: usize,
}

/// The state of a port that is a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    pub port: String,
    pub device: String,
    pub state: PortState,
    /// Microseconds that a frame on an idle link may wait in the kernel.
    pub idle_latency_us: u64,
    pub lost: u64,
}

/// Whether frames can pass through a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortState {
    /// The device is up, and has a link.
    Up,
    /// The device is down, or its link is lost.
    Down,
    /// The device is missing, and waited for.
    Gone,
    /// A state that this release does not know.
    #[default]
    #[serde(other)]
    Other,
}

/// The frames of a direction of a wire, by their fates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wire {
    #[serde(rename = "in")]
    pub input: String,
    #[serde(rename = "out")]
    pub output: String,
    pub received: u64,
    pub taken_over: u64,
    pub made: u64,
    pub sent: u64,
    pub unevaluated: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    pub verdicts: BTreeMap<String, u64>,
    pub dropped: BTreeMap<String, u64>,
    /// The bursts between receiving and sending, where the wire keeps the order of all its frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// The numbers of bursts of a direction between receiving and sending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    pub bursts: usize,
    pub held: usize,
    pub room: usize,
    /// Bursts that were released so far.
    pub released: u64,
    /// How long the released bursts were there, all together.
    pub stayed_seconds: f64,
    /// Bursts that were given up so far.
    pub overdue: u64,
}

/// A cause of unknown verdicts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnknownCause {
    pub what: String,
    pub packets: u64,
}

/// The connections of an earlier run, or the time of grace in their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Resumed {
    pub connections: usize,
    /// Seconds from the first packet on in which connections that begin in their middle are taken for established.
    pub grace: u64,
}

/// The privileges that were dropped before the first worker started, by the program that starts the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DroppedPrivileges {
    pub capabilities: bool,
    /// Gaining any by a program that it starts (`no_new_privs`).
    pub new_privileges: bool,
    pub system_calls: bool,
    pub files: bool,
}

/// Formats the status for a screen.
impl Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.wires.iter().try_for_each(|wire| wire.fmt(f))?;
        for UnknownCause { what, packets } in &self.unknown_because {
            writeln!(f, "unknown because of {}: {packets}", visible::word(what))?;
        }
        writeln!(f, "program {}", self.program)?;
        if let Some(revision) = self.revision {
            write!(f, "revision {revision}")?;
            if let Some(seconds) = self.goes_back_in {
                write!(f, ", which goes back in {seconds} s unless it is confirmed")?;
                write!(f, " (tamis ctl confirm)")?;
            }
            f.write_char('\n')?;
        }
        let Resumed { connections, grace } = self.resumed;
        if connections != 0 {
            writeln!(f, "connections of the run before: {connections}")?;
        }
        if grace != 0 {
            writeln!(f, "connections are picked up in their middle for the first {grace} s")?;
        }
        let given_up = self.given_up.words();
        if !given_up.is_empty() {
            writeln!(f, "given up: {}", given_up.join(", "))?;
        }
        for Port { port, device, state, lost, .. } in &self.ports {
            let [port, device] = [port, device].map(|word| visible::word(word));
            write!(f, "{port}: {device} is {}", state.name())?;
            if *lost > 0 {
                write!(f, ", lost {lost}")?;
            }
            f.write_char('\n')?;
        }
        workers(&self.workers, f)?;
        match &self.one_worker_because {
            Some(why) => writeln!(f, "{}", one_worker(&visible::word(why))),
            None => Ok(()),
        }
    }
}

impl PortState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Up, Self::Down, Self::Gone];

    /// The state's name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Gone => "gone",
            Self::Other => "other",
        }
    }
}

impl WorkerState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Busy, Self::Asleep, Self::Stuck, Self::Ended];

    /// The state's name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Asleep => "asleep",
            Self::Stuck => "stuck",
            Self::Ended => "ended",
            Self::Other => "other",
        }
    }
}

impl DroppedPrivileges {
    /// The privileges that were dropped, in words.
    fn words(self) -> Vec<&'static str> {
        let all = [
            (self.capabilities, "capabilities"),
            (self.files, "files"),
            (self.new_privileges, "new privileges"),
            (self.system_calls, "system calls"),
        ];
        all.into_iter().filter(|(is_gone, _)| *is_gone).map(|(_, what)| what).collect()
    }
}

impl Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { received, made, sent, unevaluated, .. } = self;
        let [from, to] = [&self.input, &self.output].map(|port| visible::word(port));
        write!(f, "{from} > {to}: received {received}, made {made}, sent {sent}")?;
        if *unevaluated != 0 {
            write!(f, " ({unevaluated} of them unevaluated)")?;
        }
        let dropped = self.dropped.iter();
        let dropped: Vec<_> = dropped.map(|(reason, count)| format!("{reason} {count}")).collect();
        let dropped = if dropped.is_empty() { "none".to_owned() } else { dropped.join(", ") };
        writeln!(f, ", dropped: {dropped}")?;
        let Some(Queue { bursts, room, overdue, .. }) = self.queue else { return Ok(()) };
        write!(f, "{from} > {to}: {bursts} of {room} bursts wait")?;
        writeln!(f, ", {overdue} were given up")
    }
}

/// The message of a run whose packets one worker sees.
pub(crate) fn one_worker(why: &str) -> String {
    format!("one worker evaluates all packets: {why}")
}

/// The message about a worker that panicked, which is in every status from then on.
pub(crate) fn panicked(worker: impl Display) -> String {
    format!("worker {worker} panicked: no rule sees a frame any more")
}

fn workers(workers: &[Worker], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let state = |worker: &Worker| match worker.core {
        None => worker.state.name().to_owned(),
        Some(core) => format!("{} on core {core}", worker.state.name()),
    };
    if !workers.is_empty() {
        let states: Vec<_> = workers.iter().map(state).collect();
        writeln!(f, "workers: {}", states.join(", "))?;
    }
    for Worker { number, state, panicked: has_panicked, ring, .. } in workers {
        if *has_panicked {
            writeln!(f, "{}", panicked(number))?;
        }
        if let Some(Ring { room, frames, most }) = ring {
            write!(f, "worker {number}: {frames} of {room} frames ")?;
            writeln!(f, "are at its middlebox, {most} at most so far")?;
        }
        if *state == WorkerState::Stuck {
            writeln!(f, "worker {number} is stuck in its turn")?;
        }
    }
    Ok(())
}
