//! [`Footprint`]: state left by one worker's packets that can affect other workers, where connections are shared out.
//!
//! Contract: numbers only grow, so the sums over all workers show what came since an earlier look.

pub use crate::answers::{KEPT as ANSWERS_KEPT, LONGEST as ANSWERS_LONGEST};

/// The state that a worker's packets left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Connections, including unconfirmed ones.
    pub connections: u64,
    /// Packets that the host may answer: refused ones, and ones that left. Of either kind [`ANSWERS_KEPT`] are kept for
    /// all workers, for [`ANSWERS_LONGEST`] at most.
    pub kept: [u64; 2],
    /// Packets of the host's own, which may be answers.
    pub own: u64,
    /// Whether connections may concern connections of other workers: see [`conntrack::Tracker::crosses`].
    pub crosses: bool,
}

impl Footprint {
    /// The sum of both.
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
