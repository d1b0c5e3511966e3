//! Numbers what walks keep apart from the rules: the counters of each rule, and the state of each match that
//! remembers packets.

use std::sync::Arc;

use crate::model::{Rule, Ruleset};

/// Numbers both from 0, in the order of the file. To be called by whoever loads, while nobody shares the rules.
pub(super) fn give(ruleset: &mut Ruleset) {
    let (mut slot, mut memory) = (0, 0);
    let chains = ruleset.tables.iter_mut().flat_map(|table| &mut table.chains);
    for rule in chains.flat_map(|chain| &mut chain.rules).filter_map(Arc::get_mut) {
        rule.slot = slot;
        slot += 1;
        number_memories(rule, &mut memory);
    }
}

/// Numbers the memories of one rule from `next` on.
pub(crate) fn number_memories(rule: &mut Rule, next: &mut u32) {
    for used in &mut rule.matches {
        used.memory = used.body.memory().map(|_| *next);
        *next += u32::from(used.memory.is_some());
    }
}
