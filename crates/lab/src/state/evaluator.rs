//! [`StateEvaluator`]: tamis's side of a conversation, by way of the whole packet path, with counters.

use dataplane::counters::HitCount;
use dataplane::{
    Arrival, Config, Counters, FinalVerdict, Handler, Observer, Path, Program, Skip, Start,
};
use packet::{Link, Packet, Read};
use std::sync::Arc;

use rules::Transit;
use rules::eval::{self, Cause, RuleRef};
use rules::model::{self, Ruleset};

use super::Sent;
use super::stage::Stage;
use crate::rule_counters::step;

/// What tamis lets out for a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Egress {
    /// It goes on, with these bytes; `None` where not all of them are known.
    Packet(Option<Vec<u8>>),
    /// Nothing comes out by either device.
    Nothing,
    /// It cannot tell.
    Unknown,
}

/// A ruleset with its connections.
#[derive(Debug)]
pub struct StateEvaluator {
    ruleset: Arc<Ruleset>,
    program: Program,
    handler: Handler,
    seen: Observed,
    number: u64,
}

/// What the walks add up, and the last one.
#[derive(Debug)]
struct Observed {
    counters: Counters,
    path: Vec<(RuleRef, bool, bool)>,
    unknown: Option<String>,
    left: Vec<u8>,
    bytes_unknown: bool,
}

impl StateEvaluator {
    /// With no connections.
    #[must_use]
    pub fn new(ruleset: &Arc<Ruleset>, config: &Config) -> Self {
        Self::starting(ruleset, config, Start::default())
    }

    /// With what there is before the first packet.
    #[must_use]
    pub fn starting(ruleset: &Arc<Ruleset>, config: &Config, start: Start) -> Self {
        let seen = Observed {
            counters: Counters::of(ruleset),
            path: Vec::new(),
            unknown: None,
            left: Vec::new(),
            bytes_unknown: false,
        };
        let program = Program::starting([Arc::clone(ruleset)], config.clone(), start);
        let handler = Handler::new(&program);
        Self { ruleset: Arc::clone(ruleset), program, handler, seen, number: 0 }
    }

    /// What comes out for a packet that arrives at `time`, in nanoseconds since the Unix epoch.
    pub fn evaluate(&mut self, stage: &Stage, sent: &Sent, time: u64) -> Egress {
        self.number += 1;
        self.seen.path.clear();
        self.seen.unknown = None;
        self.seen.bytes_unknown = false;
        let mut bytes = sent.bytes.clone();
        let arrival = Arrival {
            time: Some(time),
            input: Some(stage.device(sent.from_far)),
            ..Arrival::new(self.number, Link::Raw, bytes.len())
        };
        let end =
            self.handler.handle(&self.program, &mut bytes, &arrival, &mut self.seen).outcome.end;
        match (end.verdict, end.path) {
            (FinalVerdict::Accept(_), Some(Path::Forward)) => Egress::Packet(
                (!self.seen.bytes_unknown).then(|| std::mem::take(&mut self.seen.left)),
            ),
            (FinalVerdict::Accept(_) | FinalVerdict::Drop(_) | FinalVerdict::Reject(_), _)
            | (FinalVerdict::Skip(Skip::Fragment), _) => Egress::Nothing,
            (FinalVerdict::Unknown | FinalVerdict::Skip(_), _) => Egress::Unknown,
        }
    }

    /// The rules and policies that the last packet hit; a `?` after those that it may have.
    #[must_use]
    pub fn path(&self) -> Vec<String> {
        let steps = self.seen.path.iter();
        let mark = |certain: bool| if certain { "" } else { "?" };
        steps
            .map(|(at, policy, certain)| step(&self.ruleset, *at, *policy) + mark(*certain))
            .collect()
    }

    /// The first thing that was not known of the last packet.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        self.seen.unknown.as_deref()
    }

    /// What was counted at a rule of a chain, or, one past the last, at its policy; the indices are the
    /// ruleset's.
    #[must_use]
    pub fn hits(&self, table: usize, chain: usize, rule: usize) -> HitCount {
        let rules = self.ruleset.tables[table].chains[chain].rules.len();
        let (table, chain) = (table as u32, chain as u32);
        match rule == rules {
            true => self.seen.counters.policy(table, chain),
            false => self.seen.counters.rule(RuleRef { table, chain, rule: rule as u32 }),
        }
    }
}

impl eval::Observer for Observed {
    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        self.counters.hit_rule(at, certain, transit.packet.len() as u64, transit.time);
        self.path.push((at, false, certain));
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        let bytes = transit.packet.len() as u64;
        self.counters.hit_policy(table, chain, certain, bytes, transit.time);
        self.path.push((RuleRef { table, chain, rule: 0 }, true, certain));
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.unknown.get_or_insert_with(|| format!("{at:?}: {cause:?}"));
    }
}

impl Observer for Observed {
    fn depends_on(&mut self, why: dataplane::Why) {
        self.unknown.get_or_insert_with(|| format!("{why:?}"));
    }

    fn leaves(&mut self, packet: &Packet<'_>) {
        self.left.clear();
        match packet.read_slice(0, packet.len()) {
            Read::Known(bytes) => self.left.extend_from_slice(bytes),
            Read::Unknown | Read::Absent => self.bytes_unknown = true,
        }
    }
}

/// Whether the kernel counted what tamis says it did, or may have.
#[must_use]
pub fn agree(ours: &HitCount, theirs: &model::Counters) -> bool {
    match ours.maybe {
        0 => (ours.packets, ours.bytes) == (theirs.packets, theirs.bytes),
        maybe => {
            (ours.packets..=ours.packets + maybe).contains(&theirs.packets)
                && ours.bytes <= theirs.bytes
        }
    }
}
