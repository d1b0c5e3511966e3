//! A story as one document, schema `tamis.why/1`.

use host::sighting::Sighting;
use rules::eval::{self, Alive};
use serde_json::{Value, json};

use super::story::{Before, Step, Story};
use super::text::translation_text;
use crate::near::NearMiss;
use crate::rules_file::RulesFile;
use crate::source::Numbers;
use crate::spec::Lack;

impl Story {
    /// The story as one document.
    #[must_use]
    pub fn json(&self) -> Value {
        let file = self.end.family.and_then(|family| self.report.file(family));
        let by = self.report.decided_by(&self.end).filter(|_| self.contradiction.is_none());
        let mut story = json!({
            "schema": "tamis.why/1",
            "packet": self.packet,
            "verdict": self.verdict().word(),
            "line": by.as_ref().map(|(line, _)| line),
            "by": by.map(|(_, text)| text),
            "unknown_because": self.report.unknown_places().into_iter()
                .map(|reason| json!({
                    "line": reason.place.map(|(_, line)| line),
                    "what": reason.what,
                    "how": reason.how,
                    "not_given": keys(&reason.lacks),
                }))
                .collect::<Vec<_>>(),
            "untold": self.untold,
            "steps": file.map(|file| {
                self.steps.iter().map(|step| step_json(file, &self.report.numbers, step)).collect::<Vec<_>>()
            }),
        });
        if !self.assumed.is_empty() {
            story["assumed"] = json!(self.assumed);
            story["not_given"] = json!(keys(&self.report.lacks));
        }
        if let Some(seen) = &self.seen {
            let number = |number: u64| self.report.numbers.show(number).to_string();
            let of = match seen.sighting {
                Sighting::Second { of } | Sighting::Lower { of } => of,
                _ => None,
            };
            story["sighting"] = json!(seen.sighting.name());
            story["of"] = json!(of.map(number));
            story["left"] = json!(seen.left.map(number));
        }
        if let Some(contradiction) = &self.contradiction {
            story["contradiction"] = json!(contradiction.what);
        }
        if !self.logged.is_empty() {
            story["logged_by"] = json!(self.logged);
        }
        if !self.before.is_empty() {
            story["before"] = self.before.iter().map(|before| self.before_json(before)).collect();
        }
        if let Some(misses) = &self.misses {
            let nearest = misses.nearest(self.is_accepted()).into_iter();
            story["near"] =
                nearest.filter_map(|miss| Some(miss_json(file?, miss))).collect::<Vec<_>>().into();
        }
        story
    }

    fn before_json(&self, before: &Before) -> Value {
        let by = self.report.decided_by(&before.end);
        json!({
            "packet": before.packet,
            "verdict": before.end.verdict.word(),
            "line": by.as_ref().map(|(line, _)| line),
            "by": by.map(|(_, text)| text),
        })
    }
}

/// The keys that would give what a description lacks.
fn keys(lacks: &[Lack]) -> Vec<&'static str> {
    lacks.iter().map(|lack| lack.key()).collect()
}

fn miss_json(file: &RulesFile, miss: &NearMiss) -> Value {
    let (table, chain, rule) = file.rule(miss.at);
    json!({
        "table": file.ruleset.title(table),
        "chain": chain.name,
        "number": file.number(miss.at),
        "line": file.line(rule.line).1,
        "text": file.rule_text(miss.at),
        "test": miss.test,
        "packet_has": miss.has,
        "gives": miss.gives.name(),
    })
}

fn step_json(file: &RulesFile, numbers: &Numbers, step: &Step) -> Value {
    match step {
        Step::Starts { path, input, output } => {
            json!({ "step": "path", "path": path.name(), "in": input, "out": output })
        }
        Step::Enters { table, chain, hook } => {
            let (table, chain) = file.base_chain(*table, *chain, *hook);
            json!({ "step": "chain", "table": table, "chain": chain })
        }
        Step::Rule { at, outcome, alive, refused, remarks } => {
            let (table, chain, rule) = file.rule(*at);
            json!({
                "step": "rule",
                "table": file.ruleset.title(table),
                "chain": chain.name,
                "number": file.number(*at),
                "line": file.line(rule.line).1,
                "text": file.rule_text(*at),
                "matches": format!("{outcome:?}"),
                "certain": *alive == Alive::Certain,
                "refused_by": refused,
                "remarks": remarks,
            })
        }
        Step::Policy { table, chain } => {
            json!({ "step": "policy", "by": file.by_text(eval::By::Policy { table: *table, chain: *chain }) })
        }
        Step::Ttl(left) => json!({ "step": "ttl", "left": left }),
        Step::Tracked { state, flow } => json!({
            "step": "conntrack",
            "state": state,
            "flow": flow.as_ref().map(|flow| json!({
                "born": numbers.json(flow.born),
                "tuple": flow.tuple,
                "reply": flow.is_reply,
                "is": flow.state,
                "begins": flow.begins,
                "expired": flow.expired.map(|expired| json!({
                    "last": numbers.json(expired.last),
                    "ago_s": expired.ago as f64 / 1e9,
                })),
            })),
        }),
        Step::Taken { state } => json!({ "step": "taken", "state": state }),
        Step::Translated { side, to } => {
            json!({ "step": "nat", "what": translation_text(*side, to) })
        }
        Step::Edited(lines) => json!({ "step": "helper", "what": lines }),
        Step::Rerouted { path, input, output } => {
            json!({ "step": "path", "path": path.name(), "in": input, "out": output })
        }
        Step::Settled { state } => json!({ "step": "settled", "is": state }),
        Step::Remark(what) => json!({ "step": "remark", "what": what }),
    }
}
