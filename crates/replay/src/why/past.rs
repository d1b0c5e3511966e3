//! [`Past`]: the connections that the packets before the one that is told were part of, and when their entries expired.
//!
//! Contract: memory is bounded; past [`MOST`] tuples it starts over, so what it says is true, and what it does not
//! say may be, too.

use std::collections::HashMap;

use conntrack::{CtView, Direction, Tuple};
use dataplane::Observer;
use rules::KnownFlow;
use rules::eval;

/// Tuples of connections that are kept.
const MOST: usize = 1 << 17;

/// What was tracked so far.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Number and time of the packet that is being handled.
    now: (u64, Option<u64>),
    known: HashMap<Tuple, Entry>,
}

/// The entry of a connection, after its last packet.
#[derive(Debug, Clone, Copy)]
struct Entry {
    last: u64,
    until: u64,
}

/// An entry that was gone when a packet came that would have been part of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expired {
    /// The last packet before.
    pub(super) last: u64,
    /// Nanoseconds that it was too late.
    pub(super) ago: u64,
}

impl Past {
    /// The next packet comes.
    pub(super) fn next(&mut self, number: u64, time: Option<u64>) -> &mut Self {
        self.now = (number, time);
        self
    }

    /// The entry of these ends that had expired by now.
    pub(super) fn expired(&self, tuple: &Tuple, now: u64) -> Option<Expired> {
        let Entry { last, until } = *self.known.get(tuple)?;
        now.checked_sub(until).map(|ago| Expired { last, ago })
    }

    fn note(&mut self, flow: KnownFlow<'_>) {
        let (KnownFlow::Flow(flow), (last, Some(now))) = (flow, self.now) else { return };
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let entry = Entry { last, until: now.saturating_add(flow.expires_in(now)) };
        for direction in [Direction::Original, Direction::Reply] {
            self.known.insert(*flow.tuple(direction), entry);
        }
    }
}

impl eval::Observer for Past {
    const SEES_RULES: bool = false;
}

impl Observer for Past {
    fn tracked(&mut self, _: &CtView, flow: KnownFlow<'_>) {
        self.note(flow);
    }

    fn settled(&mut self, flow: KnownFlow<'_>) {
        self.note(flow);
    }
}
