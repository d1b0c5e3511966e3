//! [`Pair`]: what decided in force, what would have by the shadow, and the first packet of which that was so.

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use rules::eval::{By, RuleRef};
use rules::model::{Family, Ruleset};
use rules::revision::Revision;
use rules::save::print_rule;
use serde_json::{Value, json};

use crate::disposition::{Disposition, DropReason, FinalVerdict};
use crate::program::Program;
use crate::run::account::Reason;

/// Bytes of a packet that are kept as an example.
const SHOWN: usize = 2048;

/// What decided.
#[derive(Debug, Clone)]
pub(super) struct Side {
    verdict: FinalVerdict,
    family: Option<Family>,
    /// Where it goes from and to, if both let it go on, to other ends.
    ends: Option<(IpAddr, IpAddr)>,
    /// The rules that it was decided by, to name them later.
    revision: Option<Arc<Revision>>,
}

/// The first packet of a pair.
#[derive(Debug, Clone)]
pub(super) struct Example {
    /// Nanoseconds since the Unix epoch.
    pub(super) time: u64,
    /// Ports by which it came in and would leave.
    pub(super) input: String,
    pub(super) output: String,
    /// Its frame as it came, its first [`SHOWN`] bytes.
    pub(super) bytes: Vec<u8>,
}

/// A pair, with the number of its packets.
#[derive(Debug)]
pub(super) struct Pair {
    /// In force, and by the shadow.
    pub(super) sides: [Side; 2],
    pub(super) example: Example,
    pub(super) packets: u64,
}

impl Side {
    /// What a program made of a packet; `ends` are where it goes from and to, if that is compared.
    pub(super) fn of(end: &Disposition, ends: Option<(IpAddr, IpAddr)>, program: &Program) -> Self {
        let revision = end.family.and_then(|family| program.revision(family)).cloned();
        Self { verdict: end.verdict, family: end.family, ends, revision }
    }

    /// Whether the same decided, of the same rules. Where it goes to is left out: of one rule it may be anywhere.
    fn is(&self, other: &Self) -> bool {
        let revision = |side: &Self| side.revision.as_ref().map(Arc::as_ptr);
        self.verdict == other.verdict
            && self.family == other.family
            && revision(self) == revision(other)
    }

    fn by(&self) -> Option<By> {
        match self.verdict {
            FinalVerdict::Accept(by) => by,
            FinalVerdict::Reject(by) => Some(by),
            FinalVerdict::Drop(DropReason::Rule(at)) => Some(By::Rule(at)),
            FinalVerdict::Drop(DropReason::HotDrop(at)) => Some(By::HotDrop(at)),
            FinalVerdict::Drop(DropReason::Policy { table, chain }) => {
                Some(By::Policy { table, chain })
            }
            _ => None,
        }
    }

    fn json(&self) -> Value {
        let mut side = json!({ "verdict": word(&self.verdict) });
        let ruleset = self.revision.as_ref().map(|revision| revision.ruleset());
        match (ruleset, self.by()) {
            (Some(ruleset), Some(By::Rule(at) | By::HotDrop(at))) => {
                of_rule(&mut side, &ruleset, at)
            }
            (Some(ruleset), Some(By::Policy { table, chain })) => {
                of_policy(&mut side, &ruleset, table, chain);
            }
            _ => {
                if let FinalVerdict::Drop(_) = self.verdict {
                    side["reason"] = json!(Reason::of(&self.verdict).name());
                }
            }
        }
        if let Some((from, to)) = self.ends {
            side["leaves_as"] = json!(format!("{from} > {to}"));
        }
        side
    }
}

/// What becomes of a packet, in one word.
pub(super) fn word(verdict: &FinalVerdict) -> &'static str {
    match verdict {
        FinalVerdict::Accept(_) => "accept",
        FinalVerdict::Drop(_) => "drop",
        FinalVerdict::Reject(_) => "reject",
        FinalVerdict::Unknown => "unknown",
        FinalVerdict::Skip(_) => "skip",
    }
}

fn of_rule(side: &mut Value, ruleset: &Ruleset, at: RuleRef) {
    let table = ruleset.tables.get(at.table as usize);
    let chain = table.and_then(|table| table.chains.get(at.chain as usize));
    let rule = chain.and_then(|chain| chain.rules.get(at.rule as usize));
    if let (Some(table), Some(chain), Some(rule)) = (table, chain, rule) {
        side["family"] = json!(ruleset.family.name());
        side["table"] = json!(table.name);
        side["chain"] = json!(chain.name);
        side["number"] = json!(at.rule + 1);
        side["line"] = json!(rule.line);
        side["text"] = json!(print_rule(ruleset.family, table, chain, rule));
    }
}

fn of_policy(side: &mut Value, ruleset: &Ruleset, table: u32, chain: u32) {
    let table = ruleset.tables.get(table as usize);
    let chain = table.and_then(|table| table.chains.get(chain as usize));
    if let (Some(table), Some(chain)) = (table, chain) {
        side["family"] = json!(ruleset.family.name());
        side["table"] = json!(table.name);
        side["chain"] = json!(chain.name);
        side["text"] = json!(format!("policy of {}", chain.name));
    }
}

impl Example {
    /// Of a frame that came at this time.
    pub(super) fn of(bytes: &[u8], time: u64, [input, output]: [&str; 2]) -> Self {
        let bytes = bytes[..bytes.len().min(SHOWN)].to_vec();
        Self { time, input: input.to_owned(), output: output.to_owned(), bytes }
    }

    fn json(&self) -> Value {
        let mut hex = String::with_capacity(2 * self.bytes.len());
        for byte in &self.bytes {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        json!({ "time_ns": self.time, "in": self.input, "out": self.output, "frame": hex })
    }
}

impl Pair {
    /// Whether the same decided.
    pub(super) fn is_of(&self, sides: &[Side; 2]) -> bool {
        self.sides.iter().zip(sides).all(|(one, other)| one.is(other))
    }

    pub(super) fn json(&self) -> Value {
        let [in_force, shadow] = &self.sides;
        json!({
            "packets": self.packets,
            "in_force": in_force.json(),
            "shadow": shadow.json(),
            "example": self.example.json(),
        })
    }
}
