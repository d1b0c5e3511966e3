//! [`Past`]: the observer of packets whose story is not told: of what connections they were part, when their entries
//! expired, and by which interfaces the last one came and went.
//!
//! Contract: memory is bounded; past [`MOST`] tuples it starts over, so what it says is true, and what it does not
//! say may be, too.

use std::collections::HashMap;

use conntrack::{CtView, Direction, Tuple};
use dataplane::{Observer, Path};
use rules::eval;
use rules::model::Family;
use rules::{Iface, KnownFlow};

/// Tuples of connections that are kept.
const MOST: usize = 1 << 17;

/// What was tracked so far.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// Number and time of the packet that is being handled.
    now: (u64, Option<u64>),
    known: HashMap<Tuple, Entry>,
    /// The names of its interfaces, where somebody wants to know.
    sides: Option<[Option<String>; 2]>,
}

/// The entry of a connection, after its last packet.
#[derive(Debug, Clone, Copy)]
struct Entry {
    last: u64,
    until: u64,
}

/// An entry that had expired when a packet came that would have been part of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expired {
    /// The last packet before.
    pub(super) last: u64,
    /// Nanoseconds that it was too late.
    pub(super) ago: u64,
}

impl Past {
    /// Starts without packets, and notes their interfaces.
    pub(crate) fn noting_sides() -> Self {
        Self { sides: Some([None, None]), ..Self::default() }
    }

    /// The interfaces that the last packet came in and went out by, as far as they are known; none on the loopback path, where
    /// they go without saying.
    pub(crate) fn take_sides(&mut self) -> [Option<String>; 2] {
        self.sides.as_mut().map(std::mem::take).unwrap_or_default()
    }

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
    fn starts(&mut self, _: Family, path: Path, input: Iface<'_>, output: Iface<'_>) {
        let name = |iface: Iface<'_>| match iface {
            Iface::Named(name) => Some(name.to_owned()),
            Iface::Absent | Iface::Unknown => None,
        };
        if let Some(sides) = self.sides.as_mut().filter(|_| path != Path::Loopback) {
            *sides = [name(input), name(output)];
        }
    }

    fn tracked(&mut self, _: &CtView, flow: KnownFlow<'_>) {
        self.note(flow);
    }

    fn settled(&mut self, flow: KnownFlow<'_>) {
        self.note(flow);
    }
}
