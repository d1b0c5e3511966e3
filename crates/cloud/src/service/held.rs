//! [`Held`]: what is to be kept, and cannot be kept now: nothing follows from it until it is.

use overlay::Effect;

use super::policy::InForce;
use crate::etcd::Trouble;
use crate::store::Changes;

/// What is to be kept, and what follows from that.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) changes: Changes,
    pub(super) effects: Vec<Effect>,
    pub(super) policy: Option<InForce>,
}

/// Whether a store could not be reached.
pub(super) fn is_away(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Trouble::Away(_)))
}
