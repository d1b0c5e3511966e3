//! [`Footprint`]: what a worker's packets left that concerns those of other workers, where connections are shared out.
//!
//! Contract: numbers only grow, so that whoever adds up those of all workers knows what came since.

pub use crate::answers::{KEPT as ANSWERS_KEPT, LONGEST as ANSWERS_LONGEST};

/// What a worker's packets left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Connections, those included that no packet confirmed.
    pub connections: u64,
    /// Packets that the host may answer: refused ones, and those that were let go. Of either kind [`ANSWERS_KEPT`] are
    /// kept for all workers, for [`ANSWERS_LONGEST`] at most.
    pub kept: [u64; 2],
    /// Packets of the host's own, which may be answers.
    pub own: u64,
    /// Connections may concern those of other workers: see [`conntrack::Tracker::crosses`].
    pub crosses: bool,
}

impl Footprint {
    /// What both left.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            kept: [self.kept[0] + other.kept[0], self.kept[1] + other.kept[1]],
            own: self.own + other.own,
            crosses: self.crosses || other.crosses,
        }
    }
}
