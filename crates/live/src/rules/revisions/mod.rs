//! Revisions: the rules as those know them who change them while they are in force.
//!
//! Contract: each accepted change of rules is a revision, whose number is one more than that of the last one, also over
//! restarts where there is a journal. One change is made at a time. It is read and built beside what is in force, is
//! held to all that a start holds rules to ([`load`](crate::rules::load)) and to how workers share connections
//! ([`Steering::suits`]), goes to the journal, and then to the workers, which cannot fail any more: what is
//! acknowledged is on disk and in force, and what is refused is neither. A change costs what it changes, however many
//! rules there are: it is what goes to the journal, and complete rules are read back from it when somebody asks for them.
//! Who has the turn changes what there is to see; the history is locked to look and to add to it, for a moment.
//!
//! What a change keeps is `rules::revision`'s to say: counters, and what matches remember, stay with rules that are the
//! same.

mod change;
mod error;
mod history;
#[cfg(any(test, fuzzing))]
pub(crate) mod hostile;
mod pending;
mod reload;
mod start;
mod text;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use arc_swap::ArcSwap;
use rules::ipset::{EditError, Edited};
use rules::model::{Family, Ruleset};
use tracing::info_span;

use crate::answers::{Applied, Confirmed, Log, RevisionText};
use crate::config::Settings;
use crate::forward::steering::Steering;
use crate::rules::journal::{Journal, JournalError, Record};
use crate::rules::load::{self, Loaded, RulesText};
use crate::rules::overrides::Overrides;
use crate::rules::own;
use dataplane::publish::{PublishError, Published};
use dataplane::{Program, Start};

pub(crate) use error::ChangeError;
pub(crate) use history::Peer;
pub(crate) use pending::{MOST_SECONDS, Time};
pub(crate) use start::Chosen;

use change::{Counted, Made, Rules};
use history::{Brought, Change, History};
use pending::{Clock, Pending};
use reload::{Reload, lock};

/// Warnings of an answer.
const MOST_WARNINGS: usize = 64;

/// What is asked for with a text of rules.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// What errors call the text.
    pub(crate) name: String,
    /// Of the rules; told by the text where nothing is said.
    pub(crate) family: Option<Family>,
    /// They are changes to the rules in force, and do not replace them.
    pub(crate) noflush: bool,
    /// The revision that has to be in force.
    pub(crate) if_rev: Option<u64>,
    /// Nothing changes.
    pub(crate) dry_run: bool,
    /// After so many seconds it goes back, unless it is confirmed.
    pub(crate) confirm: Option<u64>,
}

/// The rules of a run, as they are changed.
#[derive(Debug)]
pub(crate) struct Revisions {
    settings: Arc<Settings>,
    /// Held by who changes the rules.
    turn: Mutex<()>,
    /// Changed by who has the turn, as is the next.
    history: Mutex<History>,
    seen: ArcSwap<Seen>,
    journal: Option<Journal>,
    /// What was asked for of the access list and the sets.
    by_hand: Overrides,
    reload: Reload,
    clock: Clock,
}

/// What there is to see without a lock.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// The revision in force.
    revision: u64,
    pending: Option<Pending>,
}

/// A revision to be.
struct Next {
    records: Vec<Record>,
    seen: Seen,
}

/// What `status` says of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevisionStatus {
    /// The number of the one in force.
    pub number: u64,
    /// Seconds until it goes back by itself, if it does.
    pub goes_back_in: Option<u64>,
}

/// The workers' rules, and how they share what packets leave.
#[derive(Clone, Copy)]
pub(crate) struct InForce<'l> {
    pub(crate) published: &'l Published,
    pub(crate) steering: &'l Steering,
}

impl Revisions {
    /// Puts rules in force: the complete ones of the families that the text is of, or changes to those of one.
    ///
    /// # Errors
    /// They are refused, and nothing has changed.
    pub(crate) fn apply(
        &self,
        asked: &Asked,
        text: &str,
        who: Option<Peer>,
        at: InForce<'_>,
    ) -> Result<Applied, ChangeError> {
        let parts = text::apart(text, asked.family);
        if asked.noflush && parts.len() > 1 {
            return Err(ChangeError::Families);
        }
        // Reading takes the longest, and needs nobody's turn.
        let texts = parts.into_iter().map(|(family, text)| RulesText {
            family,
            name: asked.name.clone(),
            text: text.into(),
        });
        let texts: Vec<RulesText> = texts.collect();
        let (change, warnings) = match (asked.noflush, &*texts) {
            (true, [text]) => {
                self.leaves_own(text)?;
                (Rules::Changes(text.clone()), Vec::new())
            }
            _ => self.whole(&texts, at.published)?,
        };
        let _turn = self.turn();
        let seen = self.seen.load();
        stale(asked.if_rev, &seen)?;
        waits(&seen, (self.clock)())?;
        let verb = if asked.noflush { "apply --noflush" } else { "apply" };
        let made = Made {
            name: asked.name.clone(),
            what: format!("{verb} {}", asked.name),
            who,
            dry_run: asked.dry_run,
            confirm: asked.confirm,
            warnings,
            ..Made::default()
        };
        self.put(change, made, at)
    }

    /// Goes back to an earlier revision, the one before if none is named. That confirms nothing: what waited is
    /// refused by it.
    ///
    /// # Errors
    /// It is not kept, or cannot be in force any more.
    pub(crate) fn rollback(
        &self,
        to: Option<u64>,
        who: Option<Peer>,
        at: InForce<'_>,
    ) -> Result<Applied, ChangeError> {
        let _turn = self.turn();
        let before = || lock(&self.history).before();
        let number = to.or_else(before).ok_or_else(|| self.not_kept())?;
        if self.seen.load().pending.is_some_and(|pending| pending.revision == number) {
            return Err(ChangeError::IsWaiting(number));
        }
        self.back_to(number, format!("rollback to {number}"), who, at)
    }

    /// Keeps the revision that waits for it.
    ///
    /// # Errors
    /// None does, or the journal does not take it.
    pub(crate) fn confirm(&self) -> Result<Confirmed, ChangeError> {
        let _turn = self.turn();
        let seen = self.seen.load();
        let pending = seen.pending.ok_or(ChangeError::NothingWaits)?;
        self.record(vec![Record::Confirm(None)])?;
        self.seen.store(Arc::new(Seen { pending: None, ..**seen }));
        Ok(Confirmed { revision: pending.revision })
    }

    /// The rules of a revision, of the one in force if none is named.
    ///
    /// # Errors
    /// It is not kept.
    pub(crate) fn get(&self, number: Option<u64>) -> Result<RevisionText, ChangeError> {
        let (number, rules) = {
            let history = lock(&self.history);
            let number = number.unwrap_or_else(|| history.number());
            (number, history.rules(number))
        };
        let rules = rules.ok_or_else(|| self.not_kept())?;
        let texts = rules.values().map(|(_, chain)| chain.text());
        let texts = texts.collect::<Result<Vec<_>, _>>().map_err(ChangeError::Unfit)?;
        Ok(RevisionText { revision: number, text: texts.concat() })
    }

    fn not_kept(&self) -> ChangeError {
        let history = lock(&self.history);
        ChangeError::NotKept { oldest: history.oldest(), last: history.number() }
    }

    /// The revisions that are kept.
    pub(crate) fn log(&self) -> Log {
        let history = lock(&self.history);
        let (pending, now) = (self.seen.load().pending, (self.clock)());
        Log {
            revision: history.number(),
            goes_back_in: pending.map(|pending| pending.seconds_left(now)),
            journal: self.journal.is_some(),
            revisions: history.logged(),
        }
    }

    /// For `status`.
    pub(crate) fn status(&self) -> RevisionStatus {
        let Seen { revision, pending } = **self.seen.load();
        let goes_back_in = pending.map(|pending| pending.seconds_left((self.clock)()));
        RevisionStatus { number: revision, goes_back_in }
    }

    /// From now on who raises this asks for the files to be read again.
    pub(crate) fn asked_by(&self, asked: Arc<AtomicBool>) {
        self.reload.asked_by(asked);
    }

    /// Reads the files again if somebody has asked for it, and goes back if a confirmation has not come.
    pub(crate) fn look(&self, at: InForce<'_>, tell: &mut impl FnMut(&str)) {
        let (settings, now) = (Arc::clone(&self.settings), (self.clock)());
        let read = self.reload.look(now.own, move || {
            let texts = load::texts(&settings).map_err(|error| error.to_string())?;
            let loaded = load::rules(&settings, &texts).map_err(|error| error.to_string())?;
            Ok((texts, loaded))
        });
        if let Some(read) = read {
            let reload = |(texts, loaded): (Vec<RulesText>, Loaded)| {
                self.reload(&texts, loaded, at).map_err(|error| error.to_string())
            };
            match read.and_then(reload) {
                Ok((Applied { program, revision, .. }, warnings)) => {
                    warnings.iter().for_each(|warning| tell(&format!("warning: {warning}")));
                    let what = format!("reloaded: program {program}, revision {revision}");
                    info_span!("revision", revision).in_scope(|| tell(&what));
                }
                Err(what) => tell(&format!("not reloaded: {what}")),
            }
        }
        let over = |seen: &Seen| seen.pending.filter(|pending| pending.is_over(now));
        // Most of the time nothing waits, and nobody's turn is asked for.
        if over(&self.seen.load()).is_none() {
            return;
        }
        let _turn = self.turn();
        let before = lock(&self.history).before();
        if let (Some(pending), Some(before)) = (over(&self.seen.load()), before) {
            self.go_back(pending, before, at, tell);
        }
    }

    /// Goes back from a revision that was not confirmed.
    fn go_back(&self, pending: Pending, to: u64, at: InForce<'_>, tell: &mut impl FnMut(&str)) {
        let what = format!("revision {} was not confirmed: back to {to}", pending.revision);
        match self.back_to(to, what.clone(), None, at) {
            Ok(done) => tell(&format!("{what}, as revision {}", done.revision)),
            Err(error) => {
                tell(&format!("{what}: that failed, and is tried again: {error}"));
                let again = Some(Pending::of(pending.revision, 1, (self.clock)()));
                let seen = **self.seen.load();
                self.seen.store(Arc::new(Seen { pending: again, ..seen }));
            }
        }
    }

    /// Puts the files in force as they were read, all that the configuration names.
    fn reload(
        &self,
        texts: &[RulesText],
        loaded: Loaded,
        at: InForce<'_>,
    ) -> Result<(Applied, Vec<String>), ChangeError> {
        let Loaded { rulesets, start: Start { sets, bans, .. }, warnings, .. } = loaded;
        let rulesets = rulesets.into_iter().filter_map(Arc::into_inner).collect();
        let _turn = self.turn();
        waits(&self.seen.load(), (self.clock)())?;
        let by_hand = self.by_hand.held();
        let (sets, left_out) = by_hand.on_sets(sets);
        let beside = Start { sets, bans: by_hand.on_bans(bans), connections: None };
        let warnings = warnings.into_iter().chain(left_out).collect();
        let change = Rules::Whole(rulesets, Some(Box::new(beside)));
        let files = Some(load::hashes(texts));
        let made = Made { what: "reload of the files".to_owned(), files, ..Made::default() };
        Ok((self.put(change, made, at)?, warnings))
    }

    fn back_to(
        &self,
        number: u64,
        what: String,
        who: Option<Peer>,
        at: InForce<'_>,
    ) -> Result<Applied, ChangeError> {
        // The lock is let go before the refusal takes it.
        let rules = lock(&self.history).rules(number);
        let rules = rules.ok_or_else(|| self.not_kept())?;
        let name = format!("revision {number}");
        let (mut texts, mut versions) = (Vec::new(), BTreeMap::new());
        for (family, (version, chain)) in rules {
            let text = chain.text().map_err(ChangeError::Unfit)?;
            texts.push(RulesText { family, name: name.clone(), text });
            versions.insert(family, version);
        }
        let (change, _) = self.whole(&texts, at.published)?;
        let change = change.without_others(at.published);
        let versions = Some(versions);
        self.put(change, Made { name, what, who, versions, ..Made::default() }, at)
    }

    /// Makes rules that are tried have the own tables that a program has.
    pub(crate) fn complete(&self, rulesets: &mut Vec<Ruleset>, program: &Program) {
        own::keep(&self.settings.own, rulesets, program);
    }

    /// Refuses changes to own tables.
    fn leaves_own(&self, RulesText { family, name, text }: &RulesText) -> Result<(), ChangeError> {
        let Some((line, table)) = own::named(&self.settings.own, *family, text) else {
            return Ok(());
        };
        let what = "expected no changes of table";
        Err(ChangeError::Text(format!("{name}:{line}:1: {what} {table}: it is the run's own")))
    }

    /// Changes own tables: that is no revision, and nothing that anybody goes back from.
    ///
    /// # Errors
    /// A text is refused: the texts before it have been put in force.
    pub(crate) fn change_own(
        &self,
        changes: &[(Family, String)],
        at: InForce<'_>,
    ) -> Result<(), ChangeError> {
        let name = "own table";
        let _turn = self.turn();
        for (family, text) in changes {
            let current = at.published.program();
            let accept = |program: &Program| {
                change::fits(&current, program, name, &self.settings, at.steering)
            };
            let done = at.published.commit_text_if(current.number(), *family, text, accept);
            done.map_err(|error| ChangeError::of_program(error, name))?;
        }
        Ok(())
    }

    /// Reads complete rules; with what is odd about them.
    fn whole(
        &self,
        texts: &[RulesText],
        published: &Published,
    ) -> Result<(Rules, Vec<String>), ChangeError> {
        let (mut rulesets, mut odd) = (Vec::new(), Vec::new());
        let program = published.program();
        for text in texts {
            let (ruleset, more) = load::parsed(&self.settings, text)?;
            odd.extend(more);
            let before = program.revision(text.family).map(|before| before.backend());
            if before.is_some_and(|before| before != ruleset.backend) {
                let what = "its first line names another kind of iptables (legacy, nf_tables) than a start read";
                odd.push(format!("{}: {what}: rules are evaluated as by that one", text.name));
            }
            rulesets.push(ruleset);
        }
        odd.truncate(MOST_WARNINGS);
        Ok((Rules::Whole(rulesets, None), odd))
    }

    /// Puts a change in force, by who has the turn: the answer.
    fn put(&self, rules: Rules, made: Made, at: InForce<'_>) -> Result<Applied, ChangeError> {
        let current = at.published.program();
        let text = rules.changes().cloned();
        let rules = rules.keeping(&self.settings.own, &current);
        let mut accepted = None;
        let accept = |program: &Program| {
            change::fits(&current, program, &made.name, &self.settings, at.steering)?;
            let counted = Counted::between(&current, program);
            let next = self.next(&current, program, text.as_ref(), &made);
            if !made.dry_run {
                self.record(next.records.clone()).map_err(|error| error.to_string())?;
            }
            accepted = Some((counted, next));
            // What is refused changes nothing.
            if made.dry_run { Err("a dry run".to_owned()) } else { Ok(()) }
        };
        let published = rules.publish(current.number(), at.published, accept);
        let program = match (published, &accepted) {
            (Ok(program), _) => program,
            (Err(PublishError::NotAccepted(_)), Some(_)) => current.number(),
            (Err(error), _) => return Err(ChangeError::of_program(error, &made.name)),
        };
        let (counted, next) = accepted.ok_or(ChangeError::Unfit("not accepted".to_owned()))?;
        let Seen { revision, pending } = next.seen;
        if !made.dry_run {
            lock(&self.history).take(&next.records);
            self.seen.store(Arc::new(next.seen));
        }
        let Counted { new, gone, kept } = counted;
        Ok(Applied {
            revision,
            program,
            dry_run: made.dry_run,
            new,
            gone,
            kept,
            goes_back_in: pending.map(|pending| pending.seconds_left((self.clock)())),
            durable: self.journal.is_some(),
            warnings: made.warnings,
        })
    }

    /// What there is to record, and to see, once a program is in force that comes after another one.
    fn next(&self, old: &Program, new: &Program, text: Option<&Arc<str>>, made: &Made) -> Next {
        let history = lock(&self.history);
        let rules = match &made.versions {
            Some(versions) => {
                versions.iter().map(|(family, at)| (*family, Brought::Version(*at))).collect()
            }
            None => change::brought(old, new, text, (&history, &self.settings.own)),
        };
        let now = (self.clock)();
        let change = Change { at: now.seconds(), what: made.what.clone(), who: made.who, rules };
        let mut records = history.records(change);
        let revision = history.number() + 1;
        let pending = made.confirm.map(|seconds| Pending::of(revision, seconds, now));
        records.push(Record::Confirm(pending.map(|pending| pending.written())));
        records.extend(made.files.clone().map(Record::Files));
        Next { records, seen: Seen { revision, pending } }
    }

    /// Changes the access list: how many ranges of sources are banned then.
    ///
    /// # Errors
    /// The journal does not take it: nothing has changed.
    pub(crate) fn change_bans(
        &self,
        changes: &[access::list::Change],
        published: &Published,
    ) -> Result<usize, JournalError> {
        let record = |records| self.record(records);
        self.by_hand.change_bans(changes, published, record)
    }

    /// Changes the sets.
    ///
    /// # Errors
    /// The journal does not take it: nothing has changed.
    pub(crate) fn change_sets(
        &self,
        text: &str,
        published: &Published,
    ) -> Result<Result<Edited, EditError>, JournalError> {
        let record = |records| self.record(records);
        self.by_hand.change_sets(text, published, record)
    }

    fn record(&self, records: Vec<Record>) -> Result<(), JournalError> {
        self.journal.as_ref().map_or(Ok(()), |journal| journal.record(records))
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }
}

/// Refuses a change that was made for another revision than the one in force.
fn stale(expected: Option<u64>, seen: &Seen) -> Result<(), ChangeError> {
    let current = seen.revision;
    match expected {
        Some(expected) if expected != current => Err(ChangeError::Stale { expected, current }),
        _ => Ok(()),
    }
}

/// Refuses a change while a revision waits for its confirmation.
fn waits(seen: &Seen, now: Time) -> Result<(), ChangeError> {
    let Some(pending) = &seen.pending else { return Ok(()) };
    Err(ChangeError::Waits { revision: pending.revision, seconds: pending.seconds_left(now) })
}
