//! A transaction: any number of changes that become one revision, or none of them.
//!
//! Chains that it touches are thawed once, changed in place, and frozen when it commits.

use std::sync::Arc;

use super::choice::{Refused, Which, place};
use super::draft::TableDraft;
use super::{Dropped, Head, Lineage, Needs, Numbers, Revision, TableRevision};
use crate::family::{Family, Hook};
use crate::model::{Base, FallThrough, Policy, Rule};

/// See the module. What is refused leaves the transaction as it was.
#[derive(Debug)]
pub struct Transaction<'n> {
    number: u64,
    pub(super) family: Family,
    backend: crate::backend::Backend,
    pub(super) tables: Vec<TableDraft>,
    numbers: &'n mut Numbers,
    needs: Needs,
    lineage: Lineage,
    /// Rules that no chain has any more.
    dropped: Vec<Arc<Rule>>,
    /// Rules that this transaction numbered.
    made: Vec<Arc<Rule>>,
    /// Bytes of removed tables.
    pub(super) replaced: usize,
}

impl<'n> Transaction<'n> {
    /// A transaction that starts at a revision.
    pub fn new(at: &Revision, numbers: &'n mut Numbers) -> Self {
        let tables = at.tables.iter().cloned().map(TableDraft::of).collect();
        let Revision { number, family, backend, .. } = *at;
        let (needs, lineage) = (at.needs.clone(), at.lineage.clone());
        let (dropped, made) = (Vec::new(), Vec::new());
        let replaced = 0;
        Self { number, family, backend, tables, numbers, needs, lineage, dropped, made, replaced }
    }

    /// Puts rules into a chain before number `at`, counted from 1, or at its end.
    ///
    /// # Errors
    /// No such place, or a jump that would close a loop.
    pub fn insert(
        &mut self,
        table: &str,
        chain: &str,
        at: Option<usize>,
        rules: Vec<Rule>,
    ) -> Result<(), Refused> {
        let (draft, chain) = find(&mut self.tables, table, chain)?;
        let len = draft.chain(chain).len();
        let at = at.map_or(Ok(len), |at| place(at, len + 1))?;
        draft.check_jumps(chain, &rules)?;
        draft.call(&rules, 1);
        let rules = self.numbered(rules);
        draft_of(&mut self.tables, table)?.chain(chain).splice(at, 0, &rules);
        Ok(())
    }

    /// Takes a rule out of a chain.
    ///
    /// # Errors
    /// There is no such rule.
    pub fn delete(&mut self, table: &str, chain: &str, which: &Which) -> Result<(), Refused> {
        let family = self.family;
        let (draft, chain) = find(&mut self.tables, table, chain)?;
        let at = draft.find(chain, which, family)?;
        self.dropped.extend(draft.take(chain, at, 1));
        Ok(())
    }

    /// Puts rules in place of the one of this number, counted from 1. Their counters start at what they say.
    ///
    /// # Errors
    /// There is no such rule, or a jump would close a loop.
    pub fn replace(
        &mut self,
        table: &str,
        chain: &str,
        number: usize,
        rules: Vec<Rule>,
    ) -> Result<(), Refused> {
        let (draft, index) = find(&mut self.tables, table, chain)?;
        let at = place(number, draft.chain(index).len())?;
        draft.check_jumps(index, &rules)?;
        self.dropped.extend(draft.take(index, at, 1));
        draft.call(&rules, 1);
        let rules = self.numbered(rules);
        draft_of(&mut self.tables, table)?.chain(index).splice(at, 0, &rules);
        Ok(())
    }

    /// Empties a chain, or every chain of a table.
    ///
    /// # Errors
    /// There is no such table or chain.
    pub fn flush(&mut self, table: &str, chain: Option<&str>) -> Result<(), Refused> {
        let draft = draft_of(&mut self.tables, table)?;
        let chains = match chain {
            Some(chain) => vec![draft.index(chain)?],
            None => (0..draft.table.heads.len() as u32).collect(),
        };
        for chain in chains {
            self.dropped.extend(draft.take(chain, 0, usize::MAX));
        }
        Ok(())
    }

    /// Sets what a chain does with packets that fall off it; user chains of a bridge have policies, too.
    ///
    /// # Errors
    /// There is no such chain with a policy.
    pub fn set_policy(&mut self, table: &str, chain: &str, policy: Policy) -> Result<(), Refused> {
        let family = self.family;
        let (draft, index) = find(&mut self.tables, table, chain)?;
        let head = draft.head(index);
        let Some(base) = head.base else {
            if family.dialect().user_policies {
                return self.set_fall_through(table, chain, FallThrough::Policy(policy));
            }
            return Err(Refused::NotBuiltIn(head.name.to_string()));
        };
        let base = Base { policy, ..base };
        draft.table.register(index, base);
        draft.table.heads.set(index as usize, Head { base: Some(base), ..head });
        Ok(())
    }

    /// Sets what the end of a user chain does.
    ///
    /// # Errors
    /// There is no such user chain, or the family's have no policies.
    pub fn set_fall_through(
        &mut self,
        table: &str,
        chain: &str,
        fall_through: FallThrough,
    ) -> Result<(), Refused> {
        let has_policies = self.family.dialect().user_policies;
        let (draft, index) = find(&mut self.tables, table, chain)?;
        let head = draft.head(index);
        if head.base.is_some() || fall_through != FallThrough::Return && !has_policies {
            return Err(Refused::NoUserPolicy(chain.to_owned()));
        }
        draft.table.chains.policies.set_fall_through(index, fall_through);
        draft.table.heads.set(index as usize, Head { fall_through, ..head });
        Ok(())
    }

    /// Adds an empty chain; a built-in one if its name is that of a hook of the table.
    ///
    /// # Errors
    /// There is one already, or the family has no such table.
    pub fn new_chain(&mut self, table: &str, name: &str) -> Result<(), Refused> {
        let family = self.family;
        let draft = self.table_or_new(table)?;
        if draft.table.names.contains_key(name) {
            return Err(Refused::ChainExists(name.to_owned()));
        }
        draft.add_chain(name, family);
        Ok(())
    }

    /// Deletes a chain that has no rules and that nothing jumps to.
    ///
    /// # Errors
    /// The chain is built in or not empty, or something jumps to it.
    pub fn delete_chain(&mut self, table: &str, name: &str) -> Result<(), Refused> {
        let (draft, chain) = find(&mut self.tables, table, name)?;
        let rules = draft.chain(chain).len();
        let callers = draft.callers_of(chain);
        let head = draft.head(chain);
        if head.base.is_some() || rules > 0 || callers > 0 {
            return Err(Refused::ChainInUse { chain: name.to_owned(), rules, callers });
        }
        draft.table.names.remove_mut(name);
        draft.callers.remove(&chain);
        draft.table.chains.policies.set_fall_through(chain, FallThrough::Return);
        draft.table.heads.set(chain as usize, Head::default());
        draft.table.unused.push(chain);
        Ok(())
    }

    /// Gives a chain another name; jumps follow it.
    ///
    /// # Errors
    /// There is no such chain, it is built in, or the new name is taken.
    pub fn rename_chain(&mut self, table: &str, old: &str, new: &str) -> Result<(), Refused> {
        let (draft, chain) = find(&mut self.tables, table, old)?;
        let head = draft.head(chain);
        if head.base.is_some() || draft.table.names.contains_key(new) {
            return Err(Refused::CannotRename { old: old.to_owned(), new: new.to_owned() });
        }
        let name: Arc<str> = Arc::from(new);
        draft.table.names.remove_mut(old);
        draft.table.names.insert_mut(Arc::clone(&name), chain);
        draft.table.heads.set(chain as usize, Head { name, ..head });
        Ok(())
    }

    /// Index of a chain, for rules that jump to it.
    #[must_use]
    pub fn chain(&self, table: &str, name: &str) -> Option<u32> {
        let draft = self.tables.iter().find(|draft| draft.table.name == *table)?;
        draft.table.names.get(name).copied()
    }

    /// The revision that the changes make.
    #[must_use]
    pub fn commit(self) -> Revision {
        let Self { number, family, backend, tables, mut needs, lineage, dropped, made, .. } = self;
        let replaced = self.replaced
            + tables.iter().map(TableDraft::replaced).sum::<usize>()
            + dropped.len() * size_of::<Rule>();
        needs.change(made.iter().map(AsRef::as_ref), dropped.iter().map(AsRef::as_ref));
        Revision {
            number: number + 1,
            family,
            backend,
            tables: tables.into_iter().map(TableDraft::freeze).collect(),
            needs,
            ids: self.numbers.ids(),
            lineage,
            dropped: Dropped::of(&dropped),
            made,
            replaced,
        }
    }

    /// Gives back the numbers of the rules that it made; it has no other effect.
    pub fn abort(self) {
        self.numbers.free(&Dropped::of(&self.made));
    }

    pub(super) fn table_or_new(&mut self, name: &str) -> Result<&mut TableDraft, Refused> {
        let index = match self.tables.iter().position(|draft| draft.table.name == *name) {
            Some(index) => index,
            None => {
                let kind = self.family.table(name);
                let kind = kind.ok_or_else(|| Refused::UnknownTable(name.to_owned()))?;
                let mut draft = TableDraft::of(TableRevision::empty(
                    kind.name.into(),
                    self.backend,
                    self.family,
                ));
                for hook in kind.hooks() {
                    draft.add_chain(hook.chain_name(), self.family);
                }
                self.tables.push(draft);
                self.tables.len() - 1
            }
        };
        Ok(&mut self.tables[index])
    }

    /// The hook of a chain, if it is built in.
    pub(super) fn hook(&self, table: &str, chain: u32) -> Option<Hook> {
        let draft = self.tables.iter().find(|draft| draft.table.name == *table)?;
        draft.head(chain).base.map(|base| base.hook)
    }

    /// Puts rules at the end of a chain: old rules of the chain, and new ones.
    pub(super) fn fill(
        &mut self,
        table: &str,
        chain: &str,
        rules: Vec<Result<Arc<Rule>, Arc<Rule>>>,
    ) -> Result<(), Refused> {
        let (draft, chain) = find(&mut self.tables, table, chain)?;
        let each = || rules.iter().map(|rule| &**rule.as_ref().unwrap_or_else(|new| new));
        draft.check_jumps(chain, each())?;
        draft.call(each(), 1);
        let number =
            |rule: Result<_, _>| rule.unwrap_or_else(|new| self.own(Arc::unwrap_or_clone(new)));
        let rules: Vec<Arc<Rule>> = rules.into_iter().map(number).collect();
        let draft = draft_of(&mut self.tables, table)?.chain(chain);
        draft.splice(draft.len(), 0, &rules);
        Ok(())
    }

    /// Rules that are in no chain any more.
    pub(super) fn drop_rules(&mut self, rules: impl Iterator<Item = Arc<Rule>>) {
        self.dropped.extend(rules);
    }

    fn numbered(&mut self, rules: Vec<Rule>) -> Vec<Arc<Rule>> {
        rules.into_iter().map(|rule| self.own(rule)).collect()
    }

    fn own(&mut self, mut rule: Rule) -> Arc<Rule> {
        self.numbers.number(&mut rule);
        let rule = Arc::new(rule);
        self.made.push(Arc::clone(&rule));
        rule
    }
}

fn draft_of<'t>(tables: &'t mut [TableDraft], name: &str) -> Result<&'t mut TableDraft, Refused> {
    let found = tables.iter_mut().find(|draft| draft.table.name == *name);
    found.ok_or_else(|| Refused::TableNotLoaded(name.to_owned()))
}

fn find<'t>(
    tables: &'t mut [TableDraft],
    table: &str,
    chain: &str,
) -> Result<(&'t mut TableDraft, u32), Refused> {
    let draft = draft_of(tables, table)?;
    let chain = draft.index(chain)?;
    Ok((draft, chain))
}
