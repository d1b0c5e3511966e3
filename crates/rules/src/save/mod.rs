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
mod loops;
pub(crate) mod numbers;
mod open_table;
mod options;
pub(crate) mod policy;
mod print;
mod rule;

pub use crate::error::{LoadError, What};
pub use crate::lexer::{Word, words};
pub use file::load;
pub use kind::family_of;
pub(crate) use print::{print_header, print_match, print_named};
pub use print::{print_rule, print_ruleset};

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

/// Something odd that was taken, with the first line that has it and how many have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What is odd about it.
    pub what: String,
    /// First line, from 1.
    pub line: u32,
    /// Number of times.
    pub count: u32,
}

/// Kinds of warnings kept apart; a text can name as many unknown matches as it has lines.
const MAX_WARNINGS: usize = 64;

/// The warnings of a text, as one of its lines adds to them.
#[derive(Debug)]
struct LineWarnings<'w> {
    warnings: &'w mut Warnings,
    line: u32,
}

impl LineWarnings<'_> {
    fn add(&mut self, what: impl Into<String>) {
        self.warnings.add(self.line, what);
    }

    fn lenient(&mut self, column: u32, what: &str) -> Result<(), What> {
        self.warnings.lenient(self.line, column, what)
    }
}

/// Collects warnings, one entry for each kind.
#[derive(Debug, Default)]
struct Warnings {
    list: Vec<Warning>,
    /// What the restore command refuses is refused.
    strict: bool,
}

impl Warnings {
    fn add(&mut self, line: u32, what: impl Into<String>) {
        let what = what.into();
        if let Some(known) = self.list.iter_mut().find(|warning| warning.what == what) {
            known.count += 1;
        } else if self.list.len() >= MAX_WARNINGS {
            self.one_more(line);
        } else {
            self.list.push(Warning { what, line, count: 1 });
        }
    }

    /// Counts a warning that has no place of its own any more, in the last one.
    fn one_more(&mut self, line: u32) {
        let what = "more warnings of other kinds";
        match self.list.last_mut() {
            Some(last) if last.what == what => last.count += 1,
            _ => self.list.push(Warning { what: what.to_owned(), line, count: 1 }),
        }
    }

    /// Warns of what the restore command refuses, or refuses it too.
    fn lenient(&mut self, line: u32, column: u32, what: &str) -> Result<(), What> {
        if self.strict {
            return Err(What::new(column, format!("no {what}: iptables-restore refuses it")));
        }
        self.add(line, what);
        Ok(())
    }
}
