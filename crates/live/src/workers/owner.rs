//! [`Workers`]: the part of a run that owns its workers: they are stopped, woken, asked and counted through it.
//!
//! Contract: any thread may use it. Nothing here waits for a frame; a request waits for the end of its worker's burst.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crate::answers;
use crate::forward::account::Accounted;
use crate::forward::shadow::Shadow;
use crate::forward::slots::WorkerSlots;
use crate::workers::builder::Counted;
use crate::workers::division::Division;
use crate::workers::status::{Direction, of_worker};
use crate::workers::watch::Watch;

/// The workers of a run, for threads that are none of them.
#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<WorkerSlots>,
    directions: Vec<Counted>,
    /// The core of each worker that is pinned.
    cores: Vec<Option<usize>>,
    /// The number of evaluators, for which the first workers answer.
    evaluators: usize,
    /// Why one worker sees all packets where several were wanted.
    why: Option<String>,
}

impl Workers {
    pub(crate) fn new(
        shared: Arc<WorkerSlots>,
        directions: Vec<Counted>,
        Division { steering, cores, why }: Division,
    ) -> Self {
        let evaluators = steering.evaluators();
        Self { shared, directions, cores, evaluators, why }
    }

    pub(super) fn shared(&self) -> &WorkerSlots {
        &self.shared
    }

    /// The workers that have connections to answer for.
    pub(super) fn having_connections(&self) -> Range<usize> {
        0..self.evaluators
    }

    /// Makes the workers stop once they have handled what their ports still have.
    pub(crate) fn stop(&self) {
        self.shared.stop();
    }

    /// A watch over their turns.
    pub(crate) fn watch(&self) -> Watch {
        Watch::new(&self.shared)
    }

    /// Reports workers that panicked or are stuck, and ends the talkers' windows in time.
    pub(crate) fn look(&self, watch: &mut Watch, tell: &mut impl FnMut(&str)) {
        watch.look(&self.shared, tell);
        self.shared.talkers.look(Instant::now());
    }

    /// The sources and ports with the most frames: `tamis.talkers/1`.
    pub(crate) fn talkers(&self) -> answers::Talkers {
        self.shared.talkers.ask(Instant::now()).answer()
    }

    /// The rules that are evaluated in shadow, if there are any.
    pub(crate) fn shadow(&self) -> Option<Arc<Shadow>> {
        self.shared.shadow.get()
    }

    /// Evaluates other rules in shadow from the next burst on, or none.
    pub(crate) fn set_shadow(&self, shadow: Option<Arc<Shadow>>) {
        self.shared.shadow.set(shadow);
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.shared.has_panicked()
    }

    pub(crate) fn one_because(&self) -> Option<String> {
        self.why.clone()
    }

    /// The state of each worker.
    pub(crate) fn status(&self) -> Vec<answers::Worker> {
        // Workers report port losses when they wake.
        self.shared.wake_all();
        let workers = self.shared.seats().zip(&self.cores).enumerate();
        workers.map(|(number, (seat, core))| of_worker(number, seat, *core)).collect()
    }

    /// The frames of each direction of each wire, by fate, over all workers.
    pub(crate) fn directions(&self) -> Vec<Direction> {
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
        directions.collect()
    }

    /// What unknown verdicts depended on, with their number.
    pub(crate) fn unknown_because(&self) -> BTreeMap<String, u64> {
        self.shared.causes.read()
    }
}
