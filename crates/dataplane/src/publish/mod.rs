//! Publishing: hands programs to the threads that take packets through them, and collects their counters.
//!
//! A program holds a [`Revision`] for each family; a commit makes the next revision of one family. Every [`Worker`] has
//! a desk. A commit puts the new program on all desks; a worker takes what is there for the length of a [`BurstGuard`],
//! so one packet goes through one program. A reader of counters puts empty ones there, and gets the full ones when the
//! worker's burst ends, or at once if the worker rests: [`Published::snapshot`].
//!
//! Contract: workers never wait or lock, and free nothing but the seat itself; a burst costs two swaps of a word that
//! is the worker's own. A burst that begins after a commit sees it. Writers take turns: rules are read, a program is
//! built of them and an old one freed while nobody else waits. Only writers free programs. The ledger is locked to look
//! and to swap; asking for the current program takes no lock at all. Writers wait at [`MOST_PROGRAMS`] or
//! [`MOST_BYTES`] that are not reclaimed, readers of counters for bursts to end, both for [`PATIENCE`]. `ledger` says
//! when something is reclaimed.
//!
//! Each worker has its own [`crate::State`] (such as connections), except what the kernel has once: all workers share
//! that ([`Shared`]). A state follows the newest program where a burst begins, in time linear in the number of its
//! families.
//!
//! A rule is named by its [`rules::model::Rule::id`], which no other rule of these programs has before or after it;
//! [`Program::rule`] finds it by the place that a verdict gives. A reader of a rule that may have been removed by then
//! holds its revision, which blocks neither writers nor workers.
//!
//! This is the only place that knows threads and programs. It needs no `unsafe`: the words are crossbeam's
//! `AtomicCell`s of boxes, and the counts of `Arc`s show what was let go of.

mod array;
mod desk;
mod ledger;
mod lists;
mod report;
mod sync;
pub mod tally;
mod worker;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use access::list::Schedule;
use arc_swap::ArcSwap;
use conntrack::steer::Shard;
use rules::ipset::Sets;
use rules::model::{Counters, Family, Hook, Ruleset};
use rules::revision::{Numbers, Refused, Revision, Transaction};
use rules::{Backend, TableKind};

use ledger::{Ledger, Reset};
use tally::{Local, Tally, policy_place};

pub use report::{Held, PublishError, Snapshot};
pub use worker::{BurstGuard, Worker};

use crate::config::{Config, Start};
use crate::program::Program;
use crate::shared::Shared;

/// Number of replaced programs that may still be walked at which writers wait.
pub const MOST_PROGRAMS: usize = 64;

/// Number of bytes that only such programs hold at which writers wait, by [`Revision::replaced_bytes`].
pub const MOST_BYTES: usize = 256 << 20;

/// How long writers wait for workers to move on, and readers for their bursts to end.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// Rules whose counters are started before the ledger's lock is given up for a moment.
const AT_ONCE: usize = 4096;

/// How long a writer sleeps before it looks again.
const NAP: Duration = Duration::from_micros(50);

/// The rules in force and the workers that walk them; `T` is the type of their counters.
#[derive(Debug)]
pub struct Published<T = Local> {
    /// The writer's turn: held for as long as it takes to read rules and to build a program of them.
    numbers: Mutex<Numbers>,
    /// Held to look, and to swap; `numbers` is locked first where both are.
    ledger: Mutex<Ledger<T>>,
    /// The ledger's current program, readable without its lock; changed under that lock, after the desks.
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

impl Published {
    /// Publishes rules as they were read, of at most one ruleset for each family; counters start where the text says.
    #[must_use]
    pub fn new<'r>(
        rulesets: impl IntoIterator<Item = &'r Ruleset>,
        config: impl Into<Arc<Config>>,
    ) -> Self {
        Self::counting(rulesets, config, Start::default())
    }
}

impl<T: Tally> Published<T> {
    /// Publishes rules like [`Published::new`], with counters of type `T`, for states that start with this.
    pub fn counting<'r>(
        rulesets: impl IntoIterator<Item = &'r Ruleset>,
        config: impl Into<Arc<Config>>,
        start: impl Into<Arc<Start>>,
    ) -> Self {
        let (mut numbers, mut revisions, mut given) = (Numbers::default(), Vec::new(), Vec::new());
        for ruleset in rulesets {
            revisions.push(Arc::new(Revision::first(ruleset, &mut numbers)));
            given.extend(given_to_policies(ruleset));
        }
        let start = start.into();
        let shared = Shared::new(&start);
        let first = Program::of_revisions(1, revisions.iter().cloned(), config.into(), start);
        let first = first.sharing(shared);
        let mut ledger = Ledger::new(first, numbers.slots());
        for rule in revisions.iter().flat_map(|revision| revision.rules()) {
            ledger.start_rule(rule.slot, rule.counters);
        }
        given.into_iter().for_each(|reset| ledger.start_policy(reset));
        let limits = Limits { programs: MOST_PROGRAMS, bytes: MOST_BYTES, patience: PATIENCE };
        let current = ArcSwap::new(Arc::clone(&ledger.current));
        let (numbers, ledger) = (Mutex::new(numbers), Mutex::new(ledger));
        Self { numbers, ledger, current, limits }
    }

    /// Registers a worker. Dropping it removes it again; its counts stay.
    pub fn worker(&self) -> Worker<T> {
        self.worker_of(None)
    }

    /// Registers a worker like [`Published::worker`] that has this part of the connections, where workers share them
    /// out.
    pub fn worker_of(&self, shard: Option<Shard>) -> Worker<T> {
        let (place, program) = self.lock().register();
        Worker::new(place, &program, shard)
    }

    /// Returns what the workers share: the access list, which may be changed while packets pass, and the sets. A reload
    /// replaces both.
    pub fn shared(&self) -> Shared {
        let program = self.program();
        program.shared().cloned().unwrap_or_else(|| Shared::new(program.start()))
    }

    /// The current program, without waiting: a burst that begins after this has it, or a newer one. Holding on to it
    /// keeps it, and those after it, from being reclaimed; holding on to a revision of it does not.
    pub fn program(&self) -> Arc<Program> {
        self.current.load_full()
    }

    /// Publishes what changes to the rules of a family make of program `expected`; returns the number of the new
    /// program.
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

    /// Commits like [`Published::commit`], with changes as [`Revision::changed_by`] reads them.
    ///
    /// # Errors
    /// As for [`Published::commit`], with the line that is refused.
    pub fn commit_text(
        &self,
        expected: u64,
        family: Family,
        text: &str,
    ) -> Result<u64, PublishError> {
        self.commit_text_if(expected, family, text, |_| Ok(()))
    }

    /// Commits like [`Published::commit_text`], if `accept` accepts the resulting program. Nothing can fail after that.
    ///
    /// # Errors
    /// As for [`Published::commit_text`], and the reason of `accept`.
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

    /// Commits like [`Published::commit`], with rules that replace all rules of their family. Rules that stay the same
    /// keep their counters, unless the new rules bring counters, and what their matches remember. Other holders of the
    /// rules do no harm.
    ///
    /// # Errors
    /// As for [`Published::commit`].
    pub fn replace(&self, expected: u64, ruleset: Ruleset) -> Result<u64, PublishError> {
        let given = given_to_policies(&ruleset);
        let family = ruleset.family;
        let make = |current: &Revision, numbers: &mut Numbers| {
            current.replaced_by(ruleset, numbers).map_err(PublishError::Refused)
        };
        self.publish(expected, family, &given, make, |_| Ok(()))
    }

    /// Replaces rules like [`Published::replace`], but of several families, with sets and the access list, all at once:
    /// no packet meets some of them without the others.
    ///
    /// # Errors
    /// As for [`Published::replace`].
    pub fn reload(
        &self,
        expected: u64,
        rulesets: Vec<Ruleset>,
        sets: Option<Sets>,
        bans: Option<Schedule>,
    ) -> Result<u64, PublishError> {
        self.replace_if(expected, rulesets, |program| program.with(sets, bans), |_| Ok(()))
    }

    /// Replaces rules like [`Published::replace`], but of several families at once, if `accept` accepts the resulting
    /// program; a function sets the program's sets and access list ([`Program::with`]). Nothing can fail after it is
    /// accepted.
    ///
    /// # Errors
    /// As for [`Published::replace`], and the reason of `accept`.
    pub fn replace_if(
        &self,
        expected: u64,
        rulesets: Vec<Ruleset>,
        beside: impl FnOnce(Program) -> Program,
        accept: impl FnOnce(&Program) -> Result<(), String>,
    ) -> Result<u64, PublishError> {
        let mut numbers = lock(&self.numbers);
        let current = self.room_at(expected, &mut numbers)?;
        let (mut next, mut resets) = (Vec::new(), Vec::new());
        for ruleset in rulesets {
            let given = given_to_policies(&ruleset);
            let old = revision_of(&current, ruleset.family, &mut numbers);
            let new = old.replaced_by(ruleset, &mut numbers);
            let new = new.inspect_err(|_| take_back(&next, &mut numbers));
            let new = new.map_err(PublishError::Refused)?;
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
        let old = revision_of(&current, family, &mut numbers);
        let next = [Arc::new(make(&old, &mut numbers)?)];
        let mut resets = policies_of_new_tables(&old, &next[0]);
        resets.extend_from_slice(given);
        let program = current.after(&next);
        // Otherwise the ledger would not have the last reference.
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

    /// Returns what all workers have counted.
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

    /// Returns what is held for workers now.
    pub fn held(&self) -> Held {
        self.lock().held()
    }

    fn lock(&self) -> MutexGuard<'_, Ledger<T>> {
        lock(&self.ledger)
    }
}

fn lock<V>(value: &Mutex<V>) -> MutexGuard<'_, V> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the counters that a text gives to policies.
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

/// Finds the policies of tables that were not there before, which start at zero.
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
    answer.inspect_err(|_| take_back(next, numbers)).map_err(PublishError::NotAccepted)
}

/// Takes back what revisions were given that nobody will walk.
fn take_back(unused: &[Arc<Revision>], numbers: &mut Numbers) {
    unused.iter().for_each(|unused| numbers.take_back(unused));
}

/// The revision of a family in a program.
fn revision_of(program: &Program, family: Family, numbers: &mut Numbers) -> Arc<Revision> {
    match program.revision(family) {
        Some(revision) => Arc::clone(revision),
        None => {
            let none = Ruleset { family, backend: Backend::default(), tables: Vec::new() };
            Arc::new(Revision::first(&none, numbers))
        }
    }
}

#[cfg(test)]
mod tests;
