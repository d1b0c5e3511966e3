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
mod observer;
mod pair;
mod source;
mod tests_of;
mod told;
mod verdicts;

use std::cmp::Reverse;

pub use crate::ext::SharedLists;
pub use budget::{MAX_STEPS, PATIENCE};
pub use memories::{Memories, SharedMemories};
pub use observer::{Alive, Cause, Nobody, Observer, Proof, RuleRef};
pub use tests_of::{Test, tests_of, tests_of_text};
pub use verdicts::{By, Claim, Givers, Verdict, Verdicts};

pub(crate) use budget::{exceeded, steps};
pub use header::Key;
pub(crate) use iface_word::{Port, word_of};
pub use machine::run;
pub use source::{Source, Step, Stored, Test as HeaderTest, step_of};
pub(crate) use told::{Tell, Told};

use crate::family::{Family, Hook, Role};
use crate::model::Ruleset;
use crate::transit::Transit;
use smallvec::SmallVec;
use source::Model;

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
    let source = ruleset.tables.get(table).map(|rules| {
        transit.backend = rules.backend;
        Model { table: rules }
    });
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

/// Tables with their turns at a hook, those with lower priorities first; of equal ones the last one first, as the kernel has
/// hooks that were registered later.
pub type Turns = SmallVec<[(i32, usize); 6]>;

/// The tables of a ruleset that have something to do at `hook`: tables with a chain there, and tables that translate flows,
/// also where the rules do not name their chain.
#[must_use]
pub fn tables_at(ruleset: &Ruleset, hook: Hook) -> Turns {
    let names = ruleset.tables.iter().map(|table| &*table.name);
    turns(ruleset.family, hook, names, |table| ruleset.tables[table].base_chain(hook).is_some())
}

/// The tables of these names that have something to do at `hook`; `has_chain` tells whether one has a chain there.
pub(crate) fn turns<'n>(
    family: Family,
    hook: Hook,
    names: impl Iterator<Item = &'n str>,
    has_chain: impl Fn(usize) -> bool,
) -> Turns {
    let turn = |(table, name): (usize, &str)| {
        let kind = family.table(name)?;
        let has_turn = kind.role == Role::Translate || has_chain(table);
        kind.priority(hook).filter(|_| has_turn).map(|priority| (priority, table))
    };
    let mut turns: Turns = names.enumerate().filter_map(turn).collect();
    turns.sort_unstable_by_key(|(priority, table)| (*priority, Reverse(*table)));
    turns
}
