//! Counters of rules and policies: as save text, and one by one.

use dataplane::publish::Snapshot;
use rules::model::{Counters, Family};
use rules::save::{print_rule, print_ruleset};

use crate::answers::{PolicyCounters, RuleCounters};

/// The rules with their counters as each family's save tool prints them, one after the other.
pub(crate) fn saved(snapshot: &Snapshot) -> String {
    saved_by_family(snapshot).map(|(_, text)| text).collect()
}

/// The rules of each family with their counters, as its save tool prints them.
pub(crate) fn saved_by_family(snapshot: &Snapshot) -> impl Iterator<Item = (Family, String)> {
    snapshot.program.revisions().map(|revision| {
        let ruleset = revision.ruleset();
        let family = ruleset.family;
        let text = print_ruleset(&ruleset, true, |table, chain, rule| {
            let table = &ruleset.tables[table];
            let chain = &table.chains[chain];
            match (rule, chain.base) {
                (Some(rule), _) => snapshot.rule(&chain.rules[rule]),
                (None, Some(base)) => snapshot.policy(family, &table.name, base.hook),
                (None, None) => Counters::default(),
            }
        });
        (family, text)
    })
}

/// Lists the rules that some packet matched.
pub(crate) fn hit(snapshot: &Snapshot) -> Vec<RuleCounters> {
    let mut hits = Vec::new();
    for revision in snapshot.program.revisions() {
        let ruleset = revision.ruleset();
        for table in &ruleset.tables {
            for chain in &table.chains {
                for (at, rule) in chain.rules.iter().enumerate() {
                    let Counters { packets, bytes } = snapshot.rule(rule);
                    if packets == 0 {
                        continue;
                    }
                    hits.push(RuleCounters {
                        family: ruleset.family.name().to_owned(),
                        table: table.name.to_string(),
                        chain: chain.name.to_string(),
                        number: at + 1,
                        line: rule.line,
                        text: print_rule(ruleset.family, table, chain, rule),
                        packets,
                        bytes,
                    });
                }
            }
        }
    }
    hits
}

/// Lists the policies that decided on some packet.
pub(crate) fn decided(snapshot: &Snapshot) -> Vec<PolicyCounters> {
    let mut decided = Vec::new();
    for revision in snapshot.program.revisions() {
        let ruleset = revision.ruleset();
        for table in &ruleset.tables {
            let bases = table.chains.iter().filter_map(|chain| Some((chain, chain.base?)));
            for (chain, base) in bases {
                let counted = snapshot.policy(ruleset.family, &table.name, base.hook);
                let Counters { packets, bytes } = counted;
                if packets == 0 {
                    continue;
                }
                decided.push(PolicyCounters {
                    family: ruleset.family.name().to_owned(),
                    table: table.name.to_string(),
                    chain: chain.name.to_string(),
                    policy: base.policy.to_string(),
                    packets,
                    bytes,
                });
            }
        }
    }
    decided
}
