//! [`Warning`]: something odd that was taken, and how warnings of a text are collected.

use crate::error::What;

/// Something odd that was taken, with its first line and the number of times.
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
pub(super) struct LineWarnings<'w> {
    pub(super) warnings: &'w mut Warnings,
    pub(super) line: u32,
}

impl LineWarnings<'_> {
    pub(super) fn add(&mut self, what: impl Into<String>) {
        self.warnings.add(self.line, what);
    }

    pub(super) fn lenient(&mut self, column: u32, what: &str) -> Result<(), What> {
        self.warnings.lenient(self.line, column, what)
    }
}

/// Collects warnings, one entry for each kind.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    pub(super) list: Vec<Warning>,
    /// What the restore command refuses is refused.
    pub(super) strict: bool,
}

impl Warnings {
    pub(super) fn add(&mut self, line: u32, what: impl Into<String>) {
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
    pub(super) fn lenient(&mut self, line: u32, column: u32, what: &str) -> Result<(), What> {
        if self.strict {
            return Err(What::new(column, format!("no {what}: iptables-restore refuses it")));
        }
        self.add(line, what);
        Ok(())
    }
}
