//! Which rules a run starts with: those of the journal, or those of a file that has changed since it was read.

use std::collections::BTreeMap;
use std::sync::Mutex;

use arc_swap::ArcSwap;
use rules::model::Family;
use sha2::{Digest, Sha256};

use super::super::by_hand::ByHand;
use super::super::config::Settings;
use super::super::journal::{Journal, JournalError, Record, State};
use super::super::load::RulesText;
use super::history::{Change, History};
use super::pending::{Pending, now};
use super::{Revisions, Seen, change};
use crate::publish::Published;

/// What a run starts with.
#[derive(Debug)]
pub(in crate::run) struct Chosen {
    /// Complete rules of each family that has some.
    pub(in crate::run) texts: Vec<RulesText>,
    /// What is odd about the choice.
    pub(in crate::run) warnings: Vec<String>,
    journal: Option<Journal>,
    /// What was asked for of the access list and the sets.
    pub(in crate::run) by_hand: ByHand,
    history: History,
    pending: Option<Pending>,
    /// What makes a new revision of them, if they are one.
    new: Option<String>,
    files: Vec<(Family, String)>,
}

impl Chosen {
    /// Between the files and a journal, if there is one.
    ///
    /// # Errors
    /// The journal holds what is no revision.
    pub(in crate::run) fn between(
        files: Vec<RulesText>,
        journal: Option<(Journal, State)>,
    ) -> Result<Self, JournalError> {
        let hashes = hashes(&files);
        let Some((journal, state)) = journal else { return Ok(Self::of_files(files, hashes)) };
        let history = History::of(&state).map_err(|what| journal.damaged(what))?;
        let pending = state.confirm.as_deref().and_then(Pending::read);
        let pending = pending.filter(|pending| pending.revision == history.number());
        let by_hand = ByHand::of(&state);
        let has_rules = history.last().is_some();
        let mut chosen = Self { by_hand, history, pending, ..Self::of_files(files, hashes) };
        if has_rules {
            chosen = chosen.after(&state.files).map_err(|what| journal.damaged(what))?;
        }
        Ok(Self { journal: Some(journal), ..chosen })
    }

    fn of_files(texts: Vec<RulesText>, files: Vec<(Family, String)>) -> Self {
        Self {
            texts,
            warnings: Vec::new(),
            journal: None,
            by_hand: ByHand::default(),
            history: History::default(),
            pending: None,
            new: Some("start".to_owned()),
            files,
        }
    }

    /// The same where the journal's last revision was in force, and files had these hashes when they were read.
    fn after(self, read: &BTreeMap<Family, String>) -> Result<Self, String> {
        let last = self.history.number();
        let is_over = self.pending.is_some_and(|pending| pending.is_over());
        let (number, mut new) = match self.history.before().filter(|_| is_over) {
            Some(before) => (before, Some(format!("revision {last} was not confirmed"))),
            None => (last, None),
        };
        let mut texts: BTreeMap<Family, RulesText> = BTreeMap::new();
        for (family, (_, chain)) in self.history.rules(number).unwrap_or_default() {
            let name = format!("revision {number} of the journal");
            let text = chain.text().map_err(|what| format!("{name}: {what}"))?;
            texts.insert(family, RulesText { family, name, text });
        }
        let mut warnings: Vec<String> = new.clone().into_iter().collect();
        let back = format!("tamis ctl rollback {number} has those back");
        for (text, (family, hash)) in self.texts.into_iter().zip(&self.files) {
            if read.get(family) != Some(hash) {
                warnings.push(format!(
                    "{} has changed since it was read: its rules are in force, and not those of revision {number} of \
                     the journal ({back})",
                    text.name
                ));
                texts.insert(*family, text);
                new = Some("a file that has changed".to_owned());
            }
        }
        for family in read.keys().filter(|read| self.files.iter().all(|(named, _)| named != *read))
        {
            let family_name = family.name();
            let what = "is no longer in [rules]: it has no rules";
            warnings.push(format!("{family_name} {what} ({back})"));
            texts.remove(family);
            new = Some("a file that is no longer named".to_owned());
        }
        let pending = self.pending.filter(|_| new.is_none());
        Ok(Self { texts: texts.into_values().collect(), warnings, pending, new, ..self })
    }
}

impl Revisions {
    /// Of a run that starts with these rules, which are published.
    ///
    /// # Errors
    /// The journal does not take them.
    pub(in crate::run) fn begin(
        settings: Settings,
        chosen: Chosen,
        published: &Published,
    ) -> Result<Self, JournalError> {
        let Chosen { journal, by_hand, mut history, mut pending, new, files, .. } = chosen;
        if let Some(what) = new {
            let rules = change::texts(&published.program());
            let change = Change { at: now(), what, who: None, rules };
            let mut records = history.records(change);
            records.extend([Record::Confirm(None), Record::Files(files)]);
            journal.as_ref().map_or(Ok(()), |journal| journal.record(records.clone()))?;
            history.take(&records);
            pending = None;
        }
        let seen = Seen { revision: history.number(), pending };
        Ok(Self {
            settings,
            turn: Mutex::default(),
            history: Mutex::new(history),
            seen: ArcSwap::from_pointee(seen),
            journal,
            by_hand,
            asked: Mutex::default(),
        })
    }
}

/// SHA-256 of each file, in hexadecimal.
pub(super) fn hashes(files: &[RulesText]) -> Vec<(Family, String)> {
    let hash = |text: &str| {
        let bytes = Sha256::digest(text.as_bytes());
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    files.iter().map(|file| (file.family, hash(&file.text))).collect()
}
