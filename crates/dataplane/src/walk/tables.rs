//! [`Tables`]: the rules as they are walked, and which of their tables at which hook.

use std::sync::Arc;

use rules::eval::{self, Alive, Memories, Verdicts};
use rules::layout::{Kind, Laid};
use rules::model::{Hook, Ruleset};
use rules::{TableKind, Transit};

use crate::observer::Observer;

/// What a table is for, as far as a walk treats it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// What it accepts counts most.
    Filter,
    /// Its chains translate.
    Nat,
    Other,
}

/// The tables of one family, laid out to be walked, by hook.
#[derive(Debug)]
pub(crate) struct Tables {
    ruleset: Arc<Ruleset>,
    /// Each table in the layout that is walked; none where the model itself is.
    laid: Vec<Laid>,
    roles: Vec<Role>,
    /// By `Hook as usize`: the tables, of which the first few are walked before tracking.
    hooks: [(Vec<usize>, usize); 6],
    /// Connections are tracked; without that the nat chains are never walked.
    pub(super) tracks: bool,
    /// Some rule translates.
    pub(super) translates: bool,
}

impl Role {
    fn of(table: &str) -> Self {
        match table {
            TableKind::FILTER => Self::Filter,
            TableKind::NAT => Self::Nat,
            _ => Self::Other,
        }
    }
}

impl Tables {
    /// Lays the tables out, unless the model is to be walked.
    pub(crate) fn of(ruleset: Arc<Ruleset>, layout: Option<Kind>) -> Self {
        let hooks = [
            Hook::Prerouting,
            Hook::Input,
            Hook::Forward,
            Hook::Output,
            Hook::Postrouting,
            Hook::Brouting,
        ];
        let family = ruleset.family;
        let lay = |kind| ruleset.tables.iter().map(move |table| Laid::encode(kind, table, family));
        Self {
            laid: layout.into_iter().flat_map(lay).collect(),
            roles: ruleset.tables.iter().map(|table| Role::of(table.name)).collect(),
            tracks: ruleset.tracks(),
            translates: ruleset.translates(),
            hooks: hooks.map(|hook| {
                let mut tables: Vec<usize> = eval::tables_at(&ruleset, hook).collect();
                if hook == Hook::Input {
                    // There the source is translated, after everything else.
                    tables.sort_by_key(|table| ruleset.tables[*table].name == TableKind::NAT);
                }
                let raw =
                    tables.iter().filter(|table| ruleset.tables[**table].name == TableKind::RAW);
                let raw = raw.count();
                (tables, raw)
            }),
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

    /// The raw tables and the others at a hook.
    pub(super) fn at(&self, hook: Hook) -> (&[usize], &[usize]) {
        let (tables, raw) = &self.hooks[hook as usize];
        tables.split_at(*raw)
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
