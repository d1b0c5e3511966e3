//! Results as one document, schema `tamis.test/1`.

use serde_json::{Value, json};

use super::{CaseResult, Decided, ExpectedBy, Got, Results};

impl Results {
    /// The JSON document of `--json`.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "schema": "tamis.test/1",
            "rules": self.files.iter().map(|file| &file.file).collect::<Vec<_>>(),
            "cases_file": self.cases.file,
            "passed": self.passed(),
            "failed": self.failed().count(),
            "elapsed_s": self.elapsed_s,
            "cases": self.results.iter().map(|result| self.one(result)).collect::<Vec<_>>(),
        })
    }

    fn one(&self, result: &CaseResult) -> Value {
        let case = self.case(result);
        let pairs = case.packets.iter().zip(&result.got);
        let (by, by_text) = match &case.by {
            None => (None, None),
            Some(ExpectedBy::Place(place)) => (Some(place.to_string()), None),
            Some(ExpectedBy::Text(text)) => (None, Some(text)),
        };
        let wrong = result.wrong.as_ref();
        json!({
            "name": case.name,
            "line": case.line,
            "passed": wrong.is_none(),
            "packets": pairs
                .map(|(expected, got)| packet(&expected.text, expected.verdict.word(), got))
                .collect::<Vec<_>>(),
            "expect_by": by,
            "expect_by_text": by_text,
            "failure": wrong.map(|wrong| &wrong.what),
            "why": self.why_command(case, wrong.map_or(case.packets.len().saturating_sub(1), |wrong| wrong.packet), ""),
            "elapsed_s": result.elapsed_s,
        })
    }
}

fn packet(text: &str, expect: &str, got: &Got) -> Value {
    let Got { verdict, by, either } = got;
    let by: Option<&Decided> = by.as_ref();
    json!({
        "packet": text,
        "expect": expect,
        "verdict": verdict,
        "by": by.map(|by| by.place.to_string()),
        "line": by.map(|by| by.line).filter(|line| *line > 0),
        "text": by.map(|by| &by.text).or(either.as_ref()),
    })
}
