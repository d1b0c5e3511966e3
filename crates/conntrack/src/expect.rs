//! [`Expectations`]: flows that helpers of others expect.
//!
//! Contract: at most as many as configured. One master expects one flow at a time (the policy of the
//! FTP and TFTP helpers); a new one takes the place of its old one. Each lives five minutes. Adding, finding and
//! forgetting one costs the same on average however many wait, and times never run backwards.
//!
//! Source: Linux 6.18 `nf_conntrack_expect.c`.

use crate::flow::Flow;
use crate::helper::Helper;
use crate::index::Handle;
use crate::key::{Direction, Tuple};
use crate::untraceable::{Pattern, expected_by};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

const LIFETIME: u64 = 300_000_000_000;

/// What an expectation fixes: source and destination, port and protocol there, and the number of the zone.
type Fixed = (IpAddr, IpAddr, u16, u8, u16);

/// Stale entries that the queue may hold, besides entries of waiting expectations, before it is cleared of them.
const STALE: usize = 64;

/// A flow that is expected: any source port, everything else given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expectation {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) destination_port: u16,
    pub(crate) protocol: u8,
    /// Number of the master's zone, whatever its directions.
    pub(crate) zone: u16,
    pub(crate) master: Handle,
    /// The direction of the master's packet that announced it.
    pub(crate) direction: Direction,
    /// The master's helper.
    pub(crate) helper: Helper,
    /// The master is translated, and the flow as it is.
    pub(crate) follows: Option<Followed>,
}

/// Result of adding an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// The expectation waits.
    Yes,
    /// Another master's expectation fixes the same.
    Clash,
    /// Too many masters have one.
    Full,
}

/// How a flow is translated whose master is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Followed {
    /// The translated source address. The port stays.
    pub(crate) source: IpAddr,
    /// The translated destination address.
    pub(crate) destination: IpAddr,
    /// The destination port: the port that the speaker named, or spoke from.
    pub(crate) port: u16,
}

impl Expectation {
    fn fixed(&self) -> Fixed {
        let Self { source, destination, destination_port, protocol, zone, .. } = *self;
        (source, destination, destination_port, protocol, zone)
    }

    /// What is known of it where it is not known whether it waits, and of replies to it.
    pub(crate) fn ends(&self, master: &Flow) -> [Pattern; 2] {
        expected_by(master, self.direction, self.protocol)
    }
}

/// The expectations that wait.
#[derive(Debug)]
pub(crate) struct Expectations {
    /// Each with its deadline.
    waiting: HashMap<Fixed, (Expectation, u64)>,
    /// What each master expects.
    of_master: HashMap<Handle, Fixed>,
    /// Masters in the order in which what they expect dies, with the deadline that it had when it was added.
    queue: VecDeque<(u64, Handle)>,
    max: usize,
}

impl Expectations {
    pub(crate) fn new(max: usize) -> Self {
        Self { waiting: HashMap::new(), of_master: HashMap::new(), queue: VecDeque::new(), max }
    }

    /// Adds one, or renews the same.
    pub(crate) fn add(&mut self, expectation: Expectation, now: u64) -> Added {
        self.expire(now);
        let (fixed, master) = (expectation.fixed(), expectation.master);
        if self.waiting.get(&fixed).is_some_and(|(other, _)| other.master != master) {
            return Added::Clash;
        }
        if !self.of_master.contains_key(&master) && self.of_master.len() >= self.max {
            return Added::Full;
        }
        self.forget(master);
        let deadline = now.saturating_add(LIFETIME);
        self.of_master.insert(master, fixed);
        self.waiting.insert(fixed, (expectation, deadline));
        self.queue.push_back((deadline, master));
        Added::Yes
    }

    /// Takes the expectation that a new flow with this original tuple in the zone of this number fulfils.
    pub(crate) fn take(&mut self, tuple: &Tuple, zone: u16, now: u64) -> Option<Expectation> {
        let found = self.peek(tuple, zone, now)?;
        self.forget(found.master);
        Some(found)
    }

    /// Returns the expectation that [`Self::take`] would take, and leaves it waiting.
    pub(crate) fn peek(&self, tuple: &Tuple, zone: u16, now: u64) -> Option<Expectation> {
        if self.of_master.is_empty() {
            return None;
        }
        let (destination, port) = (tuple.destination(), tuple.destination_part());
        let fixed = (tuple.source(), destination, port, tuple.protocol(), zone);
        let (expectation, deadline) = self.waiting.get(&fixed)?;
        (*deadline > now).then_some(*expectation)
    }

    /// What a master expects.
    pub(crate) fn of(&self, master: Handle) -> Option<Expectation> {
        let (expectation, _) = self.waiting.get(self.of_master.get(&master)?)?;
        Some(*expectation)
    }

    /// Drops what a master expects.
    pub(crate) fn forget(&mut self, master: Handle) {
        if let Some(fixed) = self.of_master.remove(&master) {
            self.waiting.remove(&fixed);
        }
    }

    /// Drops what has died.
    fn expire(&mut self, now: u64) {
        while let Some((deadline, master)) = self.queue.front().copied()
            && deadline <= now
        {
            self.queue.pop_front();
            if self.deadline_of(master) == Some(deadline) {
                self.forget(master);
            }
        }
        if self.queue.len() > 2 * self.of_master.len() + STALE {
            let mut queue = std::mem::take(&mut self.queue);
            queue.retain(|(deadline, master)| self.deadline_of(*master) == Some(*deadline));
            self.queue = queue;
        }
    }

    fn deadline_of(&self, master: Handle) -> Option<u64> {
        let (_, deadline) = self.waiting.get(self.of_master.get(&master)?)?;
        Some(*deadline)
    }

    /// How many wait, those included that died and were not met yet.
    pub(crate) fn len(&self) -> usize {
        self.of_master.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: usize = 6;

    fn expectation(master: u32, port: u16) -> Expectation {
        Expectation {
            source: [10, 0, 0, 1].into(),
            destination: [10, 0, 0, 2].into(),
            destination_port: port,
            protocol: 6,
            zone: 0,
            master: Handle { slot: master, generation: 0 },
            direction: Direction::Reply,
            helper: Helper::Ftp,
            follows: None,
        }
    }

    fn tuple(port: u16) -> Tuple {
        Tuple::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 6, [1, port])
    }

    /// One master, one port, until then.
    type Model = Vec<(u32, u16, u64)>;

    fn add(model: &mut Model, (master, port): (u32, u16), now: u64) -> Added {
        model.retain(|(.., deadline)| *deadline > now);
        if model.iter().any(|(other, known, _)| *known == port && *other != master) {
            return Added::Clash;
        }
        if model.len() >= MAX && !model.iter().any(|(other, ..)| *other == master) {
            return Added::Full;
        }
        model.retain(|(other, ..)| *other != master);
        model.push((master, port, now + LIFETIME));
        Added::Yes
    }

    proptest! {
        /// Few masters and ports, so that they clash, renew, fill the table and die.
        #[test]
        fn equals_a_list(
            steps in prop::collection::vec((0u8..4, 0u32..9, 0u16..9, 0u64..3), 0..400)) {
            let (mut expectations, mut model) = (Expectations::new(MAX), Model::new());
            let mut now = 0;
            for (what, master, port, wait) in steps {
                now += wait * LIFETIME / 7;
                match what {
                    0 | 1 => {
                        let added = expectations.add(expectation(master, port), now);
                        prop_assert_eq!(added, add(&mut model, (master, port), now));
                    }
                    2 => {
                        expectations.forget(expectation(master, port).master);
                        model.retain(|(other, ..)| *other != master);
                    }
                    _ => {
                        let taken = expectations.take(&tuple(port), 0, now);
                        let known = model.iter().position(|(_, known, deadline)| {
                            *known == port && *deadline > now
                        });
                        let known = known.map(|at| model.remove(at).0);
                        prop_assert_eq!(taken.map(|found| found.master.slot), known);
                    }
                }
                prop_assert!(expectations.len() <= MAX);
            }
        }
    }

    /// A table that stays full, and masters that renew: nothing grows, and nothing is looked through for each.
    #[test]
    fn what_waits_is_bounded_however_many_are_added() {
        let mut expectations = Expectations::new(4096);
        for round in 0..100_000_u32 {
            expectations.add(expectation(round % 5000, (round % 5000) as u16), u64::from(round));
            assert!(expectations.queue.len() <= 2 * expectations.len() + STALE + 1);
        }
        assert_eq!((expectations.len(), expectations.waiting.len()), (4096, 4096));
        expectations.add(expectation(9999, 9999), 2 * LIFETIME);
        assert_eq!((expectations.len(), expectations.queue.len()), (1, 1));
    }
}
