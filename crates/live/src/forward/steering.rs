//! [`Steering`]: decides which worker evaluates a frame, where several do.
//!
//! Contract: under rules whose verdicts on a packet depend on its connection alone, all frames of a connection have one
//! owner, in both directions and under translation, with the ICMP errors about it and its fragments, whatever their
//! port of arrival and the worker that received them. [`conntrack::steer`] decides, as in a replay. Under rules whose
//! packets depend on no others, a frame's receiver evaluates it; frames of ports with one queue are shared out all the
//! same. What the kernel has once for all processors couples no workers: they share it ([`dataplane::Shared`]).
//! Where a wire keeps the order of all its frames, nobody owns frames: under rules whose packets depend on others, or
//! none, workers take turns at one [`Evaluator`](super::evaluator), which sees all packets, so that any rules suit.

use std::sync::Arc;

use conntrack::steer::{Instruction, Key, Shard};
use packet::{Headers, Packet};
use rules::eval::{Cause, RuleRef};
use rules::model::{Action, Ruleset};
use rules::{Because, Class};

use crate::forward::fragments::Piece;
use dataplane::Program;

/// The distribution of frames among workers.
#[derive(Debug, Clone)]
pub(crate) struct Steering {
    key: Key,
    workers: usize,
    /// Whether a frame's owner has to evaluate it, and not just its receiver.
    couples: bool,
    /// Whether workers take turns at one evaluator.
    takes_turns: bool,
}

/// The addresses or the first fragment by which a fragment reaches its owner.
pub(crate) enum Follows {
    /// The addresses, which the fragment has itself: this worker owns it.
    Addresses(usize),
    /// The first fragment of its packet, which has the ports; this worker waits for that.
    First(usize),
}

impl Steering {
    /// Decides how frames are shared out between this number of workers under these rules; between fewer where the
    /// rules need one worker to see all packets, with the reason.
    pub(crate) fn of(rulesets: &[Arc<Ruleset>], workers: usize) -> (Self, Option<String>) {
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
        (Self { key, workers, couples, takes_turns: false }, why)
    }

    /// Decides it where a wire keeps the order of all its frames.
    pub(crate) fn in_order(rulesets: &[Arc<Ruleset>], workers: usize) -> Self {
        let is_pure = |rules: &Arc<Ruleset>| matches!(rules.class_of_sharers(), Class::Pure);
        let are_any = rulesets.iter().any(|rules| !rules.tables.is_empty());
        let takes_turns = workers > 1 && !(are_any && rulesets.iter().all(is_pure));
        Self { key: Key::Addresses, workers, couples: false, takes_turns }
    }

    /// Whether workers may share frames out in this way under other rules.
    ///
    /// # Errors
    /// Why not: those rules need one worker, or couple packets that this sends to different ones.
    pub(crate) fn suits(&self, rulesets: &[Arc<Ruleset>]) -> Result<(), String> {
        let (wanted, why) = Self::of(rulesets, self.workers);
        match why {
            _ if self.takes_turns => Ok(()),
            Some(why) => Err(format!("they need one worker: {why}")),
            None if self.workers == 1 || !wanted.couples || self.is_by(&wanted.key) => Ok(()),
            None => Err("connections are shared out between workers in another way".to_owned()),
        }
    }

    /// Checks the rules of a program's revisions, mostly by what the revisions know without a look at each rule.
    ///
    /// # Errors
    /// As for [`Steering::suits`].
    pub(crate) fn suits_program(&self, program: &Program) -> Result<(), String> {
        let mut bounds = program.revisions().map(|revision| revision.class_bound());
        let bound = bounds.try_fold(Class::Pure, |class, bound| Some(class.or(bound?)));
        let is_sure = bound.is_some_and(|class| class.key().is_none_or(|key| self.is_by(key)));
        if self.workers == 1 || self.takes_turns || is_sure {
            return Ok(());
        }
        let rulesets = program.revisions().map(|revision| Arc::new(revision.ruleset()));
        self.suits(&rulesets.collect::<Vec<_>>())
    }

    /// Whether the packets of a connection go to one worker by this key.
    fn is_by(&self, key: &Key) -> bool {
        self.couples && self.key == *key
    }

    /// The number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Whether workers take turns at one evaluator.
    pub(crate) fn takes_turns(&self) -> bool {
        self.takes_turns
    }

    /// The number of evaluators: the first workers answer for them.
    pub(crate) fn evaluators(&self) -> usize {
        if self.takes_turns { 1 } else { self.workers }
    }

    /// Whether the frames of a port are handed to their owners; `has_queues` if each worker receives on a queue of its
    /// own.
    pub(crate) fn steers(&self, has_queues: bool) -> bool {
        self.workers > 1 && !self.takes_turns && (self.couples || !has_queues)
    }

    /// The program by which a device distributes frames among workers, so that most come to their owner at once.
    pub(crate) fn program(&self) -> Vec<Instruction> {
        if self.couples && self.workers > 1 { self.key.program() } else { Vec::new() }
    }

    /// A worker's part of the connections, of which there are `max` in all.
    pub(crate) fn shard(&self, number: usize, max: usize) -> Option<Shard> {
        let mut shards = Shard::all(&self.key, self.workers, max);
        shards.nth(number).filter(|shard| self.couples && shard.of > 1)
    }

    /// The owner of a whole packet, or of a first fragment and so of all its packet's fragments.
    pub(crate) fn owner(&self, bytes: &mut [u8], headers: &Headers) -> usize {
        self.key.shard(&Packet::with_headers(bytes, *headers), self.workers)
    }

    /// The worker that steers a fragment.
    pub(crate) fn of_fragment(&self, piece: &Piece) -> Follows {
        match self.key {
            Key::Addresses => Follows::Addresses(self.key.shard_of(&piece.tuple(), self.workers)),
            Key::Ports(_) => Follows::First((piece.hash() % self.workers as u64) as usize),
        }
    }
}

/// Returns why one worker sees all packets, in the words of the rule.
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
