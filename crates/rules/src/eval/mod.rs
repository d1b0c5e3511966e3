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
pub(crate) mod turns;
mod verdicts;

pub use crate::ext::SharedLists;
pub use budget::{MAX_STEPS, PATIENCE};
pub use memories::{Memories, SharedMemories};
pub use observer::{Alive, Cause, Nobody, Observer, Proof, RuleRef};
pub use tests_of::{Test, tests_of, tests_of_text};
pub use turns::{Turn, Turns};
pub use verdicts::{By, Claim, Givers, Verdict, Verdicts};

pub(crate) use budget::{exceeded, steps};
pub use header::Key;
pub(crate) use iface_word::{Port, word_of};
pub use machine::{run, run_from};
pub use source::{Source, Step, Stored, Test as HeaderTest, step_of};
pub(crate) use told::{Tell, Told};

use crate::model::{Hook, Ruleset, Table};
use crate::transit::Transit;
use source::Model;

/// Walks the built-in chain at the packet's hook. `entry` says how surely the packet gets there. The
/// returned verdicts are those of this table alone; a table without a chain at the hook accepts. Of a table with several
/// base chains there it is the first: see [`walk_turn`].
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

/// Walks the base chain whose turn it is, as [`walk`] does.
pub fn walk_turn<O: Observer>(
    ruleset: &Ruleset,
    turn: &Turn,
    transit: &mut Transit<'_, '_>,
    entry: Alive,
    memories: &mut Memories,
    observer: &mut O,
) -> Verdicts {
    let source = ruleset.tables.get(turn.table as usize).map(|rules| {
        transit.backend = rules.backend;
        Model { table: rules }
    });
    run_from(source.as_ref(), (turn.table, turn.base), transit, entry, memories, observer)
}

/// The turns of a ruleset's tables at a hook, in their order.
#[must_use]
pub fn turns_at(ruleset: &Ruleset, hook: Hook) -> Turns {
    let bases = |table: &Table| {
        let bases = table.chains.iter().zip(0..).filter_map(|(chain, at)| Some((at, chain.base?)));
        bases.collect::<Vec<_>>()
    };
    let tables: Vec<_> = ruleset.tables.iter().map(|table| (&*table.name, bases(table))).collect();
    turns::of(ruleset.family, hook, tables.iter().map(|(name, bases)| (*name, &**bases)))
}
