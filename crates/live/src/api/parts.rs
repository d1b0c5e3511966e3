//! [`Parts`]: the four parts of a run that threads besides its workers share, each with private state of its own.
//!
//! Contract: a request takes the part that it needs, never the run. A thread that needs several takes their locks in the order
//! [`Rules`], [`Workers`], [`Devices`], [`Watchers`]. What is reported is of the moment of the call; nothing waits for a frame.

use std::net::SocketAddr;
use std::time::Instant;

use crate::answers::{DroppedPrivileges, Resumed};
use crate::api::status::Status;
use crate::api::watchers::Watchers;
use crate::devices::owner::Devices;
use crate::rules::owner::Rules;
use crate::workers::owner::Workers;

/// The parts of a run, and facts about its start.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) rules: Rules,
    pub(crate) workers: Workers,
    pub(crate) devices: Devices,
    pub(crate) watchers: Watchers,
    pub(crate) started: Started,
}

/// Facts about the start of a run, which stay as they are.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) at: Instant,
    pub(crate) resumed: Resumed,
    pub(crate) given_up: DroppedPrivileges,
    /// The address that serves metrics.
    pub(crate) metrics: Option<SocketAddr>,
}

impl Parts {
    /// The fate of all frames so far, and the state of workers and devices.
    pub(crate) fn status(&self) -> Status {
        let workers = self.workers.status();
        Status {
            uptime: self.started.at.elapsed(),
            program: self.rules.published().program().number(),
            revision: self.rules.status(),
            panicked: self.workers.has_panicked(),
            workers,
            ports: self.devices.status(),
            one_worker_because: self.workers.one_because(),
            directions: self.workers.directions(),
            unknown_because: self.workers.unknown_because(),
            resumed: self.started.resumed,
            given_up: self.started.given_up,
            metrics: self.started.metrics,
        }
    }
}
