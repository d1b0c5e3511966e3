//! [`Expectations`]: flows that others foretell.
//!
//! Contract: at most as many as configured. One master foretells one flow at a time (the policy of the
//! FTP and TFTP helpers); a new one takes the place of its old one. Each lives five minutes.
//!
//! Source: Linux 6.18 `nf_conntrack_expect.c`.

use super::flow::Flow;
use super::helper::Helper;
use super::helpers::foretold_by;
use super::key::{Direction, Tuple};
use super::lost::End;
use super::table::Handle;
use std::collections::HashMap;
use std::net::IpAddr;

const LIFETIME: u64 = 300_000_000_000;

/// The part of a tuple that an expectation fixes, its source address apart.
type Target = (IpAddr, u16, u8);

/// A flow that is expected: any source port, everything else given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expectation {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) destination_port: u16,
    pub(super) protocol: u8,
    /// Number of the master's zone, whatever its directions.
    pub(super) zone: u16,
    pub(super) master: Handle,
    /// The direction of the master's packet that foretold it.
    pub(super) direction: Direction,
    /// The master's helper.
    pub(super) helper: Helper,
    /// The master is translated, and the flow as it is.
    pub(super) follows: Option<Followed>,
}

/// What became of an expectation that was to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// It waits.
    Yes,
    /// Another master's fixes the same.
    Clash,
    /// There is no room.
    Full,
}

/// What becomes of a flow whose master is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Followed {
    /// Its source. The port stays.
    pub(super) source: IpAddr,
    /// Its destination.
    pub(super) destination: IpAddr,
    /// The port there: the one that the speaker named, or spoke from.
    pub(super) port: u16,
}

impl Expectation {
    fn target(&self) -> Target {
        (self.destination, self.destination_port, self.protocol)
    }

    /// What is known of it where it is not known whether it waits, and of replies to it.
    pub(super) fn ends(&self, master: &Flow) -> [End; 2] {
        foretold_by(master, self.direction, self.protocol)
    }

    fn foretells(&self, tuple: &Tuple, zone: u16) -> bool {
        self.source == tuple.source() && self.zone == zone
    }
}

/// The expectations that wait.
#[derive(Debug)]
pub(super) struct Expectations {
    waiting: HashMap<Target, Vec<(Expectation, u64)>>,
    /// What each master foretells.
    of_master: HashMap<Handle, Target>,
    max: usize,
}

impl Expectations {
    pub(super) fn new(max: usize) -> Self {
        Self { waiting: HashMap::new(), of_master: HashMap::new(), max }
    }

    /// Adds one, or renews the same.
    pub(super) fn add(&mut self, expectation: Expectation, now: u64) -> Added {
        if self.of_master.len() >= self.max {
            self.forget_expired(now);
        }
        let target = expectation.target();
        let clashes = self.waiting.get(&target).is_some_and(|waiting| {
            waiting.iter().any(|(other, deadline)| {
                *deadline > now
                    && other.source == expectation.source
                    && other.zone == expectation.zone
                    && other.master != expectation.master
            })
        });
        if clashes {
            return Added::Clash;
        }
        let is_news = !self.of_master.contains_key(&expectation.master);
        if is_news && self.of_master.len() >= self.max {
            return Added::Full;
        }
        self.forget(expectation.master);
        self.of_master.insert(expectation.master, target);
        let deadline = now.saturating_add(LIFETIME);
        self.waiting.entry(target).or_default().push((expectation, deadline));
        Added::Yes
    }

    /// Takes the expectation that a new flow with this original tuple in the zone of this number fulfils.
    pub(super) fn take(&mut self, tuple: &Tuple, zone: u16, now: u64) -> Option<Expectation> {
        let found = self.peek(tuple, zone, now)?;
        self.forget(found.master);
        Some(found)
    }

    /// The same, left waiting.
    pub(super) fn peek(&self, tuple: &Tuple, zone: u16, now: u64) -> Option<Expectation> {
        if self.of_master.is_empty() {
            return None;
        }
        let target = (tuple.destination(), tuple.destination_part(), tuple.protocol());
        let waiting = self.waiting.get(&target)?;
        let found =
            waiting.iter().find(|(e, deadline)| *deadline > now && e.foretells(tuple, zone));
        found.map(|(expectation, _)| *expectation)
    }

    /// What a master foretells.
    pub(super) fn of(&self, master: Handle) -> Option<Expectation> {
        let waiting = self.waiting.get(self.of_master.get(&master)?)?;
        waiting.iter().map(|(expectation, _)| *expectation).find(|e| e.master == master)
    }

    /// Drops what a master foretells.
    pub(super) fn forget(&mut self, master: Handle) {
        let Some(target) = self.of_master.remove(&master) else { return };
        if let Some(waiting) = self.waiting.get_mut(&target) {
            waiting.retain(|(expectation, _)| expectation.master != master);
            if waiting.is_empty() {
                self.waiting.remove(&target);
            }
        }
    }

    fn forget_expired(&mut self, now: u64) {
        self.waiting.retain(|_, waiting| {
            waiting.retain(|(_, deadline)| *deadline > now);
            !waiting.is_empty()
        });
        let alive: Vec<Handle> =
            self.waiting.values().flatten().map(|(expectation, _)| expectation.master).collect();
        self.of_master.retain(|master, _| alive.contains(master));
    }

    /// How many wait, those included that died and were not met yet.
    pub(super) fn len(&self) -> usize {
        self.of_master.len()
    }
}
