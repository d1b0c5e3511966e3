//! What captures contradict, as reports say it.

use serde_json::{Value, json};

use super::Report;
use crate::contradictions::Contradicted;

impl Report {
    /// What is contradicted, in words, with the line of a rule.
    pub(super) fn contradicted(&self, what: Contradicted) -> (Option<u32>, String) {
        match what {
            Contradicted::Drop(decider) => {
                let place = decider.place(&self.config.host, |family| self.file(family));
                (place.line, place.text)
            }
            Contradicted::ToHost => (None, "evaluated as packets for the host itself".to_owned()),
            Contradicted::Translation => {
                (None, "evaluated as leaving with other addresses or ports".to_owned())
            }
        }
    }

    /// `contradictions` of the JSON report.
    pub(super) fn contradictions_json(&self) -> Value {
        let by = self.contradictions.by().into_iter().map(|(what, count)| {
            let (line, rule) = self.contradicted(what);
            json!({
                "line": line,
                "rule": rule,
                "packets": count.packets,
                "example_frame": self.numbers.frame(count.example),
                "example_capture": self.numbers.file(count.example),
            })
        });
        json!({ "packets": self.contradictions.packets(), "by": by.collect::<Vec<_>>() })
    }
}
