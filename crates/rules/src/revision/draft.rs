//! One table of a transaction: its chains thawed where they are touched, and who jumps where.

use super::choice::{Refused, Which, place};
use super::{Head, TableRevision, reach};
use crate::family::{Family, TableKind};
use crate::layout::code;
use crate::layout::segment::{Draft, Segments};
use crate::model::{Action, Base, Rule};
use crate::save::print_named;
use std::collections::HashMap;
use std::sync::Arc;

/// A table being changed.
#[derive(Debug)]
pub(super) struct TableDraft {
    pub(super) table: TableRevision,
    drafts: HashMap<u32, Draft>,
    /// How many more rules jump to a chain than before.
    pub(super) callers: HashMap<u32, i64>,
}

/// The chain that a rule jumps to.
fn jump_of(rule: &Rule) -> Option<u32> {
    match rule.action {
        Action::Jump(to) | Action::Goto(to) => Some(to),
        _ => None,
    }
}

impl TableDraft {
    pub(super) fn of(table: TableRevision) -> Self {
        Self { table, drafts: HashMap::new(), callers: HashMap::new() }
    }

    pub(super) fn index(&self, chain: &str) -> Result<u32, Refused> {
        let found = self.table.names.get(chain).copied();
        let none = || Refused::UnknownChain {
            table: self.table.name.to_string(),
            chain: chain.to_owned(),
        };
        found.ok_or_else(none)
    }

    pub(super) fn head(&self, chain: u32) -> Head {
        self.table.heads.get(chain as usize).cloned().unwrap_or_default()
    }

    pub(super) fn add_chain(&mut self, name: &str, family: Family) -> u32 {
        let name: Arc<str> = Arc::from(name);
        let kind = family.table(&self.table.name);
        let hook = |kind: &TableKind| kind.hooks().find(|hook| hook.chain_name() == &*name);
        let base = kind.and_then(|kind| Base::built_in(kind, hook(kind)?));
        let place = self.table.next_place;
        self.table.next_place += 1;
        let head = Head { name: Arc::clone(&name), base, place, ..Head::default() };
        let chain = match self.table.unused.pop() {
            Some(chain) => {
                self.table.heads.set(chain as usize, head);
                chain
            }
            None => {
                self.table.heads.push(head);
                self.table.chains.add_chain()
            }
        };
        if let Some(base) = base {
            self.table.register(chain, base);
        }
        self.table.names.insert_mut(name, chain);
        chain
    }

    /// A chain, thawed.
    pub(super) fn chain(&mut self, chain: u32) -> &mut Draft {
        let chains = &self.table.chains;
        self.drafts.entry(chain).or_insert_with(|| {
            let segments = chains.chains.get(chain as usize).cloned().unwrap_or_default();
            Segments::thaw(&segments, chains.is_v6)
        })
    }

    /// Takes rules out.
    pub(super) fn take(&mut self, chain: u32, at: usize, count: usize) -> Vec<Arc<Rule>> {
        let draft = self.chain(chain);
        let gone: Vec<Arc<Rule>> = draft.rules_from(at).take(count).cloned().collect();
        draft.splice(at, gone.len(), &[]);
        self.call(gone.iter().map(AsRef::as_ref), -1);
        gone
    }

    /// Takes note of rules that jump, or no longer do.
    pub(super) fn call<'r>(&mut self, rules: impl IntoIterator<Item = &'r Rule>, by: i64) {
        for to in rules.into_iter().filter_map(jump_of) {
            *self.callers.entry(to).or_default() += by;
        }
    }

    pub(super) fn callers_of(&self, chain: u32) -> i64 {
        let more = self.callers.get(&chain).copied().unwrap_or(0);
        i64::from(self.head(chain).callers) + more
    }

    /// Looks at what new rules of a chain jump to: no packet may get to a loop from there.
    pub(super) fn check_jumps<'r>(
        &mut self,
        chain: u32,
        rules: impl IntoIterator<Item = &'r Rule>,
    ) -> Result<(), Refused> {
        for to in rules.into_iter().filter_map(jump_of) {
            let head = self.head(to);
            if head.name.is_empty() || head.base.is_some() {
                return Err(Refused::NotUserChain);
            }
            if !self.leads_to_loop(chain, to) {
                continue;
            }
            let built_in = self.table.bases.iter().map(|(chain, _)| *chain).collect();
            if reach::reaches(built_in, chain, |chain| self.jumps(chain)) {
                return Err(Refused::looped(self.table.name_of(chain), self.table.name_of(to)));
            }
            self.table.may_loop = true;
        }
        Ok(())
    }

    /// Whether a jump of a chain closes a loop, or leads to one. A chain that nothing jumps to is on none.
    fn leads_to_loop(&self, chain: u32, to: u32) -> bool {
        let jumps = |chain| self.jumps(chain);
        to == chain
            || self.callers_of(chain) > 0 && reach::reaches(vec![to], chain, jumps)
            || self.table.may_loop && reach::loops([to], jumps)
    }

    fn jumps(&self, chain: u32) -> Vec<u32> {
        match self.drafts.get(&chain) {
            Some(draft) => draft.jumps(),
            None => self.table.jumps(chain),
        }
    }

    pub(super) fn find(
        &mut self,
        chain: u32,
        which: &Which,
        family: Family,
    ) -> Result<usize, Refused> {
        let rule = match which {
            Which::Number(number) => return place(*number, self.chain(chain).len()),
            Which::Same(rule) => rule,
        };
        self.chain(chain);
        let mut words = Vec::new();
        code::encode(rule, self.table.chains.is_v6, |chain| chain, &mut words);
        let same = |other: &[u64], at: &Arc<Rule>| {
            code::same_words(&words, other)
                && (code::says_all(&words) || self.text(at, family) == self.text(rule, family))
        };
        let found = self.drafts[&chain].position(code::hash_of(&words), same);
        found.ok_or_else(|| Refused::NoSuchRule { chain: self.table.name_of(chain).to_owned() })
    }

    /// A rule's canonical text without its chain.
    pub(super) fn text(&self, rule: &Rule, family: Family) -> String {
        print_named(family, "", rule, |chain| self.table.name_of(chain))
    }

    /// About how many bytes of the table as it was the one being made does not share: segments, and a page of the
    /// array of chains for each chain.
    pub(super) fn replaced(&self) -> usize {
        let page = self.table.chains.chains.page_bytes();
        self.drafts.values().map(|draft| draft.replaced() + page).sum()
    }

    pub(super) fn freeze(self) -> TableRevision {
        let Self { mut table, drafts, callers } = self;
        for (chain, draft) in drafts {
            table.chains.chains.set(chain as usize, draft.freeze());
        }
        for (chain, more) in callers.into_iter().filter(|(_, more)| *more != 0) {
            if let Some(head) = table.heads.get(chain as usize).cloned() {
                let callers = i64::from(head.callers) + more;
                let callers = u32::try_from(callers).unwrap_or(0);
                table.shared += usize::from(callers > 1);
                table.shared -= usize::from(head.callers > 1);
                table.heads.set(chain as usize, Head { callers, ..head });
            }
        }
        table
    }
}
