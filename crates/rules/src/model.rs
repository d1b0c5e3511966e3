//! The ruleset as a person edits it: tables, chains and rules in file order.
//!
//! One form for every family; what differs between families is a value ([`Family`] and the tables in
//! [`crate::TableKind`]). Nothing in here evaluates: see [`crate::eval`].
//!
//! Source: iptables(8), ip6tables(8), iptables-save(8).

use std::fmt;
use std::sync::Arc;

use crate::backend::Backend;
use crate::ext::{MatchUse, TargetUse};
use crate::family::{Role, TableKind};

pub use crate::family::{Family, Hook};
pub use crate::header::{
    Field, FieldTest, Header, HeaderTests, IfaceTest, MaskedAddr, ProtocolTest,
};
pub use crate::table_name::TableName;

/// What happens to a packet that falls off a built-in chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Go on to the next hook.
    Accept,
    /// Drop silently.
    Drop,
}

/// Packets and bytes of a rule or policy, as `iptables-save -c` prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets.
    pub packets: u64,
    /// Bytes, as the kernel counts them for the family.
    pub bytes: u64,
}

/// A whole ruleset of one family. A host may have tables of both implementations.
#[derive(Debug)]
pub struct Ruleset {
    /// The family of the rules.
    pub family: Family,
    /// The implementation that tables made later are for: what its text says, until someone says otherwise.
    pub backend: Backend,
    /// Tables in file order; the tables of the implementation that was registered first come first.
    pub tables: Vec<Table>,
}

/// One table: a set of chains that jump to each other only.
#[derive(Debug, Clone)]
pub struct Table {
    /// `filter`, `nat`, …; of nft with its family: `inet filter`.
    pub name: TableName,
    /// The implementation that holds it.
    pub backend: Backend,
    /// Chains in file order.
    pub chains: Vec<Chain>,
}

/// One chain.
#[derive(Debug, Clone)]
pub struct Chain {
    /// The chain's name, at most 28 bytes (`XT_EXTENSION_MAXNAMELEN` - 1).
    pub name: Box<str>,
    /// The hook of a built-in chain; `None` for a user chain.
    pub base: Option<Base>,
    /// What a user chain does with packets that fall off its end.
    pub fall_through: FallThrough,
    /// Rules in order; rule numbers as users write them start at 1. Layouts of the chain share them.
    pub rules: Vec<Arc<Rule>>,
    /// Line of the file that declared it, from 1; 0 if nothing did.
    pub line: u32,
}

/// What happens to a packet that no rule of a user chain decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FallThrough {
    /// The packet returns to the rule that jumped here.
    #[default]
    Return,
    /// The chain has a policy of its own.
    Policy(Policy),
}

/// What makes a chain a base chain: packets come to it at a hook. iptables calls it built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// Where it is attached.
    pub hook: Hook,
    /// The priority at the hook: chains with lower ones come first.
    pub priority: i32,
    /// What it is for.
    pub role: Role,
    /// What it does with packets that fall off its end.
    pub policy: Policy,
    /// Counters of the policy as the file gave them.
    pub counters: Counters,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The family's own tests (`-s -d -i -o -p -f`); `None` when the rule has none of them.
    pub header: Option<Header>,
    /// Matches in the order they are evaluated.
    pub matches: Box<[MatchUse]>,
    /// What happens when all of them match.
    pub action: Action,
    /// Counters as the file gave them.
    pub counters: Counters,
    /// Line of the file, from 1.
    pub line: u32,
    /// Where its counters stand in a worker's array; stays with the rule through every update.
    pub slot: u32,
    /// The rule's name among all rules of a ruleset, or of all its revisions: given once, and to no other rule after
    /// it.
    pub id: u64,
    /// How its language lists it, where that is not save text.
    pub listed: Option<Box<Listed>>,
}

/// A rule as another language than save text lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listed {
    /// The text of the rule, without its handle and its comment.
    pub text: Box<str>,
    /// The handle that the kernel gave it, if the listing has handles.
    pub handle: Option<u64>,
    /// The comment, if it has one.
    pub comment: Option<Box<str>>,
    /// The number of the rule in its chain, from 1; all parts of a rule have this number.
    pub number: u32,
    /// Whether it is listed with a counter, which the counters of this rule, or this part of it, are.
    pub counts: bool,
    /// Whether this is a part that only counts, before the other tests of its rule: the next part does the rest.
    pub is_part: bool,
}

/// What a rule does with a packet that it matches.
#[derive(Debug, Clone)]
pub enum Action {
    /// No `-j`: count and go on.
    None,
    /// `-j ACCEPT`.
    Accept,
    /// `-j DROP`.
    Drop,
    /// `-j RETURN`.
    Return,
    /// `-j CHAIN`, by index in [`Table::chains`].
    Jump(u32),
    /// `-g CHAIN`, by index in [`Table::chains`].
    Goto(u32),
    /// `-j TARGET` of an extension.
    Target(Box<TargetUse>),
}

impl Ruleset {
    /// The table of this name, as [`Ruleset::title`] tells it.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| self.title(table) == name)
    }

    /// What the text of a rule said that it counted, or of a chain's policy; nothing of a chain without one.
    ///
    /// # Panics
    /// There is no such table, chain or rule.
    #[must_use]
    pub fn counters(&self, table: usize, chain: usize, rule: Option<usize>) -> Counters {
        let chain = &self.tables[table].chains[chain];
        match rule {
            Some(rule) => chain.rules[rule].counters,
            None => chain.base.map(|base| base.counters).unwrap_or_default(),
        }
    }

    /// Whether some table has base chains of a role, or is of a kind that has them.
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        self.tables.iter().any(|table| table.has(self.family, role))
    }

    /// Gives all its tables to an implementation.
    pub fn evaluate_as(&mut self, backend: Backend) {
        self.backend = backend;
        self.tables.iter_mut().for_each(|table| table.backend = backend);
    }

    /// The name of a table as people and programs tell it: with its implementation's where it is not the ruleset's.
    #[must_use]
    pub fn title<'t>(&self, table: &'t Table) -> &'t str {
        match table.backend == self.backend {
            true => &table.name,
            false => table.backend.title(&table.name),
        }
    }

    /// Number of chains in all tables.
    #[must_use]
    pub fn chain_count(&self) -> usize {
        self.tables.iter().map(|table| table.chains.len()).sum()
    }

    /// Number of rules in all chains.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.tables.iter().flat_map(|table| &table.chains).map(|chain| chain.rules.len()).sum()
    }
}

impl Rule {
    /// The chains that it may lead to, by their index in the table.
    pub fn leads_to(&self) -> impl Iterator<Item = u32> {
        let (own, others) = match &self.action {
            Action::Jump(to) | Action::Goto(to) => (Some(*to), &[][..]),
            Action::Target(target) => (None, target.body.leads_to()),
            _ => (None, &[][..]),
        };
        own.into_iter().chain(others.iter().copied())
    }
}

impl Base {
    /// A base chain that accepts what falls off its end, with nothing counted.
    #[must_use]
    pub fn accepting(hook: Hook, priority: i32, role: Role) -> Self {
        Self { hook, priority, role, policy: Policy::Accept, counters: Counters::default() }
    }

    /// The built-in chain that a table of this kind has at a hook.
    #[must_use]
    pub fn built_in(kind: &TableKind, hook: Hook) -> Option<Self> {
        Some(Self::accepting(hook, kind.priority(hook)?, kind.role))
    }
}

impl Chain {
    /// Whether it is a base chain that does anything but let packets go.
    #[must_use]
    pub fn acts(&self) -> bool {
        self.base.is_some_and(|base| !self.rules.is_empty() || base.policy == Policy::Drop)
    }

    /// Whether the rule of this index is a part of the rule that comes after it.
    #[must_use]
    pub fn goes_on(&self, rule: usize) -> bool {
        let number = |at: usize| Some(self.rules.get(at)?.listed.as_ref()?.number);
        number(rule).is_some_and(|own| number(rule + 1) == Some(own))
    }

    /// The index of the part of a rule that has its counter, where that stands before tests of the rule.
    #[must_use]
    pub fn counting_part(&self, rule: usize) -> Option<usize> {
        let listed = |at: usize| self.rules.get(at)?.listed.as_ref();
        let number = listed(rule)?.number;
        let parts = (0..rule).rev().map_while(|at| Some((at, listed(at)?)));
        let mut parts = parts.take_while(|(_, part)| part.number == number);
        parts.find(|(_, part)| part.counts && part.is_part).map(|(at, _)| at)
    }
}

impl Table {
    /// Index of the chain of this name.
    #[must_use]
    pub fn chain_index(&self, name: &str) -> Option<usize> {
        self.chains.iter().position(|chain| &*chain.name == name)
    }

    /// Whether it has base chains of a role, or is of a kind that has them.
    #[must_use]
    pub fn has(&self, family: Family, role: Role) -> bool {
        let is_kind = family.table(&self.name).is_some_and(|kind| kind.role == role);
        is_kind || self.chains.iter().any(|chain| chain.base.is_some_and(|base| base.role == role))
    }

    /// Index of the built-in chain at this hook.
    #[must_use]
    pub fn base_chain(&self, hook: Hook) -> Option<usize> {
        self.chains.iter().position(|chain| chain.base.is_some_and(|base| base.hook == hook))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accept => "ACCEPT",
            Self::Drop => "DROP",
        })
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}:{}]", self.packets, self.bytes)
    }
}
