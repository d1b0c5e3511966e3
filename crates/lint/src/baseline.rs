//! Known findings: findings that are in a baseline file, or in other rules, are not reported again.
//!
//! A finding is known by its family, code, table, chain and rule as it prints: lines may move. Of findings that agree in
//! all of these, as many are known as there were. The file is JSON, schema `tamis.lint-baseline/1`, one finding a line.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::lint::Finding;
use crate::report::Report;

const SCHEMA: &str = "tamis.lint-baseline/1";

/// Known findings, with how many there are of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    known: BTreeMap<Known, usize>,
}

/// What a finding is known by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Known {
    family: String,
    code: String,
    table: String,
    chain: String,
    rule: String,
}

#[derive(Deserialize)]
struct File {
    schema: String,
    findings: Vec<Known>,
}

impl Known {
    fn of(family: &str, finding: &Finding) -> Self {
        Self {
            family: family.to_owned(),
            code: finding.code.name().to_owned(),
            table: finding.table.clone(),
            chain: finding.chain.clone(),
            rule: finding.rule.clone(),
        }
    }
}

impl Baseline {
    /// The findings of a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let mut baseline = Self::default();
        for file in &report.files {
            for finding in &file.found.findings {
                *baseline.known.entry(Known::of(&file.family, finding)).or_default() += 1;
            }
        }
        baseline
    }

    /// Reads what [`Baseline::text`] wrote.
    ///
    /// # Errors
    /// It is none: where, and what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("{line}:{column}: expected a baseline ({SCHEMA}): {error}")
        })?;
        if file.schema != SCHEMA {
            return Err(format!("1:1: expected a baseline ({SCHEMA}), found {}", file.schema));
        }
        let mut baseline = Self::default();
        for known in file.findings {
            *baseline.known.entry(known).or_default() += 1;
        }
        Ok(baseline)
    }

    /// Prints a baseline as a file: a finding a line, in an order that depends on nothing else, so that a diff shows
    /// only changes.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{{\"schema\": \"{SCHEMA}\", \"findings\": [");
        let all = self.known.iter().flat_map(|(known, count)| std::iter::repeat_n(known, *count));
        for (number, known) in all.enumerate() {
            let between = if number == 0 { "" } else { "," };
            // Strings always serialize, and writing to one cannot fail.
            let line = serde_json::to_string(known).unwrap_or_default();
            let _ = write!(text, "{between}\n  {line}");
        }
        text + "\n]}\n"
    }

    /// Leaves known findings out of a report, which then counts them.
    pub fn leave_out(&self, report: &mut Report) {
        let mut left = self.known.clone();
        for file in &mut report.files {
            let family = &file.family;
            let before = file.found.findings.len();
            file.found.findings.retain(|finding| match left.get_mut(&Known::of(family, finding)) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            });
            report.known += before - file.found.findings.len();
        }
    }
}
