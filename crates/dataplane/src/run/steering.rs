//! [`Steering`]: which worker evaluates a frame, where several do.
//!
//! Contract: under rules whose packets depend on those of their connection alone, all frames of a connection have one
//! owner, in both directions and under translation, with the ICMP errors about it and its fragments: whatever port they
//! came in by, and whatever worker received them. [`conntrack::steer`] decides, as in a replay. Under rules whose packets
//! depend on no others, whoever receives a frame evaluates it, but for ports with one queue, whose frames are shared
//! out all the same. What the kernel has once for all processors couples no workers: they share it ([`crate::Shared`]).

use std::sync::Arc;

use conntrack::steer::{Instruction, Key, Shard};
use packet::{Headers, Packet};
use rules::eval::{Cause, RuleRef};
use rules::model::{Action, Ruleset};
use rules::{Because, Class};

use super::fragments::Piece;
use crate::program::Program;

/// How frames are shared out.
#[derive(Debug, Clone)]
pub(super) struct Steering {
    key: Key,
    workers: usize,
    /// A frame's owner has to evaluate it, and not whoever receives it.
    couples: bool,
}

/// What a fragment follows to its owner.
pub(super) enum Follows {
    /// The addresses, which it has itself: this worker's.
    Addresses(usize),
    /// The first fragment of its packet, which has the ports; this worker sees to it.
    First(usize),
}

impl Steering {
    /// How frames are shared out between so many workers under these rules; between fewer where the rules need one to
    /// see all packets, with why.
    pub(super) fn of(rulesets: &[Arc<Ruleset>], workers: usize) -> (Self, Option<String>) {
        let classes = || rulesets.iter().map(|rules| (rules, rules.class_of_sharers()));
        let class = classes().map(|(_, class)| class).fold(Class::Pure, Class::or);
        let why = classes().find_map(|(rules, class)| match class {
            Class::Global(because) => Some(in_words(rules, because)),
            Class::Pure | Class::PerFlow(_) => None,
        });
        let couples = class.key().is_some();
        let key = class.key().cloned().unwrap_or(Key::Addresses);
        let why = why.filter(|_| workers > 1);
        let workers = if why.is_some() { 1 } else { workers };
        (Self { key, workers, couples }, why)
    }

    /// Whether workers may share frames out in this way under other rules.
    ///
    /// # Errors
    /// Why not: those rules need one worker, or have what this tells apart count as one.
    pub(super) fn suits(&self, rulesets: &[Arc<Ruleset>]) -> Result<(), String> {
        let (wanted, why) = Self::of(rulesets, self.workers);
        match why {
            Some(why) => Err(format!("they need one worker: {why}")),
            None if self.workers == 1 || !wanted.couples || self.is_by(&wanted.key) => Ok(()),
            None => Err("connections are shared out between workers in another way".to_owned()),
        }
    }

    /// The same of the rules of a program's revisions: what those know without a look at each rule mostly tells.
    ///
    /// # Errors
    /// Likewise.
    pub(super) fn suits_program(&self, program: &Program) -> Result<(), String> {
        let mut bounds = program.revisions().map(|revision| revision.class_bound());
        let bound = bounds.try_fold(Class::Pure, |class, bound| Some(class.or(bound?)));
        let is_sure = bound.is_some_and(|class| class.key().is_none_or(|key| self.is_by(key)));
        if self.workers == 1 || is_sure {
            return Ok(());
        }
        let rulesets = program.revisions().map(|revision| Arc::new(revision.ruleset()));
        self.suits(&rulesets.collect::<Vec<_>>())
    }

    /// Whether the packets of a connection go to one worker, by what they have in common.
    fn is_by(&self, key: &Key) -> bool {
        self.couples && self.key == *key
    }

    /// Among how many workers.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    /// Whether a frame's owner has to evaluate it.
    pub(super) fn couples(&self) -> bool {
        self.couples
    }

    /// Whether wires can keep the order of all their frames: each frame has an owner by itself, or needs none.
    pub(super) fn can_order(&self) -> bool {
        self.workers == 1 || !self.couples || matches!(self.key, Key::Addresses)
    }

    /// Whether the frames of a port are handed to their owners, where each worker receives by a queue of its own or not.
    pub(super) fn steers(&self, has_queues: bool) -> bool {
        self.workers > 1 && (self.couples || !has_queues)
    }

    /// What a device that shares frames out among workers is to do it by, so that most come to their owner at once.
    pub(super) fn program(&self) -> Vec<Instruction> {
        if self.couples && self.workers > 1 { self.key.program() } else { Vec::new() }
    }

    /// A worker's part of the connections, of which there are `max` in all.
    pub(super) fn shard(&self, number: usize, max: usize) -> Option<Shard> {
        let mut shards = Shard::all(&self.key, self.workers, max);
        shards.nth(number).filter(|shard| self.couples && shard.of > 1)
    }

    /// The owner of a packet that is whole, or of the first fragment of one and so of all.
    pub(super) fn owner(&self, bytes: &mut [u8], headers: &Headers) -> usize {
        self.key.shard(&Packet::with_headers(bytes, *headers), self.workers)
    }

    /// Who is to know where a fragment goes.
    pub(super) fn of_fragment(&self, piece: &Piece) -> Follows {
        match self.key {
            Key::Addresses => Follows::Addresses(self.key.shard_of(&piece.tuple(), self.workers)),
            Key::Ports(_) => Follows::First((piece.hash() % self.workers as u64) as usize),
        }
    }
}

/// Why one worker sees all packets, in the words of the rule.
fn in_words(rules: &Ruleset, because: Because) -> String {
    let (RuleRef { table, chain, rule }, cause) = match because {
        Because::Rule(at, cause) => (at, cause),
        Because::Nat(at) => (at, Cause::Target),
    };
    let family = rules.family.name();
    let chain = rules.tables.get(table as usize).and_then(|table| table.chains.get(chain as usize));
    let Some(rule) = chain.and_then(|chain| chain.rules.get(rule as usize)) else {
        return format!("{family}: a rule");
    };
    let what = match (&rule.action, cause) {
        (_, Cause::Steps) => "walks from here may be too long".to_owned(),
        (Action::Target(target), _) => format!("-j {}", target.name),
        _ => "depends on packets of other connections".to_owned(),
    };
    format!("{family} line {}: {what}", rule.line)
}
