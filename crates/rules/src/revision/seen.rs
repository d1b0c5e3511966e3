//! What a revision knows of its rules without a look at each of them: what the path of a packet depends on.

use std::sync::Arc;

use super::needs::Declared;
use super::{Lineage, Revision, TableRevision};
use crate::backend::Backend;
use crate::eval::{Memories, RuleRef, Turns, turns};
use crate::ext::ListUse;
use crate::family::{Hook, Role};
use crate::layout::segment::Segments;
use crate::model::{Base, Rule};
use crate::parallel::Class;

impl Revision {
    /// The implementation that the rules are for.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Names of its tables, in their order.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| &*table.name)
    }

    /// The tables that have something to do at a hook.
    #[must_use]
    pub fn turns(&self, hook: Hook) -> Turns {
        let tables = self.tables.iter().map(|table| (&*table.name, &*table.bases));
        turns::of(self.family, hook, tables)
    }

    /// Whether some table has base chains of a role, or is of a kind that has them.
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        let is_kind = |name| self.family.table(name).is_some_and(|kind| kind.role == role);
        let has = |(_, base): &(u32, Base)| base.role == role;
        self.tables.iter().any(|table| is_kind(&table.name) || table.bases.iter().any(has))
    }

    /// Whether another one has the same tables in the same order, with the same base chains, policies included.
    #[must_use]
    pub fn has_hooks_of(&self, other: &Self) -> bool {
        let alike = |(one, other): (&TableRevision, &TableRevision)| {
            let same = Arc::ptr_eq(&one.bases, &other.bases) || one.bases == other.bases;
            same && (&one.name, one.backend) == (&other.name, other.backend)
        };
        self.family == other.family
            && self.tables.len() == other.tables.len()
            && self.tables.iter().zip(&other.tables).all(alike)
    }

    /// Whether some built-in chain at a hook has rules.
    #[must_use]
    pub fn has_rules(&self, hook: Hook) -> bool {
        let tables = self.tables.iter().zip(0..);
        let mut chains =
            tables.flat_map(|(table, at)| table.bases_at(hook).map(move |to| (at, to)));
        chains.any(|(table, chain)| self.has_rules_in(table, chain))
    }

    /// Whether a chain of a table, by their indices, has rules.
    #[must_use]
    pub fn has_rules_in(&self, table: u32, chain: u32) -> bool {
        let table = self.tables.get(table as usize);
        let chain = table.and_then(|table| table.chains.chains.get(chain as usize));
        chain.is_some_and(|chain| !chain.first.rules.is_empty())
    }

    /// Number of rules.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.needs.rules
    }

    /// A bound of [`Ruleset::class_of_sharers`](crate::model::Ruleset::class_of_sharers) that takes a look at no rule: packets
    /// depend on each other as it says, or less. `None` where only the rules can tell.
    #[must_use]
    pub fn class_bound(&self) -> Option<Class> {
        // A chain that one rule jumps to is walked once, and so no walk takes more steps than all rules together.
        let is_tree = self.tables.iter().all(|table| table.shared == 0);
        let has_nat = self.has(Role::Translate);
        self.needs.couples.class(is_tree, self.tracks(), has_nat)
    }

    /// Whether some rule needs connection tracking.
    #[must_use]
    pub fn tracks(&self) -> bool {
        self.needs.tracks > 0
    }

    /// Whether some rule translates addresses.
    #[must_use]
    pub fn translates(&self) -> bool {
        self.needs.translates > 0
    }

    /// Whether some rule has the host open connections in the place of clients.
    #[must_use]
    pub fn proxies(&self) -> bool {
        self.needs.proxies > 0
    }

    /// Whether some rule remembers earlier packets.
    #[must_use]
    pub fn remembers(&self) -> bool {
        self.needs.remember > 0
    }

    /// Whether some rule asks by which ports of a bridge packets come and go.
    #[must_use]
    pub fn asks_for_ports(&self) -> bool {
        self.needs.ports > 0
    }

    /// The rule at a place, as walks name it.
    #[must_use]
    pub fn rule_at(&self, at: RuleRef) -> Option<&Arc<Rule>> {
        let chain = self.tables.get(at.table as usize)?.chains.chains.get(at.chain as usize)?;
        let mut before = 0;
        for segment in chain.iter() {
            if let Some(rule) = segment.rules.get(at.rule as usize - before) {
                return Some(rule);
            }
            before += segment.rules.len();
        }
        None
    }

    /// All rules, table after table.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        let chains = self.tables.iter().flat_map(|table| table.chains.chains.iter());
        chains.flat_map(Segments::rules)
    }

    /// What all revisions have in common in which a name is that of the same rule.
    #[must_use]
    pub fn lineage(&self) -> &Lineage {
        &self.lineage
    }
}

impl Memories {
    /// Continues under a revision, the first one or a later one of the same rules. A state belongs to its rule as long
    /// as the rule exists, and a list to the rules that name it. The cost depends on lists that come and go, and on no
    /// rules: a state is made with the first packet, and states of removed rules make way for others.
    pub fn follow(&mut self, revision: &Revision) {
        let list = |(name, list): (_, Declared)| (ListUse { name, sort: list.sort }, list.by);
        let Revision { ids, needs, .. } = revision;
        self.go_on(*ids, needs.lists_changed, needs.lists().map(list));
    }
}
