//! [`ask`]: what the kernel alone makes of a kept conversation.

use std::io;
use std::thread;

use super::side::Side;
use crate::case::Count;
use crate::oracle::netns::in_fresh;
use crate::state::case::StateCase;

/// The case with the kernel's answers in place of those that it had.
pub fn ask(case: &StateCase) -> io::Result<StateCase> {
    let ruleset = case.ruleset().map_err(io::Error::other)?;
    in_fresh(|| {
        let side = Side::new(&case.stage, &case.rules)?;
        let mut side = side.map_err(io::Error::other)?;
        let mut fresh = StateCase { turns: Vec::new(), counts: Vec::new(), ..case.clone() };
        for (sent, _) in &case.turns {
            thread::sleep(sent.pause);
            let came = side.pass(sent)?.map(|came| came.bytes);
            fresh.turns.push((sent.clone(), came));
        }
        for (index, chain) in side.all_counters(&ruleset)? {
            let table = &ruleset.tables[index];
            let Some(known) = table.chains.iter().find(|known| *known.name == *chain.chain) else {
                continue;
            };
            let compared = known.rules.len() + usize::from(known.base.is_some());
            if chain.chain == "OUTPUT" {
                continue;
            }
            for (rule, counters) in chain.entries.iter().take(compared).enumerate() {
                let (table, chain) = (table.name.to_string(), chain.chain.clone());
                fresh.counts.push(Count { table, chain, number: rule + 1, counters: *counters });
            }
        }
        Ok(fresh)
    })
}
