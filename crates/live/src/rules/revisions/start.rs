//! Which rules a run starts with: those of the journal, or those of a file that has changed since it was read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use rules::model::Family;

use super::history::{Brought, Chain, Change, History};
use super::pending::{Clock, Pending, Time};
use super::reload::Reload;
use super::{Revisions, Seen, change, text};
use crate::config::Settings;
use crate::rules::journal::{Journal, JournalError, Record, State};
use crate::rules::load::{self, RulesText};
use crate::rules::overrides::Overrides;
use dataplane::publish::Published;

/// What a run starts with.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// Complete rules of each family that has some.
    pub(crate) texts: Vec<RulesText>,
    /// What is odd about the choice.
    pub(crate) warnings: Vec<String>,
    journal: Option<Journal>,
    /// What was asked for of the access list and the sets.
    pub(crate) by_hand: Overrides,
    history: History,
    pending: Option<Pending>,
    /// What makes a new revision of them, if they are one.
    new: Option<String>,
    files: Vec<(Family, String)>,
    again: Option<Again>,
    clock: Clock,
}

impl Chosen {
    /// Between the files and a journal, if there is one.
    ///
    /// # Errors
    /// The journal holds what is no revision.
    pub(crate) fn between(
        files: Vec<RulesText>,
        journal: Option<(Journal, State)>,
        clock: Clock,
    ) -> Result<Self, JournalError> {
        let of_files = Self::of_files(files, clock);
        let Some((journal, state)) = journal else { return Ok(of_files) };
        let history = History::of(&state).map_err(|what| journal.damaged(what))?;
        let now = clock();
        let pending = state.confirm.as_deref().and_then(|text| Pending::read(text, now));
        let pending = pending.filter(|pending| pending.revision == history.number());
        let by_hand = Overrides::of(&state);
        let has_rules = history.last().is_some();
        let mut chosen = Self { by_hand, history, pending, ..of_files };
        if has_rules {
            chosen = chosen.after(&state.files, now).map_err(|what| journal.damaged(what))?;
        }
        Ok(Self { journal: Some(journal), ..chosen })
    }

    fn of_files(texts: Vec<RulesText>, clock: Clock) -> Self {
        Self {
            files: load::hashes(&texts),
            texts,
            warnings: Vec::new(),
            journal: None,
            by_hand: Overrides::default(),
            history: History::default(),
            pending: None,
            new: Some("start".to_owned()),
            again: None,
            clock,
        }
    }

    /// The same where the journal's last revision was in force, and files had these hashes when they were read.
    ///
    /// What waits for its confirmation goes on waiting, whatever became of files: those that have changed are then part of
    /// the revision to return to, and are in force at once for the families that do not wait.
    fn after(mut self, read: &BTreeMap<Family, String>, now: Time) -> Result<Self, String> {
        let last = self.history.number();
        let back = self.history.before().filter(|_| self.pending.is_some());
        let is_over = self.pending.is_some_and(|pending| pending.is_over(now));
        self.new = is_over.then(|| format!("revision {last} was not confirmed"));
        self.warnings.extend(self.new.clone());
        self.pending = self.pending.filter(|_| back.is_some() && !is_over);
        let rules = |number| self.history.rules(number).unwrap_or_default();
        let mut base = rules(back.unwrap_or(last));
        let waiting = match self.pending {
            Some(_) => differing(rules(last), &base),
            None => Waiting::new(),
        };
        let number = back.filter(|_| is_over).unwrap_or(last);
        let files = self.take_changed(read, number, &waiting, &mut base);
        let mut texts = files.clone();
        for (family, (_, chain)) in &base {
            texts.insert(*family, read_back(*family, number, chain)?);
        }
        for (family, rules) in &waiting {
            match rules {
                Some((_, chain)) => texts.insert(*family, read_back(*family, last, chain)?),
                None => texts.remove(family),
            };
        }
        self.texts = texts.into_values().collect();
        self.again = self.pending.filter(|_| self.new.is_some()).map(|_| Again {
            base: base.into_iter().map(|(family, (version, _))| (family, version)).collect(),
            files: files.into_values().collect(),
            waiting: waiting
                .into_iter()
                .map(|(family, rules)| (family, rules.map(|it| it.0)))
                .collect(),
        });
        Ok(self)
    }

    /// Takes files that have changed, or are no longer named, out of what the journal has: those that there are. `number` is
    /// the revision that is in force without them.
    fn take_changed(
        &mut self,
        read: &BTreeMap<Family, String>,
        number: u64,
        waiting: &Waiting,
        base: &mut Rules,
    ) -> BTreeMap<Family, RulesText> {
        let mut files = BTreeMap::new();
        let back = format!("tamis ctl rollback {number} has those back");
        for (text, (family, hash)) in std::mem::take(&mut self.texts).into_iter().zip(&self.files) {
            if read.get(family) == Some(hash) {
                continue;
            }
            let then = match waiting.contains_key(family) {
                true => format!("its rules are in force once revision {number} has gone back"),
                false => format!(
                    "its rules are in force, and not those of revision {number} of the journal ({back})"
                ),
            };
            self.warnings.push(format!("{} has changed since it was read: {then}", text.name));
            self.new = Some("a file that has changed".to_owned());
            base.remove(family);
            files.insert(*family, text);
        }
        for family in read.keys().filter(|read| self.files.iter().all(|(named, _)| named != *read))
        {
            let family_name = family.name();
            let what = "is no longer in [rules]: it has no rules";
            self.warnings.push(format!("{family_name} {what} ({back})"));
            self.new = Some("a file that is no longer named".to_owned());
            base.remove(family);
        }
        files
    }
}

/// Rules of a revision, with the names of their versions.
type Rules = BTreeMap<Family, (u64, Chain)>;

/// Rules of the families that wait for a confirmation; `None` where they have none meanwhile.
type Waiting = BTreeMap<Family, Option<(u64, Chain)>>;

/// Rules of the families whose rules differ: by text, as two versions may say the same.
fn differing(mut now: Rules, then: &Rules) -> Waiting {
    let is_same = |family: &Family| match (now.get(family), then.get(family)) {
        (Some((one, _)), Some((other, _))) if one == other => true,
        (Some((_, one)), Some((_, other))) => one.text().is_ok_and(|text| Ok(text) == other.text()),
        (one, other) => one.is_none() && other.is_none(),
    };
    let differ: Vec<Family> = Family::ALL.into_iter().filter(|family| !is_same(family)).collect();
    differ.into_iter().map(|family| (family, now.remove(&family))).collect()
}

fn read_back(family: Family, number: u64, chain: &Chain) -> Result<RulesText, String> {
    let name = format!("revision {number} of the journal");
    let text = chain.text().map_err(|what| format!("{name}: {what}"))?;
    Ok(RulesText { family, name, text })
}

/// A revision that waits for its confirmation, over files that have changed: both what is gone back to and what waits are
/// revisions anew.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// Versions that the run goes back to, but for families that have a text in `files`.
    base: BTreeMap<Family, u64>,
    /// Files that have changed, which the run goes back to.
    files: Vec<RulesText>,
    /// Versions of the families that wait; `None` where they have no rules meanwhile.
    waiting: BTreeMap<Family, Option<u64>>,
}

impl Again {
    /// The records of both revisions, which the history has taken.
    fn take(self, what: String, at: u64, history: &mut History) -> Result<Vec<Record>, String> {
        let number = history.number();
        let change = |what, rules| Change { at, what, who: None, rules };
        let mut base: BTreeMap<Family, Brought> =
            self.base.into_iter().map(|(family, at)| (family, Brought::Version(at))).collect();
        for RulesText { family, text, .. } in self.files {
            base.extend(text::normal(family, &text)?.map(|text| (family, Brought::Text(text))));
        }
        let mut records = history.records(change(what, base));
        history.take(&records);
        let mut rules = BTreeMap::new();
        for family in Family::ALL {
            let version = match self.waiting.get(&family) {
                Some(waiting) => *waiting,
                None => history.version(family),
            };
            rules.extend(version.map(|version| (family, Brought::Version(version))));
        }
        let what = format!("revision {number}, which still waits to be confirmed");
        let next = history.records(change(what, rules));
        history.take(&next);
        records.extend(next);
        Ok(records)
    }
}

impl Chosen {
    /// Files that are to be in force later alone: once what waits has gone back.
    pub(crate) fn later(&self) -> Vec<RulesText> {
        let waits = |again: &&Again, text: &RulesText| again.waiting.contains_key(&text.family);
        let files = self
            .again
            .iter()
            .flat_map(|again| again.files.iter().filter(move |text| waits(&again, text)));
        files.cloned().collect()
    }
}

impl Revisions {
    /// Of a run that starts with these rules, which are published.
    ///
    /// # Errors
    /// The journal does not take them.
    pub(crate) fn begin(
        settings: Settings,
        chosen: Chosen,
        published: &Published,
    ) -> Result<Self, JournalError> {
        let Chosen { journal, by_hand, mut history, mut pending, new, files, again, clock, .. } =
            chosen;
        if let Some(what) = new {
            let at = clock().seconds();
            let refused = |what| JournalError::new("journal".as_ref(), what);
            let mut records = match again {
                Some(again) => again.take(what, at, &mut history).map_err(refused)?,
                None => {
                    let rules = change::texts(&published.program(), &settings.own);
                    let records = history.records(Change { at, what, who: None, rules });
                    history.take(&records);
                    records
                }
            };
            pending = pending.map(|pending| pending.again(history.number()));
            let waits = pending.map(|pending| pending.written());
            records.extend([Record::Confirm(waits), Record::Files(files)]);
            journal.as_ref().map_or(Ok(()), |journal| journal.record(records))?;
        }
        let seen = Seen { revision: history.number(), pending };
        Ok(Self {
            settings: Arc::new(settings),
            turn: Mutex::default(),
            history: Mutex::new(history),
            seen: ArcSwap::from_pointee(seen),
            journal,
            by_hand,
            reload: Reload::default(),
            clock,
        })
    }
}
