//! Publishing: programs go to the threads that take packets through them, their counters come back.
//!
//! A program holds a [`Revision`] for each family, a commit makes the next one of one of them. Every [`Worker`] has a
//! desk. A commit puts the new program on all of them; a worker takes what is there for the length of a
//! [`BurstGuard`], so one packet goes through one program. A reader who wants the counters puts empty ones there, and
//! has the full ones when the worker's burst ends, or at once if it rests: that is [`Published::snapshot`].
//!
//! Contract: workers never wait, lock or free anything but the seat itself; a burst costs two swaps of a word
//! that is the worker's own. A burst that begins after a commit sees it. Writers take turns: rules are read, and a
//! program is built of them and an old one freed, while nobody else waits. Programs are freed by writers alone. The
//! ledger is locked to look and to swap; who asks for the current program takes no lock at all. Writers wait at
//! [`MOST_PROGRAMS`] or [`MOST_BYTES`] that are not reclaimed, readers of counters for bursts to end, both for
//! [`PATIENCE`]. `ledger` says when something is reclaimed.
//!
//! What packets leave is each worker's own ([`crate::State`]), such as connections, but for what the kernel has once:
//! that is one for all workers ([`Shared`]). A state follows the newest program where a burst begins, which takes as long as programs have families.
//!
//! A rule is named by its [`Rule::id`], which no other rule of these programs has before or after it;
//! [`Program::rule`] has it by the place that a verdict gives. Whoever wants to read a rule that may be gone by then
//! holds its revision: that keeps nobody from anything.
//!
//! This is the only place that knows threads and programs. It needs no `unsafe`: the words are crossbeam's
//! `AtomicCell`s of boxes, what is let go of is found by the counts of `Arc`s.

mod array;
mod desk;
mod ledger;
mod lists;
pub mod tally;
mod worker;

/// What `desk` is made of; its models put loom's in the place.
mod sync {
    pub(super) use crossbeam_utils::atomic::AtomicCell;
}

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use access::list::Schedule;
use arc_swap::ArcSwap;
use conntrack::steer::Shard;
use rules::ipset::Sets;
use rules::model::{Counters, Family, Hook, Rule, Ruleset};
use rules::revision::{Numbers, Refused, Revision, Transaction};
use rules::save::LoadError;
use rules::{Backend, TableKind};

use ledger::{Ledger, Reset};
use tally::{Local, Tally, policy_place};

pub use worker::{BurstGuard, Worker};

use crate::config::Config;
use crate::program::Program;
use crate::shared::Shared;

/// Writers wait at this number of programs that somebody may still walk.
pub const MOST_PROGRAMS: usize = 64;

/// Writers wait at this number of bytes that only such programs hold, by [`Revision::replaced_bytes`].
pub const MOST_BYTES: usize = 256 << 20;

/// How long writers wait for workers to move on, and readers for their bursts to end.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// Rules whose counters are started before somebody else has the ledger.
const AT_ONCE: usize = 4096;

/// How long a writer sleeps before it looks again.
const NAP: Duration = Duration::from_micros(50);

/// Rules in force, and who walks them; `T` is what they count in.
#[derive(Debug)]
pub struct Published<T = Local> {
    /// The writer's turn: held for as long as it takes to read rules and to build a program of them.
    numbers: Mutex<Numbers>,
    /// Held to look, and to swap; taken after `numbers` by who takes both.
    ledger: Mutex<Ledger<T>>,
    /// The ledger's current program, for whoever only asks for it; changed under the ledger's lock, after the desks.
    current: ArcSwap<Program>,
    limits: Limits,
}

/// When writers wait, and how long.
#[derive(Debug, Clone, Copy)]
struct Limits {
    programs: usize,
    bytes: usize,
    patience: Duration,
}

/// Why nothing was published, or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishError {
    /// The rules are no longer those that the change was made for.
    Stale {
        /// Number of the program that it was made for.
        expected: u64,
        /// Number of the one that is current.
        current: u64,
    },
    /// Somebody has been walking an old program for too long.
    Behind {
        /// The worker, counted from 0 as they registered; `None` if it is someone who asked for a program.
        worker: Option<usize>,
        /// Programs that are not reclaimed.
        programs: usize,
        /// What only those hold, about.
        bytes: usize,
    },
    /// A change was refused.
    Refused(Refused),
    /// A line of the text was refused.
    Load(LoadError),
    /// Whoever was asked did not accept the program: why.
    NotAccepted(String),
}

/// Counters of all workers, each as of a boundary between two of its bursts.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The program whose rules they are. Holding on to it keeps it, and those after it, from being reclaimed.
    pub program: Arc<Program>,
    rules: Vec<Counters>,
    policies: Vec<Counters>,
}

/// What is held for workers, for whoever watches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Programs that were replaced and that somebody may still have.
    pub programs: usize,
    /// What only those hold, in bytes, about.
    pub bytes: usize,
    /// Arrays of counters.
    pub arrays: usize,
    /// Places of rules in each of them.
    pub places: usize,
}

impl Published {
    /// Rules as they were read, of at most one ruleset for each family; counters start where the text says.
    ///
    /// # Errors
    /// Chains that form a loop.
    pub fn new<'r>(
        rulesets: impl IntoIterator<Item = &'r Ruleset>,
        config: impl Into<Arc<Config>>,
    ) -> Result<Self, Refused> {
        Self::counting(rulesets, config)
    }
}

impl<T: Tally> Published<T> {
    /// As [`Published::new`], with counters of another kind.
    ///
    /// # Errors
    /// Likewise.
    pub fn counting<'r>(
        rulesets: impl IntoIterator<Item = &'r Ruleset>,
        config: impl Into<Arc<Config>>,
    ) -> Result<Self, Refused> {
        let (mut numbers, mut revisions, mut given) = (Numbers::default(), Vec::new(), Vec::new());
        for ruleset in rulesets {
            revisions.push(Arc::new(Revision::first(ruleset, &mut numbers)?));
            given.extend(given_to_policies(ruleset));
        }
        let config = config.into();
        let shared = Shared::new(&config);
        let first = Program::of_revisions(1, revisions.iter().cloned(), config).sharing(shared);
        let mut ledger = Ledger::new(first, numbers.slots());
        for rule in revisions.iter().flat_map(|revision| revision.rules()) {
            ledger.start_rule(rule.slot, rule.counters);
        }
        given.into_iter().for_each(|reset| ledger.start_policy(reset));
        let limits = Limits { programs: MOST_PROGRAMS, bytes: MOST_BYTES, patience: PATIENCE };
        let current = ArcSwap::new(Arc::clone(&ledger.current));
        let (numbers, ledger) = (Mutex::new(numbers), Mutex::new(ledger));
        Ok(Self { numbers, ledger, current, limits })
    }

    /// Registers a worker. Dropping it takes it off again; its counts stay.
    pub fn worker(&self) -> Worker<T> {
        self.worker_of(None)
    }

    /// As [`Published::worker`], of one that has this part of the connections, where workers share them out.
    pub fn worker_of(&self, shard: Option<Shard>) -> Worker<T> {
        let (place, program) = self.lock().register();
        Worker::new(place, &program, shard)
    }

    /// What its workers share: the access list, to be changed while packets pass, and the sets. After a reload both are
    /// other ones.
    pub fn shared(&self) -> Shared {
        let program = self.program();
        program.shared().cloned().unwrap_or_else(|| Shared::new(program.config()))
    }

    /// The current program, without waiting: a burst that begins after this has it, or a newer one. Holding on to it
    /// keeps it, and those after it, from being reclaimed; holding on to a revision of it does not.
    pub fn program(&self) -> Arc<Program> {
        self.current.load_full()
    }

    /// Publishes what changes to the rules of a family make of program `expected`: the number of the new program.
    ///
    /// # Errors
    /// `expected` is not current, the change is refused, or workers are too far behind: then nothing has
    /// changed.
    pub fn commit(
        &self,
        expected: u64,
        family: Family,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<(), Refused>,
    ) -> Result<u64, PublishError> {
        let make = |current: &Revision, numbers: &mut Numbers| {
            let mut transaction = Transaction::new(current, numbers);
            match change(&mut transaction) {
                Ok(()) => Ok(transaction.commit()),
                Err(refused) => {
                    transaction.abort();
                    Err(PublishError::Refused(refused))
                }
            }
        };
        self.publish(expected, family, &[], make, |_| Ok(()))
    }

    /// As [`Published::commit`], with changes as [`Revision::changed_by`] reads them.
    ///
    /// # Errors
    /// Likewise, with the line that is refused.
    pub fn commit_text(
        &self,
        expected: u64,
        family: Family,
        text: &str,
    ) -> Result<u64, PublishError> {
        self.commit_text_if(expected, family, text, |_| Ok(()))
    }

    /// As [`Published::commit_text`], if the program is accepted that it makes. Nothing can fail after that.
    ///
    /// # Errors
    /// Likewise, and why it is not accepted.
    pub fn commit_text_if(
        &self,
        expected: u64,
        family: Family,
        text: &str,
        accept: impl FnOnce(&Program) -> Result<(), String>,
    ) -> Result<u64, PublishError> {
        let make = |current: &Revision, numbers: &mut Numbers| {
            current.changed_by(text, numbers).map_err(PublishError::Load)
        };
        self.publish(expected, family, &[], make, accept)
    }

    /// As [`Published::commit`], with other rules in place of all of their family: counters, and what matches
    /// remember, stay with rules that are the same, but where the new rules bring counters. Somebody else may have
    /// the rules, too.
    ///
    /// # Errors
    /// Likewise.
    pub fn replace(&self, expected: u64, ruleset: Ruleset) -> Result<u64, PublishError> {
        let given = given_to_policies(&ruleset);
        let family = ruleset.family;
        let make = |current: &Revision, numbers: &mut Numbers| {
            current.replaced_by(ruleset, numbers).map_err(PublishError::Refused)
        };
        self.publish(expected, family, &given, make, |_| Ok(()))
    }

    /// As [`Published::replace`], for rules of several families, sets and the access list at once: no packet meets
    /// some of them without the others.
    ///
    /// # Errors
    /// Likewise.
    pub fn reload(
        &self,
        expected: u64,
        rulesets: Vec<Ruleset>,
        sets: Option<Sets>,
        bans: Option<Schedule>,
    ) -> Result<u64, PublishError> {
        self.replace_if(expected, rulesets, |program| program.with(sets, bans), |_| Ok(()))
    }

    /// As [`Published::replace`], for rules of several families at once, if the program is accepted that they make;
    /// `beside` changes what it has beside rules ([`Program::with`]). Nothing can fail after it is accepted.
    ///
    /// # Errors
    /// Likewise, and why it is not accepted.
    pub fn replace_if(
        &self,
        expected: u64,
        rulesets: Vec<Ruleset>,
        beside: impl FnOnce(Program) -> Program,
        accept: impl FnOnce(&Program) -> Result<(), String>,
    ) -> Result<u64, PublishError> {
        // What could be refused is refused before any of it has taken numbers.
        for ruleset in &rulesets {
            Revision::first(ruleset, &mut Numbers::default()).map_err(PublishError::Refused)?;
        }
        let mut numbers = lock(&self.numbers);
        let current = self.room_at(expected, &mut numbers)?;
        let (mut next, mut resets) = (Vec::new(), Vec::new());
        for ruleset in rulesets {
            let given = given_to_policies(&ruleset);
            let old = revision_of(&current, ruleset.family, &mut numbers)?;
            let new = old.replaced_by(ruleset, &mut numbers).map_err(PublishError::Refused)?;
            resets.extend(policies_of_new_tables(&old, &new));
            resets.extend(given);
            next.push(Arc::new(new));
        }
        let program = beside(current.after(&next));
        drop(current);
        accepted(accept(&program), &next, &mut numbers)?;
        Ok(self.put(program, &next, &resets, &mut numbers))
    }

    fn publish(
        &self,
        expected: u64,
        family: Family,
        given: &[Reset],
        make: impl FnOnce(&Revision, &mut Numbers) -> Result<Revision, PublishError>,
        accept: impl FnOnce(&Program) -> Result<(), String>,
    ) -> Result<u64, PublishError> {
        let mut numbers = lock(&self.numbers);
        let current = self.room_at(expected, &mut numbers)?;
        let old = revision_of(&current, family, &mut numbers)?;
        let next = [Arc::new(make(&old, &mut numbers)?)];
        let mut resets = policies_of_new_tables(&old, &next[0]);
        resets.extend_from_slice(given);
        let program = current.after(&next);
        // Or it would never be the last to have it.
        drop((current, old));
        accepted(accept(&program), &next, &mut numbers)?;
        Ok(self.put(program, &next, &resets, &mut numbers))
    }

    /// Puts a program in force, which differs from the current one by these revisions.
    fn put(
        &self,
        program: Program,
        next: &[Arc<Revision>],
        resets: &[Reset],
        numbers: &mut Numbers,
    ) -> u64 {
        for some in next.iter().flat_map(|next| next.made().chunks(AT_ONCE)) {
            self.lock().prepare(some);
        }
        let mut ledger = self.lock();
        let number = ledger.publish(program, next, resets, numbers.slots());
        self.current.store(Arc::clone(&ledger.current));
        let gone = ledger.reclaim(numbers);
        drop(ledger);
        drop(gone);
        number
    }

    /// Waits for room for one more program; `expected` is current, and stays it for as long as the writer's turn
    /// lasts.
    fn room_at(&self, expected: u64, numbers: &mut Numbers) -> Result<Arc<Program>, PublishError> {
        let start = Instant::now();
        loop {
            let mut ledger = self.lock();
            let current = ledger.current.number();
            if current != expected {
                return Err(PublishError::Stale { expected, current });
            }
            let gone = ledger.reclaim(numbers);
            let (programs, bytes) = ledger.unreclaimed();
            if programs < self.limits.programs && bytes < self.limits.bytes {
                let current = Arc::clone(&ledger.current);
                drop(ledger);
                drop(gone);
                return Ok(current);
            }
            if start.elapsed() >= self.limits.patience {
                return Err(ledger.behind());
            }
            drop(ledger);
            drop(gone);
            std::thread::sleep(NAP);
        }
    }

    /// What all workers have counted.
    ///
    /// # Errors
    /// A worker's burst does not end: [`PublishError::Behind`].
    pub fn snapshot(&self) -> Result<Snapshot, PublishError> {
        let start = Instant::now();
        let until = self.lock().renew();
        loop {
            let mut ledger = self.lock();
            if let Some(snapshot) = ledger.sums(until) {
                return Ok(snapshot);
            }
            if start.elapsed() >= self.limits.patience {
                return Err(ledger.behind());
            }
            drop(ledger);
            std::thread::sleep(NAP);
        }
    }

    /// What is held just now.
    pub fn held(&self) -> Held {
        self.lock().held()
    }

    fn lock(&self) -> MutexGuard<'_, Ledger<T>> {
        lock(&self.ledger)
    }
}

impl Snapshot {
    /// Of a rule of the program.
    #[must_use]
    pub fn rule(&self, rule: &Rule) -> Counters {
        self.rules.get(rule.slot as usize).copied().unwrap_or_default()
    }

    /// Of the policy of a table's built-in chain.
    #[must_use]
    pub fn policy(&self, family: Family, table: &str, hook: Hook) -> Counters {
        let place = family.tables().iter().position(|kind| kind.name == table);
        let place = place.map(|table| policy_place(family, table, hook));
        place.and_then(|place| self.policies.get(place)).copied().unwrap_or_default()
    }
}

fn lock<V>(value: &Mutex<V>) -> MutexGuard<'_, V> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counters that a text gives to policies.
fn given_to_policies(ruleset: &Ruleset) -> Vec<Reset> {
    let mut given = Vec::new();
    for (place, kind) in ruleset.family.tables().iter().enumerate() {
        let chains = ruleset.table(kind.name).into_iter().flat_map(|table| &table.chains);
        let bases = chains.filter_map(|chain| chain.base);
        let bases = bases.filter(|base| base.counters != Counters::default());
        let place = |hook| policy_place(ruleset.family, place, hook);
        given.extend(bases.map(|base| (place(base.hook), base.counters)));
    }
    given
}

/// Policies of tables that were not there before start at zero.
fn policies_of_new_tables(old: &Revision, new: &Revision) -> Vec<Reset> {
    let family = new.family();
    let kinds = family.tables().iter().enumerate();
    let is_new = |name: &str| old.table(name).is_none() && new.table(name).is_some();
    let hooks = |(place, kind): (usize, &'static TableKind)| {
        let place = move |hook: Hook| policy_place(family, place, hook);
        kind.hooks().map(move |hook| (place(hook), Counters::default()))
    };
    kinds.filter(|(_, kind)| is_new(kind.name)).flat_map(hooks).collect()
}

/// Takes the numbers of revisions back that are not accepted.
fn accepted(
    answer: Result<(), String>,
    next: &[Arc<Revision>],
    numbers: &mut Numbers,
) -> Result<(), PublishError> {
    let take_back = |_: &String| next.iter().for_each(|next| numbers.take_back(next));
    answer.inspect_err(take_back).map_err(PublishError::NotAccepted)
}

/// The revision of a family in a program.
fn revision_of(
    program: &Program,
    family: Family,
    numbers: &mut Numbers,
) -> Result<Arc<Revision>, PublishError> {
    match program.revision(family) {
        Some(revision) => Ok(Arc::clone(revision)),
        None => without_rules(family, numbers).map(Arc::new),
    }
}

/// What the rules of a family are made of that had none.
fn without_rules(family: Family, numbers: &mut Numbers) -> Result<Revision, PublishError> {
    let none = Ruleset { family, backend: Backend::default(), tables: Vec::new() };
    Revision::first(&none, numbers).map_err(PublishError::Refused)
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { expected, current } => {
                write!(f, "expected program {expected} to be current, found {current}")
            }
            Self::Behind { worker: Some(worker), programs, bytes } => {
                write!(f, "worker {worker} does not move on: ")?;
                unreclaimed(f, *programs, *bytes)
            }
            Self::Behind { worker: None, programs, bytes } => {
                f.write_str("someone holds on to an old program: ")?;
                unreclaimed(f, *programs, *bytes)
            }
            Self::Refused(refused) => refused.fmt(f),
            Self::Load(error) => error.fmt(f),
            Self::NotAccepted(why) => f.write_str(why),
        }
    }
}

fn unreclaimed(f: &mut fmt::Formatter<'_>, programs: usize, bytes: usize) -> fmt::Result {
    write!(f, "{programs} programs of {bytes} bytes cannot be reclaimed")
}

impl std::error::Error for PublishError {}

#[cfg(test)]
mod tests;
