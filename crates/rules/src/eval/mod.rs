//! The reference walk: one packet through one built-in chain of one table, rule by rule.
//!
//! It is an abstract walk over what is possible. At each rule the packet is certainly there, maybe there,
//! or gone. A rule that terminates and matches maybe adds its verdict to the set, and the walk goes on;
//! a jump that is maybe taken is walked as well. So the result can only err towards unknown. Without
//! anything unknown it is the kernel's walk.
//!
//! Of a packet whose connection may be in several states it also tells what one of them alone leads to, which is asked for
//! by [`Connection::walks_as`](crate::Connection): as long as nothing but states is open, that needs no walk of its own.
//!
//! Contract: no allocation while chains nest no deeper than usual; the stack of chains is bounded by their
//! number because loops are refused on load; a walk that takes more than [`MAX_STEPS`] steps is given up, and nothing
//! that the rules decide or change is known of its packet.
//!
//! Source: kernel `ipt_do_table`, `ip6t_do_table`.

mod budget;
mod header;
mod iface_word;
mod machine;
mod memories;
mod pair;
mod source;
mod tests_of;
mod told;
mod verdicts;

pub use crate::ext::SharedLists;
pub use budget::{MAX_STEPS, PATIENCE};
pub(crate) use memories::Remembered;
pub use memories::{Memories, SharedMemories};
pub use tests_of::{Test, tests_of, tests_of_text};
pub use verdicts::{By, Claim, Givers, Verdict, Verdicts};

pub(crate) use budget::{exceeded, steps};
pub(crate) use header::Key;
pub(crate) use iface_word::{Port, word_of};
pub(crate) use machine::run;
pub(crate) use source::{Source, Step, Stored, Test as HeaderTest, step_of};
pub(crate) use told::{Tell, Told};

use crate::ext::Memory;
use crate::family::{Family, Hook, Role, TableKind};
use crate::model::Ruleset;
use crate::outcome::Outcome;
use crate::transit::Transit;
use smallvec::SmallVec;
use source::Model;

/// A rule by its place in [`Ruleset::tables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleRef {
    /// Index of the table.
    pub table: u32,
    /// Index of the chain in the table.
    pub chain: u32,
    /// Index of the rule in the chain.
    pub rule: u32,
}

/// Why the answer of a rule is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The input interface is not known.
    Input,
    /// The output interface is not known.
    Output,
    /// Header bytes are not known: not captured, or rewritten by a target that is not evaluated.
    Bytes,
    /// The match of this index.
    Match(u16),
    /// A target whose effect is not known.
    Target,
    /// The walk was given up after [`MAX_STEPS`].
    Steps,
    /// The walk was given up at once: [`PATIENCE`] walks of the chain took more than [`MAX_STEPS`].
    Patience,
    /// The walk was given up because nobody wants its end any more: [`Observer::stops`].
    Stopped,
}

/// How surely a packet is at a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alive {
    /// It is.
    Certain,
    /// It may be.
    Maybe,
    /// It is not.
    Gone,
}

/// Sees a walk. Every method does nothing by default, so that a live walk pays for none.
pub trait Observer {
    /// It wants to be told of single rules by [`Observer::rule`], [`Observer::asked`] and [`Observer::hit`].
    /// One that does not is told of hits by [`Observer::counted`] alone, and the walk is the faster for it.
    const SEES_RULES: bool = true;

    /// A rule was evaluated, with the packet as its matches saw it.
    #[inline]
    fn rule(&mut self, _at: RuleRef, _outcome: Outcome, _alive: Alive, _transit: &Transit<'_, '_>) {
    }

    /// The match of this index in the rule was asked; those after a plain no are not.
    #[inline]
    fn asked(&mut self, _at: RuleRef, _index: usize, _outcome: Outcome) {}

    /// A match that remembers packets was asked, by which it now has another state.
    #[inline]
    fn remembered(&mut self, _at: RuleRef, _memory: &dyn Memory) {}

    /// A rule matched: for certain, or maybe. `packets` counters move by the certain ones.
    #[inline]
    fn hit(&mut self, _at: RuleRef, _certain: bool, _transit: &Transit<'_, '_>) {}

    /// As `hit`, with the place of the rule's counters.
    #[inline]
    fn counted(&mut self, _slot: u32, _certain: bool, _transit: &Transit<'_, '_>) {}

    /// The packet fell off a built-in chain, for certain or maybe.
    #[inline]
    fn policy(&mut self, _table: u32, _chain: u32, _certain: bool, _transit: &Transit<'_, '_>) {}

    /// No rule of a chain, built in or not, kept the packet: it is at the end, for certain or maybe. A packet that goes
    /// back before that, or meets its verdict, is not.
    #[inline]
    fn off_end(&mut self, _table: u32, _chain: u32, _certain: bool) {}

    /// Whether a rule that can change the packet's verdict matched is unknown.
    #[inline]
    fn unknown(&mut self, _at: RuleRef, _cause: Cause) {}

    /// Nobody wants the walk to go on. Asked now and then.
    #[inline]
    fn stops(&self) -> bool {
        false
    }
}

/// Walks the built-in chain at the packet's hook. `entry` says how surely the packet gets there. The
/// returned verdicts are those of this table alone; a table without a chain at the hook accepts.
pub fn walk<O: Observer>(
    ruleset: &Ruleset,
    table: usize,
    transit: &mut Transit<'_, '_>,
    entry: Alive,
    memories: &mut Memories,
    observer: &mut O,
) -> Verdicts {
    let source = ruleset.tables.get(table).map(|rules| Model { table: rules });
    told(source.as_ref(), table as u32, transit, entry, memories, O::SEES_RULES, observer)
}

/// As [`run`], without code of its own for each observer.
pub(crate) fn told<'r, S: Source<'r>>(
    source: Option<&S>,
    table: u32,
    transit: &mut Transit<'_, '_>,
    entry: Alive,
    memories: &mut Memories,
    sees_rules: bool,
    observer: &mut dyn Tell,
) -> Verdicts {
    if sees_rules {
        run(source, table, transit, entry, memories, &mut Told::<true>(observer))
    } else {
        run(source, table, transit, entry, memories, &mut Told::<false>(observer))
    }
}

/// Tables with their turns at a hook, those with lower priorities first.
pub type Turns = SmallVec<[(i32, usize); 6]>;

/// The tables of a ruleset that have something to do at `hook`: those with a chain there, and the one that translates
/// flows, also where the rules do not name its chain.
#[must_use]
pub fn tables_at(ruleset: &Ruleset, hook: Hook) -> Turns {
    let table_of = |name: &str| ruleset.tables.iter().position(|table| table.name == name);
    let has_chain = |table: usize| ruleset.tables[table].base_chain(hook).is_some();
    tables_named(ruleset.family, hook, table_of, has_chain)
}

/// As [`tables_at`], where a table of a name is, and whether it has a chain there, is asked.
pub fn tables_named(
    family: Family,
    hook: Hook,
    table_of: impl Fn(&str) -> Option<usize>,
    has_chain: impl Fn(usize) -> bool,
) -> Turns {
    let turn = |kind: &TableKind| {
        let table = table_of(kind.name)?;
        let has_turn = kind.role == Role::Translate || has_chain(table);
        kind.priority(hook).filter(|_| has_turn).map(|priority| (priority, table))
    };
    let mut turns: Turns = family.tables().iter().filter_map(turn).collect();
    turns.sort_unstable();
    turns
}
