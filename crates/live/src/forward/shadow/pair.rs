//! [`Pair`]: what decided in force, what would have in shadow, and the first packet with that difference.

use std::net::IpAddr;
use std::sync::Arc;

use rules::eval::{By, RuleRef};
use rules::model::{Family, Ruleset};
use rules::revision::Revision;
use rules::save::print_rule;

use crate::answers::{self, Differing, ShadowSide};
use crate::forward::account::Reason;
use dataplane::{Disposition, DropReason, FinalVerdict, Program};

/// Bytes of a packet that are kept as an example.
const SHOWN: usize = 2048;

/// A verdict and what decided it.
#[derive(Debug, Clone)]
pub(super) struct Side {
    verdict: FinalVerdict,
    family: Option<Family>,
    /// The packet's source and destination, if both sides let it go on, to other ends.
    ends: Option<(IpAddr, IpAddr)>,
    /// The revision of the rules that decided, to name them later.
    revision: Option<Arc<Revision>>,
}

/// The first packet of a pair.
#[derive(Debug, Clone)]
pub(super) struct Example {
    /// Time of arrival, in nanoseconds since the Unix epoch.
    pub(super) time: u64,
    /// The port of arrival and the port through which it would leave.
    pub(super) input: String,
    pub(super) output: String,
    /// The frame as it came, its first [`SHOWN`] bytes.
    pub(super) bytes: Vec<u8>,
}

/// A pair, with the number of its packets.
#[derive(Debug)]
pub(super) struct Pair {
    /// The side in force, and the side in shadow.
    pub(super) sides: [Side; 2],
    pub(super) example: Example,
    pub(super) packets: u64,
}

impl Side {
    /// A program's verdict on a packet; `ends` are its source and destination, if they are compared.
    pub(super) fn of(end: &Disposition, ends: Option<(IpAddr, IpAddr)>, program: &Program) -> Self {
        let revision = end.family.and_then(|family| program.revision(family)).cloned();
        Self { verdict: end.verdict, family: end.family, ends, revision }
    }

    /// Whether the same decided, of the same rules. The destination is left out: one rule may give any.
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

    fn answer(&self) -> ShadowSide {
        let verdict = word(&self.verdict).to_owned();
        let ruleset = self.revision.as_ref().map(|revision| revision.ruleset());
        let by = ruleset.zip(self.by()).map(|(ruleset, by)| match by {
            By::Rule(at) | By::HotDrop(at) => of_rule(&ruleset, at),
            By::Policy { table, chain } => of_policy(&ruleset, table, chain),
        });
        let reason = matches!(self.verdict, FinalVerdict::Drop(_)) && by.is_none();
        ShadowSide {
            verdict,
            reason: reason.then(|| Reason::of(&self.verdict).name().to_owned()),
            leaves_as: self.ends.map(|(from, to)| format!("{from} > {to}")),
            ..by.flatten().unwrap_or_default()
        }
    }
}

/// The verdict on a packet, in one word.
pub(super) fn word(verdict: &FinalVerdict) -> &'static str {
    match verdict {
        FinalVerdict::Accept(_) => "accept",
        FinalVerdict::Drop(_) => "drop",
        FinalVerdict::Reject(_) => "reject",
        FinalVerdict::Unknown => "unknown",
        FinalVerdict::Skip(_) => "skip",
    }
}

fn of_rule(ruleset: &Ruleset, at: RuleRef) -> Option<ShadowSide> {
    let table = ruleset.tables.get(at.table as usize)?;
    let chain = table.chains.get(at.chain as usize)?;
    let rule = chain.rules.get(at.rule as usize)?;
    Some(ShadowSide {
        number: Some(at.rule + 1),
        line: Some(rule.line),
        text: Some(print_rule(ruleset.family, table, chain, rule)),
        ..of_chain(ruleset.family, &table.name, &chain.name)
    })
}

fn of_policy(ruleset: &Ruleset, table: u32, chain: u32) -> Option<ShadowSide> {
    let table = ruleset.tables.get(table as usize)?;
    let chain = &table.chains.get(chain as usize)?.name;
    let text = Some(format!("policy of {chain}"));
    Some(ShadowSide { text, ..of_chain(ruleset.family, &table.name, chain) })
}

fn of_chain(family: Family, table: &str, chain: &str) -> ShadowSide {
    ShadowSide {
        family: Some(family.name().to_owned()),
        table: Some(table.to_owned()),
        chain: Some(chain.to_owned()),
        ..ShadowSide::default()
    }
}

impl Example {
    /// The example of a frame that came at this time.
    pub(super) fn of(bytes: &[u8], time: u64, [input, output]: [&str; 2]) -> Self {
        let bytes = bytes[..bytes.len().min(SHOWN)].to_vec();
        Self { time, input: input.to_owned(), output: output.to_owned(), bytes }
    }

    fn answer(&self) -> answers::Example {
        let Self { time, input, output, bytes } = self;
        let (input, output) = (input.clone(), output.clone());
        answers::Example { time_ns: *time, input, output, frame: answers::hex(bytes) }
    }
}

impl Pair {
    /// Whether the pair has the same sides.
    pub(super) fn is_of(&self, sides: &[Side; 2]) -> bool {
        self.sides.iter().zip(sides).all(|(one, other)| one.is(other))
    }

    pub(super) fn answer(&self) -> Differing {
        let [in_force, shadow] = self.sides.each_ref().map(Side::answer);
        Differing { packets: self.packets, in_force, shadow, example: self.example.answer() }
    }
}
