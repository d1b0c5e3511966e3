//! What lists get to know: the packet that reaches the rule ([`Visit`]), and what has become of the connections of others
//! ([`Flows`]).

use std::sync::Arc;

use conntrack::{Life, Tuple, Zone};

/// The longest clock tick, in nanoseconds.
pub(super) const TICK: u64 = 10_000_000;

/// A packet that reaches the rule.
#[derive(Debug, Clone, Copy)]
pub(in crate::ext::matches::connlimit) struct Visit {
    /// Nanoseconds.
    pub(in crate::ext::matches::connlimit) now: u64,
    /// Whether it surely reaches the rule.
    pub(in crate::ext::matches::connlimit) certain: bool,
    /// The original tuple of its connection, or its own tuple without one, and the zone.
    pub(in crate::ext::matches::connlimit) tuple: Tuple,
    pub(in crate::ext::matches::connlimit) zone: Zone,
    /// The frame that its connection began with; 0 for none.
    pub(in crate::ext::matches::connlimit) born: u64,
    /// Whether the packet has a connection.
    pub(in crate::ext::matches::connlimit) is_flow: bool,
    pub(in crate::ext::matches::connlimit) standing: Standing,
}

/// How far its connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ext::matches::connlimit) enum Standing {
    /// No packet of it has left yet.
    Begins,
    /// One has.
    Confirmed,
    /// The connection is kept under pressure.
    Assured,
    /// The connection began before the capture: one of the last two.
    Unknown,
}

/// The state of a connection in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ext::matches::connlimit) enum Fate {
    /// The connection is in the table: the frame that it began with, and the number of its original zone.
    Living(u64, u16),
    /// The connection is in the table, but over; its original zone.
    Closed(u16),
    /// The connection is not in the table.
    Gone,
    /// Any of these.
    Open,
}

/// Where connections are looked up.
pub(in crate::ext::matches::connlimit) trait Flows {
    /// The state of a connection, by a tuple of it.
    fn fate(&mut self, tuple: &Tuple, zone: Zone, now: u64) -> Fate;

    /// Returns the liveness that a connection's worker publishes, by its original tuple, if other workers count it,
    /// too.
    fn life(&mut self, _tuple: &Tuple) -> Option<Arc<Life>> {
        None
    }

    /// Whether that is a connection of this worker.
    fn has(&self, _tuple: &Tuple, _life: &Arc<Life>) -> bool {
        true
    }
}
