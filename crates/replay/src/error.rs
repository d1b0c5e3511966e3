//! Why a replay could not start or go on. Each names its file and place.

use std::fmt;

use pktio::PortError;
use rules::model::TableName;
use rules::save::LoadError;

/// Why a replay could not start or go on.
#[derive(Debug)]
pub enum Error {
    /// A file could not be read or written.
    File {
        /// Name of the file, as given.
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The system starts no more threads.
    Threads {
        /// How many were wanted.
        wanted: usize,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A rules file is not UTF-8.
    Encoding {
        /// Name of the file, as given.
        file: String,
        /// Line of the first wrong byte, from 1.
        line: usize,
        /// Column of that byte, from 1.
        column: usize,
    },
    /// A rules or cases file begins with bytes that no text has.
    Binary {
        /// Name of the file, as given.
        file: String,
        /// What it is.
        what: &'static str,
    },
    /// A text was given where another kind of text belongs.
    Swapped {
        /// Name of the file, as given.
        file: String,
        /// What was expected.
        expected: &'static str,
        /// What it is, and where that belongs.
        found: &'static str,
    },
    /// A rules file was refused.
    Rules {
        /// Name of the file, as given.
        file: String,
        /// Where and why.
        source: LoadError,
    },
    /// A cases file was refused.
    Cases {
        /// Name of the file, as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// A file of access-list changes was refused.
    Bans {
        /// Name of the file, as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What was expected there.
        what: String,
    },
    /// A file that says something of the host was refused.
    Read {
        /// Name of the file, as given.
        file: String,
        /// Where and why: line, column and what was expected there.
        what: String,
    },
    /// What was given does not go together: one line that says why.
    Given(String),
    /// No packet of the captures makes a case.
    NothingToRecord {
        /// How many packets there were, and why none of them makes a case.
        found: String,
    },
    /// A rules file has no such table.
    NoTable {
        /// Name of the file, as given.
        file: String,
        /// The table asked for.
        table: String,
        /// Tables that the file has.
        has: Vec<TableName>,
    },
    /// A capture could not be read.
    Capture(PortError),
    /// A filter cannot be compiled or run: one line that says why.
    Filter(String),
    /// Two rulesets that are to be compared, or used together, do not go together.
    Families {
        /// The file that does not fit.
        file: String,
        /// What its family should be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// The captures hold fewer packets than the one asked for.
    NoSuchPacket {
        /// Asked for.
        number: String,
        /// How many the capture has.
        packets: Option<u64>,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, source } => write!(f, "{file}: {source}"),
            Self::Threads { wanted, source } => {
                write!(f, "-j {wanted}: the system starts no more threads: {source}")
            }
            Self::Encoding { file, line, column } => write!(
                f,
                "{file}:{line}:{column}: expected UTF-8 text (convert it: iconv -f latin1 -t utf-8)"
            ),
            Self::Binary { file, what } => write!(f, "{file}: expected text, found {what}"),
            Self::Swapped { file, expected, found } => {
                write!(f, "{file}: expected {expected}, found {found}")
            }
            Self::Rules { file, source } => write!(f, "{file}:{source}"),
            Self::Read { file, what } => write!(f, "{file}:{what}"),
            Self::Given(what) => f.write_str(what),
            Self::Cases { file, line, column, what } | Self::Bans { file, line, column, what } => {
                write!(f, "{file}:{line}:{column}: {what}")
            }
            Self::NothingToRecord { found } => {
                write!(f, "expected a packet whose verdict is known to record, found {found}")
            }
            Self::NoTable { file, table, has } => {
                write!(
                    f,
                    "{file}: expected a table \"{table}\", found {}",
                    has.iter().map(|name| &**name).collect::<Vec<_>>().join(" ")
                )
            }
            Self::Capture(source) => write!(f, "{source}"),
            Self::Filter(what) => write!(f, "--filter: {what}"),
            Self::Families { file, expected, found } => {
                write!(f, "{file}: expected {expected} rules, found {found} rules")
            }
            Self::NoSuchPacket { number, packets: Some(packets) } => {
                write!(f, "expected a packet number from 1 to {packets}, found {number}")
            }
            Self::NoSuchPacket { number, packets: None } => {
                write!(f, "expected a packet as FILE:N, with one of the captures, found {number}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<PortError> for Error {
    fn from(source: PortError) -> Self {
        Self::Capture(source)
    }
}

/// The words of the system without its error numbers: `(os error 2)` tells nobody anything.
#[must_use]
pub fn without_numbers(text: &str) -> String {
    let mut words = text.split(" (os error ");
    let mut out = words.next().unwrap_or_default().to_owned();
    for rest in words {
        out.push_str(rest.split_once(')').map_or("", |(_, rest)| rest));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    #[test]
    fn error_numbers_of_the_system_are_left_out() {
        assert_eq!(without_numbers("a: No such file (os error 2)"), "a: No such file");
        assert_eq!(without_numbers("a (os error 2): b (os error 13), c"), "a: b, c");
        assert_eq!(without_numbers("nothing to leave out"), "nothing to leave out");
    }
}
