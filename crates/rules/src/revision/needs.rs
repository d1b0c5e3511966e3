//! What rules ask of the path of all packets, and the lists that they share, kept up to date rule by rule: a commit
//! looks at the rules that it makes and drops, and at no others.

use std::sync::Arc;

use rpds::HashTrieMapSync;

use crate::ext::{ListSort, ListUse, Sort};
use crate::model::Rule;
use crate::parallel::Couples;

/// How many rules ask for what.
#[derive(Debug, Clone, Default)]
pub(super) struct Needs {
    /// All rules.
    pub(super) rules: usize,
    pub(super) tracks: usize,
    pub(super) translates: usize,
    pub(super) ports: usize,
    pub(super) proxies: usize,
    pub(super) remember: usize,
    pub(super) couples: Couples,
    lists: HashTrieMapSync<(Sort, Arc<str>), Declared>,
    /// How often `lists` has changed.
    pub(super) lists_changed: u64,
}

/// A list that rules share by name, from the rule that first names it until none does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Declared {
    /// Name of that rule, which distinguishes the list from others of its name before and after it.
    pub(super) by: u64,
    /// What it is as that rule says, with as much room as the rule says that asks for most.
    pub(super) sort: ListSort,
    users: usize,
}

impl Needs {
    /// Adds the needs of made rules, and removes the needs of dropped ones. A list that is named by some of either
    /// stays.
    pub(super) fn change<'r>(
        &mut self,
        made: impl IntoIterator<Item = &'r Rule>,
        dropped: impl IntoIterator<Item = &'r Rule>,
    ) {
        for rule in made {
            self.rules += 1;
            self.couples.add(rule);
            for (count, needs) in self.counts(rule) {
                *count += usize::from(needs);
            }
            lists(rule).for_each(|list| self.declare(list, rule.id));
        }
        for rule in dropped {
            self.rules = self.rules.saturating_sub(1);
            self.couples.take(rule);
            for (count, needs) in self.counts(rule) {
                *count = count.saturating_sub(usize::from(needs));
            }
            lists(rule).for_each(|list| self.leave(list));
        }
    }

    /// The lists by their names.
    pub(super) fn lists(&self) -> impl Iterator<Item = (&str, Declared)> {
        self.lists.iter().map(|((_, name), declared)| (&**name, *declared))
    }

    fn counts(&mut self, rule: &Rule) -> [(&mut usize, bool); 5] {
        let Self { tracks, translates, ports, proxies, remember, .. } = self;
        [
            (tracks, rule.tracks()),
            (translates, rule.translates()),
            (ports, rule.asks_for_ports()),
            (proxies, rule.proxies()),
            (remember, rule.remembers()),
        ]
    }

    fn declare(&mut self, list: ListUse<'_>, by: u64) {
        let name = name(list);
        let old = self.lists.get(&name).copied();
        let Declared { by, sort, users } =
            old.unwrap_or(Declared { by, sort: list.sort, users: 0 });
        let new = Declared { by, sort: sort.widened(list.sort), users: users + 1 };
        self.lists_changed += u64::from(old.is_none_or(|old| old.sort != new.sort));
        self.lists.insert_mut(name, new);
    }

    fn leave(&mut self, list: ListUse<'_>) {
        let name = name(list);
        let Some(old) = self.lists.get(&name).copied() else { return };
        if old.users > 1 {
            let users = old.users - 1;
            self.lists.insert_mut(name, Declared { users, ..old });
        } else {
            self.lists_changed += 1;
            self.lists.remove_mut(&name);
        }
    }
}

fn name(list: ListUse<'_>) -> (Sort, Arc<str>) {
    (list.sort.sort(), list.name.into())
}

/// The lists that a rule names.
fn lists(rule: &Rule) -> impl Iterator<Item = ListUse<'_>> {
    rule.matches.iter().filter_map(|used| used.body.list())
}
