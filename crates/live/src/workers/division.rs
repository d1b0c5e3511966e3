//! [`Division`]: how workers divide the packets of a run among them.

use std::sync::Arc;

use rules::model::Ruleset;

use crate::answers::one_worker;
use crate::config::{Order, Workers, topology};
use crate::forward::steering::Steering;

/// Why one worker evaluates where a wire keeps the order of all its frames, and ports decide the owner of a connection.
const FRAGMENTS: &str =
    "a wire keeps the order of all its frames, and fragments have no ports to be shared out by";

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
    /// Divides the work between the configured workers, or gives it to one where the rules need that. Where rules may
    /// come that track connections, frames have owners from the start.
    pub(crate) fn of(
        rulesets: &[Arc<Ruleset>],
        workers: &Workers,
        mut orders: impl Iterator<Item = Order>,
        may_track: bool,
    ) -> Self {
        let mut cores = topology::chosen(&workers.cores, workers.count);
        let (mut steering, mut why) = Steering::of(rulesets, cores.len());
        if may_track {
            steering = steering.coupled();
        }
        if orders.any(|order| order == Order::Wire) && !steering.can_order() {
            steering = Steering::of(rulesets, 1).0;
            why = Some(FRAGMENTS.to_owned());
        }
        cores.truncate(steering.workers());
        Self { steering, cores, why }
    }

    /// The message of a run whose packets one worker sees, if there is a reason.
    pub(crate) fn one_because(&self) -> Option<String> {
        self.why.as_deref().map(one_worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Cores;
    use rules::save::{LoadOptions, load};

    fn ruleset(rules: &str) -> Arc<Ruleset> {
        Arc::new(load(rules, &LoadOptions::default()).expect("rules").ruleset)
    }

    #[test]
    fn frames_that_have_owners_from_the_start_may_be_tracked_later() {
        let stateless = ruleset("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
        let tracking = ruleset(
            "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n",
        );
        let translating =
            ruleset("*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -o b -j MASQUERADE\nCOMMIT\n");
        let takes = |workers, may_track| {
            let workers = Workers { cores: Cores::Any, count: Some(workers) };
            let began = [Arc::clone(&stateless)];
            let orders = std::iter::once(Order::Wire);
            let Division { steering, .. } = Division::of(&began, &workers, orders, may_track);
            [&tracking, &translating].map(|rules| steering.suits(&[Arc::clone(rules)]).is_ok())
        };
        assert_eq!(takes(2, true), [true, false]);
        assert_eq!(takes(2, false), [false, false]);
        assert_eq!(takes(1, true), [true, true]);
    }
}
