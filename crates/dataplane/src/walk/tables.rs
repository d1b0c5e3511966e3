//! [`Tables`]: the rules as they are walked, and which of their tables at which hook.

use std::sync::Arc;

use rules::eval::{self, Alive, Memories, Verdicts};
use rules::layout::{Kind, Laid};
use rules::model::{Family, Hook, Ruleset, Table};
use rules::{CONNTRACK, Role, Transit};

use crate::observer::Observer;

/// The tables that see packets at one hook.
#[derive(Debug)]
struct Turns {
    tables: Vec<usize>,
    /// How many of them come before connections are tracked.
    before_tracking: usize,
}

impl Turns {
    fn at(hook: Hook, ruleset: &Ruleset) -> Self {
        let turns = eval::tables_at(ruleset, hook);
        let before_tracking = turns.partition_point(|(priority, _)| *priority < CONNTRACK);
        Self { tables: turns.into_iter().map(|(_, table)| table).collect(), before_tracking }
    }
}

/// The tables of one family, laid out to be walked, by hook.
#[derive(Debug)]
pub(crate) struct Tables {
    ruleset: Arc<Ruleset>,
    /// Each table in the layout that is walked; none where the model itself is.
    laid: Vec<Laid>,
    roles: Vec<Role>,
    /// By `Hook as usize`: the tables in their turns there, of which the first few come before tracking.
    hooks: [Turns; Hook::ALL.len()],
    /// Connections are tracked; without that the nat chains are never walked.
    pub(super) tracks: bool,
    /// Some rule translates.
    pub(super) translates: bool,
}

impl Tables {
    /// Lays the tables out, unless the model is to be walked.
    pub(crate) fn of(ruleset: Arc<Ruleset>, layout: Option<Kind>) -> Self {
        let family = ruleset.family;
        let lay = |kind| ruleset.tables.iter().map(move |table| Laid::encode(kind, table, family));
        Self {
            laid: layout.into_iter().flat_map(lay).collect(),
            roles: ruleset.tables.iter().map(|table| role_of(table, family)).collect(),
            tracks: ruleset.tracks(),
            translates: ruleset.translates(),
            hooks: Hook::ALL.map(|hook| Turns::at(hook, &ruleset)),
            ruleset,
        }
    }

    /// The rules.
    pub(crate) fn ruleset(&self) -> &Arc<Ruleset> {
        &self.ruleset
    }

    /// What a table is for.
    pub(super) fn role(&self, table: usize) -> Role {
        self.roles.get(table).copied().unwrap_or(Role::Other)
    }

    /// Whether there is a table of this kind.
    pub(super) fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// The tables at a hook: those before tracking, and those after it.
    pub(super) fn at(&self, hook: Hook) -> (&[usize], &[usize]) {
        let Turns { tables, before_tracking } = &self.hooks[hook as usize];
        tables.split_at(*before_tracking)
    }

    /// Walks one table's chain at the packet's hook.
    pub(super) fn walk(
        &self,
        table: usize,
        transit: &mut Transit<'_, '_>,
        entry: Alive,
        memories: &mut Memories,
        observer: &mut impl Observer,
    ) -> Verdicts {
        match self.laid.get(table) {
            Some(laid) => laid.walk(table, transit, entry, memories, observer),
            None => eval::walk(&self.ruleset, table, transit, entry, memories, observer),
        }
    }
}

fn role_of(table: &Table, family: Family) -> Role {
    family.table(table.name).map_or(Role::Other, |kind| kind.role)
}
