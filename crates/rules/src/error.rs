//! [`What`] was expected, and where: why text is refused.

use std::fmt;

/// Most bytes of an error's text: what was found there may be a word of any length.
const MAX_WHAT: usize = 240;

/// Why a ruleset was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// What was expected there.
    pub what: String,
}

/// What was expected at a column; the reader of lines adds the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct What {
    /// Column in bytes, from 1.
    pub column: u32,
    /// What was expected.
    pub what: String,
}

impl What {
    /// `what` was expected at `column`.
    pub fn new(column: u32, what: impl Into<String>) -> Self {
        Self { column, what: what.into() }
    }

    /// Returns the error with its line, and cut to a bounded length.
    #[must_use]
    pub fn at_line(mut self, line: u32) -> LoadError {
        if self.what.len() > MAX_WHAT {
            self.what.truncate(self.what.floor_char_boundary(MAX_WHAT));
            self.what.push('…');
        }
        LoadError { line, column: self.column, what: self.what }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: expected {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for LoadError {}
