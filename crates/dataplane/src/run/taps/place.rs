//! [`Place`]: what decided about a frame, with its place in the rules.

use rules::eval::By;
use rules::model::{Family, Ruleset};
use rules::save::print_rule;
use serde_json::{Value, json};

use super::record::Decision;
use crate::disposition::{DropReason, FinalVerdict, Why};

/// What decided, as far as it stands in the rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Place {
    family: Option<Family>,
    table: Option<&'static str>,
    chain: Option<String>,
    /// Of the rule in its chain, from 1; none of a policy.
    number: Option<u32>,
    /// Of the file, from 1.
    line: Option<u32>,
    /// The rule's text, or words.
    text: String,
}

/// The rulesets of one program, kept from record to record: to have them takes going through all rules.
#[derive(Debug, Default)]
pub(super) struct Texts {
    program: u64,
    rulesets: Vec<Ruleset>,
}

impl Texts {
    /// What decided.
    pub(super) fn place(&mut self, decision: &Decision) -> Place {
        let Decision { judged, program } = decision;
        if self.program != program.number() || self.rulesets.is_empty() {
            self.rulesets = program.revisions().map(|revision| revision.ruleset()).collect();
            self.program = program.number();
        }
        let by = match judged.verdict {
            FinalVerdict::Accept(by) => by,
            FinalVerdict::Reject(by) => Some(by),
            FinalVerdict::Drop(reason) => match reason {
                DropReason::Rule(at) => Some(By::Rule(at)),
                DropReason::HotDrop(at) => Some(By::HotDrop(at)),
                DropReason::Policy { table, chain } => Some(By::Policy { table, chain }),
                reason => return Place::words(of_drop(reason)),
            },
            FinalVerdict::Unknown => match judged.why {
                Some(Why::Rule(_, at, _)) => Some(By::Rule(at)),
                _ => return Place::words("depends on what is not known".to_owned()),
            },
            FinalVerdict::Skip(_) => None,
        };
        let family = match judged.why.filter(|_| judged.verdict == FinalVerdict::Unknown) {
            Some(Why::Rule(family, ..)) => Some(family),
            _ => judged.family,
        };
        let place = family.zip(by).and_then(|(family, by)| {
            let ruleset = self.rulesets.iter().find(|rules| rules.family == family)?;
            Place::of_rules(ruleset, by)
        });
        place.unwrap_or_default()
    }
}

impl Place {
    fn words(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    fn of_rules(ruleset: &Ruleset, by: By) -> Option<Self> {
        let (table, chain, rule) = match by {
            By::Rule(at) | By::HotDrop(at) => (at.table, at.chain, Some(at.rule)),
            By::Policy { table, chain } => (table, chain, None),
        };
        let table = ruleset.tables.get(table as usize)?;
        let chain = table.chains.get(chain as usize)?;
        let rule = match rule {
            Some(rule) => Some((rule + 1, chain.rules.get(rule as usize)?)),
            None => None,
        };
        let (number, line, text) = match rule {
            Some((number, rule)) => {
                (Some(number), rule.line, print_rule(ruleset.family, table, chain, rule))
            }
            None => {
                let policy = chain.base.map_or_else(String::new, |base| base.policy.to_string());
                (None, chain.line, format!("policy {policy}"))
            }
        };
        let text = match by {
            By::HotDrop(_) => format!("hot drop in {text}"),
            By::Rule(_) | By::Policy { .. } => text,
        };
        Some(Self {
            family: Some(ruleset.family),
            table: Some(table.name),
            chain: Some(chain.name.to_string()),
            number,
            line: Some(line).filter(|line| *line > 0),
            text,
        })
    }

    /// Its part of a line of the stream.
    pub(super) fn json(&self) -> Value {
        let Self { family, table, chain, number, line, text } = self;
        json!({
            "family": family.map(Family::name),
            "table": table,
            "chain": chain,
            "number": number,
            "line": line,
            "text": text,
        })
    }
}

/// What drops a packet beside the rules.
fn of_drop(reason: DropReason) -> String {
    match reason {
        DropReason::Stack(fault) => fault.to_string(),
        DropReason::Route(why) => format!("routing: {}", why.name()),
        DropReason::Denied(why) => why.words().to_owned(),
        DropReason::Ttl => "time to live ran out".to_owned(),
        DropReason::TooBig => "too big for the port that it would leave by".to_owned(),
        DropReason::Conntrack => "connection tracking".to_owned(),
        DropReason::Reassembly => "reassembly of fragments".to_owned(),
        DropReason::Rule(_) | DropReason::HotDrop(_) | DropReason::Policy { .. } => String::new(),
    }
}
