//! [`At`], [`Named`] and [`ConfigError`]: places in a configuration, and why it is refused there.

use std::fmt;
use std::path::{Path, PathBuf};

use dataplane::keys::{LineStarts, Value, Wrong, string};

/// A file, and where it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The path of the file, as it is opened.
    pub path: PathBuf,
    /// Where the configuration names it.
    pub at: At,
}

/// A place in the configuration, line and column from 1; the column counts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// A configuration that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, as named.
    pub file: String,
    /// The place in the file.
    pub at: At,
    /// The values allowed there, or the error of a file that is named there.
    pub what: String,
}

impl At {
    /// The place of an offset in a text with these lines.
    pub(super) fn of(lines: &LineStarts, offset: usize) -> Self {
        let (line, column) = lines.place(offset);
        Self { line, column }
    }
}

impl Named {
    /// A file that `config` names, a text with these lines.
    pub(super) fn of(config: &str, lines: &LineStarts, value: &Value<'_>) -> Result<Self, Wrong> {
        match string(value)? {
            "" => Err((value.span(), "expected the name of a file, found \"\"".to_owned())),
            name => Ok(Self { path: beside(config, name), at: At::of(lines, value.span().start) }),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.at.line, self.at.column, self.what)
    }
}

impl std::error::Error for ConfigError {}

/// The path of a file that a configuration names: in the configuration's folder, unless it is absolute.
fn beside(config: &str, name: &str) -> PathBuf {
    Path::new(config).parent().unwrap_or(Path::new("")).join(name)
}
