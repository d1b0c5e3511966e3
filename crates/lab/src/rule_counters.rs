//! What a ruleset's rules and policies counted, and the names of both.
//!
//! Contract: counters are kept by table, chain and rule in the ruleset's order; a chain's policy comes after
//! its rules. They belong to the ruleset that they were made of.

use rules::Transit;
use rules::eval::RuleRef;
use rules::model::{Counters, Ruleset, TableName};

/// One chain's counters, named: rules in order, then the policy (0 for a user chain).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainCounters {
    /// Table and chain.
    pub name: (TableName, String),
    /// Counters.
    pub entries: Vec<Counters>,
    /// Whether the last entry is a policy, and not a user chain's end, of which tamis keeps no count.
    pub built_in: bool,
}

/// Counters of every rule and policy.
#[derive(Debug)]
pub(crate) struct RuleCounters(Vec<Vec<Vec<Counters>>>);

impl RuleCounters {
    /// All 0.
    pub(crate) fn of(ruleset: &Ruleset) -> Self {
        let tables = ruleset.tables.iter().map(|table| {
            let chains = table.chains.iter();
            chains.map(|chain| vec![Counters::default(); chain.rules.len() + 1]).collect()
        });
        Self(tables.collect())
    }

    /// Counts a packet at a rule or at what [`RuleCounters::policy`] names.
    pub(crate) fn count(&mut self, at: RuleRef, transit: &Transit<'_, '_>) {
        let counters = &mut self.0[at.table as usize][at.chain as usize][at.rule as usize];
        counters.packets += 1;
        counters.bytes += transit.packet.len() as u64;
    }

    /// Where a chain's policy is counted.
    pub(crate) fn policy(&self, table: u32, chain: u32) -> RuleRef {
        let last = self.0[table as usize][chain as usize].len() - 1;
        RuleRef { table, chain, rule: last as u32 }
    }

    /// What was counted at a rule.
    pub(crate) fn at(&self, table: usize, chain: usize, rule: usize) -> Counters {
        self.0[table][chain][rule]
    }

    /// Counters of every chain.
    pub(crate) fn chains(&self, ruleset: &Ruleset) -> Vec<ChainCounters> {
        let mut all = Vec::new();
        for (table, counters) in ruleset.tables.iter().zip(&self.0) {
            for (chain, entries) in table.chains.iter().zip(counters) {
                all.push(ChainCounters {
                    name: (table.name.clone(), chain.name.to_string()),
                    entries: entries.clone(),
                    built_in: chain.base.is_some(),
                });
            }
        }
        all
    }
}

/// The name of a rule (number from 1) or policy that a packet hit.
pub(crate) fn step(ruleset: &Ruleset, at: RuleRef, policy: bool) -> String {
    let table = &ruleset.tables[at.table as usize];
    let chain = &table.chains[at.chain as usize].name;
    let what = if policy { "policy" } else { "rule" };
    format!("{}:{chain}:{what}:{}", table.name, at.rule + 1)
}
