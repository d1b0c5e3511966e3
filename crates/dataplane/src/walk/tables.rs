//! [`Tables`]: the rules as they are walked, and which of their chains at which hook.

use std::sync::Arc;

use host::Host;
use rules::eval::{self, Alive, Memories, RuleRef, Turn, Verdicts};
use rules::model::{Family, Hook, Policy, Rule, Ruleset};
use rules::revision::Revision;
use rules::{CONNTRACK, DEFRAG, Role, Transit};

use super::foreign::{self, Met, Placed};

/// What has a turn at a hook: a base chain, a table that translates without one, or chains that are not evaluated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Attached {
    /// What the chain is for; `None` of chains that are not evaluated.
    pub(super) role: Option<Role>,
    /// The table's number; of chains that are not evaluated their place in `foreign`.
    pub(super) table: u32,
    /// The base chain, by its index in the table, and its policy.
    pub(super) base: Option<(u32, Policy)>,
    /// It comes before fragments are put together.
    pub(super) sees_fragments: bool,
}

impl Attached {
    /// Whether it translates flows.
    pub(super) fn translates(&self) -> bool {
        self.role == Some(Role::Translate)
    }

    /// The index of the chain, which observers get.
    pub(super) fn chain(&self) -> Option<u32> {
        self.base.map(|(chain, _)| chain)
    }
}

/// What is attached to one hook, in order of priority.
#[derive(Debug, Clone, Default)]
struct Turns {
    before_tracking: Box<[Attached]>,
    after: Box<[Attached]>,
}

impl Turns {
    fn at(hook: Hook, revision: &Revision, foreign: &[Placed], slots: &mut Vec<Vec<Met>>) -> Self {
        let mut all = Vec::new();
        let mut from = i32::MIN;
        let mut between = |all: &mut Vec<Attached>, to: i32| {
            let placed = foreign.iter().filter(|placed| placed.hook == hook);
            let met = placed.filter(|placed| (from..=to).contains(&placed.priority));
            let met: Vec<Met> = met.map(|placed| placed.met.clone()).collect();
            if !met.is_empty() {
                let (table, sees_fragments) = (slots.len() as u32, false);
                all.push(Attached { role: None, table, base: None, sees_fragments });
                slots.push(met);
            }
            from = to;
        };
        let mut before_tracking = None;
        for Turn { priority, table, base, role } in revision.turns(hook) {
            if priority >= CONNTRACK && before_tracking.is_none() {
                between(&mut all, CONNTRACK);
                before_tracking = Some(std::mem::take(&mut all));
            }
            between(&mut all, priority);
            let sees_fragments = priority < DEFRAG;
            all.push(Attached { role: Some(role), table, base, sees_fragments });
        }
        let before_tracking = before_tracking.unwrap_or_else(|| {
            between(&mut all, CONNTRACK);
            std::mem::take(&mut all)
        });
        between(&mut all, i32::MAX);
        Self { before_tracking: before_tracking.into(), after: all.into() }
    }

    /// All of them, in their order.
    fn all(&self) -> impl DoubleEndedIterator<Item = &Attached> {
        self.before_tracking.iter().chain(&self.after)
    }
}

/// The tables of one family, laid out to be walked, by hook.
#[derive(Debug)]
pub(crate) struct Tables {
    revision: Arc<Revision>,
    /// The rules as they were read, where packets walk those.
    reference: Option<Arc<Ruleset>>,
    family: Family,
    /// By `Hook as usize`: what has its turn there.
    hooks: [Turns; Hook::ALL.len()],
    /// Some chain translates flows, or would if it were there.
    has_nat: bool,
    /// Connections are tracked; without that the nat chains are never walked.
    pub(super) tracks: bool,
    /// Some rule translates.
    pub(super) translates: bool,
    /// Several chains translate at some hook.
    shares_nat: bool,
    /// The last chain at OUTPUT that has own packets routed again which it changes, where it has rules.
    remarks: Option<Attached>,
    /// Foreign chains between the chains of tables.
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
        Self::attached(revision, reference, hooks, slots)
    }

    /// Of a revision that comes after the one of these tables: their turns stay while the built-in chains do.
    pub(crate) fn after(&self, next: Arc<Revision>, host: &Host) -> Self {
        match self.revision.has_hooks_of(&next) {
            true => Self::attached(next, None, self.hooks.clone(), self.foreign.clone()),
            false => Self::of(next, None, host),
        }
    }

    /// The tables of a revision that are attached to hooks like this, and what it knows of their rules.
    fn attached(
        revision: Arc<Revision>,
        reference: Option<Arc<Ruleset>>,
        hooks: [Turns; Hook::ALL.len()],
        foreign: Vec<Vec<Met>>,
    ) -> Self {
        let may_remark = |turn: &&Attached| {
            let is_it = turn.role == Some(Role::Mangle);
            is_it && turn.chain().is_some_and(|chain| revision.has_rules_in(turn.table, chain))
        };
        let remarks = hooks[Hook::Output as usize].all().rev().find(may_remark).copied();
        let translate = |turns: &Turns| turns.all().filter(|turn| turn.translates()).count();
        Self {
            family: revision.family(),
            tracks: revision.tracks(),
            translates: revision.translates(),
            has_nat: revision.has(Role::Translate),
            shares_nat: hooks.iter().any(|turns| translate(turns) > 1),
            remarks,
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

    /// The last chain at OUTPUT that may change own packets so that they are routed again.
    pub(super) fn remarks(&self) -> Option<Attached> {
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

    /// Whether some chain sees fragments that come in before they are put together.
    pub(crate) fn see_fragments(&self) -> bool {
        let (before_tracking, _) = self.at(Hook::Prerouting);
        before_tracking.iter().any(|turn| turn.sees_fragments)
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

    /// Whether packets meet foreign chains.
    pub(super) fn has_foreign(&self) -> bool {
        !self.foreign.is_empty()
    }

    /// Whether the chain, or the foreign chains, whose turn this is have own packets routed again which they change.
    pub(super) fn reroutes(&self, turn: &Attached) -> bool {
        turn.role == Some(Role::Mangle) || self.foreign(turn).iter().any(Met::reroutes)
    }

    /// What translates at a hook, where several chains do at some hook: they have the turn of the first.
    fn nat_at(&self, hook: Hook) -> impl Iterator<Item = &Attached> {
        let turns = self.shares_nat.then(|| self.hooks[hook as usize].all());
        turns.into_iter().flatten().filter(|turn| turn.translates())
    }

    /// What translates after this at a hook.
    pub(super) fn nat_after(&self, hook: Hook, turn: Attached) -> impl Iterator<Item = &Attached> {
        self.nat_at(hook).skip_while(move |other| **other != turn).skip(1)
    }

    /// Whether something that translates comes before this at a hook.
    pub(super) fn follows_nat(&self, hook: Hook, turn: &Attached) -> bool {
        self.shares_nat && self.nat_at(hook).next() != Some(turn)
    }

    /// The foreign chains whose turn this is.
    pub(super) fn foreign(&self, turn: &Attached) -> &[Met] {
        match turn.role {
            None => self.foreign.get(turn.table as usize).map_or(&[], Vec::as_slice),
            Some(_) => &[],
        }
    }

    /// Whether some table translates flows, with or without rules.
    pub(super) fn has_nat(&self) -> bool {
        self.has_nat
    }

    /// What has its turn at a hook: before tracking, and after it.
    #[inline]
    pub(super) fn at(&self, hook: Hook) -> (&[Attached], &[Attached]) {
        let turns = &self.hooks[hook as usize];
        (&turns.before_tracking, &turns.after)
    }

    /// Walks the base chain whose turn it is.
    #[inline]
    pub(super) fn walk(
        &self,
        turn: &Attached,
        transit: &mut Transit<'_, '_>,
        entry: Alive,
        memories: &mut Memories,
        observer: &mut impl eval::Observer,
    ) -> Verdicts {
        let Attached { table, base, .. } = *turn;
        match &self.reference {
            None => self.revision.walk_from((table, base), transit, entry, memories, observer),
            Some(ruleset) => {
                let role = turn.role.unwrap_or(Role::Other);
                let turn = Turn { priority: 0, table, base, role };
                eval::walk_turn(ruleset, &turn, transit, entry, memories, observer)
            }
        }
    }

    /// Walks the first base chain that a table has at the packet's hook.
    #[inline]
    pub(crate) fn walk_table(
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
