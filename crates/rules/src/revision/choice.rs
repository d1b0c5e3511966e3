//! [`Which`] rule a change is about, and why it was [`Refused`].

use std::fmt;

use crate::model::Rule;

/// Which rule of a chain.
#[derive(Debug)]
pub enum Which {
    /// By its number, from 1, as users count.
    Number(usize),
    /// The first rule that reads the same.
    Same(Box<Rule>),
}

/// Why a change was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The family has no table of this name.
    UnknownTable(String),
    /// No table of this name is loaded.
    TableNotLoaded(String),
    /// The table has no chain of this name.
    UnknownChain {
        /// Name of the table.
        table: String,
        /// The name that was looked for.
        chain: String,
    },
    /// The table has a chain of this name already.
    ChainExists(String),
    /// The chain is a user chain: in this family only built-in ones have policies.
    NotBuiltIn(String),
    /// The chain is built in, or the family's user chains have no policies.
    NoUserPolicy(String),
    /// The chain is built in, has rules or is jumped to: it cannot be deleted.
    ChainInUse {
        /// Name of the chain.
        chain: String,
        /// Number of rules in it.
        rules: usize,
        /// Rules that jump to it.
        callers: i64,
    },
    /// The chain is built in, or the table has one of the new name already.
    CannotRename {
        /// Present name of the chain.
        old: String,
        /// The name that it was to have.
        new: String,
    },
    /// A rule jumps to a built-in chain, or to a deleted one.
    NotUserChain,
    /// No rule of the chain reads like the given rule.
    NoSuchRule {
        /// Name of the chain.
        chain: String,
    },
    /// No rule has this number.
    RuleNumber {
        /// The number that was given.
        number: usize,
        /// The highest number that would have been taken.
        last: usize,
    },
    /// A jump would close a loop of chains.
    Loop {
        /// The chain that would jump.
        from: String,
        /// The chain that it would jump to.
        to: String,
    },
}

impl Refused {
    pub(super) fn looped(from: &str, to: &str) -> Self {
        Self::Loop { from: from.to_owned(), to: to.to_owned() }
    }

    /// What was expected, and what was found.
    pub(super) fn what(&self) -> String {
        match self {
            Self::UnknownTable(table) => format!("a table, found {table}"),
            Self::TableNotLoaded(table) => format!("a table that is loaded, found {table}"),
            Self::UnknownChain { table, chain } => {
                format!("a chain of table {table}, found {chain}")
            }
            Self::ChainExists(name) => format!("a chain name that is not taken, found {name}"),
            Self::NotBuiltIn(chain) => format!("a built-in chain, found {chain}"),
            Self::NoUserPolicy(chain) => {
                format!("a user chain that has a policy, found {chain}")
            }
            Self::ChainInUse { chain, rules, callers } => format!(
                "a user chain that is empty and that no rule jumps to, found {chain} \
                 with {rules} rules and {callers} jumps to it"
            ),
            Self::CannotRename { old, new } => {
                format!("a user chain and a name that is not taken, found {old} and {new}")
            }
            Self::NotUserChain => "a jump to a user chain".to_owned(),
            Self::NoSuchRule { chain } => {
                format!("a rule of chain {chain}, found none that reads like this")
            }
            Self::RuleNumber { number, last } => {
                format!("a rule number from 1 to {last}, found {number}")
            }
            Self::Loop { from, to } => {
                format!("no loop of chains, found the jump {from} -> {to}")
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.what())
    }
}

impl std::error::Error for Refused {}

/// The index of this number, counted from 1, where `last` is the highest.
pub(super) fn place(number: usize, last: usize) -> Result<usize, Refused> {
    match number {
        1.. if number <= last => Ok(number - 1),
        _ => Err(Refused::RuleNumber { number, last }),
    }
}
