//! [`Live`]: a run while its workers work, for all who look at it or change it beside them.
//!
//! Contract: any thread may have it. What it tells is as of now; nothing here waits for a frame.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::Division;
use super::account::Accounted;
use super::given_up::GivenUp;
use super::links::Links;
use super::restart::Resumed;
use super::shared::Shared;
use super::status::{Direction, Status, WorkerStatus};
use super::workers::Counted;
use crate::publish::Published;

/// What a run is beside its threads.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) start: Instant,
    pub(super) published: Published,
    pub(super) shared: Arc<Shared>,
    pub(super) directions: Vec<Counted>,
    pub(super) division: Division,
    /// Looked after by who waits for the run's end.
    pub(super) links: Mutex<Links>,
    pub(super) resumed: Resumed,
    pub(super) given_up: GivenUp,
    /// Where metrics are to be had.
    pub(super) metrics: Option<SocketAddr>,
}

impl Live {
    /// Tells the workers to stop once they have handled what their ports still have.
    pub(super) fn stop(&self) {
        self.shared.stop();
    }

    /// Looks after the devices, if it is time.
    pub(super) fn look_after_links(&self, tell: &mut impl FnMut(&str)) {
        self.links().look(Instant::now(), tell);
    }

    pub(super) fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has become of all frames so far, and how the workers are.
    pub(super) fn status(&self) -> Status {
        // Who sleeps tells what its ports lost as soon as it is awake.
        self.shared.wake_all();
        let sum = |counted: &Counted| {
            let accounts = counted.accounts.iter().map(|account| account.read());
            accounts.fold(Accounted::default(), Accounted::and)
        };
        let directions = self.directions.iter().map(|counted| Direction {
            from: counted.from.to_string(),
            to: counted.to.to_string(),
            frames: sum(counted),
            queue: counted.lanes.as_ref().map(|(lanes, from)| lanes.queue(*from)),
        });
        let workers = self.shared.seats().zip(&self.division.cores);
        Status {
            uptime: self.start.elapsed(),
            program: self.published.program().number(),
            panicked: self.shared.has_panicked(),
            workers: workers.map(|(seat, core)| WorkerStatus::of(seat, *core)).collect(),
            ports: self.links().status(),
            one_worker_because: self.division.why.clone(),
            directions: directions.collect(),
            unknown_because: self.shared.causes.read(),
            resumed: self.resumed,
            given_up: self.given_up,
            metrics: self.metrics,
        }
    }
}
