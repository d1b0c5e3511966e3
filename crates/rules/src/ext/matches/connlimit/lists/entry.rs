//! One connection in a list, and what a walk makes of it.

use std::sync::Arc;

use super::flows::{Fate, TICK, Visit};
use conntrack::{Alive, Direction, Life, Tuple, Zone};

/// A connection that a list counts, as far as it is known to be in it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) tuple: Tuple,
    pub(super) zone: Zone,
    pub(super) born: u64,
    pub(super) since: u64,
    /// When the connection was first seen to have ended, if it was seen living since.
    pub(super) dead: Option<u64>,
    pub(super) surely: bool,
    /// Whether its place in the list is known.
    pub(super) placed: bool,
    /// The liveness that its worker publishes, where workers share the list.
    pub(super) life: Option<Arc<Life>>,
}

/// How far a walk gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// To the end: there is not too much to take out.
    All,
    /// Until it has taken out enough.
    Known,
    /// Nobody knows.
    Unknown,
}

/// A walk that reaches an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    /// The packet is surely there, and no walk before it ended in front of the entry.
    pub(super) certain: bool,
    /// Whether it is surely the list's turn.
    pub(super) is_sure: bool,
    pub(super) reach: Reach,
}

impl Fate {
    pub(super) fn is_dead(self) -> bool {
        !matches!(self, Self::Living(..))
    }
}

impl Entry {
    pub(super) fn of(visit: &Visit, surely: bool) -> Self {
        let Visit { now, tuple, zone, born, .. } = *visit;
        Self { tuple, zone, born, since: now, dead: None, surely, placed: true, life: None }
    }

    /// The state of a connection of another worker.
    pub(super) fn told(&self, alive: Alive) -> Fate {
        match alive {
            Alive::Yes => Fate::Living(self.born, self.tuple.zone()),
            Alive::Over => Fate::Closed(self.tuple.zone()),
            Alive::No => Fate::Gone,
            Alive::Maybe => Fate::Open,
        }
    }

    /// Whether a walk for the packet ends here, or may: the kernel takes its connection for this one. The zone is
    /// that of the connection found.
    pub(super) fn ends_walk(&self, visit: &Visit, fate: Fate) -> bool {
        let zone = match fate {
            Fate::Living(_, zone) | Fate::Closed(zone) => zone,
            Fate::Gone | Fate::Open => self.zone.id_in(Direction::Original),
        };
        let is_zone = zone == visit.zone.id_in(Direction::Original);
        let is_taken = fate == Fate::Gone && self.is_old(visit.now);
        !is_taken && is_zone && self.tuple.in_zone(0) == visit.tuple.in_zone(0)
    }

    /// Another processor does not spare it any more.
    pub(super) fn is_old(&self, now: u64) -> bool {
        now.saturating_sub(self.since) >= 2 * TICK
    }

    /// Whether a walk surely takes it out.
    pub(super) fn is_taken(&self, fate: Fate, now: u64) -> bool {
        match fate {
            Fate::Closed(_) => true,
            Fate::Gone => self.is_old(now),
            Fate::Living(..) | Fate::Open => false,
        }
    }

    /// Whether it is, or may be, still in the list after a walk.
    pub(super) fn stays(&mut self, fate: Fate, now: u64, walk: Walk) -> bool {
        if !fate.is_dead() {
            return true;
        }
        // Where this walk is not due, the one before it in the same tick took it out.
        let is_long_dead = self.dead.is_some_and(|dead| now.saturating_sub(dead) >= 3 * TICK);
        let is_taken = match walk.reach {
            Reach::All => walk.is_sure && self.is_taken(fate, now) || walk.certain && is_long_dead,
            Reach::Known => walk.is_sure,
            Reach::Unknown => false,
        };
        self.surely = false;
        !is_taken || fate == Fate::Open
    }
}
