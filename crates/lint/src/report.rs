//! Findings as text, as JSON (`tamis.lint/1`) and as SARIF.
//!
//! Source: Static Analysis Results Interchange Format (SARIF) 2.1.0, OASIS.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Value, json};

use packet::visible::plural;

use crate::lint::{Code, Finding, Findings, Severity};

/// Findings in one file.
#[derive(Debug, Clone)]
pub struct InFile {
    /// Name of the file.
    pub file: String,
    /// The family of its rules, as `--family` spells it.
    pub family: String,
    /// What was found in it.
    pub found: Findings,
}

/// The findings of all files.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Each file.
    pub files: Vec<InFile>,
    /// Findings that a baseline left out.
    pub known: usize,
}

impl Report {
    fn all(&self) -> impl Iterator<Item = (&str, &Finding)> {
        self.files.iter().flat_map(|it| it.found.findings.iter().map(|one| (&*it.file, one)))
    }

    /// The number of findings of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.all().filter(|(_, finding)| finding.severity == severity).count()
    }

    /// The lines to report for each file: findings that are many and mean little are one line.
    pub fn told(&self) -> impl Iterator<Item = (&str, Told<'_>)> {
        self.files.iter().flat_map(|it| folded(&it.found).into_iter().map(|one| (&*it.file, one)))
    }

    /// Formats the report as text for people: a line for each finding, with the packet that shows it below, and the
    /// sum.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        for (file, Told { finding, others, text: what }) in self.told() {
            let Finding { line, code, severity, rule, table, witness, .. } = finding;
            let _ = writeln!(text, "{file}:{line}: {}: {what} [{code}]", severity.name());
            if others > 0 {
                continue;
            }
            let _ = writeln!(text, "    {table}: {rule}");
            if let Some(witness) = witness {
                let _ = writeln!(text, "    such as {witness}");
            }
        }
        for InFile { file, found, .. } in &self.files {
            for table in &found.unproven {
                let _ = writeln!(
                    text,
                    "{file}: table {table} is too large: not all is known of it that depends on packets"
                );
            }
        }
        let counts = [Severity::Error, Severity::Warning, Severity::Note]
            .map(|severity| plural(self.count(severity) as u64, severity.name()));
        let known = match self.known {
            0 => String::new(),
            known => {
                format!("; {} left out that {} known", known, if known == 1 { "is" } else { "are" })
            }
        };
        let _ = writeln!(text, "{}{known}", counts.join(", "));
        text
    }

    /// Returns the report as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let with_file = |(file, finding): (&str, &Finding)| {
            let mut value = json!(finding);
            value["file"] = file.into();
            value
        };
        let findings: Vec<Value> = self.all().map(with_file).collect();
        let unproven: Vec<Value> = self
            .files
            .iter()
            .flat_map(|it| {
                it.found.unproven.iter().map(|table| json!({"file": it.file, "table": table}))
            })
            .collect();
        json!({
            "schema": "tamis.lint/1",
            "findings": findings,
            "unproven": unproven,
            "known": self.known,
        })
    }

    /// Returns the report as SARIF.
    #[must_use]
    pub fn sarif(&self, version: &str) -> Value {
        let rules: Vec<Value> = Code::ALL
            .iter()
            .map(|code| {
                json!({
                    "id": code.name(),
                    "shortDescription": {"text": code.title()},
                    "fullDescription": {"text": code.explanation()},
                })
            })
            .collect();
        let results: Vec<Value> = self.all().map(|(file, finding)| result(file, finding)).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {"name": "tamis", "version": version, "rules": rules}},
                "results": results,
            }],
        })
    }
}

/// A finding in a report, or the first of several that are reported as one.
#[derive(Debug, Clone)]
pub struct Told<'f> {
    /// The finding.
    pub finding: &'f Finding,
    /// The number of others that are reported with it.
    pub others: usize,
    /// What is wrong.
    pub text: String,
}

/// Findings of such a code that are reported one by one; more of them are reported as one.
const ONE_BY_ONE: usize = 3;
/// Of findings that are reported as one, the number that is named.
const NAMED: usize = 6;

/// The findings of a file in its order, with those as one of which there are many.
fn folded(found: &Findings) -> Vec<Told<'_>> {
    let mut alike: HashMap<Code, Vec<&Finding>> = HashMap::new();
    for finding in &found.findings {
        alike.entry(finding.code).or_default().push(finding);
    }
    let mut told: Vec<Told<'_>> = Vec::new();
    for finding in &found.findings {
        let alike = &alike[&finding.code];
        let Some(what) = finding.code.of_many().filter(|_| alike.len() > ONE_BY_ONE) else {
            told.push(Told { finding, others: 0, text: finding.text.clone() });
            continue;
        };
        if alike.first().is_some_and(|first| std::ptr::eq(*first, finding)) {
            let mut names: Vec<&str> = alike.iter().map(|it| &*it.about).collect();
            names.dedup();
            let count = alike.len();
            let more = names.len().saturating_sub(NAMED);
            names.truncate(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let text = format!("{count} {what}: {}{more}", names.join(", "));
            told.push(Told { finding, others: count - 1, text });
        }
    }
    told
}

fn result(file: &str, finding: &Finding) -> Value {
    let place = |line: u32| {
        json!({
            "physicalLocation": {
                "artifactLocation": {"uri": file},
                "region": {"startLine": line.max(1)},
            },
        })
    };
    let witness = finding.witness.as_ref();
    let shown = witness.map_or_else(String::new, |witness| format!(", such as {witness}"));
    json!({
        "ruleId": finding.code.name(),
        "level": finding.severity.name(),
        "message": {"text": format!("{}{shown}: {}", finding.text, finding.rule)},
        "locations": [place(finding.line)],
        "relatedLocations": finding.by.iter().map(|line| place(*line)).collect::<Vec<_>>(),
    })
}
