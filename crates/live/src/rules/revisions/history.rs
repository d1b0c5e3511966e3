//! [`History`]: the revisions that are kept, the last of which is in force.
//!
//! Contract: numbers rise by one and none is given twice. What a family's rules are in a revision is a *version*: a complete
//! text, or a change to an earlier version, so a revision costs what it changes; revisions whose rules are the same
//! have one version. A version is named by the revision that brought it. After [`MOST_CHANGES`] changes, or as many bytes
//! as [`MOST_CHANGE_BYTES`], a complete text follows ([`History::takes_change`]), so reading rules back takes a bounded number
//! of changes. At most [`MOST_REVISIONS`] are kept, and [`MOST_BYTES`] of text; always the last one and the one before it,
//! which is what is gone back to. Looking is [`History::records`], and changes are made by taking records alone, those of a
//! journal or new ones.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pktio::Timestamp;
use rules::model::Family;
use serde::{Deserialize, Serialize};

use super::text;
use crate::answers::LoggedRevision;
use crate::rules::journal::{Record, State};

/// Revisions that are kept.
pub(super) const MOST_REVISIONS: usize = 64;

/// Bytes of text that are kept, but for the last two revisions.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// Changes after a complete text.
const MOST_CHANGES: usize = 4096;

/// Bytes of such changes.
const MOST_CHANGE_BYTES: usize = 4 << 20;

/// The process that asked for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peer {
    /// Its user.
    pub(crate) uid: u32,
    /// Its number; 0 where the system does not say.
    pub(crate) pid: u32,
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
    /// The version of each family that has rules, by name.
    pub(super) texts: BTreeMap<String, u64>,
}

/// The rules of a family at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    /// The version that `text` changes; `None` where it is complete.
    of: Option<u64>,
    text: Arc<str>,
    /// Changes since the complete text.
    changes: usize,
    /// Bytes of those.
    change_bytes: usize,
}

/// A version as it is read back: a complete text, and the changes after it in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    family: Family,
    complete: Arc<str>,
    changes: Vec<Arc<str>>,
}

/// The revisions that are kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    kept: VecDeque<(u64, Entry)>,
    versions: BTreeMap<(u64, Family), Version>,
    /// Bytes of all versions.
    bytes: usize,
}

/// What makes a revision.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) at: u64,
    pub(super) what: String,
    pub(super) who: Option<Peer>,
    /// The rules of each family that has some.
    pub(super) rules: BTreeMap<Family, Brought>,
}

/// The rules that a family has in a new revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Brought {
    /// Those of a version that there is.
    Version(u64),
    /// Those of the last revision with these changes; only where [`History::takes_change`].
    Change(Arc<str>),
    /// The complete text.
    Text(Arc<str>),
}

impl History {
    /// What a journal has.
    ///
    /// # Errors
    /// It lacks a text, or holds what is no revision.
    pub(super) fn of(state: &State) -> Result<Self, String> {
        let mut history = Self::default();
        for ((number, family), text) in &state.texts {
            history.add(*number, *family, None, text);
        }
        // In the order of numbers: what is changed stands before.
        for ((number, family), (of, text)) in &state.changes {
            if *of >= *number || !history.versions.contains_key(&(*of, *family)) {
                return Err(format!("revision {number} changes rules that are not there"));
            }
            history.add(*number, *family, Some(*of), text);
        }
        for (number, entry) in &state.revisions {
            let entry: Entry = serde_json::from_str(entry)
                .map_err(|error| format!("revision {number} cannot be read: {error}"))?;
            for (name, version) in &entry.texts {
                let family = family_of(name);
                let found =
                    family.filter(|family| history.versions.contains_key(&(*version, *family)));
                found.ok_or_else(|| format!("revision {number} lacks its rules of {name}"))?;
            }
            history.kept.push_back((*number, entry));
        }
        Ok(history)
    }

    /// The revision in force.
    pub(super) fn last(&self) -> Option<&(u64, Entry)> {
        self.kept.back()
    }

    /// Its number; 0 if there is none.
    pub(super) fn number(&self) -> u64 {
        self.last().map_or(0, |(number, _)| *number)
    }

    /// The number of the one before the one in force.
    pub(super) fn before(&self) -> Option<u64> {
        self.kept.iter().nth_back(1).map(|(number, _)| *number)
    }

    /// The number of the oldest one that is kept.
    pub(super) fn oldest(&self) -> u64 {
        self.kept.front().map_or(0, |(oldest, _)| *oldest)
    }

    fn get(&self, number: u64) -> Option<&Entry> {
        self.kept.iter().find(|(kept, _)| *kept == number).map(|(_, entry)| entry)
    }

    /// The rules of a revision, if it is kept: what they are read back from, and the name of their version.
    pub(super) fn rules(&self, number: u64) -> Option<BTreeMap<Family, (u64, Chain)>> {
        let texts = self.get(number)?.texts.iter();
        let chain = |(name, version): (&String, &u64)| {
            let family = family_of(name)?;
            Some((family, (*version, self.chain(*version, family)?)))
        };
        Some(texts.filter_map(chain).collect())
    }

    fn chain(&self, version: u64, family: Family) -> Option<Chain> {
        let (mut changes, mut at) = (Vec::new(), version);
        loop {
            let Version { of, text, .. } = self.versions.get(&(at, family))?;
            let Some(of) = of else {
                changes.reverse();
                return Some(Chain { family, complete: Arc::clone(text), changes });
            };
            changes.push(Arc::clone(text));
            at = *of;
        }
    }

    /// The version of a family in the revision in force.
    pub(super) fn version(&self, family: Family) -> Option<u64> {
        self.last()?.1.texts.get(family.name()).copied()
    }

    /// Whether the next revision of a family may be a change of this many bytes.
    pub(super) fn takes_change(&self, family: Family, bytes: usize) -> bool {
        let last = self.version(family).and_then(|version| self.versions.get(&(version, family)));
        last.is_some_and(|last| {
            last.changes < MOST_CHANGES && last.change_bytes + bytes <= MOST_CHANGE_BYTES
        })
    }

    /// What it takes to have one more revision.
    pub(super) fn records(&self, change: Change) -> Vec<Record> {
        let number = self.number() + 1;
        let Change { at, what, who, rules } = change;
        let (mut entry, mut texts, mut changes) =
            (Entry { at, what, who, texts: BTreeMap::new() }, Vec::new(), Vec::new());
        for (family, brought) in rules {
            let last = self.version(family);
            let same = |text: &str| {
                let found = self.versions.get(&(last?, family))?;
                (found.of.is_none() && *found.text == *text).then_some(last?)
            };
            let version = match (brought, last) {
                (Brought::Version(version), _) => version,
                (Brought::Change(text), Some(of)) => {
                    changes.push(Record::Change { number, family, of, text });
                    number
                }
                (Brought::Text(text) | Brought::Change(text), _) => {
                    same(&text).unwrap_or_else(|| {
                        texts.push((family, text));
                        number
                    })
                }
            };
            entry.texts.insert(family.name().to_owned(), version);
        }
        let written = serde_json::to_string(&entry).unwrap_or_default();
        let mut records = vec![Record::Revision { number, entry: written, texts }];
        records.append(&mut changes);
        records.extend(self.forgotten(&entry, &records));
        records
    }

    /// Takes what [`History::records`] gave.
    pub(super) fn take(&mut self, records: &[Record]) {
        for record in records {
            match record {
                Record::Revision { number, entry, texts } => {
                    for (family, text) in texts {
                        self.add(*number, *family, None, text);
                    }
                    self.kept
                        .extend(serde_json::from_str(entry).ok().map(|entry| (*number, entry)));
                }
                Record::Change { number, family, of, text } => {
                    self.add(*number, *family, Some(*of), text);
                }
                Record::Forgotten { revisions, texts } => {
                    self.kept.retain(|(number, _)| !revisions.contains(number));
                    for key in texts {
                        let gone = self.versions.remove(key);
                        self.bytes -= gone.map_or(0, |gone| gone.text.len());
                    }
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, number: u64, family: Family, of: Option<u64>, text: &Arc<str>) {
        let before = of.and_then(|of| self.versions.get(&(of, family)));
        let (changes, change_bytes) =
            before.map_or((0, 0), |before| (before.changes + 1, before.change_bytes + text.len()));
        self.bytes += text.len();
        let version = Version { of, text: Arc::clone(text), changes, change_bytes };
        self.versions.insert((number, family), version);
    }

    /// The oldest revisions that have to go for one more, which these records bring, and the versions that go with them.
    fn forgotten(&self, next: &Entry, brought: &[Record]) -> Option<Record> {
        let new: usize = brought.iter().map(bytes_of).sum();
        let (mut bytes, mut revisions, mut gone) = (self.bytes + new, Vec::new(), Vec::new());
        let mut kept = self.kept.iter();
        // With the new one at least two stay.
        while kept.len() > 1 && (kept.len() + 1 > MOST_REVISIONS || bytes > MOST_BYTES) {
            let Some((number, oldest)) = kept.next() else { break };
            revisions.push(*number);
            for (name, version) in &oldest.texts {
                let Some(family) = family_of(name) else { continue };
                let stay = kept.clone().map(|(_, entry)| entry).chain([next]);
                let stay: BTreeSet<u64> =
                    stay.filter_map(|entry| entry.texts.get(name).copied()).collect();
                for (version, text) in self.only_of(*version, family, &stay, brought) {
                    bytes -= text;
                    gone.push((version, family));
                }
            }
        }
        (!revisions.is_empty()).then_some(Record::Forgotten { revisions, texts: gone })
    }

    /// A version, and those that it changes, as far as none of these is, or changes, one of them.
    fn only_of(
        &self,
        version: u64,
        family: Family,
        stay: &BTreeSet<u64>,
        brought: &[Record],
    ) -> Vec<(u64, usize)> {
        let new = |number| {
            brought.iter().find_map(|record| match record {
                Record::Change { number: new, family: at, of, .. } => {
                    (*new == number && *at == family).then_some(*of)
                }
                _ => None,
            })
        };
        let before = |number| match self.versions.get(&(number, family)) {
            Some(version) => version.of,
            None => new(number),
        };
        // Where one change follows another, the next revision tells at once.
        if stay.iter().any(|other| *other == version || before(*other) == Some(version)) {
            return Vec::new();
        }
        let mut needed = BTreeSet::new();
        for other in stay {
            let mut at = Some(*other);
            while let Some(number) = at.filter(|number| needed.insert(*number)) {
                at = before(number);
            }
        }
        let (mut gone, mut at) = (Vec::new(), Some(version));
        while let Some(number) = at.filter(|number| !needed.contains(number)) {
            let Some(found) = self.versions.get(&(number, family)) else { break };
            gone.push((number, found.text.len()));
            at = found.of;
        }
        gone
    }

    /// For `log`: newest first.
    pub(super) fn logged(&self) -> Vec<LoggedRevision> {
        let entry = |(number, entry): &(u64, Entry)| {
            let bytes = |(name, version): (&String, &u64)| {
                let family = family_of(name)?;
                let found = self.versions.get(&(*version, family))?;
                let complete = self.complete(*version, family)?;
                Some(complete + found.change_bytes)
            };
            LoggedRevision {
                revision: *number,
                at: time(entry.at),
                what: entry.what.clone(),
                uid: entry.who.map(|who| who.uid),
                pid: entry.who.map(|who| who.pid),
                families: entry.texts.keys().cloned().collect(),
                bytes: entry.texts.iter().filter_map(bytes).sum(),
            }
        };
        self.kept.iter().rev().map(entry).collect()
    }

    /// Bytes of the complete text that a version goes back to.
    fn complete(&self, mut version: u64, family: Family) -> Option<usize> {
        loop {
            let found = self.versions.get(&(version, family))?;
            match found.of {
                Some(of) => version = of,
                None => return Some(found.text.len()),
            }
        }
    }
}

impl Chain {
    /// The complete text: what was printed, or would have been.
    ///
    /// # Errors
    /// It is not one that was accepted.
    pub(super) fn text(&self) -> Result<Arc<str>, String> {
        text::changed(self.family, &self.complete, &self.changes)
    }
}

fn bytes_of(record: &Record) -> usize {
    match record {
        Record::Revision { texts, .. } => texts.iter().map(|(_, text)| text.len()).sum(),
        Record::Change { text, .. } => text.len(),
        _ => 0,
    }
}

fn family_of(name: &str) -> Option<Family> {
    Family::ALL.into_iter().find(|family| family.name() == name)
}

/// Seconds since 1970 as RFC 3339.
fn time(seconds: u64) -> String {
    let time = Timestamp::saturating_from_nanos(i128::from(seconds) * 1_000_000_000);
    time.to_string().replace(".000000000", "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rules::revision::{Numbers, Revision};
    use rules::save::{LoadOptions, load};

    use super::*;

    fn change(rules: BTreeMap<Family, Brought>) -> Change {
        Change { at: 1, what: "apply".to_owned(), who: None, rules }
    }

    fn whole(text: &str) -> Change {
        change(BTreeMap::from([(Family::Ipv4, Brought::Text(text.into()))]))
    }

    /// How a family comes to its rules: not at all, by a text, a change, or those of a revision so far back.
    #[derive(Debug, Clone, Copy)]
    enum How {
        None,
        Text(u8),
        Change(u8),
        Back(usize),
    }

    fn how() -> impl Strategy<Value = How> {
        prop_oneof![
            1 => Just(How::None),
            2 => (0..3u8).prop_map(How::Text),
            6 => (0..9u8).prop_map(How::Change),
            2 => (0..80usize).prop_map(How::Back),
        ]
    }

    /// What a revision has, in the model: a text and changes.
    type Modelled = BTreeMap<Family, Vec<String>>;

    fn brought(
        history: &History,
        model: &[Modelled],
        family: Family,
        how: How,
    ) -> Option<(Brought, Vec<String>)> {
        let last = model.last().and_then(|last| last.get(&family));
        match how {
            How::None => None,
            How::Change(number) if history.takes_change(family, 1) => {
                let mut rules = last.expect("there are rules to change").clone();
                rules.push(number.to_string());
                Some((Brought::Change(number.to_string().into()), rules))
            }
            How::Back(far) => {
                let number = history.number().checked_sub(far as u64)?;
                let (version, _) = history.rules(number)?.remove(&family)?;
                Some((Brought::Version(version), model[number as usize][&family].clone()))
            }
            How::Text(number) | How::Change(number) => {
                Some((Brought::Text(number.to_string().into()), vec![number.to_string()]))
            }
        }
    }

    /// How many versions are needed for the revisions that are kept.
    fn needed(history: &History) -> usize {
        let mut needed = BTreeSet::new();
        for (name, version) in history.kept.iter().flat_map(|(_, entry)| &entry.texts) {
            let family = family_of(name).expect("a family");
            let mut at = Some(*version);
            while let Some(number) = at.filter(|number| needed.insert((*number, family))) {
                at = history.versions[&(number, family)].of;
            }
        }
        needed.len()
    }

    proptest! {
        /// The model keeps everything, and a journal that takes each record says the same.
        #[test]
        fn a_history_is_what_was_put_in(hows in prop::collection::vec((how(), how()), 1..200)) {
            let (mut history, mut state) = (History::default(), State::default());
            let mut model: Vec<Modelled> = vec![BTreeMap::new()];
            for (ip, ip6) in hows {
                let (mut rules, mut modelled) = (BTreeMap::new(), BTreeMap::new());
                for (family, how) in [(Family::Ipv4, ip), (Family::Ipv6, ip6)] {
                    if let Some((brought, has)) = brought(&history, &model, family, how) {
                        rules.insert(family, brought);
                        modelled.insert(family, has);
                    }
                }
                model.push(modelled);
                let records = history.records(change(rules));
                history.take(&records);
                records.iter().for_each(|record| state.take(record));
                prop_assert_eq!(history.number() as usize, model.len() - 1);
                prop_assert!(history.kept.len() <= MOST_REVISIONS);
                prop_assert_eq!(needed(&history), history.versions.len(), "a text is left behind");
            }
            for number in history.oldest()..=history.number() {
                let found = history.rules(number).expect("no gap").into_iter();
                let found = found.map(|(family, (_, chain))| {
                    let texts = [chain.complete].into_iter().chain(chain.changes);
                    (family, texts.map(|text| text.to_string()).collect())
                });
                prop_assert_eq!(found.collect::<Modelled>(), model[number as usize].clone());
            }
            prop_assert_eq!(History::of(&state), Ok(history));
        }

        /// What is read back is what would have been printed, also over restarts, whatever became of chains.
        #[test]
        fn changes_read_back_are_what_was_printed(
            lines in prop::collection::vec((0..10usize, 0..5usize, 0..5usize, 0..20u8), 1..60),
        ) {
            let start = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:c0 - [0:0]\n:c1 - [0:0]\n\
                         -A FORWARD -j c1\n-A c1 -s 10.0.0.1/32 -j ACCEPT\nCOMMIT\n";
            let read = |text: &str, numbers: &mut Numbers| {
                let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
                let loaded = load(text, &options).expect("it was printed");
                Revision::first(&loaded.ruleset, numbers)
            };
            let mut numbers = Numbers::default();
            let mut revision = read(start, &mut numbers);
            let (mut history, mut state) = (History::default(), State::default());
            let mut printed = vec![text::printed(&revision, &[]).expect("a table")];
            let mut records = history.records(whole(&printed[0]));
            for (verb, one, other, address) in lines {
                let line = match verb {
                    0 | 1 => format!("-N c{one}"),
                    2 => format!("-X c{one}"),
                    3 => format!("-F c{one}"),
                    4 => format!("-A c{one} -j c{other}"),
                    5 => format!("-E c{one} c{other}"),
                    6 => format!("-D c{one} 1"),
                    7 => format!("-I c{one} -p tcp -m tcp --dport {address} -g c{other}"),
                    8 => format!("-P FORWARD {}", ["ACCEPT", "DROP"][one % 2]),
                    _ => format!("-A c{one} -s 10.0.0.{address}/32 -j DROP"),
                };
                let line = format!("*filter\n{line}\nCOMMIT\n");
                history.take(&records);
                records.iter().for_each(|record| state.take(record));
                records = Vec::new();
                let Ok(next) = revision.changed_by(&line, &mut numbers) else { continue };
                revision = next;
                records = history.records(change(BTreeMap::from([(
                    Family::Ipv4,
                    Brought::Change(line.into()),
                )])));
                printed.push(text::printed(&revision, &[]).expect("a table"));
                if address == 0 {
                    // A restart.
                    (numbers, history) = (Numbers::default(), History::of(&state).expect("whole"));
                    revision = read(printed.last().expect("one"), &mut numbers);
                }
            }
            history.take(&records);
            for number in history.oldest()..=history.number() {
                let rules = history.rules(number).expect("no gap");
                let (_, chain) = &rules[&Family::Ipv4];
                let text = chain.text().map(|text| text.to_string());
                prop_assert_eq!(text.as_ref(), Ok(&printed[number as usize - 1]));
            }
        }
    }

    #[test]
    fn changes_are_followed_by_a_complete_text() {
        let mut history = History::default();
        history.take(&history.records(whole("a")));
        let (mut changes, long) = (0, "b".repeat(MOST_CHANGE_BYTES / 8));
        while history.takes_change(Family::Ipv4, long.len()) {
            let brought = BTreeMap::from([(Family::Ipv4, Brought::Change(long.as_str().into()))]);
            history.take(&history.records(change(brought)));
            changes += 1;
        }
        assert_eq!(changes, 8);
        history.take(&history.records(whole("c")));
        assert!(history.takes_change(Family::Ipv4, long.len()));
    }

    #[test]
    fn long_texts_are_forgotten_first_but_the_last_two_stay() {
        let long = |byte: char| byte.to_string().repeat(MOST_BYTES / 2 + 1);
        let mut history = History::default();
        for byte in ['a', 'b', 'c'] {
            history.take(&history.records(whole(&long(byte))));
        }
        assert_eq!((history.oldest(), history.number()), (2, 3));
        assert_eq!((history.before(), history.versions.len()), (Some(2), 2));
        let rules = history.rules(2).expect("it is kept");
        assert!(rules[&Family::Ipv4].1.complete.starts_with('b'));
    }

    #[test]
    fn a_journal_that_lacks_a_text_is_told() {
        let mut state = State::default();
        History::default().records(whole("a")).iter().for_each(|record| state.take(record));
        state.texts.clear();
        assert_eq!(History::of(&state), Err("revision 1 lacks its rules of ip".to_owned()));
        state.changes.insert((1, Family::Ipv4), (1, "b".into()));
        let what = "revision 1 changes rules that are not there";
        assert_eq!(History::of(&state), Err(what.to_owned()));
    }
}
