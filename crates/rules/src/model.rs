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

pub use crate::family::{Family, Hook};
pub use crate::header::{
    Field, FieldTest, Header, HeaderTests, IfaceTest, MaskedAddr, ProtocolTest,
};

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
    /// `filter`, `nat`, …
    pub name: &'static str,
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

/// What makes a chain built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// Where it is attached.
    pub hook: Hook,
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

    /// Gives all its tables to an implementation.
    pub fn evaluate_as(&mut self, backend: Backend) {
        self.backend = backend;
        self.tables.iter_mut().for_each(|table| table.backend = backend);
    }

    /// The name of a table as people and programs tell it: with its implementation's where it is not the ruleset's.
    #[must_use]
    pub fn title(&self, table: &Table) -> &'static str {
        match table.backend == self.backend {
            true => table.name,
            false => table.backend.title(table.name),
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

impl Table {
    /// Index of the chain of this name.
    #[must_use]
    pub fn chain_index(&self, name: &str) -> Option<usize> {
        self.chains.iter().position(|chain| &*chain.name == name)
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
