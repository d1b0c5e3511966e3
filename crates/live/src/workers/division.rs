//! [`Division`]: how workers divide the packets of a run among them.

use std::sync::Arc;

use rules::model::Ruleset;

use crate::answers::one_worker;
use crate::config::{Order, Workers, topology};
use crate::forward::steering::Steering;

/// The division of a run's packets among workers.
#[derive(Debug)]
pub(crate) struct Division {
    pub(crate) steering: Steering,
    /// The core of each worker that is pinned.
    pub(crate) cores: Vec<Option<usize>>,
    /// Why one worker sees all packets where several were wanted.
    pub(crate) why: Option<String>,
}

impl Division {
    /// Divides the work between the configured workers, or gives it to one where the rules need that.
    pub(crate) fn of(
        rulesets: &[Arc<Ruleset>],
        workers: &Workers,
        mut orders: impl Iterator<Item = Order>,
    ) -> Self {
        let mut cores = topology::chosen(&workers.cores, workers.count);
        let (steering, why) = match orders.any(|order| order == Order::Wire) {
            true => (Steering::in_order(rulesets, cores.len()), None),
            false => Steering::of(rulesets, cores.len()),
        };
        cores.truncate(steering.workers());
        Self { steering, cores, why }
    }

    /// The message of a run whose packets one worker sees, if there is a reason.
    pub(crate) fn one_because(&self) -> Option<String> {
        self.why.as_deref().map(one_worker)
    }
}
