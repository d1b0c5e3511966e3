//! [`Calls`]: by which jumps the current packet came to the rule that decided about it.
//!
//! Contract: it sees every rule that the packet hit, in order. No chain is walked inside itself, so the packet is in a
//! chain by the last jump to it; where a jump to it may have been taken and may not, the way is not known, and said to be.

use std::sync::Arc;

use rules::eval::{By, RuleRef};
use rules::model::Ruleset;

use crate::groups::CallPath;

/// The hits of the current packet.
#[derive(Debug)]
pub(super) struct Calls {
    /// Rules of each rules file, and the place of each rule by its slot.
    files: Vec<(Arc<Ruleset>, Vec<Option<RuleRef>>)>,
    hits: Vec<Hit>,
}

#[derive(Debug, Clone, Copy)]
struct Hit {
    file: usize,
    slot: u32,
    certain: bool,
}

impl Calls {
    pub(super) fn of(rulesets: impl Iterator<Item = Arc<Ruleset>>) -> Self {
        let files = rulesets.map(|ruleset| {
            let slots = by_slot(&ruleset);
            (ruleset, slots)
        });
        Self { files: files.collect(), hits: Vec::new() }
    }

    /// The next packet has hit nothing yet.
    pub(super) fn clear(&mut self) {
        self.hits.clear();
    }

    /// The packet hit the rule of a slot, or may have.
    pub(super) fn hit(&mut self, file: usize, slot: u32, certain: bool) {
        self.hits.push(Hit { file, slot, certain });
    }

    /// The jumps by which it came to what decided under the rules of a file.
    pub(super) fn path(&self, file: usize, by: By) -> CallPath {
        let (table, mut chain) = match by {
            By::Rule(at) | By::HotDrop(at) => (at.table, at.chain),
            By::Policy { table, chain } => (table, chain),
        };
        let mut path = CallPath { jumps: Vec::new(), sure: true };
        let mut before = self.hits.len();
        while let Some(found) = self.jump_to(file, table, chain, before) {
            path.sure &= found.sure;
            path.jumps.push(found.at);
            (chain, before) = (found.at.chain, found.place);
        }
        path.jumps.reverse();
        if !path.sure {
            // Half a path that may be another one tells nothing.
            path.jumps.clear();
        }
        path
    }

    /// The last jump to a chain among the first hits.
    fn jump_to(&self, file: usize, table: u32, chain: u32, before: usize) -> Option<Jump> {
        let (ruleset, slots) = self.files.get(file)?;
        let chains = &ruleset.tables.get(table as usize)?.chains;
        if chains.get(chain as usize)?.base.is_some() {
            return None;
        }
        let jumps = self.hits[..before].iter().enumerate().rev().filter_map(|(place, hit)| {
            let at = (*slots.get(hit.slot as usize)?).filter(|at| at.table == table)?;
            let rule = chains.get(at.chain as usize)?.rules.get(at.rule as usize)?;
            let goes = rule.leads_to().any(|to| to == chain);
            (hit.file == file && goes).then_some((place, at, hit.certain))
        });
        let mut jumps = jumps.peekable();
        let (place, at, _) = *jumps.peek()?;
        Some(Jump { place, at, sure: jumps.all(|(.., certain)| certain) })
    }
}

/// A jump among the hits.
struct Jump {
    place: usize,
    at: RuleRef,
    /// Every jump to its chain was taken.
    sure: bool,
}

/// The rules of a ruleset by their slots.
fn by_slot(ruleset: &Ruleset) -> Vec<Option<RuleRef>> {
    let mut places = Vec::new();
    for (t, table) in ruleset.tables.iter().enumerate() {
        for (c, chain) in table.chains.iter().enumerate() {
            for (r, rule) in chain.rules.iter().enumerate() {
                let slot = rule.slot as usize;
                if places.len() <= slot {
                    places.resize(slot + 1, None);
                }
                let at = RuleRef { table: t as u32, chain: c as u32, rule: r as u32 };
                places[slot] = Some(at);
            }
        }
    }
    places
}
