//! Findings as text, as JSON (`tamis.lint/1`) and as SARIF.
//!
//! Source: Static Analysis Results Interchange Format (SARIF) 2.1.0, OASIS.

use std::fmt::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::lint::{Code, Finding, Findings, Severity};

/// Findings in one file.
#[derive(Debug, Clone, Serialize)]
pub struct InFile {
    /// Its name.
    pub file: String,
    /// What was found in it.
    #[serde(flatten)]
    pub found: Findings,
}

/// The findings of all files.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Each file.
    pub files: Vec<InFile>,
}

impl Report {
    fn all(&self) -> impl Iterator<Item = (&str, &Finding)> {
        self.files.iter().flat_map(|it| it.found.findings.iter().map(|one| (&*it.file, one)))
    }

    /// How many findings are so bad.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.all().filter(|(_, finding)| finding.severity == severity).count()
    }

    /// For people: a line for each finding, what shows it under it, and the sum.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for InFile { file, found } in &self.files {
            for finding in &found.findings {
                // Writing to a String cannot fail.
                let Finding { line, code, severity, rule, text: what, .. } = finding;
                let table = &finding.table;
                let _ = writeln!(text, "{file}:{line}: {}: {what} [{code}]", severity.name());
                let _ = writeln!(text, "    {table}: {rule}");
                if let Some(witness) = &finding.witness {
                    let _ = writeln!(text, "    such as {witness}");
                }
            }
            for table in &found.unproven {
                let _ = writeln!(
                    text,
                    "{file}: table {table} is too large: what depends on packets is not known of it"
                );
            }
        }
        let counts = [Severity::Error, Severity::Warning, Severity::Note]
            .map(|severity| plural(self.count(severity), severity.name()));
        let _ = writeln!(text, "{}", counts.join(", "));
        text
    }

    /// As JSON.
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
        json!({"schema": "tamis.lint/1", "findings": findings, "unproven": unproven})
    }

    /// As SARIF.
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

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
