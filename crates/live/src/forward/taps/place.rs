//! [`Texts`]: names what decided about a frame, with its place in the rules.

use rules::eval::By;
use rules::model::Ruleset;
use rules::save::print_rule;

use super::record::Decision;
use crate::answers::Decider;
use dataplane::{DropReason, FinalVerdict, Why};

/// The rulesets of one program, kept from record to record: making them takes going through all rules.
#[derive(Debug, Default)]
pub(super) struct Texts {
    program: u64,
    rulesets: Vec<Ruleset>,
}

impl Texts {
    /// Looks up what decided.
    pub(super) fn place(&mut self, decision: &Decision) -> Decider {
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
                reason => return words(of_drop(reason)),
            },
            FinalVerdict::Unknown => match judged.why {
                Some(Why::Rule(_, at, _)) => Some(By::Rule(at)),
                _ => return words("depends on what is not known".to_owned()),
            },
            FinalVerdict::Skip(_) => None,
        };
        let family = match judged.why.filter(|_| judged.verdict == FinalVerdict::Unknown) {
            Some(Why::Rule(family, ..)) => Some(family),
            _ => judged.family,
        };
        let place = family.zip(by).and_then(|(family, by)| {
            let ruleset = self.rulesets.iter().find(|rules| rules.family == family)?;
            of_rules(ruleset, by)
        });
        place.unwrap_or_default()
    }
}

fn words(text: String) -> Decider {
    Decider { text, ..Decider::default() }
}

fn of_rules(ruleset: &Ruleset, by: By) -> Option<Decider> {
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
    Some(Decider {
        family: Some(ruleset.family.name().to_owned()),
        table: Some(table.name.to_string()),
        chain: Some(chain.name.to_string()),
        number,
        line: Some(line).filter(|line| *line > 0),
        text,
    })
}

/// The words for a drop by something besides the rules.
fn of_drop(reason: DropReason) -> String {
    match reason {
        DropReason::Stack(fault) => fault.to_string(),
        DropReason::Route(why) => format!("routing: {}", why.name()),
        DropReason::Denied(why) => why.words().to_owned(),
        DropReason::Ttl => "time to live ran out".to_owned(),
        DropReason::TooBig => "too big for the port that it would leave by".to_owned(),
        DropReason::Conntrack => "connection tracking".to_owned(),
        DropReason::Reassembly => "reassembly of fragments".to_owned(),
        DropReason::Foreign(_) => "another ruleset".to_owned(),
        DropReason::Rule(_) | DropReason::HotDrop(_) | DropReason::Policy { .. } => String::new(),
    }
}
