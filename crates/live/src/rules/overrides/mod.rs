//! [`Overrides`]: changes of the access list and of the sets that clients asked for, and not read from files. They
//! outlast a reload of the files, and a restart where there is a journal: they are made again after what the files say.
//!
//! Contract: one change is made at a time, and none while files are put in force ([`Held`]): it is written to the journal, and then it is in force. Of the access list,
//! each change is kept until another one is made of the same sources and destinations; of sets, the texts in their
//! order, until they are more than [`MOST_TEXTS`] or [`MOST_BYTES`]: then what the sets hold stands for all of them.
//! Times of elements begin again when they are made again. A line that the sets do not take any more, because a set was
//! removed, is reported and left out.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use access::list::{Action, Change, Schedule};
use rules::ipset::{EditError, Edited, SavedSet, Sets};

use crate::forward::clock::now;
use crate::rules::journal::{Kept, Record, State};
use dataplane::bans_text;
use dataplane::publish::Published;

/// Texts of changes to sets, at most.
const MOST_TEXTS: usize = 4096;

/// Bytes of the texts, at most.
const MOST_BYTES: usize = 4 << 20;

/// Changes that clients asked for.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    all: Mutex<All>,
}

/// Changes that nobody adds to meanwhile. A reload holds them until its files are in force, so that no change is acknowledged
/// that the new access list or the new sets lack.
pub(crate) struct Held<'o>(MutexGuard<'o, All>);

#[derive(Debug, Default)]
struct All {
    /// Changes of the access list, in their order.
    bans: BTreeMap<u64, String>,
    /// The place of the last change of the same sources and destinations.
    places: HashMap<String, u64>,
    sets: BTreeMap<u64, String>,
    /// Bytes of `sets`.
    bytes: usize,
    last: u64,
}

impl Overrides {
    /// The changes that a journal holds.
    pub(crate) fn of(state: &State) -> Self {
        let number = |key: &String| u64::from_str_radix(key, 16).unwrap_or(0);
        let mut all = All::default();
        for (key, line) in &state.bans {
            let at = number(key);
            all.last = all.last.max(at);
            all.places.insert(whom(line), at);
            all.bans.insert(at, line.clone());
        }
        for (key, text) in &state.sets {
            let at = number(key);
            all.last = all.last.max(at);
            all.bytes += text.len();
            all.sets.insert(at, text.clone());
        }
        Self { all: Mutex::new(all) }
    }

    /// Changes the access list, once the changes are written down; returns the number of ranges of sources that are
    /// banned then.
    ///
    /// # Errors
    /// The changes cannot be written: nothing has changed.
    pub(crate) fn change_bans<E>(
        &self,
        changes: &[Change],
        published: &Published,
        record: impl FnOnce(Vec<Record>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut all = self.lock();
        let (mut kept, mut gone) = (BTreeMap::new(), Vec::new());
        let mut places = HashMap::new();
        let mut last = all.last;
        for change in changes {
            last += 1;
            let line = bans_text::line(change);
            let whom = whom(&line);
            match places.insert(whom.clone(), last) {
                Some(before) => drop(kept.remove(&before)),
                None => gone.extend(all.places.get(&whom).copied()),
            }
            kept.insert(last, line);
        }
        let removed = gone.iter().map(|at| Kept { key: key(*at), value: None });
        let added = kept.iter().map(|(at, line)| Kept { key: key(*at), value: Some(line.clone()) });
        record(vec![Record::Bans(removed.chain(added).collect())])?;
        let banned = published.change_bans(changes);
        gone.iter().for_each(|at| drop(all.bans.remove(at)));
        all.bans.append(&mut kept);
        all.places.extend(places);
        all.last = last;
        Ok(banned)
    }

    /// Changes the sets, once the change is written down; refused changes leave no trace.
    ///
    /// # Errors
    /// The change cannot be written: then nothing has changed.
    pub(crate) fn change_sets<E>(
        &self,
        text: &str,
        published: &Published,
        record: impl Fn(Vec<Record>) -> Result<(), E>,
    ) -> Result<Result<Edited, EditError>, E> {
        let mut all = self.lock();
        // Whether it is accepted is found before, so that what is in force was written down.
        let mut sets = published.shared().sets().cloned().unwrap_or_default();
        if let Err(refused) = sets.try_restore(text, now()) {
            return Ok(Err(refused));
        }
        let at = all.last + 1;
        let kept = Kept { key: key(at), value: Some(text.to_owned()) };
        record(vec![Record::Sets(vec![kept])])?;
        let edited = published.change_sets(text, now());
        all.last = at;
        all.bytes += text.len();
        all.sets.insert(at, text.to_owned());
        if all.sets.len() > MOST_TEXTS || all.bytes > MOST_BYTES {
            all.stand_for_themselves(published, record);
        }
        Ok(edited)
    }

    /// Holds all changes as they are: clients that ask for others wait until this is dropped.
    pub(crate) fn held(&self) -> Held<'_> {
        Held(self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held<'_> {
    /// The access list of the files, with the changes after it.
    pub(crate) fn on_bans(&self, bans: Option<Schedule>) -> Option<Schedule> {
        let Self(all) = self;
        if all.bans.is_empty() {
            return bans;
        }
        // What was written is what can be read.
        let read = |line: &String| bans_text::changes(line, None, 1).ok();
        let changes: Vec<Change> = all.bans.values().filter_map(read).flatten().collect();
        Some(bans.unwrap_or_default().with(&changes))
    }

    /// The sets of the files, with the changes after them; and the lines that are left out.
    pub(crate) fn on_sets(&self, sets: Option<Sets>) -> (Option<Sets>, Vec<String>) {
        let (Self(all), mut left_out) = (self, Vec::new());
        let Some(mut sets) = sets else { return (None, left_out) };
        for text in all.sets.values() {
            if sets.restore(text, now()).is_ok() {
                continue;
            }
            for line in text.lines() {
                if let Err(error) = sets.restore(line, now()) {
                    left_out
                        .push(format!("a change of the sets is left out: {line}: {}", error.what));
                }
            }
        }
        (Some(sets), left_out)
    }
}

impl All {
    /// Replaces all texts by what the sets hold now, if that can be written down; else they stay.
    fn stand_for_themselves<E>(
        &mut self,
        published: &Published,
        record: impl Fn(Vec<Record>) -> Result<(), E>,
    ) {
        let shared = published.shared();
        let Some(sets) = shared.sets() else { return };
        let text: String = sets.save(None, usize::MAX, now()).iter().map(held).collect();
        let at = self.last + 1;
        let removed = self.sets.keys().map(|at| Kept { key: key(*at), value: None });
        let added = Kept { key: key(at), value: Some(text.clone()) };
        if record(vec![Record::Sets(removed.chain([added]).collect())]).is_ok() {
            (self.last, self.bytes) = (at, text.len());
            self.sets = BTreeMap::from([(at, text)]);
        }
    }
}

/// Lines that make a set hold what it holds, whatever it held.
fn held(set: &SavedSet) -> String {
    let mut lines = set.text();
    let first = lines.find('\n').map_or(lines.len(), |end| end + 1);
    lines.replace_range(..first, &format!("flush {}\n", set.name));
    lines
}

/// A key that sorts in the order of numbers.
fn key(at: u64) -> String {
    format!("{at:016x}")
}

/// The subject of a line: the last line about a subject stands for all before it.
fn whom(line: &str) -> String {
    let (action, ends) = line.split_once(' ').unwrap_or((line, ""));
    let bans = [Action::Ban, Action::Unban].iter().any(|known| known.word() == action);
    format!("{} {ends}", if bans { "ban" } else { "accept" })
}

#[cfg(test)]
mod tests;
