//! Rows as they were written: what figures are drawn from, whether they were measured just now or long ago.

use serde::Deserialize;
use serde_json::{Deserializer, Map, Value, json};

use super::rows::{Rows, SCHEMA};

/// The schema before rows were lines: one document with all of them.
const ONE_DOCUMENT: &str = "tamis.bench/1";

/// What a benchmark printed.
#[derive(Debug, Clone, Deserialize)]
pub struct Recorded {
    /// Where.
    pub machine: Machine,
    /// When the first row was measured, RFC 3339.
    pub date: String,
    /// A row for each figure.
    pub results: Vec<Measured>,
}

/// The machine, as far as captions name it.
#[derive(Debug, Clone, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub cpu: String,
    /// Cores.
    pub cores: usize,
}

/// One row.
#[derive(Debug, Clone, Deserialize)]
pub struct Measured {
    /// What was measured.
    pub name: String,
    /// What did the work.
    pub engine: String,
    /// What was varied.
    pub params: Map<String, Value>,
    /// The median of all runs.
    pub value: f64,
    /// The least of them.
    pub min: f64,
    /// The most of them.
    pub max: f64,
    /// How many runs.
    pub runs: usize,
    /// What did the same work beside it.
    pub peer: Option<String>,
    /// The peer's median.
    pub peer_value: Option<f64>,
}

/// A line; without a row where it says what is missing.
#[derive(Deserialize)]
struct Line {
    machine: Machine,
    date: String,
    #[serde(flatten)]
    row: Option<Measured>,
}

impl Recorded {
    /// Of what was printed with --json: a document a line, or one of the schema before that. A last line that was cut
    /// off is left out.
    ///
    /// # Errors
    /// It is no such text.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let mut recorded: Option<Self> = None;
        for value in Deserializer::from_str(text).into_iter::<Value>() {
            let value = match value {
                Err(why) if why.is_eof() && recorded.is_some() => break,
                value => value.map_err(|why| why.to_string())?,
            };
            let wrong = |why: serde_json::Error| why.to_string();
            match value.get("schema").and_then(Value::as_str) {
                Some(ONE_DOCUMENT) => return serde_json::from_value(value).map_err(wrong),
                Some(SCHEMA) => {
                    let Line { machine, date, row } =
                        serde_json::from_value(value).map_err(wrong)?;
                    let first = || Self { machine, date, results: Vec::new() };
                    recorded.get_or_insert_with(first).results.extend(row);
                }
                found => {
                    return Err(format!(
                        "expected schema {SCHEMA} or {ONE_DOCUMENT}, found {found:?}"
                    ));
                }
            }
        }
        recorded.ok_or_else(|| format!("expected lines of schema {SCHEMA}, found none"))
    }

    /// Of what was measured just now.
    ///
    /// # Errors
    /// A figure is no number.
    pub fn of(rows: &Rows) -> Result<Self, String> {
        let (machine, date) = rows.conditions();
        let document = json!({ "machine": machine, "date": date, "results": rows.rows() });
        serde_json::from_value(document).map_err(|why| why.to_string())
    }

    /// The rows of a name.
    pub fn named<'r, 'n>(
        &'r self,
        name: &'n str,
    ) -> impl Iterator<Item = &'r Measured> + use<'r, 'n> {
        self.results.iter().filter(move |row| row.name == name)
    }

    /// How it was measured, with its machine and its day.
    #[must_use]
    pub fn note(&self, how: &str) -> String {
        let day = self.date.split('T').next().unwrap_or_default();
        format!("{how}; {}, {} cores, {day}", self.machine.cpu, self.machine.cores)
    }
}

impl Measured {
    /// A parameter that is a word; empty where there is none.
    #[must_use]
    pub fn word(&self, name: &str) -> &str {
        self.params.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A parameter that is a number; 0 where there is none.
    #[must_use]
    pub fn number(&self, name: &str) -> f64 {
        self.params.get(name).and_then(Value::as_f64).unwrap_or_default()
    }
}

/// The most runs of any row.
#[must_use]
pub fn runs<'r>(rows: impl IntoIterator<Item = &'r Measured>) -> usize {
    rows.into_iter().map(|row| row.runs).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Row;

    #[test]
    fn what_is_written_is_read() {
        let mut rows = Rows::kept();
        let row = Row::new("x", "tamis", "ns", &[1.0, 2.0, 4.0]).with("threads", 2).with("by", "y");
        rows.push(row.beside("serial", &[2.0], &[4.0]));
        rows.lacks("y", "not there");
        let line = rows.line(&rows.rows()[0]).unwrap();
        let lines = format!("{line}\n{}\n{line}\n", rows.line(&rows.missing()[0]).unwrap());
        let recorded = Recorded::from_json(&lines).unwrap();
        assert_eq!(recorded.results.len(), 2);
        // A last line that was cut off.
        assert_eq!(Recorded::from_json(&lines[..lines.len() - 9]).unwrap().results.len(), 1);
        let row = recorded.named("x").next().unwrap();
        assert_eq!((row.value, row.min, row.max, row.runs), (2.0, 1.0, 4.0, 3));
        assert_eq!((row.number("threads"), row.word("by"), row.word("none")), (2.0, "y", ""));
        assert_eq!((row.peer.as_deref(), row.peer_value), (Some("serial"), Some(4.0)));
        assert!(recorded.note("so").starts_with("so; "));
        assert!(Recorded::from_json("{}").unwrap_err().contains("expected schema"));
    }
}
