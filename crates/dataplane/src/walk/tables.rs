//! [`Tables`]: the rules as they are walked, and which of their tables at which hook.

use std::sync::Arc;

use host::Host;
use rules::eval::{self, Alive, Memories, RuleRef, Verdicts};
use rules::model::{Family, Hook, Rule, Ruleset};
use rules::revision::Revision;
use rules::{CONNTRACK, Role, Transit};
use smallvec::SmallVec;

use super::foreign::{self, Met, Placed};

/// As many tables as a family has in both implementations, and more.
const TABLES: usize = 12;
/// As many as it has in one.
const USUAL: usize = 6;
/// As many turns as its tables have at a hook, connection tracking among them, and foreign chains between all of them.
const TURNS: usize = 2 * TABLES + 2;

/// What is attached to one hook, in order of priority: tables of both implementations by their numbers, and chains that are
/// not evaluated by the numbers after those. Small enough to be copied from program to program.
#[derive(Debug, Clone, Copy)]
struct Turns {
    tables: [u8; TURNS],
    count: u8,
    /// How many of them come before connections are tracked.
    before_tracking: u8,
}

impl Turns {
    const NONE: Self = Self { tables: [0; TURNS], count: 0, before_tracking: 0 };

    fn at(hook: Hook, revision: &Revision, foreign: &[Placed], slots: &mut Vec<Vec<Met>>) -> Self {
        let tables = revision.tables().count();
        let mut all = Self::NONE;
        let mut from = i32::MIN;
        let mut between = |all: &mut Self, to: i32| {
            let placed = foreign.iter().filter(|placed| placed.hook == hook);
            let met = placed.filter(|placed| (from..=to).contains(&placed.priority));
            let met: Vec<Met> = met.map(|placed| placed.met.clone()).collect();
            if !met.is_empty() {
                all.push(tables + slots.len());
                slots.push(met);
            }
            from = to;
        };
        let mut tracked = false;
        for (priority, table) in revision.turns(hook) {
            if priority >= CONNTRACK && !tracked {
                between(&mut all, CONNTRACK);
                (all.before_tracking, tracked) = (all.count, true);
            }
            between(&mut all, priority);
            all.push(table);
        }
        if !tracked {
            between(&mut all, CONNTRACK);
            all.before_tracking = all.count;
        }
        between(&mut all, i32::MAX);
        all
    }

    /// All of them, in their order.
    #[inline]
    fn all(&self) -> &[u8] {
        self.tables.get(..usize::from(self.count)).unwrap_or_default()
    }

    fn push(&mut self, table: usize) {
        if let Some(to) = self.tables.get_mut(usize::from(self.count)) {
            (*to, self.count) = (table as u8, self.count + 1);
        }
    }
}

/// The tables of one family, laid out to be walked, by hook.
#[derive(Debug)]
pub(crate) struct Tables {
    revision: Arc<Revision>,
    /// The rules as they were read, where packets walk those.
    reference: Option<Arc<Ruleset>>,
    family: Family,
    roles: SmallVec<[Role; USUAL]>,
    /// By `Hook as usize`: the tables in their turns there, of which the first few come before tracking.
    hooks: [Turns; Hook::ALL.len()],
    /// Connections are tracked; without that the nat chains are never walked.
    pub(super) tracks: bool,
    /// Some rule translates.
    pub(super) translates: bool,
    /// Several tables translate.
    shares_nat: bool,
    /// The last table at OUTPUT that has own packets routed again which it changes, where it has rules there.
    remarks: Option<usize>,
    /// Foreign chains between tables, which have the numbers after those of the tables.
    foreign: Vec<Vec<Met>>,
}

impl Tables {
    /// The tables of a revision on this host, where packets walk `reference` in its place if that is given. Looks at its
    /// tables and chains, and at no rule.
    pub(crate) fn of(
        revision: Arc<Revision>,
        reference: Option<Arc<Ruleset>>,
        host: &Host,
    ) -> Self {
        let family = revision.family();
        let foreign = foreign::placed(host, family);
        let mut slots = Vec::new();
        let hooks = Hook::ALL.map(|hook| Turns::at(hook, &revision, &foreign, &mut slots));
        let roles = revision.tables().map(|name| role_of(name, family)).collect();
        Self::attached(revision, reference, roles, hooks, slots)
    }

    /// Of a revision that comes after the one of these tables: their turns stay while the built-in chains do.
    pub(crate) fn after(&self, next: Arc<Revision>, host: &Host) -> Self {
        match self.revision.has_hooks_of(&next) {
            true => {
                let Self { roles, hooks, foreign, .. } = self;
                Self::attached(next, None, roles.clone(), *hooks, foreign.clone())
            }
            false => Self::of(next, None, host),
        }
    }

    /// The tables of a revision that are attached to hooks like this, and what it knows of their rules.
    fn attached(
        revision: Arc<Revision>,
        reference: Option<Arc<Ruleset>>,
        roles: SmallVec<[Role; USUAL]>,
        hooks: [Turns; Hook::ALL.len()],
        foreign: Vec<Vec<Met>>,
    ) -> Self {
        let remarks = |table: &u8| {
            let table = usize::from(*table);
            let is_it = roles.get(table) == Some(&Role::Mangle);
            (is_it && revision.has_rules_in(table, Hook::Output)).then_some(table)
        };
        Self {
            family: revision.family(),
            tracks: revision.tracks(),
            translates: revision.translates(),
            shares_nat: roles.iter().filter(|role| **role == Role::Translate).count() > 1,
            remarks: hooks[Hook::Output as usize].all().iter().rev().find_map(remarks),
            roles,
            hooks,
            foreign,
            reference,
            revision,
        }
    }

    /// The rules.
    pub(crate) fn revision(&self) -> &Arc<Revision> {
        &self.revision
    }

    /// Their family.
    #[inline]
    pub(crate) fn family(&self) -> Family {
        self.family
    }

    /// Whether they make the kernel track connections.
    pub(crate) fn tracks(&self) -> bool {
        self.tracks
    }

    /// The last table at OUTPUT that may change own packets so that they are routed again.
    pub(super) fn remarks(&self) -> Option<usize> {
        self.remarks
    }

    /// Whether some table may.
    pub(crate) fn may_remark(&self) -> bool {
        self.remarks.is_some()
    }

    /// Whether the packets may show a host that opens connections in the place of clients.
    pub(super) fn shows_proxy(&self) -> bool {
        self.tracks && self.revision.proxies()
    }

    /// Whether some rule translates.
    pub(crate) fn translates(&self) -> bool {
        self.translates
    }

    /// Whether some built-in chain at a hook has rules.
    pub(crate) fn has_rules(&self, hook: Hook) -> bool {
        self.revision.has_rules(hook)
    }

    /// Whether some rule remembers earlier packets.
    pub(super) fn remember(&self) -> bool {
        self.revision.remembers()
    }

    /// Whether some rule asks by which ports of a bridge packets come and go.
    pub(crate) fn asks_for_ports(&self) -> bool {
        self.revision.asks_for_ports()
    }

    /// The rule at a place.
    pub(crate) fn rule(&self, at: RuleRef) -> Option<&Arc<Rule>> {
        self.revision.rule_at(at)
    }

    /// What a table is for; `None` where the number is that of foreign chains.
    #[inline]
    pub(super) fn role(&self, table: usize) -> Option<Role> {
        self.roles.get(table).copied()
    }

    /// Whether packets meet foreign chains.
    pub(super) fn has_foreign(&self) -> bool {
        !self.foreign.is_empty()
    }

    /// Whether the table, or the foreign chains, of this number have own packets routed again which they change.
    pub(super) fn reroutes(&self, turn: usize) -> bool {
        self.role(turn) == Some(Role::Mangle) || self.foreign(turn).iter().any(Met::reroutes)
    }

    /// The tables that translate at a hook, where there is more than one: two have the turn of the first.
    fn nat_at(&self, hook: Hook) -> impl Iterator<Item = usize> {
        let turns = if self.shares_nat { self.hooks[hook as usize].all() } else { &[] };
        let turns = turns.iter().map(|turn| usize::from(*turn));
        turns.filter(|turn| self.role(*turn) == Some(Role::Translate))
    }

    /// The tables that translate after this one at a hook.
    pub(super) fn nat_after(&self, hook: Hook, table: usize) -> impl Iterator<Item = usize> {
        self.nat_at(hook).skip_while(move |turn| *turn != table).skip(1)
    }

    /// Whether a table that translates comes before this one at a hook.
    pub(super) fn follows_nat(&self, hook: Hook, table: usize) -> bool {
        self.shares_nat && self.nat_at(hook).next() != Some(table)
    }

    /// The foreign chains of a number that no table has.
    pub(super) fn foreign(&self, turn: usize) -> &[Met] {
        turn.checked_sub(self.roles.len())
            .and_then(|at| self.foreign.get(at))
            .map_or(&[], Vec::as_slice)
    }

    /// Whether there is a table of this kind.
    pub(super) fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// The tables at a hook: those before tracking, and those after it.
    #[inline]
    pub(super) fn at(&self, hook: Hook) -> (&[u8], &[u8]) {
        let turns = &self.hooks[hook as usize];
        let all = turns.all();
        all.split_at(usize::from(turns.before_tracking).min(all.len()))
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
        match &self.reference {
            None => self.revision.walk(table, transit, entry, memories, observer),
            Some(ruleset) => eval::walk(ruleset, table, transit, entry, memories, observer),
        }
    }
}

fn role_of(table: &str, family: Family) -> Role {
    family.table(table).map_or(Role::Other, |kind| kind.role)
}
