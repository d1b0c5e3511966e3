//! The fates of all frames: for the control socket, and for the summary at the end of a run.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::answers::{self, DroppedPrivileges, Port, Resumed, UnknownCause, Worker};
use crate::rules::revisions::RevisionStatus;
use crate::workers::status::Direction;

/// The fates of all frames, and the state of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// How long the run has lasted.
    pub uptime: Duration,
    /// Number of the current program.
    pub program: u64,
    /// The revision of the rules, where the run has a configuration.
    pub revision: Option<RevisionStatus>,
    /// Whether a worker panicked: no rule sees a frame any more.
    pub panicked: bool,
    /// The state of each worker.
    pub workers: Vec<Worker>,
    /// State of each port whose device is reopened when it disappears.
    pub ports: Vec<Port>,
    /// Why one worker evaluates all packets where several were wanted.
    pub one_worker_because: Option<String>,
    /// Each direction of each wire, in the order of the configuration.
    pub directions: Vec<Direction>,
    /// The number of unknown verdicts, by what they depended on.
    pub unknown_because: BTreeMap<String, u64>,
    /// The connections that the run started with.
    pub resumed: Resumed,
    /// The privileges that the process dropped before.
    pub given_up: DroppedPrivileges,
    /// The address that serves metrics.
    pub metrics: Option<SocketAddr>,
}

impl Status {
    /// The answer to `status`.
    #[must_use]
    pub fn answer(&self) -> answers::Status {
        let because = self.unknown_because.iter();
        let because =
            because.map(|(what, packets)| UnknownCause { what: what.clone(), packets: *packets });
        answers::Status {
            uptime_seconds: self.uptime.as_secs_f64(),
            program: self.program,
            revision: self.revision.map(|revision| revision.number),
            goes_back_in: self.revision.and_then(|revision| revision.goes_back_in),
            panicked: self.panicked,
            workers: self.workers.clone(),
            ports: self.ports.clone(),
            one_worker_because: self.one_worker_because.clone(),
            wires: self.directions.iter().map(Direction::answer).collect(),
            unknown_because: because.collect(),
            resumed: self.resumed,
            given_up: self.given_up,
            metrics: self.metrics,
        }
    }

    /// Formats the status for a screen.
    #[must_use]
    pub fn text(&self) -> String {
        self.answer().to_string()
    }

    /// Formats the status as a document: `tamis.status/1`.
    #[must_use]
    pub fn json(&self) -> Value {
        answers::json(&self.answer())
    }
}
