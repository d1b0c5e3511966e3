//! The turns that base chains have at a hook.
//!
//! Lower priorities come first, and of equal ones the chain that was registered last: tables and their chains stand in the
//! order in which they were registered. Chains that translate flows have their turns where the kernel translates, whatever
//! their priority, which says in which order they have them; among chains of that priority they were registered with the
//! first of them. A family that has such chains translates at every hook where it
//! can, also where none of them is attached.
//!
//! Source: kernel `nf_hook_entries_grow`, `nf_nat_register_fn`; Linux 6.18 with chains in all orders.

use std::cmp::Reverse;

use smallvec::SmallVec;

use crate::family::{Family, Hook, Role, TableKind};
use crate::model::{Base, Policy};

/// The turn of a table at a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// When it is: turns with lower priorities come first.
    pub priority: i32,
    /// Index of the table.
    pub table: u32,
    /// The base chain, by its index, and its policy; `None` where the table translates without one.
    pub base: Option<(u32, Policy)>,
    /// What the chain is for.
    pub role: Role,
}

/// All turns at a hook, in their order.
pub type Turns = SmallVec<[Turn; 6]>;

/// The turns at a hook of tables with these names and base chains.
pub(crate) fn of<'t>(
    family: Family,
    hook: Hook,
    tables: impl Iterator<Item = (&'t str, &'t [(u32, Base)])>,
) -> Turns {
    let nat = family.table(TableKind::NAT).filter(|kind| kind.role == Role::Translate);
    let translates_at = nat.and_then(|kind| kind.priority(hook));
    let is_nat = |name| family.table(name).is_some_and(|kind| kind.role == Role::Translate);
    let mut first_nat = None;
    let mut turns: SmallVec<[(Turn, i32); 6]> = SmallVec::new();
    for ((name, bases), table) in tables.zip(0..) {
        let mut translates = is_nat(name);
        let nat = bases.iter().find(|(_, base)| base.role == Role::Translate);
        let nat = nat.map(|(chain, _)| *chain).or(translates.then_some(0));
        first_nat = first_nat.or(nat.map(|chain| (table, chain)));
        let mut is_there = false;
        for (chain, base) in bases {
            translates |= base.role == Role::Translate;
            if base.hook != hook {
                continue;
            }
            let fixed = translates_at.filter(|_| base.role == Role::Translate);
            is_there |= base.role == Role::Translate;
            let priority = fixed.unwrap_or(base.priority);
            let base_of = Some((*chain, base.policy));
            turns.push((Turn { priority, table, base: base_of, role: base.role }, base.priority));
        }
        if let (true, false, Some(priority)) = (translates, is_there, translates_at) {
            let turn = Turn { priority, table, base: None, role: Role::Translate };
            turns.push((turn, priority));
        }
    }
    turns.sort_by_key(|(turn, own)| {
        let chain = turn.base.map(|(chain, _)| chain);
        let place = (turn.table, chain.unwrap_or(0));
        let registered = first_nat.filter(|_| turn.role == Role::Translate).unwrap_or(place);
        (turn.priority, Reverse(registered), *own, Reverse(turn.table), Reverse(chain))
    });
    turns.into_iter().map(|(turn, _)| turn).collect()
}
