//! [`History`]: the revisions that are kept, the last of which is in force.
//!
//! Contract: numbers rise by one and none is given twice. A revision has complete texts; a family whose text stays as it
//! is has that of an earlier revision. At most [`MOST_REVISIONS`] are kept, and [`MOST_BYTES`] of text; always the last
//! one and the one before it, which is what is gone back to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pktio::Timestamp;
use rules::model::Family;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::journal::{Record, State};

/// Revisions that are kept.
pub(super) const MOST_REVISIONS: usize = 64;

/// Bytes of text that are kept, but for the last two revisions.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// The process that asked for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::run) struct Peer {
    /// Its user.
    pub(in crate::run) uid: u32,
    /// Its number; 0 where the system does not say.
    pub(in crate::run) pid: u32,
}

/// A revision, as the journal has it beside its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Seconds since 1970 when it was accepted.
    pub(super) at: u64,
    /// What made it, in words.
    pub(super) what: String,
    /// Who asked for it; `None` if it was the run itself.
    pub(super) who: Option<Peer>,
    /// The revision that brought the text, of each family that has rules, by name.
    pub(super) texts: BTreeMap<String, u64>,
}

/// A revision with its texts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) number: u64,
    pub(super) entry: Entry,
    pub(super) texts: BTreeMap<Family, Arc<str>>,
}

/// The revisions that are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct History {
    kept: VecDeque<Arc<Kept>>,
}

/// What makes a revision.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) at: u64,
    pub(super) what: String,
    pub(super) who: Option<Peer>,
    /// The complete text of each family that has rules.
    pub(super) texts: BTreeMap<Family, String>,
}

impl History {
    /// What a journal has.
    ///
    /// # Errors
    /// It lacks a text, or holds what is no revision.
    pub(super) fn of(state: &State) -> Result<Self, String> {
        let mut history = Self::default();
        for (number, entry) in &state.revisions {
            let number = *number;
            let entry: Entry = serde_json::from_str(entry)
                .map_err(|error| format!("revision {number} cannot be read: {error}"))?;
            let mut texts = BTreeMap::new();
            for (name, brought_by) in &entry.texts {
                let family = Family::ALL.into_iter().find(|family| family.name() == name);
                let text = family.and_then(|family| state.texts.get(&(*brought_by, family)));
                let missing = || format!("revision {number} lacks its rules of {name}");
                texts.extend(family.zip(text.cloned()).map(Some).ok_or_else(missing)?);
            }
            history.kept.push_back(Arc::new(Kept { number, entry, texts }));
        }
        Ok(history)
    }

    /// The revision in force.
    pub(super) fn last(&self) -> Option<&Arc<Kept>> {
        self.kept.back()
    }

    /// Its number; 0 if there is none.
    pub(super) fn number(&self) -> u64 {
        self.last().map_or(0, |last| last.number)
    }

    /// The one before the one in force.
    pub(super) fn before(&self) -> Option<&Arc<Kept>> {
        self.kept.iter().nth_back(1)
    }

    pub(super) fn get(&self, number: u64) -> Option<&Arc<Kept>> {
        self.kept.iter().find(|kept| kept.number == number)
    }

    /// The number of the oldest one that is kept.
    pub(super) fn oldest(&self) -> u64 {
        self.kept.front().map_or(0, |oldest| oldest.number)
    }

    /// The same with one more, and what a journal has to take for that.
    pub(super) fn with(&self, change: Change) -> (Self, Vec<Record>) {
        let number = self.number() + 1;
        let Change { at, what, who, texts: complete } = change;
        let (mut texts, mut brought_by, mut brought) =
            (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let last = self.last();
        for (family, text) in complete {
            let same = last.and_then(|last| {
                let same = last.texts.get(&family).filter(|last| ***last == *text)?;
                Some((Arc::clone(same), *last.entry.texts.get(family.name())?))
            });
            let (text, by) = same.unwrap_or_else(|| {
                let text: Arc<str> = text.into();
                brought.push((family, Arc::clone(&text)));
                (text, number)
            });
            texts.insert(family, text);
            brought_by.insert(family.name().to_owned(), by);
        }
        let entry = Entry { at, what, who, texts: brought_by };
        let written = serde_json::to_string(&entry).unwrap_or_default();
        let mut next = self.clone();
        next.kept.push_back(Arc::new(Kept { number, entry, texts }));
        let forgotten = next.forget();
        let revision = Record::Revision { number, entry: written, texts: brought };
        (next, [revision].into_iter().chain(forgotten).collect())
    }

    /// Forgets the oldest ones, while there are too many.
    fn forget(&mut self) -> Option<Record> {
        let before = self.brought();
        let mut revisions = Vec::new();
        while self.kept.len() > 2 && (self.kept.len() > MOST_REVISIONS || self.bytes() > MOST_BYTES)
        {
            revisions.extend(self.kept.pop_front().map(|oldest| oldest.number));
        }
        let after = self.brought();
        let gone = before.keys().filter(|key| !after.contains_key(*key));
        let texts = gone.copied().collect();
        (!revisions.is_empty()).then_some(Record::Forgotten { revisions, texts })
    }

    /// Texts that are kept, by the revision that brought them, with their bytes.
    fn brought(&self) -> BTreeMap<(u64, Family), usize> {
        let mut brought = BTreeMap::new();
        for kept in &self.kept {
            for (family, text) in &kept.texts {
                let by = kept.entry.texts.get(family.name());
                brought.extend(by.map(|by| ((*by, *family), text.len())));
            }
        }
        brought
    }

    fn bytes(&self) -> usize {
        self.brought().values().sum()
    }

    /// For `log`: newest first.
    pub(super) fn json(&self) -> Vec<Value> {
        let entry = |kept: &Arc<Kept>| {
            let Kept { number, entry, texts } = &**kept;
            let bytes: usize = texts.values().map(|text| text.len()).sum();
            json!({
                "revision": number,
                "at": time(entry.at),
                "what": entry.what,
                "uid": entry.who.map(|who| who.uid),
                "pid": entry.who.map(|who| who.pid),
                "families": entry.texts.keys().collect::<BTreeSet<_>>(),
                "bytes": bytes,
            })
        };
        self.kept.iter().rev().map(entry).collect()
    }
}

/// Seconds since 1970 as RFC 3339.
fn time(seconds: u64) -> String {
    let time = Timestamp::saturating_from_nanos(i128::from(seconds) * 1_000_000_000);
    time.to_string().replace(".000000000", "")
}
