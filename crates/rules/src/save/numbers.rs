//! Numbers rules, and what walks keep apart from them: the counters of each rule, and the state of each match that
//! remembers packets.

use std::sync::Arc;

use crate::model::{Rule, Ruleset};

/// Numbers all of them from 0, in the order of the file. To be called by whoever loads, while nobody shares the
/// rules.
pub(super) fn give(ruleset: &mut Ruleset) {
    let (mut slot, mut memory) = (0, 0);
    let chains = ruleset.tables.iter_mut().flat_map(|table| &mut table.chains);
    for rule in chains.flat_map(|chain| &mut chain.rules).filter_map(Arc::get_mut) {
        (rule.slot, rule.id) = (slot, slot.into());
        slot += 1;
        number_memories(rule, || {
            memory += 1;
            memory - 1
        });
    }
}

/// Numbers the memories of one rule.
pub(crate) fn number_memories(rule: &mut Rule, mut next: impl FnMut() -> u32) {
    for used in &mut rule.matches {
        used.memory = used.body.memory().map(|_| next());
    }
}
