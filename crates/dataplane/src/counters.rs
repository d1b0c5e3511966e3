//! Counters of rules and policies, as the kernel counts: every packet that a rule's matches accept, whatever its
//! target; bytes from the network header on. Possible hits have counters of their own.
//!
//! Contract: plain numbers, one set per worker; the reader adds them up.

use rules::eval::{By, RuleRef};
use rules::model::Ruleset;

/// The counters of one rule or policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HitCount {
    /// Packets that certainly hit.
    pub packets: u64,
    /// Bytes of the packets that certainly hit.
    pub bytes: u64,
    /// Packets that may have hit.
    pub maybe: u64,
    /// Time of the first certain hit, in nanoseconds since the Unix epoch.
    pub first: Option<u64>,
    /// Time of the last certain hit.
    pub last: Option<u64>,
}

impl HitCount {
    /// Counts a packet.
    #[inline]
    pub fn count(&mut self, certain: bool, bytes: u64, time: Option<u64>) {
        if !certain {
            self.maybe += 1;
            return;
        }
        self.packets += 1;
        self.bytes += bytes;
        self.first = self.first.or(time);
        self.last = time.or(self.last);
    }

    /// Adds what another worker counted of the same packets' stream, whose times never run backwards.
    pub fn add(&mut self, other: &Self) {
        let Self { packets, bytes, maybe, first, last } = other;
        self.packets += packets;
        self.bytes += bytes;
        self.maybe += maybe;
        self.first = [self.first, *first].into_iter().flatten().min();
        self.last = self.last.max(*last);
    }
}

/// A value for every rule and every policy of a ruleset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places<T> {
    /// The rules' values, by [`rules::model::Rule::slot`].
    rules: Vec<T>,
    /// The slots of all rules, in the order of the file.
    slots: Vec<u32>,
    policies: Vec<T>,
    /// For each table and chain: the index of its policy, and of its first rule in `slots`.
    starts: Vec<Vec<(usize, usize)>>,
}

/// Tallies of a whole ruleset.
pub type Counters = Places<HitCount>;

impl<T: Copy + Default> Places<T> {
    /// The default value for each place.
    #[must_use]
    pub fn of(ruleset: &Ruleset) -> Self {
        let (mut policy, mut slots) = (0, Vec::with_capacity(ruleset.rule_count()));
        let mut starts = Vec::with_capacity(ruleset.tables.len());
        for table in &ruleset.tables {
            let mut chains = Vec::with_capacity(table.chains.len());
            for chain in &table.chains {
                chains.push((policy, slots.len()));
                policy += 1;
                slots.extend(chain.rules.iter().map(|rule| rule.slot));
            }
            starts.push(chains);
        }
        let places = slots.iter().max().map_or(0, |last| *last as usize + 1);
        let (rules, policies) = (vec![T::default(); places], vec![T::default(); policy]);
        Self { rules, slots, policies, starts }
    }

    /// The value of a rule.
    #[must_use]
    pub fn rule(&self, at: RuleRef) -> T {
        self.rule_index(at).map_or_else(T::default, |index| self.rules[index])
    }

    /// The value of a built-in chain's policy.
    #[must_use]
    pub fn policy(&self, table: u32, chain: u32) -> T {
        self.start(table, chain).map_or_else(T::default, |(index, _)| self.policies[index])
    }

    /// The value of a rule or policy, to be changed. A hot drop is its rule's.
    #[inline]
    pub fn at_mut(&mut self, by: By) -> Option<&mut T> {
        match by {
            By::Rule(at) | By::HotDrop(at) => {
                self.rule_index(at).and_then(|index| self.rules.get_mut(index))
            }
            By::Policy { table, chain } => {
                self.start(table, chain).and_then(|(index, _)| self.policies.get_mut(index))
            }
        }
    }

    /// Every value with its place: the rules and the policy of each chain.
    pub fn iter(&self) -> impl Iterator<Item = (By, T)> + '_ {
        let chains = self.starts.iter().zip(0..).flat_map(|(chains, table)| {
            chains.iter().zip(0..).map(move |(start, chain)| (table, chain, *start))
        });
        let ends = chains.clone().skip(1).map(|(.., (_, rule))| rule).chain([self.slots.len()]);
        chains.zip(ends).flat_map(move |((table, chain, (policy, first)), end)| {
            let rules = self.slots[first..end].iter().zip(0..);
            let rules = rules.map(move |(slot, rule)| {
                (By::Rule(RuleRef { table, chain, rule }), self.rules[*slot as usize])
            });
            rules.chain([(By::Policy { table, chain }, self.policies[policy])])
        })
    }

    /// Joins the values of another worker in, place by place.
    pub fn merge(&mut self, other: &Self, mut join: impl FnMut(&mut T, &T)) {
        // The places are the same for all counters of a ruleset.
        let Self { rules, policies, slots: _, starts: _ } = other;
        for (ours, theirs) in self.rules.iter_mut().zip(rules) {
            join(ours, theirs);
        }
        for (ours, theirs) in self.policies.iter_mut().zip(policies) {
            join(ours, theirs);
        }
    }

    #[inline]
    fn start(&self, table: u32, chain: u32) -> Option<(usize, usize)> {
        self.starts.get(table as usize)?.get(chain as usize).copied()
    }

    #[inline]
    fn rule_index(&self, at: RuleRef) -> Option<usize> {
        let index = self.start(at.table, at.chain)?.1 + at.rule as usize;
        self.slots.get(index).map(|slot| *slot as usize)
    }
}

impl Counters {
    /// Counts a packet for a rule.
    #[inline]
    pub fn hit_rule(&mut self, at: RuleRef, certain: bool, bytes: u64, time: Option<u64>) {
        if let Some(tally) = self.at_mut(By::Rule(at)) {
            tally.count(certain, bytes, time);
        }
    }

    /// Counts a packet for the rule of this slot.
    #[inline]
    pub fn hit_slot(&mut self, slot: u32, certain: bool, bytes: u64, time: Option<u64>) {
        if let Some(tally) = self.rules.get_mut(slot as usize) {
            tally.count(certain, bytes, time);
        }
    }

    /// Counts a packet for a policy.
    #[inline]
    pub fn hit_policy(
        &mut self,
        table: u32,
        chain: u32,
        certain: bool,
        bytes: u64,
        time: Option<u64>,
    ) {
        if let Some(tally) = self.at_mut(By::Policy { table, chain }) {
            tally.count(certain, bytes, time);
        }
    }
}
