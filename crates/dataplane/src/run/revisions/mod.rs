//! Revisions: the rules as those know them who change them while they are in force.
//!
//! Contract: each accepted change of rules is a revision, whose number is one more than that of the last one, also over
//! restarts where there is a journal. One change is made at a time. It is read and built beside what is in force, is
//! held to all that a start holds rules to ([`load`](super::load)) and to how workers share connections
//! ([`Steering::suits`]), goes to the journal, and then to the workers, which cannot fail any more: what is
//! acknowledged is on disk and in force, and what is refused is neither. A change costs what it changes, however many
//! rules there are: it is what goes to the journal, and complete rules are read back from it when somebody asks for them.
//! Who has the turn changes what there is to see; the history is locked to look and to add to it, for a moment.
//!
//! What a change keeps is `rules::revision`'s to say: counters, and what matches remember, stay with rules that are the
//! same.

mod change;
mod history;
mod pending;
mod start;
mod text;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use rules::ipset::{EditError, Edited};
use rules::model::Family;
use serde_json::{Value, json};
use tracing::info_span;

use super::by_hand::ByHand;
use super::config::Settings;
use super::control::{Refusal, RefusalKind};
use super::journal::{Journal, JournalError, Record};
use super::load::{self, BadText, Loaded, RulesText};
use super::steering::Steering;
use crate::program::Program;
use crate::publish::{PublishError, Published};

pub(super) use history::Peer;
pub(super) use pending::MOST_SECONDS;
pub(super) use start::Chosen;

use change::{Beside, Counted, Made, Rules};
use history::{Brought, Change, History};
use pending::{Pending, now};

/// Warnings of an answer.
const MOST_WARNINGS: usize = 64;

/// What is asked for with a text of rules.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    /// What errors call the text.
    pub(super) name: String,
    /// Of the rules; told by the text where nothing is said.
    pub(super) family: Option<Family>,
    /// They are changes to the rules in force, and do not replace them.
    pub(super) noflush: bool,
    /// The revision that has to be in force.
    pub(super) if_rev: Option<u64>,
    /// Nothing changes.
    pub(super) dry_run: bool,
    /// After so many seconds it goes back, unless it is confirmed.
    pub(super) confirm: Option<u64>,
}

/// The rules of a run, as they are changed.
#[derive(Debug)]
pub(super) struct Revisions {
    settings: Settings,
    /// Held by who changes the rules.
    turn: Mutex<()>,
    /// Changed by who has the turn, as is the next.
    history: Mutex<History>,
    seen: ArcSwap<Seen>,
    journal: Option<Journal>,
    /// What was asked for of the access list and the sets.
    by_hand: ByHand,
    /// Somebody has asked for the files to be read again.
    asked: Mutex<Arc<AtomicBool>>,
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
pub(super) struct InForce<'l> {
    pub(super) published: &'l Published,
    pub(super) steering: &'l Steering,
}

impl Revisions {
    /// Puts rules in force: the complete ones of the families that the text is of, or changes to those of one.
    ///
    /// # Errors
    /// They are refused, and nothing has changed.
    pub(super) fn apply(
        &self,
        asked: &Asked,
        text: &str,
        who: Option<Peer>,
        at: InForce<'_>,
    ) -> Result<Value, Refusal> {
        let parts = text::apart(text, asked.family);
        if asked.noflush && parts.len() > 1 {
            return Err(Refusal::refused("expected changes to the rules of one family (--family)"));
        }
        // Reading takes the longest, and needs nobody's turn.
        let texts = parts.into_iter().map(|(family, text)| RulesText {
            family,
            name: asked.name.clone(),
            text: text.into(),
        });
        let texts: Vec<RulesText> = texts.collect();
        let (change, warnings) = match (asked.noflush, &*texts) {
            (true, [text]) => (Rules::Changes(text.clone()), Vec::new()),
            _ => self.whole(&texts, at.published)?,
        };
        let _turn = self.turn();
        let seen = self.seen.load();
        stale(asked.if_rev, &seen)?;
        waits(&seen)?;
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
    pub(super) fn rollback(
        &self,
        to: Option<u64>,
        who: Option<Peer>,
        at: InForce<'_>,
    ) -> Result<Value, Refusal> {
        let _turn = self.turn();
        let before = || lock(&self.history).before();
        let number = to.or_else(before).ok_or_else(|| self.not_kept())?;
        self.back_to(number, format!("rollback to {number}"), who, at)
    }

    /// Keeps the revision that waits for it.
    ///
    /// # Errors
    /// None does, or the journal does not take it.
    pub(super) fn confirm(&self) -> Result<Value, Refusal> {
        let _turn = self.turn();
        let seen = self.seen.load();
        let Some(pending) = seen.pending else {
            return Err(Refusal::refused("no revision waits for a confirmation"));
        };
        self.record(vec![Record::Confirm(None)]).map_err(Refusal::refused)?;
        self.seen.store(Arc::new(Seen { pending: None, ..**seen }));
        Ok(json!({ "schema": "tamis.confirm/1", "revision": pending.revision }))
    }

    /// The rules of a revision, of the one in force if none is named.
    ///
    /// # Errors
    /// It is not kept.
    pub(super) fn get(&self, number: Option<u64>) -> Result<Value, Refusal> {
        let (number, rules) = {
            let history = lock(&self.history);
            let number = number.unwrap_or_else(|| history.number());
            (number, history.rules(number))
        };
        let rules = rules.ok_or_else(|| self.not_kept())?;
        let texts = rules.values().map(|(_, chain)| chain.text());
        let text: String = texts.collect::<Result<Vec<_>, _>>().map_err(Refusal::refused)?.concat();
        Ok(json!({ "schema": "tamis.get/1", "revision": number, "text": text }))
    }

    fn not_kept(&self) -> Refusal {
        let history = lock(&self.history);
        let (oldest, last) = (history.oldest(), history.number());
        Refusal::refused(format!("expected a revision that is kept, from {oldest} to {last}"))
    }

    /// The revisions that are kept.
    pub(super) fn log(&self) -> Value {
        let history = lock(&self.history);
        let pending = self.seen.load().pending;
        json!({
            "schema": "tamis.log/1",
            "revision": history.number(),
            "goes_back_in": pending.map(|pending| pending.seconds_left()),
            "journal": self.journal.is_some(),
            "revisions": history.json(),
        })
    }

    /// For `status`.
    pub(super) fn status(&self) -> RevisionStatus {
        let Seen { revision, pending } = **self.seen.load();
        let goes_back_in = pending.map(|pending| pending.seconds_left());
        RevisionStatus { number: revision, goes_back_in }
    }

    /// From now on who raises this asks for the files to be read again.
    pub(super) fn asked_by(&self, asked: Arc<AtomicBool>) {
        *lock(&self.asked) = asked;
    }

    /// Reads the files again if somebody has asked for it, and goes back if a confirmation has not come.
    pub(super) fn look(&self, at: InForce<'_>, tell: &mut impl FnMut(&str)) {
        if lock(&self.asked).swap(false, Ordering::Relaxed) {
            match self.reload(at) {
                Ok((done, warnings)) => {
                    warnings.iter().for_each(|warning| tell(&format!("warning: {warning}")));
                    let (program, revision) = (&done["program"], &done["revision"]);
                    let what = format!("reloaded: program {program}, revision {revision}");
                    info_span!("revision", revision = revision.as_u64()).in_scope(|| tell(&what));
                }
                Err(what) => tell(&format!("not reloaded: {what}")),
            }
        }
        let over = |seen: &Seen| seen.pending.filter(Pending::is_over);
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
            Ok(done) => tell(&format!("{what}, as revision {}", done["revision"])),
            Err(refusal) => {
                tell(&format!("{what}: that failed, and is tried again: {}", refusal.what));
                let again = Some(Pending::of(pending.revision, 1));
                let seen = **self.seen.load();
                self.seen.store(Arc::new(Seen { pending: again, ..seen }));
            }
        }
    }

    /// Reads the files, all that the configuration names.
    fn reload(&self, at: InForce<'_>) -> Result<(Value, Vec<String>), String> {
        let texts = load::texts(&self.settings).map_err(|error| error.to_string())?;
        let loaded = load::rules(&self.settings, &texts).map_err(|error| error.to_string())?;
        let Loaded { rulesets, config, warnings } = loaded;
        let rulesets = rulesets.into_iter().filter_map(Arc::into_inner).collect();
        let (sets, left_out) = self.by_hand.on_sets(config.sets);
        let beside = Beside { sets, bans: self.by_hand.on_bans(config.bans) };
        let warnings = warnings.into_iter().chain(left_out).collect();
        let change = Rules::Whole(rulesets, Some(Box::new(beside)));
        let _turn = self.turn();
        waits(&self.seen.load()).map_err(|refusal| refusal.what)?;
        let files = Some(start::hashes(&texts));
        let made = Made { what: "reload of the files".to_owned(), files, ..Made::default() };
        let done = self.put(change, made, at).map_err(|refusal| refusal.what)?;
        Ok((done, warnings))
    }

    fn back_to(
        &self,
        number: u64,
        what: String,
        who: Option<Peer>,
        at: InForce<'_>,
    ) -> Result<Value, Refusal> {
        // The lock is let go before the refusal takes it.
        let rules = lock(&self.history).rules(number);
        let rules = rules.ok_or_else(|| self.not_kept())?;
        let name = format!("revision {number}");
        let (mut texts, mut versions) = (Vec::new(), BTreeMap::new());
        for (family, (version, chain)) in rules {
            let text = chain.text().map_err(Refusal::refused)?;
            texts.push(RulesText { family, name: name.clone(), text });
            versions.insert(family, version);
        }
        let (change, _) = self.whole(&texts, at.published)?;
        let change = change.without_others(at.published);
        let versions = Some(versions);
        self.put(change, Made { name, what, who, versions, ..Made::default() }, at)
    }

    /// Reads complete rules; with what is odd about them.
    fn whole(
        &self,
        texts: &[RulesText],
        published: &Published,
    ) -> Result<(Rules, Vec<String>), Refusal> {
        let (mut rulesets, mut odd) = (Vec::new(), Vec::new());
        let program = published.program();
        for text in texts {
            let parsed = load::parsed(&self.settings, text).map_err(|bad| match bad {
                BadText::Text(what) => Refusal { kind: RefusalKind::Text, what },
                BadText::Unfit(what) => Refusal::refused(what),
            });
            let (ruleset, more) = parsed?;
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
    fn put(&self, rules: Rules, made: Made, at: InForce<'_>) -> Result<Value, Refusal> {
        let current = at.published.program();
        let text = rules.changes().cloned();
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
            (Err(error), _) => return Err(change::refused(&error, &made.name)),
        };
        let Some((counted, next)) = accepted else { return Err(Refusal::refused("not accepted")) };
        let Seen { revision, pending } = next.seen;
        if !made.dry_run {
            lock(&self.history).take(&next.records);
            self.seen.store(Arc::new(next.seen));
        }
        Ok(json!({
            "schema": "tamis.apply/1",
            "revision": revision,
            "program": program,
            "dry_run": made.dry_run,
            "new": counted.new,
            "gone": counted.gone,
            "kept": counted.kept,
            "goes_back_in": pending.map(|pending| pending.seconds_left()),
            "durable": self.journal.is_some(),
            "warnings": made.warnings,
        }))
    }

    /// What there is to record, and to see, once a program is in force that comes after another one.
    fn next(&self, old: &Program, new: &Program, text: Option<&Arc<str>>, made: &Made) -> Next {
        let history = lock(&self.history);
        let rules = match &made.versions {
            Some(versions) => {
                versions.iter().map(|(family, at)| (*family, Brought::Version(*at))).collect()
            }
            None => change::brought(old, new, text, &history),
        };
        let change = Change { at: now(), what: made.what.clone(), who: made.who, rules };
        let mut records = history.records(change);
        let revision = history.number() + 1;
        let pending = made.confirm.map(|seconds| Pending::of(revision, seconds));
        records.push(Record::Confirm(pending.map(|pending| pending.written())));
        records.extend(made.files.clone().map(Record::Files));
        Next { records, seen: Seen { revision, pending } }
    }

    /// Changes the access list: how many ranges of sources are banned then.
    ///
    /// # Errors
    /// The journal does not take it: nothing has changed.
    pub(super) fn change_bans(
        &self,
        changes: &[access::list::Change],
        published: &Published,
    ) -> Result<usize, Refusal> {
        let record = |records| self.record(records);
        self.by_hand.change_bans(changes, published, record).map_err(Refusal::refused)
    }

    /// Changes the sets.
    ///
    /// # Errors
    /// The journal does not take it: nothing has changed.
    pub(super) fn change_sets(
        &self,
        text: &str,
        published: &Published,
    ) -> Result<Result<Edited, EditError>, Refusal> {
        let record = |records| self.record(records);
        self.by_hand.change_sets(text, published, record).map_err(Refusal::refused)
    }

    fn record(&self, records: Vec<Record>) -> Result<(), JournalError> {
        self.journal.as_ref().map_or(Ok(()), |journal| journal.record(records))
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses a change that was made for another revision than the one in force.
fn stale(expected: Option<u64>, seen: &Seen) -> Result<(), Refusal> {
    let current = seen.revision;
    match expected {
        Some(expected) if expected != current => {
            let what = format!("expected revision {expected} to be in force, found {current}");
            Err(Refusal { kind: RefusalKind::Stale, what })
        }
        _ => Ok(()),
    }
}

/// Refuses a change while a revision waits for its confirmation.
fn waits(seen: &Seen) -> Result<(), Refusal> {
    let Some(pending) = &seen.pending else { return Ok(()) };
    let (number, left) = (pending.revision, pending.seconds_left());
    let what = format!("revision {number} waits for tamis ctl confirm, for {left} s more");
    Err(Refusal::refused(format!("{what}: confirm it, or go back (tamis ctl rollback)")))
}
