//! Counters of rules and policies, as the kernel counts: every packet that a rule's matches accept,
//! whatever its target; bytes from the network header on. Possible hits are counted beside.
//!
//! Contract: plain numbers, one set per worker, added up by whoever reads.

use rules::eval::RuleRef;
use rules::model::Ruleset;

/// What one rule or policy counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Packets that certainly hit.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that may have hit.
    pub maybe: u64,
    /// Time of the first certain hit, in nanoseconds since the Unix epoch.
    pub first: Option<u64>,
    /// Time of the last certain hit.
    pub last: Option<u64>,
}

impl Tally {
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
}

/// Tallies of a whole ruleset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    rules: Vec<Tally>,
    policies: Vec<Tally>,
    /// For each table and chain: the index of its policy, and of its first rule.
    starts: Vec<Vec<(usize, usize)>>,
}

impl Counters {
    /// All zero.
    #[must_use]
    pub fn of(ruleset: &Ruleset) -> Self {
        let (mut policy, mut rule) = (0, 0);
        let mut starts = Vec::with_capacity(ruleset.tables.len());
        for table in &ruleset.tables {
            let mut chains = Vec::with_capacity(table.chains.len());
            for chain in &table.chains {
                chains.push((policy, rule));
                policy += 1;
                rule += chain.rules.len();
            }
            starts.push(chains);
        }
        Self {
            rules: vec![Tally::default(); rule],
            policies: vec![Tally::default(); policy],
            starts,
        }
    }

    /// The tally of a rule.
    #[must_use]
    pub fn rule(&self, at: RuleRef) -> Tally {
        self.rule_index(at).map_or_else(Tally::default, |index| self.rules[index])
    }

    /// The tally of a built-in chain's policy.
    #[must_use]
    pub fn policy(&self, table: u32, chain: u32) -> Tally {
        self.start(table, chain).map_or_else(Tally::default, |(index, _)| self.policies[index])
    }

    /// Counts a packet for a rule.
    #[inline]
    pub fn hit_rule(&mut self, at: RuleRef, certain: bool, bytes: u64, time: Option<u64>) {
        if let Some(index) = self.rule_index(at) {
            self.rules[index].count(certain, bytes, time);
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
        if let Some((index, _)) = self.start(table, chain) {
            self.policies[index].count(certain, bytes, time);
        }
    }

    #[inline]
    fn start(&self, table: u32, chain: u32) -> Option<(usize, usize)> {
        self.starts.get(table as usize)?.get(chain as usize).copied()
    }

    #[inline]
    fn rule_index(&self, at: RuleRef) -> Option<usize> {
        let index = self.start(at.table, at.chain)?.1 + at.rule as usize;
        (index < self.rules.len()).then_some(index)
    }
}
