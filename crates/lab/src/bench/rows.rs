//! What a benchmark has found so far: rows, printed as they are measured, and kept for what is made of all of them.
//!
//! Contract: for programs each row is one line, a JSON document of its own with the machine and the date (schema
//! `tamis.bench/2`), and so is what could not be measured; a line is written whole, at once. Once SIGTERM came nothing is
//! printed any more, since it may have ended what was being measured.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::document::{Machine, Missing, Row};
use super::limit;

/// Schema of a line.
pub(super) const SCHEMA: &str = "tamis.bench/2";

/// Who reads rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Nobody,
    People,
    Programs,
}

/// A sink of rows.
#[derive(Debug)]
pub struct Rows {
    reader: Reader,
    machine: Machine,
    rows: Vec<Row>,
    missing: Vec<Missing>,
}

/// A document of one line.
#[derive(Serialize)]
struct Line<'l, T> {
    schema: &'static str,
    machine: &'l Machine,
    date: String,
    #[serde(flatten)]
    what: &'l T,
}

impl Rows {
    /// A sink that prints rows to standard output, as JSON or for people.
    #[must_use]
    pub fn printed(json: bool) -> Self {
        let rows = Self::of(if json { Reader::Programs } else { Reader::People });
        rows.text(&rows.machine);
        rows
    }

    /// A sink that keeps rows and prints nothing.
    #[must_use]
    pub fn kept() -> Self {
        Self::of(Reader::Nobody)
    }

    fn of(reader: Reader) -> Self {
        Self { reader, machine: Machine::this(), rows: Vec::new(), missing: Vec::new() }
    }

    /// The rows so far.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// What is missing so far.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Takes in a row, unless it stands alone and the same was measured beside a peer.
    pub fn push(&mut self, row: Row) {
        let is = |one: &Row| {
            one.peer.is_some()
                && (&one.name, one.engine, &one.params) == (&row.name, row.engine, &row.params)
        };
        if row.peer.is_none() && self.rows.iter().any(is) {
            return;
        }
        self.print(&row);
        self.rows.push(row);
    }

    /// Takes in rows.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = Row>) {
        rows.into_iter().for_each(|row| self.push(row));
    }

    /// Takes in a row beside each of some peers, whose runs were taken in turn with ours; alone if there are none.
    pub fn push_beside(
        &mut self,
        row: Row,
        ours: &[f64],
        peers: impl Iterator<Item = (&'static str, Vec<f64>)>,
    ) {
        let before = self.rows.len();
        for (peer, theirs) in peers {
            self.push(row.clone().beside(peer, ours, &theirs));
        }
        if self.rows.len() == before {
            self.push(row);
        }
    }

    /// Lists what could not be measured, once.
    pub fn lacks(&mut self, what: impl Into<Cow<'static, str>>, why: impl Into<String>) {
        let missing = Missing { peer: what.into(), why: why.into() };
        if !self.missing.contains(&missing) {
            self.print(&missing);
            self.missing.push(missing);
        }
    }

    /// Whether there is time for an experiment; if not, it is listed as left out.
    pub fn begins(&mut self, experiment: impl Into<Cow<'static, str>>) -> bool {
        let begins = !limit::is_over();
        if !begins {
            self.lacks(experiment, "left out: the time that was given is over");
        }
        begins
    }

    /// Prints what is for people only.
    pub fn text(&self, text: &(impl Display + ?Sized)) {
        if self.reader == Reader::People && !limit::is_stopped() {
            show(text);
        }
    }

    /// When and where, for captions.
    pub(super) fn conditions(&self) -> (&Machine, String) {
        (&self.machine, now())
    }

    /// What a program reads of a row, or of what is missing.
    pub(super) fn line(&self, what: &impl Serialize) -> serde_json::Result<String> {
        serde_json::to_string(&Line { schema: SCHEMA, machine: &self.machine, date: now(), what })
    }

    fn print(&self, what: &(impl Display + Serialize)) {
        match self.reader {
            Reader::Programs if !limit::is_stopped() => match self.line(what) {
                Ok(line) => show(&line),
                Err(error) => eprintln!("tamis-bench: a row: {error}"),
            },
            Reader::People => self.text(what),
            Reader::Programs | Reader::Nobody => {}
        }
    }
}

/// Now, RFC 3339.
fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    pktio::Timestamp::from_nanos(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)).to_string()
}

/// A line on standard output, whole. A reader that is gone (`… | head`) changes nothing of what is measured.
pub fn show(line: &(impl Display + ?Sized)) {
    let line = format!("{line}\n");
    let mut output = io::stdout().lock();
    if let Err(error) = output.write_all(line.as_bytes()).and_then(|()| output.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        eprintln!("tamis-bench: standard output: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_stands_beside_each_peer_and_what_is_missing_is_listed_once() {
        let mut rows = Rows::kept();
        let row = || Row::new("x", "tamis", "1/s", &[6.0]);
        rows.push_beside(row(), &[6.0], [("a", vec![3.0]), ("b", vec![2.0])].into_iter());
        // Alone, but it was measured beside a peer.
        rows.push_beside(row(), &[6.0], [].into_iter());
        rows.push_beside(Row::new("y", "tamis", "1/s", &[6.0]), &[6.0], [].into_iter());
        let ratios = rows.rows().iter().map(|row| row.peer.as_ref().map(|peer| peer.ratio));
        assert_eq!(ratios.collect::<Vec<_>>(), [Some(2.0), Some(3.0), None]);
        for why in ["not there", "not there", "too old"] {
            rows.lacks("a", why);
        }
        assert_eq!(rows.missing().len(), 2);
    }
}
