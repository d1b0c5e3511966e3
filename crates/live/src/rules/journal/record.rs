//! [`Record`]s, and the [`State`] that they add up to.

use std::collections::BTreeMap;
use std::sync::Arc;

use rules::model::Family;

/// A change to what the journal holds. Each replaces what is there by the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A revision of the rules.
    Revision {
        /// Its number.
        number: u64,
        /// What it is, as who writes it has it.
        entry: String,
        /// Texts that no revision before has.
        texts: Vec<(Family, Arc<str>)>,
    },
    /// The rules of a family in a revision, by what changes them.
    Change {
        /// The revision's number.
        number: u64,
        /// Whose rules they are.
        family: Family,
        /// The revision that brought what they change: a text, or a change.
        of: u64,
        /// Changes, as `iptables-restore --noflush` reads them.
        text: Arc<str>,
    },
    /// Revisions, and texts and changes by the revision that brought them, that are no longer kept.
    Forgotten {
        /// Numbers of revisions.
        revisions: Vec<u64>,
        /// Texts, and changes.
        texts: Vec<(u64, Family)>,
    },
    /// What waits for a confirmation, if anything does.
    Confirm(Option<String>),
    /// Hashes of the files of rules as they were read: in place of all that are there.
    Files(Vec<(Family, String)>),
    /// Entries of the access list.
    Bans(Vec<Kept>),
    /// Changes to sets.
    Sets(Vec<Kept>),
}

/// An entry of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What it is about: an entry of the same key is replaced.
    pub key: String,
    /// What makes it again; `None` takes it out.
    pub value: Option<String>,
}

/// What a journal holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// Revisions by their numbers.
    pub revisions: BTreeMap<u64, String>,
    /// Texts, by the revision that brought them.
    pub texts: BTreeMap<(u64, Family), Arc<str>>,
    /// Changes, by the revision that brought them, with the one that brought what they change.
    pub changes: BTreeMap<(u64, Family), (u64, Arc<str>)>,
    /// What waits for a confirmation.
    pub confirm: Option<String>,
    /// Hashes of the files of rules as they were read.
    pub files: BTreeMap<Family, String>,
    /// Entries of the access list by their keys.
    pub bans: BTreeMap<String, String>,
    /// Changes to sets by their keys.
    pub sets: BTreeMap<String, String>,
}

impl State {
    /// What a record makes of it: the model that a journal is held to.
    pub fn take(&mut self, record: &Record) {
        match record {
            Record::Revision { number, entry, texts } => {
                self.revisions.insert(*number, entry.clone());
                for (family, text) in texts {
                    self.texts.insert((*number, *family), Arc::clone(text));
                }
            }
            Record::Change { number, family, of, text } => {
                self.changes.insert((*number, *family), (*of, Arc::clone(text)));
            }
            Record::Forgotten { revisions, texts } => {
                self.revisions.retain(|number, _| !revisions.contains(number));
                self.texts.retain(|key, _| !texts.contains(key));
                self.changes.retain(|key, _| !texts.contains(key));
            }
            Record::Confirm(confirm) => self.confirm.clone_from(confirm),
            Record::Files(files) => self.files = files.iter().cloned().collect(),
            Record::Bans(kept) => keep(&mut self.bans, kept),
            Record::Sets(kept) => keep(&mut self.sets, kept),
        }
    }
}

fn keep(table: &mut BTreeMap<String, String>, kept: &[Kept]) {
    for Kept { key, value } in kept {
        match value {
            Some(value) => table.insert(key.clone(), value.clone()),
            None => table.remove(key),
        };
    }
}
