//! Save text: what `iptables-save`, `ip6tables-save`, `arptables-save` and `ebtables-save` print and their
//! `-restore` commands read.
//!
//! [`load`] reads text into a [`Ruleset`], [`print_ruleset`] and [`print_rule`] write it back in
//! canonical form (that of iptables 1.8.13). Text comes in lenient: what old tools and hands leave behind
//! is taken with a [`Warning`], unless [`LoadOptions::strict`] asks for what the restore command takes.
//!
//! Source: iptables-save(8), iptables-restore(8), iptables(8).

pub(crate) mod chain_name;
mod dialect;
mod file;
mod header;
mod kind;
pub(crate) mod line;
mod listed;
mod loops;
pub(crate) mod numbers;
mod open_table;
mod options;
pub(crate) mod policy;
mod print;
mod rule;
mod warnings;

pub use crate::error::{LoadError, What};
pub use crate::lexer::{Word, words};
pub use file::load;
pub use kind::family_of;
pub(crate) use listed::print_listed_header;
pub use loops::check as check_loops;
pub(crate) use print::{print_header, print_match, print_named};
pub use print::{print_rule, print_ruleset};
pub use warnings::Warning;

use crate::family::Family;
use crate::model::Ruleset;

/// How [`load`] reads.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadOptions<'a> {
    /// Family of the rules; `None` to tell it from the text.
    pub family: Option<Family>,
    /// Table of rules that stand before any `*table` line (`iptables -S` text).
    pub table: Option<&'a str>,
    /// Refuse what the restore command refuses.
    pub strict: bool,
}

/// A ruleset as loaded.
#[derive(Debug)]
pub struct Loaded {
    /// The ruleset that the text makes.
    pub ruleset: Ruleset,
    /// How the family was found.
    pub family_from: FamilyFrom,
    /// What was taken although the restore command may refuse it, or will not do what it says.
    pub warnings: Vec<Warning>,
}

/// Where the family of a ruleset came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyFrom {
    /// [`LoadOptions::family`].
    Given,
    /// The comment that the save tool writes first.
    HeaderComment,
    /// An address or option that only one family has.
    Text,
    /// Nothing: IPv4 was assumed.
    Assumed,
}
