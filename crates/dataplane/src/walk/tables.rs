//! [`Tables`]: the rules as they are walked, and which of their tables at which hook.

use std::sync::Arc;

use rules::eval::{self, Alive, Memories, RuleRef, Verdicts};
use rules::layout::{Kind, Laid};
use rules::model::{Family, Hook, Rule, Ruleset, Table};
use rules::revision::Revision;
use rules::{Backend, CONNTRACK, Role, Transit};
use smallvec::SmallVec;

/// As many tables as a family has, and more.
const TABLES: usize = 6;

/// The tables that see packets at one hook, small enough to be copied from program to program.
#[derive(Debug, Clone, Copy)]
struct Turns {
    tables: [u8; TABLES],
    count: u8,
    /// How many of them come before connections are tracked.
    before_tracking: u8,
}

impl Turns {
    fn at(hook: Hook, rules: &Rules, names: &[&str]) -> Self {
        let table_of = |name: &str| names.iter().position(|table| *table == name);
        let has_chain = |table| rules.has_chain(table, hook);
        let turns = eval::tables_named(rules.family(), hook, table_of, has_chain);
        let before_tracking = turns.partition_point(|(priority, _)| *priority < CONNTRACK) as u8;
        let (mut tables, mut count) = ([0; TABLES], 0);
        for (to, (_, table)) in tables.iter_mut().zip(turns) {
            (*to, count) = (table as u8, count + 1);
        }
        Self { tables, count, before_tracking }
    }
}

/// Where the rules are.
#[derive(Debug)]
pub(crate) enum Rules {
    /// As they were read, with each table in the layout that is walked: none where the model itself is.
    Read(Arc<Ruleset>, Vec<Laid>),
    /// In a revision, which is walked as it is.
    Revised(Arc<Revision>),
}

/// The tables of one family, laid out to be walked, by hook.
#[derive(Debug)]
pub(crate) struct Tables {
    rules: Rules,
    family: Family,
    backend: Backend,
    roles: SmallVec<[Role; TABLES]>,
    /// By `Hook as usize`: the tables in their turns there, of which the first few come before tracking.
    hooks: [Turns; Hook::ALL.len()],
    /// Connections are tracked; without that the nat chains are never walked.
    pub(super) tracks: bool,
    /// Some rule translates.
    pub(super) translates: bool,
    /// The host opens connections in the place of clients.
    pub(super) shows_proxy: bool,
}

impl Rules {
    /// Lays the tables out, unless the model is to be walked.
    fn laid(ruleset: Arc<Ruleset>, layout: Option<Kind>) -> Self {
        let family = ruleset.family;
        let lay = |kind| ruleset.tables.iter().map(move |table| Laid::encode(kind, table, family));
        let laid = layout.into_iter().flat_map(lay).collect();
        Self::Read(ruleset, laid)
    }

    /// Names of the tables.
    pub(crate) fn tables(&self) -> SmallVec<[&'static str; 6]> {
        match self {
            Self::Read(ruleset, _) => ruleset.tables.iter().map(|table| table.name).collect(),
            Self::Revised(revision) => revision.tables().collect(),
        }
    }

    fn has_chain(&self, table: usize, hook: Hook) -> bool {
        match self {
            Self::Read(ruleset, _) => ruleset.tables[table].base_chain(hook).is_some(),
            Self::Revised(revision) => revision.has_chain(table, hook),
        }
    }

    fn family(&self) -> Family {
        match self {
            Self::Read(ruleset, _) => ruleset.family,
            Self::Revised(revision) => revision.family(),
        }
    }

    fn backend(&self) -> Backend {
        match self {
            Self::Read(ruleset, _) => ruleset.backend,
            Self::Revised(revision) => revision.backend(),
        }
    }

    /// Whether they make the kernel track connections, and whether they translate.
    fn tracks_and_translates(&self) -> (bool, bool) {
        match self {
            Self::Read(ruleset, _) => (ruleset.tracks(), ruleset.translates()),
            Self::Revised(revision) => (revision.tracks(), revision.translates()),
        }
    }

    /// Whether the packets show a host that opens connections in the place of clients. Where tamis is the filter itself,
    /// it is none.
    fn shows_proxy(&self) -> bool {
        matches!(self, Self::Read(ruleset, _) if ruleset.proxies())
    }
}

impl Tables {
    /// Of rules as they were read, laid out unless the model is to be walked.
    pub(crate) fn of(ruleset: Arc<Ruleset>, layout: Option<Kind>) -> Self {
        Self::new(Rules::laid(ruleset, layout))
    }

    /// Of a revision: looks at its tables and chains, and at no rule.
    pub(crate) fn of_revision(revision: Arc<Revision>) -> Self {
        Self::new(Rules::Revised(revision))
    }

    /// Of a revision that comes after the one of these tables: their turns stay while the built-in chains do.
    pub(crate) fn after(&self, next: Arc<Revision>) -> Self {
        match &self.rules {
            Rules::Revised(old) if old.has_hooks_of(&next) => Self {
                roles: self.roles.clone(),
                hooks: self.hooks,
                tracks: next.tracks(),
                translates: next.translates(),
                shows_proxy: false,
                family: next.family(),
                backend: next.backend(),
                rules: Rules::Revised(next),
            },
            _ => Self::of_revision(next),
        }
    }

    fn new(rules: Rules) -> Self {
        let names = rules.tables();
        let (tracks, translates) = rules.tracks_and_translates();
        Self {
            roles: names.iter().map(|name| role_of(name, rules.family())).collect(),
            tracks,
            translates,
            shows_proxy: tracks && rules.shows_proxy(),
            hooks: Hook::ALL.map(|hook| Turns::at(hook, &rules, &names)),
            family: rules.family(),
            backend: rules.backend(),
            rules,
        }
    }

    /// The rules.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Their family.
    #[inline]
    pub(crate) fn family(&self) -> Family {
        self.family
    }

    /// The implementation that they are for.
    #[inline]
    pub(crate) fn backend(&self) -> Backend {
        self.backend
    }

    /// Whether they make the kernel track connections.
    pub(crate) fn tracks(&self) -> bool {
        self.tracks
    }

    /// Whether some rule translates.
    pub(crate) fn translates(&self) -> bool {
        self.translates
    }

    /// Whether some built-in chain at a hook has rules.
    pub(crate) fn has_rules(&self, hook: Hook) -> bool {
        match &self.rules {
            Rules::Read(ruleset, _) => ruleset.tables.iter().any(|table| has_rules(table, hook)),
            Rules::Revised(revision) => revision.has_rules(hook),
        }
    }

    /// Whether some rule asks by which ports of a bridge packets come and go.
    pub(crate) fn asks_for_ports(&self) -> bool {
        match &self.rules {
            Rules::Read(ruleset, _) => ruleset.asks_for_ports(),
            Rules::Revised(revision) => revision.asks_for_ports(),
        }
    }

    /// The rule at a place.
    pub(crate) fn rule(&self, at: RuleRef) -> Option<&Arc<Rule>> {
        match &self.rules {
            Rules::Read(ruleset, _) => {
                let table = ruleset.tables.get(at.table as usize)?;
                table.chains.get(at.chain as usize)?.rules.get(at.rule as usize)
            }
            Rules::Revised(revision) => revision.rule_at(at),
        }
    }

    /// What a table is for.
    #[inline]
    pub(super) fn role(&self, table: usize) -> Role {
        self.roles.get(table).copied().unwrap_or(Role::Other)
    }

    /// Whether there is a table of this kind.
    pub(super) fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// The tables at a hook: those before tracking, and those after it.
    #[inline]
    pub(super) fn at(&self, hook: Hook) -> (&[u8], &[u8]) {
        let Turns { tables, count, before_tracking } = &self.hooks[hook as usize];
        let tables = tables.get(..usize::from(*count)).unwrap_or_default();
        tables.split_at(usize::from(*before_tracking).min(tables.len()))
    }

    /// Walks one table's chain at the packet's hook.
    #[inline]
    pub(crate) fn walk(
        &self,
        table: usize,
        transit: &mut Transit<'_, '_>,
        entry: Alive,
        memories: &mut Memories,
        observer: &mut impl eval::Observer,
    ) -> Verdicts {
        match &self.rules {
            Rules::Read(ruleset, laid) => match laid.get(table) {
                Some(laid) => laid.walk(table, transit, entry, memories, observer),
                None => eval::walk(ruleset, table, transit, entry, memories, observer),
            },
            Rules::Revised(revision) => revision.walk(table, transit, entry, memories, observer),
        }
    }
}

fn role_of(table: &str, family: Family) -> Role {
    family.table(table).map_or(Role::Other, |kind| kind.role)
}

fn has_rules(table: &Table, hook: Hook) -> bool {
    table.base_chain(hook).is_some_and(|base| !table.chains[base].rules.is_empty())
}
