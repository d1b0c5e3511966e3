//! What matches remember, when other rules take the place of theirs.
//!
//! A rule is the one it was before if it reads the same and stands in a chain of the same name; of several that are
//! alike the first stays the first. Lists that rules share stay by their name as long as a rule names them, whatever
//! else it says: so the kernel keeps them.

use std::collections::{HashMap, VecDeque};

use crate::eval::{Memories, Remembered};
use crate::ext::ListUse;
use crate::model::{Chain, Rule, Ruleset, Table};
use crate::revision::{Declared, Revision};
use crate::save::print_rule;

/// A rule by what it reads and where it stands.
type Identity = (&'static str, Box<str>, String);

impl Memories {
    /// Goes on under a revision, the first one or a later one of the same rules: a state is its rule's for as long as
    /// that is there, and a list that of the rules that name it. What it takes depends on lists that come and go, and
    /// on no rules: states come to be with the first packet, and those of rules that are gone make way for others.
    pub fn follow(&mut self, revision: &Revision) {
        let list = |(name, list): (_, Declared)| (ListUse { name, sort: list.sort }, list.by);
        self.go_on(revision.ids(), revision.lists_changed(), revision.lists().map(list));
    }

    /// The states for `new` rules: those of `old` ones that stay, and fresh ones for the others.
    #[must_use]
    pub fn carried(mut self, old: &Ruleset, new: &Ruleset) -> Self {
        let mut kept: HashMap<Identity, VecDeque<Vec<Remembered>>> = HashMap::new();
        for (identity, rule) in remembering(old) {
            let states = rule.matches.iter().filter_map(|used| self.take(used.memory?));
            kept.entry(identity).or_default().push_back(states.collect());
        }
        let mut carried = self.anew();
        for (identity, rule) in remembering(new) {
            let states = kept.get_mut(&identity).and_then(VecDeque::pop_front);
            let mut states = states.unwrap_or_default().into_iter();
            for used in &rule.matches {
                let Some(at) = used.memory else { continue };
                let Some(state) = states.next().or_else(|| Remembered::fresh(used, rule.id)) else {
                    continue;
                };
                carried.put(at, state.inherited(rule.id));
            }
        }
        carried.succeed(self);
        carried
    }
}

/// Rules with matches that remember packets, in the order of the ruleset.
fn remembering(ruleset: &Ruleset) -> impl Iterator<Item = (Identity, &Rule)> {
    let chains = ruleset
        .tables
        .iter()
        .flat_map(|table| table.chains.iter().map(move |chain| (table, chain)));
    let rules = chains
        .flat_map(|(table, chain)| chain.rules.iter().map(move |rule| (table, chain, &**rule)));
    let remembers = |(_, _, rule): &(&Table, &Chain, &Rule)| {
        rule.matches.iter().any(|used| used.memory.is_some())
    };
    rules.filter(remembers).map(|(table, chain, rule)| {
        let text = print_rule(ruleset.family, table, chain, rule);
        ((table.name, chain.name.clone(), text), rule)
    })
}
