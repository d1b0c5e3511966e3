//! [`Shared`]: the store of a cloud that shares it with another one, in etcd; and its thread, which renews the lease of who is in charge.
//!
//! Contract: that of [`Store`], as long as this cloud is in charge. A device, a one-time key and the policy are in etcd before
//! anything follows from them. The rest waits for the thread, at most [`SOON`], and longer while etcd is away: one row for each node, pair
//! and line of the log that is kept, so what waits is bounded. It is lost with a cloud that is killed then, and learned again: a node
//! offers its identity, a path is made again when a node asks. Once another cloud is in charge, nothing is written any more.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use base64ct::{Base64, Encoding};
use overlay::{Identity, Pair, Record, Sources};

use super::{Changes, KeptPolicy, LINES, Place, Store, VERSIONS, texts};
use crate::etcd::{Charge, Etcd, Rows, Trouble};

/// What this release writes; any other is refused.
const FORMAT: &str = "tamis.cloud/1";
/// How long rows wait that nobody waits for.
const SOON: Duration = Duration::from_millis(100);
/// Time between two renewals of the lease.
const RENEW: Duration = Duration::from_secs(1);
/// Rows of one transaction: etcd takes 128.
const ROWS: usize = 100;
/// Rows of lines that are of the transaction of what they say.
const LINE_ROWS: usize = 24;
/// Bytes of one transaction, unless a row alone has more: etcd takes 1.5 MiB, in base64.
const BYTES: usize = 512 * 1024;
/// How long a flush may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A store in etcd.
pub(crate) struct Shared {
    etcd: Arc<Etcd>,
    charge: Charge,
    common: Arc<Common>,
    thread: Option<JoinHandle<()>>,
    /// The number of the next line of the log.
    line: u64,
    is_new: bool,
}

/// What the thread and the cloud have in common.
#[derive(Default)]
struct Common {
    /// Who writes rows has this: what is written later was said later.
    writing: Mutex<()>,
    state: Mutex<State>,
    /// Something is to be done, or was done.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<String, Option<String>>,
    /// Why the lease was not renewed, and why rows were not written.
    away: [Option<String>; 2],
    /// Another cloud is in charge, or may be.
    is_over: bool,
    ends: bool,
}

/// The places in [`State::away`].
const LEASE: usize = 0;
const WRITING: usize = 1;

impl State {
    /// Why nothing can be kept now.
    fn why(&self) -> Option<String> {
        self.away.iter().flatten().next().cloned()
    }
}

impl Common {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what came of something; returns whether it was done.
    fn note(&self, what: usize, done: Result<bool, Trouble>) -> bool {
        let mut state = self.lock();
        let was_away = state.why().is_some();
        state.is_over |= done == Ok(false);
        state.away[what] = done.as_ref().err().map(ToString::to_string);
        match (was_away, state.why()) {
            (false, Some(why)) => eprintln!("warning: {}", packet::visible::word(&why)),
            (true, None) => eprintln!("etcd answers again"),
            _ => {}
        }
        self.changed.notify_all();
        done == Ok(true)
    }
}

impl Shared {
    /// The store of who is in charge, from now on.
    pub(crate) fn open(etcd: Arc<Etcd>, charge: Charge) -> Result<Self> {
        let last = etcd.last(LOG, 1)?;
        let line = match last.first() {
            Some((number, _)) => number.parse::<u64>().context("the log")? + 1,
            None => 0,
        };
        let format = etcd.last(HEAD, 1)?;
        let is_new = format.is_empty();
        if let Some((_, other)) = format.first().filter(|(_, format)| format != FORMAT) {
            bail!("expected {FORMAT} in etcd, found {other}");
        }
        let common = Arc::new(Common::default());
        let keeper = (Arc::clone(&etcd), charge.clone(), Arc::clone(&common));
        let keep = move || keep(&keeper.0, &keeper.1, &keeper.2);
        let thread = Some(thread::Builder::new().name("etcd".to_owned()).spawn(keep)?);
        Ok(Self { etcd, charge, common, thread, line, is_new })
    }

    /// Whether nothing was ever kept here.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Begins with what another store has. Where that does not end, it is begun again.
    pub(crate) fn begin(&mut self, before: Option<&impl Store>) -> Result<()> {
        if let Some(before) = before {
            let (records, policy) = (before.records()?, before.policy()?);
            let (places, sources) = (before.places()?, before.sources()?);
            let lines = before.lines(LINES as usize)?;
            let changes = Changes { records, policy, places, sources, lines, ..Changes::default() };
            self.commit(&changes)?;
            while !self.common.lock().waiting.is_empty() {
                self.flush()?;
                if let Some(why) = self.stand()? {
                    return Err(Trouble::Away(why).into());
                }
            }
        }
        self.is_new = false;
        match self.etcd.write(&head(), &self.charge)? {
            true => Ok(()),
            false => Err(over()),
        }
    }

    /// Has rows written soon.
    fn wait(&self, rows: Rows) {
        let mut state = self.common.lock();
        for (key, value) in rows {
            let is_line = value.is_none() && key.starts_with(LOG);
            // A line that was not written yet need not be removed.
            match state.waiting.get(&key) {
                Some(Some(_)) if is_line => drop(state.waiting.remove(&key)),
                _ => drop(state.waiting.insert(key, value)),
            }
        }
    }

    /// The rows of lines: each new one takes the place of the oldest.
    fn line_rows(&mut self, lines: &[String]) -> Rows {
        let mut rows = Rows::new();
        for line in lines {
            rows.push((numbered(LOG, self.line), Some(line.clone())));
            rows.extend(self.line.checked_sub(LINES).map(|old| (numbered(LOG, old), None)));
            self.line += 1;
        }
        rows
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            eprintln!("tamis-cloud: {error:#}");
        }
        self.common.lock().ends = true;
        self.common.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Store for Shared {
    fn records(&self) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        for (name, text) in self.etcd.all(DEVICES)? {
            records.push(Record::Device(texts::device(&name, &text)?));
        }
        for (key, text) in self.etcd.all(INVITATIONS)? {
            records.push(Record::Invitation(texts::invitation(&key, &text)?));
        }
        for (name, text) in self.etcd.all(IDENTITIES)? {
            let bytes = Base64::decode_vec(&text).ok();
            let identity = bytes.and_then(|bytes| Identity::from_bytes(&bytes).ok());
            let identity = identity.with_context(|| format!("the identity of {name} in etcd"))?;
            records.push(Record::Identity(Box::new(identity)));
        }
        for (ends, port) in self.etcd.all(PATHS)? {
            records.push(Record::Path(pair(&ends)?, port.parse()?));
        }
        Ok(records)
    }

    fn policy(&self) -> Result<Option<KeptPolicy>> {
        let last = self.etcd.last(POLICIES, 1)?;
        let last = last.first().map(|(_, text)| serde_json::from_str(text));
        last.transpose().context("the policy in etcd")
    }

    fn places(&self) -> Result<Vec<Place>> {
        let places = self.etcd.all(PLACES)?.into_iter();
        places.map(|(key, place)| Ok((key.parse()?, place.parse()?))).collect()
    }

    fn sources(&self) -> Result<Vec<(Pair, Sources)>> {
        let sources = self.etcd.all(SOURCES)?.into_iter();
        sources.map(|(ends, bound)| Ok((pair(&ends)?, serde_json::from_str(&bound)?))).collect()
    }

    fn commit(&mut self, changes: &Changes) -> Result<()> {
        self.wait(rows_of_soon(changes)?);
        let mut lines = self.line_rows(&changes.lines);
        let mut parts = parts(once(rows_of_now(changes)?));
        match parts.first_mut() {
            Some(part) if lines.len() <= LINE_ROWS => part.extend_from_slice(&lines),
            _ => self.wait(std::mem::take(&mut lines)),
        }
        for part in parts {
            let _writing = self.common.writing();
            let mut state = self.common.lock();
            part.iter().for_each(|(key, _)| drop(state.waiting.remove(key)));
            drop(state);
            let written = self.etcd.write(&part, &self.charge);
            if !self.common.note(WRITING, written.clone()) {
                self.wait(lines);
                return Err(written.err().map_or_else(over, Into::into));
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        self.common.changed.notify_all();
        let mut state = self.common.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let is_away = state.why().is_some();
            if state.is_over {
                return Err(over());
            }
            if state.waiting.is_empty() || is_away || left.is_zero() {
                return Ok(());
            }
            let waited = self.common.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn stand(&self) -> Result<Option<String>> {
        let state = self.common.lock();
        match state.is_over {
            true => Err(over()),
            false => Ok(state.why()),
        }
    }

    fn lines(&self, most: usize) -> Result<Vec<String>> {
        let most = most.min(LINES as usize);
        // A server that hangs is waited for once, and not by each question.
        let read = match self.stand()? {
            None => self.etcd.last(LOG, most as u64).map_err(|why| why.to_string()),
            Some(why) => Err(why),
        };
        let (mut rows, why) = match read {
            Ok(rows) => (rows.into_iter().collect::<BTreeMap<_, _>>(), None),
            Err(why) => (BTreeMap::new(), Some(format!("what was before is not here: {why}"))),
        };
        for (key, line) in &self.common.lock().waiting {
            if let (Some(number), Some(line)) = (key.strip_prefix(LOG), line) {
                rows.insert(number.to_owned(), line.clone());
            }
        }
        let kept = rows.into_values().rev().take(most).collect::<Vec<_>>();
        Ok(why.into_iter().chain(kept.into_iter().rev()).collect())
    }
}

/// What the thread does: it renews the lease and writes rows that wait, until it is to end.
fn keep(etcd: &Etcd, charge: &Charge, common: &Common) {
    let mut renew_at = Instant::now();
    loop {
        let mut state = common.lock();
        if !state.ends {
            let waited = common.changed.wait_timeout(state, SOON);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.ends || state.is_over {
            drop(state);
            let _ = etcd.give_back(charge);
            return;
        }
        drop(state);
        if renew_at <= Instant::now() {
            renew_at = Instant::now() + RENEW;
            common.note(LEASE, etcd.renew(charge));
        }
        if !write_waiting(etcd, charge, common) {
            thread::sleep(SOON);
        }
    }
}

/// Writes some of the rows that wait; returns whether that was done, or there are none.
fn write_waiting(etcd: &Etcd, charge: &Charge, common: &Common) -> bool {
    let _writing = common.writing();
    let state = common.lock();
    let some = state.waiting.iter().take(ROWS).map(|(key, value)| (key.clone(), value.clone()));
    let mut rows: Rows = some.collect();
    if rows.is_empty() && state.away[WRITING].is_some() {
        // Whether it can be written again.
        rows = head();
    }
    drop(state);
    let Some(rows) = parts(rows).into_iter().next() else { return true };
    let is_written = common.note(WRITING, etcd.write(&rows, charge));
    if is_written {
        let mut state = common.lock();
        for (key, value) in rows {
            // It may have changed again.
            if state.waiting.get(&key) == Some(&value) {
                state.waiting.remove(&key);
            }
        }
        drop(state);
        common.changed.notify_all();
    }
    is_written
}

/// The row that says what wrote the others.
fn head() -> Rows {
    vec![(HEAD.to_owned(), Some(FORMAT.to_owned()))]
}

/// What follows from the end of the charge.
fn over() -> anyhow::Error {
    anyhow!("another directory is in charge: this one ends, and is to begin again, to wait")
}

const HEAD: &str = "format";
const DEVICES: &str = "device/";
const INVITATIONS: &str = "invitation/";
const IDENTITIES: &str = "identity/";
const POLICIES: &str = "policy/";
const PLACES: &str = "place/";
const PATHS: &str = "path/";
const SOURCES: &str = "source/";
const LOG: &str = "log/";

fn numbered(table: &str, number: u64) -> String {
    format!("{table}{number:020}")
}

fn ends(pair: &Pair) -> String {
    format!("{}/{}", pair.0, pair.1)
}

fn pair(ends: &str) -> Result<Pair> {
    let (first, second) = ends.split_once('/').with_context(|| format!("the path {ends}"))?;
    Ok(Pair::of(&first.parse()?, &second.parse()?))
}

/// The rows from which something follows at once.
fn rows_of_now(changes: &Changes) -> Result<Rows> {
    let mut rows = Rows::new();
    for record in &changes.records {
        match record {
            Record::Device(device) => {
                rows.push((format!("{DEVICES}{}", device.name), Some(texts::of_device(device)?)));
            }
            Record::Invitation(invitation) => {
                let text = texts::of_invitation(invitation)?;
                rows.push((format!("{INVITATIONS}{}", invitation.key), Some(text)));
            }
            Record::Identity(_) | Record::Expired(_) | Record::Path(..) | Record::Parted(_) => {}
        }
    }
    if let Some(policy) = &changes.policy {
        let text = serde_json::to_string(policy)?;
        rows.push((numbered(POLICIES, policy.version), Some(text)));
        let old = policy.version.checked_sub(VERSIONS);
        rows.extend(old.map(|old| (numbered(POLICIES, old), None)));
    }
    Ok(rows)
}

/// The rows that are learned again where they are lost.
fn rows_of_soon(changes: &Changes) -> Result<Rows> {
    let mut rows = Rows::new();
    for record in &changes.records {
        match record {
            Record::Identity(identity) => {
                let text = Base64::encode_string(&identity.to_bytes());
                rows.push((format!("{IDENTITIES}{}", identity.claims.name), Some(text)));
            }
            Record::Expired(key) => rows.push((format!("{INVITATIONS}{key}"), None)),
            Record::Path(pair, port) => {
                rows.push((format!("{PATHS}{}", ends(pair)), Some(port.to_string())));
            }
            Record::Parted(pair) => {
                let ends = ends(pair);
                rows.push((format!("{PATHS}{ends}"), None));
                rows.push((format!("{SOURCES}{ends}"), None));
            }
            Record::Device(_) | Record::Invitation(_) => {}
        }
    }
    for (key, place) in &changes.places {
        rows.push((format!("{PLACES}{key}"), Some(place.to_string())));
    }
    rows.extend(changes.displaced.iter().map(|key| (format!("{PLACES}{key}"), None)));
    for (pair, bound) in &changes.sources {
        let text = serde_json::to_string(bound as &[Option<SocketAddr>; 2])?;
        rows.push((format!("{SOURCES}{}", ends(pair)), Some(text)));
    }
    Ok(rows)
}

/// Rows with each key once, as etcd wants them: where it was first, with what it had last.
fn once(rows: Rows) -> Rows {
    let (mut all, mut places) = (Rows::new(), HashMap::new());
    for (key, value) in rows {
        let place = *places.entry(key.clone()).or_insert(all.len());
        match all.get_mut(place) {
            Some((_, before)) => *before = value,
            None => all.push((key, value)),
        }
    }
    all
}

/// Rows as transactions. What makes a device of a one-time key is in one: first the device, and then the key that was used.
fn parts(rows: Rows) -> Vec<Rows> {
    let (mut parts, mut bytes) = (Vec::<Rows>::new(), 0);
    let mut is_device = false;
    for (key, value) in rows {
        let length = key.len() + value.as_ref().map_or(0, String::len);
        let is_full = parts.last().is_none_or(|part| part.len() >= ROWS || bytes + length > BYTES);
        if is_full && !is_device {
            parts.push(Rows::new());
            bytes = 0;
        }
        is_device = key.starts_with(DEVICES);
        bytes += length;
        parts.last_mut().into_iter().for_each(|part| part.push((key.clone(), value.clone())));
    }
    parts
}

#[cfg(test)]
mod tests;
