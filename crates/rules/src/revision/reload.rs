//! A whole ruleset in place of another: what is the same stays the same.
//!
//! A rule is the one it was before if its chain has the same name and it reads the same; of several that are
//! alike the first stays the first. It keeps the place of its counters and the state of its matches, unless
//! the new text gives it counters of its own. A chain whose rules are all the same is not touched at all.

use std::collections::{HashMap, VecDeque};
use std::mem::discriminant;
use std::sync::Arc;

use super::draft::TableDraft;
use super::{Head, Numbers, Refused, Revision, Transaction, renumbered};
use crate::model::{Action, Chain, Counters, Rule, Ruleset, Table, TableName};

/// The index of a deleted chain, which [`Revision::ruleset`] has without a name.
const NONE: u32 = u32::MAX;

impl Revision {
    /// The revision that has the rules of another ruleset of the family. Of rules that are new and that somebody else
    /// holds, too, it has copies: their places are its own.
    ///
    /// # Errors
    /// The rules are none that loading accepts: a packet gets to a loop of chains.
    pub fn replaced_by(&self, ruleset: Ruleset, numbers: &mut Numbers) -> Result<Self, Refused> {
        let mut transaction = Transaction::new(self, numbers);
        match transaction.replace_all(ruleset) {
            Ok(()) => Ok(transaction.commit()),
            Err(refused) => {
                transaction.abort();
                Err(refused)
            }
        }
    }
}

impl Transaction<'_> {
    fn replace_all(&mut self, ruleset: Ruleset) -> Result<(), Refused> {
        let names = ruleset.tables.iter().map(|table| table.name.clone());
        let stay: Vec<TableName> = names.collect();
        let gone = self.tables.iter().map(|draft| draft.table.name.clone());
        let gone: Vec<TableName> = gone.filter(|name| !stay.contains(name)).collect();
        for table in &gone {
            self.flush(table, None)?;
        }
        let dropped = self.tables.iter().filter(|draft| gone.contains(&draft.table.name));
        self.replaced += dropped.map(TableDraft::replaced).sum::<usize>();
        self.tables.retain(|draft| stay.contains(&draft.table.name));
        self.tables.sort_by_key(|draft| stay.iter().position(|name| *name == draft.table.name));
        ruleset.tables.into_iter().try_for_each(|table| self.replace_table(table))
    }

    fn replace_table(&mut self, table: Table) -> Result<(), Refused> {
        let Table { name, chains, .. } = table;
        let (name, family) = (&*name, self.family);
        let draft = self.table_or_new(name)?;
        // Chains first: rules may jump to any of them.
        let mut index = |chain: &Chain| match draft.index(&chain.name) {
            Ok(index) => index,
            Err(_) if chain.name.is_empty() => NONE,
            Err(_) => draft.add_chain(&chain.name, family),
        };
        let indices: Vec<u32> = chains.iter().map(&mut index).collect();
        draft.place(indices.iter().copied().filter(|index| *index != NONE));
        let mut changed = Vec::new();
        let named = chains.into_iter().zip(&indices).filter(|(_, index)| **index != NONE);
        for (chain, index) in named {
            let Chain { name: chain_name, base, fall_through, rules, .. } = chain;
            match base {
                Some(base) => self.set_policy(name, &chain_name, base.policy)?,
                None => self.set_fall_through(name, &chain_name, fall_through)?,
            }
            let rules: Vec<Arc<Rule>> =
                rules.into_iter().map(|rule| renumbered(rule, &indices)).collect();
            let draft = self.table_or_new(name)?;
            if !draft.is_same(*index, &rules, family) {
                changed.push((*index, chain_name, rules));
            }
        }
        let gone = self.gone_chains(name, &indices)?;
        self.replace_chains(name, changed)?;
        gone.iter().try_for_each(|chain| self.delete_chain(name, chain))
    }

    /// Empties all chains that change before it fills them, so that no jump of the old rules closes a loop with
    /// one of the new.
    fn replace_chains(
        &mut self,
        table: &str,
        changed: Vec<(u32, Box<str>, Vec<Arc<Rule>>)>,
    ) -> Result<(), Refused> {
        let family = self.family;
        let mut filled = Vec::new();
        for (chain, name, rules) in changed {
            let draft = self.table_or_new(table)?;
            let mut old: HashMap<String, VecDeque<Arc<Rule>>> = HashMap::new();
            for rule in draft.chain(chain).rules().cloned().collect::<Vec<_>>() {
                old.entry(draft.text(&rule, family)).or_default().push_back(rule);
            }
            draft.take(chain, 0, usize::MAX);
            filled.push((name, rules, old));
        }
        for (name, rules, mut old) in filled {
            let draft = self.table_or_new(table)?;
            let mut gone = Vec::new();
            let keep = |rule: Arc<Rule>| {
                let kept = old.get_mut(&draft.text(&rule, family)).and_then(VecDeque::pop_front);
                match kept {
                    Some(kept) if stays(&kept, &rule) => Ok(kept),
                    kept => {
                        gone.extend(kept);
                        Err(rule)
                    }
                }
            };
            let rules = rules.into_iter().map(keep).collect();
            self.fill(table, &name, rules)?;
            self.drop_rules(old.into_values().flatten().chain(gone));
        }
        Ok(())
    }

    /// Empties the chains that the new rules do not have, so that they lead nowhere; returns the names of the user chains
    /// among them.
    fn gone_chains(&mut self, table: &str, stay: &[u32]) -> Result<Vec<Arc<str>>, Refused> {
        let draft = self.table_or_new(table)?;
        let mut stays = vec![false; draft.table.heads.len()];
        stay.iter().filter(|chain| **chain != NONE).for_each(|chain| stays[*chain as usize] = true);
        let gone = (0..stays.len()).filter(|chain| !stays[*chain]);
        let gone: Vec<(bool, Arc<str>)> = gone
            .map(|chain| draft.head(chain as u32))
            .filter(|head| !head.name.is_empty())
            .map(|head| (head.base.is_some(), head.name))
            .collect();
        for (_, name) in &gone {
            self.flush(table, Some(name))?;
        }
        let own = gone.into_iter().filter(|(built_in, _)| !built_in);
        Ok(own.map(|(_, name)| name).collect())
    }
}

impl TableDraft {
    /// Puts chains in this order, before chains that are deleted next.
    fn place(&mut self, order: impl Iterator<Item = u32> + Clone) {
        let place = |chain: u32| self.table.heads.get(chain as usize).map(|head| head.place);
        if order.clone().is_sorted_by_key(place) {
            return;
        }
        for (chain, place) in order.zip(self.table.next_place..) {
            let head = self.head(chain);
            self.table.heads.set(chain as usize, Head { place, ..head });
            self.table.next_place = place + 1;
        }
    }

    /// Whether a chain has these rules already.
    fn is_same(&mut self, chain: u32, rules: &[Arc<Rule>], family: crate::family::Family) -> bool {
        let table = &self.table;
        let Some(old) = table.chains.chains.get(chain as usize) else { return rules.is_empty() };
        let same = |(old, new): (&Arc<Rule>, &Arc<Rule>)| {
            let reads_same = || self.text(old, family) == self.text(new, family);
            Arc::ptr_eq(old, new)
                || stays(old, new) && same_at_sight(old, new).unwrap_or_else(reads_same)
        };
        old.len() == rules.len() && old.rules().zip(rules).all(same)
    }
}

/// Whether a rule keeps its counters where another that reads the same takes its place: unless that brings some.
fn stays(old: &Arc<Rule>, new: &Arc<Rule>) -> bool {
    new.counters == Counters::default() || Arc::ptr_eq(old, new)
}

/// Whether two rules without extensions are the same; `None` where their text has to say. Printing a rule takes
/// as long as reading it.
fn same_at_sight(one: &Rule, other: &Rule) -> Option<bool> {
    let same_action = match (&one.action, &other.action) {
        (Action::Target(_), _) | (_, Action::Target(_)) => return None,
        (Action::Jump(one), Action::Jump(other)) | (Action::Goto(one), Action::Goto(other)) => {
            one == other
        }
        (one, other) => discriminant(one) == discriminant(other),
    };
    let plain = one.matches.is_empty() && other.matches.is_empty();
    plain.then(|| same_action && one.header == other.header)
}
