//! Revisions: immutable states of a family's rules, each made out of the one before by a [`Transaction`].
//!
//! A revision shares with the one before it whatever the transaction did not touch: a change costs the segment of the
//! chain that it is in and a page of the array of chains, whatever else is loaded. A walker holds on to one revision
//! for the packet's whole way.
//!
//! Rules keep the place of their counters and the state of their matches for as long as they are the same rule:
//! same table, same chain, same text, and the same of several that are alike ([`Revision::replaced_by`]).
//!
//! Contract: no threads in here; making a revision needs the writer's [`Numbers`], walking it needs nothing.
//! No packet gets to a loop of chains, as in the kernel: loading refuses such rules, and a transaction a jump that would
//! make them so. A new jump looks at what it leads to and at nothing else, unless it closes a loop.

mod choice;
mod draft;
mod needs;
mod numbers;
mod reach;
mod reload;
mod seen;
mod text;
mod transaction;

use std::sync::Arc;

use rpds::HashTrieMapSync;

pub use choice::{Refused, Which};
use needs::Needs;
pub use numbers::{Dropped, Lineage, Numbers};
pub use transaction::Transaction;

use crate::backend::Backend;
use crate::eval::{Alive, Memories, Observer, Verdicts, run_from};
use crate::family::{Family, Hook};
use crate::layout::paged::Paged;
use crate::layout::{Corrupt, Footprint, Indexed, PackedChains, Policies, has_wide_addresses};
use crate::model::{
    Action, Base, Chain, Counters, FallThrough, Policy, Rule, Ruleset, Table, TableName,
};
use crate::transit::Transit;

/// One state of the rules.
#[derive(Debug, Clone)]
pub struct Revision {
    number: u64,
    family: Family,
    backend: Backend,
    tables: Vec<TableRevision>,
    /// What all its rules ask for.
    needs: Needs,
    /// The names of all rules so far are below this.
    ids: u64,
    lineage: Lineage,
    /// Places of rules that this revision no longer has.
    dropped: Dropped,
    /// Rules that the revision before did not have.
    made: Vec<Arc<Rule>>,
    /// Bytes of the revision before that this one does not share.
    replaced: usize,
}

/// One table of a revision.
#[derive(Debug, Clone)]
struct TableRevision {
    name: TableName,
    backend: Backend,
    chains: PackedChains,
    heads: Paged<Head>,
    /// The base chains by their index, in the order in which they were registered.
    bases: Arc<[(u32, Base)]>,
    names: HashTrieMapSync<Arc<str>, u32>,
    /// Indices of chains that were deleted.
    unused: Vec<u32>,
    /// The place of the next chain among the others, as they are printed.
    next_place: u64,
    /// Chains that several rules jump to.
    shared: usize,
    /// Its chains may form a loop, which no packet gets to.
    may_loop: bool,
}

/// What a chain is but for its rules.
#[derive(Debug, Clone, Default)]
struct Head {
    /// Empty when the chain was deleted.
    name: Arc<str>,
    base: Option<Base>,
    /// What the end of a user chain does.
    fall_through: FallThrough,
    /// Rules that jump to it.
    callers: u32,
    /// Position in print order: a chain that takes the index of a deleted one still comes last.
    place: u64,
}

impl Revision {
    /// The first revision, of rules as they were read: the first that are numbered keep the places of their counters.
    #[must_use]
    pub fn first(ruleset: &Ruleset, numbers: &mut Numbers) -> Self {
        let own = numbers.first(ruleset);
        let ruleset = own.as_ref().unwrap_or(ruleset);
        let Ruleset { family, backend, .. } = *ruleset;
        let mut needs = Needs::default();
        needs.change(ruleset.rules(), []);
        Self {
            number: 1,
            family,
            backend,
            tables: ruleset.tables.iter().map(|table| TableRevision::of(table, family)).collect(),
            needs,
            ids: numbers.ids(),
            lineage: numbers.lineage().clone(),
            dropped: Dropped::default(),
            made: Vec::new(),
            replaced: 0,
        }
    }

    /// Lets long chains have indexes, which walks make ([`PackedChains::index`]).
    #[must_use]
    pub fn indexed(mut self, when: Indexed) -> Self {
        self.tables.iter_mut().for_each(|table| table.chains.index(when));
        self
    }

    /// Counts revisions from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Family of the rules.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Places of rules that the revision before had and this one has not: free once nobody walks that one.
    #[must_use]
    pub fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    /// Rules that the revision before did not have: their counters start at [`Rule::counters`].
    #[must_use]
    pub fn made(&self) -> &[Arc<Rule>] {
        &self.made
    }

    /// About how many bytes of the revision before are not shared with this one: its words and lists of rules, and the
    /// removed rules without what their extensions hold.
    #[must_use]
    pub fn replaced_bytes(&self) -> usize {
        self.replaced
    }

    /// Index of a table, for [`Revision::walk`].
    #[must_use]
    pub fn table(&self, name: &str) -> Option<usize> {
        self.tables.iter().position(|table| table.name == *name)
    }

    /// The rule of this number, from 0, in a chain.
    #[must_use]
    pub fn rule(&self, table: &str, chain: &str, number: usize) -> Option<&Arc<Rule>> {
        let table = &self.tables[self.table(table)?];
        let chain = *table.names.get(chain)?;
        table.chains.chains.get(chain as usize)?.rules().nth(number)
    }

    /// Walks the base chain that a table has at the packet's hook, the first of several, as [`crate::eval::walk`] does.
    pub fn walk(
        &self,
        table: usize,
        transit: &mut Transit<'_, '_>,
        entry: Alive,
        memories: &mut Memories,
        observer: &mut impl Observer,
    ) -> Verdicts {
        let bases = self.tables.get(table).map(|table| &table.bases);
        let mut bases = bases.into_iter().flat_map(|bases| bases.iter());
        let base = bases.find(|(_, base)| base.hook == transit.hook);
        let base = base.map(|(chain, base)| (*chain, base.policy));
        self.walk_from((table as u32, base), transit, entry, memories, observer)
    }

    /// Walks a base chain of a table, given by its index and its policy, as [`crate::eval::walk_turn`] does.
    #[inline]
    pub fn walk_from(
        &self,
        (table, base): (u32, Option<(u32, Policy)>),
        transit: &mut Transit<'_, '_>,
        entry: Alive,
        memories: &mut Memories,
        observer: &mut impl Observer,
    ) -> Verdicts {
        let chains = self.tables.get(table as usize).map(|table| {
            transit.backend = table.backend;
            &table.chains
        });
        run_from(chains.as_ref(), (table, base), transit, entry, memories, observer)
    }

    /// Returns the rules as [`crate::eval`] walks them. Rules jump by index, so a deleted chain leaves an empty chain
    /// without a name, which is not printed.
    #[must_use]
    pub fn ruleset(&self) -> Ruleset {
        let tables = self.tables.iter().map(TableRevision::table).collect();
        Ruleset { family: self.family, backend: self.backend, tables }
    }

    /// Returns the rules to be printed, with chains in the order in which they were made.
    #[must_use]
    pub fn in_order(&self) -> Ruleset {
        let tables = self.tables.iter().map(TableRevision::in_order).collect();
        Ruleset { family: self.family, backend: self.backend, tables }
    }

    /// Checks the layout of every table.
    ///
    /// # Errors
    /// The first place that cannot be walked.
    pub fn verify(&self) -> Result<(), Corrupt> {
        self.tables.iter().try_for_each(|table| table.chains.verify())
    }

    /// What it takes to hold the rules to be walked, those as they were read aside.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        self.tables.iter().map(|table| table.chains.footprint()).fold(
            Footprint::default(),
            |sum, one| Footprint {
                bytes: sum.bytes + one.bytes,
                allocations: sum.allocations + one.allocations,
            },
        )
    }
}

impl Numbers {
    /// Takes back what a revision was given for the rules that it made, if nobody ever walks it.
    pub fn take_back(&mut self, unused: &Revision) {
        self.free(&Dropped::of(unused.made()));
    }
}

impl TableRevision {
    fn of(table: &Table, family: Family) -> Self {
        let chains = PackedChains::encode(table, has_wide_addresses(family));
        let mut callers = vec![0; table.chains.len()];
        let rules = table.chains.iter().flat_map(|chain| &chain.rules);
        for to in rules.flat_map(|rule| rule.leads_to()) {
            callers[to as usize] += 1;
        }
        let mut made = Self { chains, ..Self::empty(table.name.clone(), table.backend, family) };
        made.next_place = table.chains.len() as u64;
        made.shared = callers.iter().filter(|callers| **callers > 1).count();
        for (index, (chain, callers)) in table.chains.iter().zip(callers).enumerate() {
            let name: Arc<str> = Arc::from(&*chain.name);
            made.names.insert_mut(Arc::clone(&name), index as u32);
            made.heads.push(Head {
                name,
                base: chain.base.map(uncounted),
                fall_through: chain.fall_through,
                callers,
                place: index as u64,
            });
        }
        made.bases = bases(table).collect();
        made.may_loop = made.loops();
        made
    }

    /// Registers a base chain, or registers it again as it is from now on.
    fn register(&mut self, chain: u32, base: Base) {
        let mut bases = self.bases.to_vec();
        match bases.iter_mut().find(|(known, _)| *known == chain) {
            Some((_, known)) => *known = base,
            None => bases.push((chain, base)),
        }
        self.bases = bases.into();
        self.chains.policies.set(base.hook, chain, base.policy);
    }

    /// A table without any chain.
    fn empty(name: TableName, backend: Backend, family: Family) -> Self {
        let chains = PackedChains {
            chains: Paged::default(),
            policies: Policies::default(),
            is_v6: has_wide_addresses(family),
        };
        let (heads, names) = (Paged::default(), HashTrieMapSync::new_sync());
        Self {
            name,
            backend,
            chains,
            heads,
            bases: Arc::default(),
            names,
            unused: Vec::new(),
            next_place: 0,
            shared: 0,
            may_loop: false,
        }
    }

    /// The base chains at a hook, by their indices.
    fn bases_at(&self, hook: Hook) -> impl Iterator<Item = u32> {
        let at = self.bases.iter().filter(move |(_, base)| base.hook == hook);
        at.map(|(chain, _)| *chain)
    }

    fn name_of(&self, chain: u32) -> &str {
        self.heads.get(chain as usize).map_or("?", |head| &head.name)
    }

    fn table(&self) -> Table {
        let chains =
            self.heads.iter().zip(self.chains.chains.iter()).map(|(head, segments)| Chain {
                name: (&*head.name).into(),
                base: head.base,
                fall_through: head.fall_through,
                rules: segments.rules().cloned().collect(),
                line: 0,
            });
        Table { name: self.name.clone(), backend: self.backend, chains: chains.collect() }
    }

    fn in_order(&self) -> Table {
        let table = self.table();
        let mut order: Vec<(u64, u32)> =
            self.heads.iter().zip(0..).map(|(head, index)| (head.place, index)).collect();
        if order.is_sorted() {
            return table;
        }
        order.sort_unstable();
        let mut indices = vec![0; table.chains.len()];
        order.iter().zip(0..).for_each(|((_, old), new)| indices[*old as usize] = new);
        let mut chains: Vec<(u32, Chain)> = indices.iter().copied().zip(table.chains).collect();
        chains.sort_unstable_by_key(|(new, _)| *new);
        let chains =
            chains.into_iter().map(|(_, Chain { name, rules, base, fall_through, line })| {
                let rules = rules.into_iter().map(|rule| renumbered(rule, &indices)).collect();
                Chain { name, rules, base, fall_through, line }
            });
        Table { name: self.name.clone(), backend: self.backend, chains: chains.collect() }
    }
}

/// Returns the rule with its jump renumbered: `indices` has the new index of each old one.
fn renumbered(rule: Arc<Rule>, indices: &[u32]) -> Arc<Rule> {
    let action = match rule.action {
        Action::Jump(to) if indices[to as usize] != to => Action::Jump(indices[to as usize]),
        Action::Goto(to) if indices[to as usize] != to => Action::Goto(indices[to as usize]),
        _ => return rule,
    };
    Arc::new(Rule { action, ..Arc::unwrap_or_clone(rule) })
}

/// The base chains of a table by their indices, without counters.
fn bases(table: &Table) -> impl Iterator<Item = (u32, Base)> {
    let chains = table.chains.iter().zip(0..);
    chains.filter_map(|(chain, index)| Some((index, uncounted(chain.base?))))
}

/// A built-in chain without counters: who walks has them.
fn uncounted(base: Base) -> Base {
    Base { counters: Counters::default(), ..base }
}
