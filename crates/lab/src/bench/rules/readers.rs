//! What updates cost those who read: workers walk packets, in turn with and without a writer who publishes.
//!
//! Contract: both rates are of the same workers in the same run, slice after slice; a ratio is that of
//! two slices that follow each other, so that what else the machine does falls on both. Where the kernel tells
//! how long a thread had a processor, rates are also given for that time: where there are fewer processors
//! than threads that want one, the rest is what the writer, and everybody else, took of the readers' processors. By that time
//! it is also told what a match costs whose state workers share.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::layouts::Kind as Layout;
use dataplane::publish::tally::{Local, Tally};
use dataplane::publish::{BurstGuard, PublishError, Published, Worker};
use dataplane::{Config, Start};
use host::Host;
use packet::{Checksums, Link, Packet};
use rules::Transit;
use rules::eval::Alive;
use rules::model::{Family, Hook, Ruleset};
use rules::save::{LoadOptions, load};
use serde_json::json;

use super::plan::{Plan, params, row};
use crate::bench::document::Runs;
use crate::bench::rows::Rows;
use crate::studies::counters::{Elsewhere, Shared, Uncounted};

/// Packets of a burst.
const BURST: usize = 32;

/// Chains of the rules, and rules of each.
const CHAINS: usize = 100;
const RULES: usize = 1000;

/// What to measure.
#[derive(Debug, Clone, Copy)]
struct Load {
    /// Threads that walk.
    readers: usize,
    /// Transactions in a second.
    updates: u32,
    /// Pairs of slices, one quiet and one with updates.
    pairs: usize,
    /// Length of a slice.
    slice: Duration,
}

/// Packets in a second, of all readers together, slice by slice.
#[derive(Debug, Clone, Default)]
struct Rates {
    /// Without updates.
    quiet: Vec<f64>,
    /// With them.
    updated: Vec<f64>,
    /// Packets in a second that readers had a processor, in quiet slices and others; nothing where it is not known.
    quiet_on_cpu: Vec<f64>,
    /// Likewise, with updates.
    updated_on_cpu: Vec<f64>,
    /// Transactions in a second that were published.
    updates: Vec<f64>,
    /// Seconds of each, from its text to the new rules being there for every next burst.
    commits: Vec<f64>,
}

impl Rates {
    /// The part of its quiet rate that readers keep, pair by pair.
    fn kept(&self) -> Vec<f64> {
        ratios(&self.quiet, &self.updated)
    }

    /// The same of the time that they had a processor.
    fn kept_on_cpu(&self) -> Vec<f64> {
        ratios(&self.quiet_on_cpu, &self.updated_on_cpu)
    }
}

fn ratios(quiet: &[f64], updated: &[f64]) -> Vec<f64> {
    quiet.iter().zip(updated).map(|(quiet, updated)| updated / quiet).collect()
}

/// The middle one; of none, none.
fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Updates of the rows.
const UPDATES: u32 = 1000;

/// Measures with one kind of counters.
type Measure = fn(Load) -> Result<Rates, PublishError>;

/// Every kind of counters that workers may have, by its name in the document.
const KINDS: [(&str, Measure); 4] = [
    ("none", measure::<Uncounted>),
    ("local", measure::<Local>),
    ("shared", measure::<Shared>),
    ("elsewhere", measure::<Elsewhere>),
];

/// What one reader keeps at 1,000 updates a second, with each kind of counters: the ratio of each pair of slices, by
/// the clock and by the time that the reader had a processor.
pub(super) fn rows(plan: Plan, rows: &mut Rows) {
    let pairs = if plan.quick { 5 } else { 41 };
    let slice = Duration::from_millis(100);
    for (counters, measure) in KINDS {
        let load = Load { readers: 1, updates: UPDATES, pairs, slice };
        let Ok(rates) = measure(load) else { continue };
        let made = median(rates.updates.iter().copied()).round();
        let commit = median(rates.commits.iter().copied());
        let of = |kept: Vec<f64>, clock: &str| {
            let params = params(json!({
                "rules": CHAINS * RULES, "readers": load.readers, "counters": counters,
                "updates/s": made, "commit_us": (commit * 1e7).round() / 10.0, "of": clock,
            }));
            let engine = Layout::PackedChain.name();
            (!kept.is_empty())
                .then(|| row("rules.readers.kept", engine, params, Runs::of(kept), "ratio"))
        };
        rows.extend(of(rates.kept(), "clock"));
        rows.extend(of(rates.kept_on_cpu(), "processor time"));
    }
}

/// Matches whose state workers share as processors do in the kernel, after a rule without a match.
const MATCHES: [(&str, &str); 7] = [
    ("none", ""),
    ("limit", "-m limit --limit 10000/sec --limit-burst 10000"),
    ("limit, over", "-m limit --limit 1/day --limit-burst 1"),
    ("quota", "-m quota --quota 1000000000000000"),
    ("nth", "-m statistic --mode nth --every 2 --packet 0"),
    (
        "hashlimit",
        "-m hashlimit --hashlimit-upto 10000/sec --hashlimit-mode srcip --hashlimit-name h",
    ),
    ("recent", "-m recent --name r --rsource --set"),
];

/// What a packet costs that asks one match which has one state for all workers, by the time that readers had a processor:
/// of one reader, and of two who ask about the same packet all the time, which is the most that their lock can cost.
pub(super) fn shared_rows(plan: Plan, rows: &mut Rows) {
    let pairs = if plan.quick { 5 } else { 21 };
    for (name, words) in MATCHES {
        for readers in [1, 2] {
            let slice = Duration::from_millis(100);
            let load = Load { readers, updates: 1, pairs, slice };
            let text = format!("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p udp {words}\nCOMMIT\n");
            let Ok(rates) = measure_on::<Local>(load, &read(&text), quiet) else { continue };
            let nanos: Vec<f64> = rates.quiet_on_cpu.iter().map(|rate| 1e9 / rate).collect();
            if !nanos.is_empty() {
                let params = params(json!({ "match": name, "readers": readers }));
                let engine = Layout::PackedChain.name();
                rows.push(row(
                    "rules.readers.shared",
                    engine,
                    params,
                    Runs::of(nanos),
                    "ns/packet",
                ));
            }
        }
    }
}

/// Slices without updates.
fn quiet<T: Tally>(
    _: &Published<T>,
    load: Load,
    readers: &Readers<'_>,
) -> Result<Rates, PublishError> {
    let mut rates = Rates::default();
    thread::sleep(load.slice);
    for _ in 0..load.pairs {
        let wait = |_: Instant| {
            thread::sleep(load.slice);
            Ok(0)
        };
        rates.quiet_on_cpu.extend(rate_of(readers, wait)?.1);
    }
    Ok(rates)
}

/// Measures, over 100 chains of 1,000 rules of which a packet runs one chain; updates append a rule to a chain,
/// that one in its turn, and delete it.
///
/// # Errors
/// A reader did not move on for a second.
///
/// # Panics
/// The rules, which are our own, are not taken, or a reader panicked.
fn measure<T: Tally>(load: Load) -> Result<Rates, PublishError> {
    measure_on::<T>(load, &ruleset(), slices)
}

/// Measures by slices while readers walk these rules.
fn measure_on<T: Tally>(
    load: Load,
    ruleset: &Ruleset,
    slices: impl FnOnce(&Published<T>, Load, &Readers<'_>) -> Result<Rates, PublishError>,
) -> Result<Rates, PublishError> {
    let published = Published::<T>::counting([ruleset], Config::default(), Start::default());
    let stop = AtomicBool::new(false);
    let walked = AtomicU64::new(0);
    thread::scope(|scope| {
        let (tell, told) = channel();
        let walked = &walked;
        for _ in 0..load.readers {
            let (worker, tell, stop) = (published.worker(), tell.clone(), &stop);
            scope.spawn(move || {
                // Nobody listens any more if another reader panicked.
                let _ = tell.send(clock());
                walk_until(worker, stop, walked);
            });
        }
        let clocks = told.iter().take(load.readers).flatten().collect();
        let rates = slices(&published, load, &Readers { walked, clocks });
        stop.store(true, Ordering::Relaxed);
        rates
    })
}

/// Those who walk.
struct Readers<'a> {
    walked: &'a AtomicU64,
    /// Files that say how long each had a processor.
    clocks: Vec<PathBuf>,
}

impl Readers<'_> {
    /// Seconds that they had a processor, together.
    fn seconds(&self) -> f64 {
        let nanos = |path: &PathBuf| -> Option<f64> {
            fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
        };
        self.clocks.iter().filter_map(nanos).sum::<f64>() / 1e9
    }
}

/// The file of Linux that says how long this thread had a processor.
fn clock() -> Option<PathBuf> {
    let thread = fs::read_link("/proc/thread-self").ok()?;
    Some(Path::new("/proc").join(thread).join("schedstat"))
}

fn slices<T: Tally>(
    published: &Published<T>,
    load: Load,
    readers: &Readers<'_>,
) -> Result<Rates, PublishError> {
    let (mut rates, mut updates) = (Rates::default(), 0);
    // The first slice warms up.
    thread::sleep(load.slice);
    for _ in 0..load.pairs {
        let quiet = |_: Instant| {
            thread::sleep(load.slice);
            Ok(0)
        };
        let (rate, on_cpu, _) = rate_of(readers, quiet)?;
        rates.quiet.push(rate);
        rates.quiet_on_cpu.extend(on_cpu);
        let (rate, on_cpu, made) = rate_of(readers, |start| {
            update(published, load, start, &mut updates, &mut rates.commits)
        })?;
        rates.updated.push(rate);
        rates.updated_on_cpu.extend(on_cpu);
        rates.updates.push(made);
    }
    Ok(rates)
}

/// Packets in a second, and in one that readers had a processor, while something is done; how often in a second
/// that is.
fn rate_of(
    readers: &Readers<'_>,
    work: impl FnOnce(Instant) -> Result<u32, PublishError>,
) -> Result<(f64, Option<f64>, f64), PublishError> {
    let walked = || readers.walked.load(Ordering::Relaxed);
    let (before, had, start) = (walked(), readers.seconds(), Instant::now());
    let done = work(start)?;
    let seconds = start.elapsed().as_secs_f64();
    let (packets, had) = ((walked() - before) as f64, readers.seconds() - had);
    Ok((packets / seconds, (had > 0.0).then(|| packets / had), f64::from(done) / seconds))
}

/// Publishes at the rate asked for until the slice is over; what comes late is made up for.
fn update<T: Tally>(
    published: &Published<T>,
    load: Load,
    start: Instant,
    updates: &mut usize,
    commits: &mut Vec<f64>,
) -> Result<u32, PublishError> {
    let each = Duration::from_secs(1) / load.updates.max(1);
    let mut made = 0;
    loop {
        let due = start + each * made;
        if due >= start + load.slice {
            return Ok(made);
        }
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let chain = *updates / 2 % CHAINS;
        let line = match *updates % 2 {
            0 => format!("-A c{chain} -s 198.18.0.1 -j DROP"),
            _ => format!("-D c{chain} {}", RULES + 1),
        };
        let text = format!("*filter\n{line}\nCOMMIT\n");
        let begin = Instant::now();
        published.commit_text(*updates as u64 + 1, Family::Ipv4, &text)?;
        commits.push(begin.elapsed().as_secs_f64());
        *updates += 1;
        made += 1;
    }
}

fn walk_until<T: Tally>(mut worker: Worker<T>, stop: &AtomicBool, walked: &AtomicU64) {
    let host = Host::default();
    let mut bytes = datagram();
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    while !stop.load(Ordering::Relaxed) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_nanos() as u64);
        let mut burst = worker.burst();
        for _ in 0..BURST {
            walk(&mut burst, &mut packet, &host, now);
        }
        drop(burst);
        walked.fetch_add(BURST as u64, Ordering::Relaxed);
    }
}

fn walk<T: Tally>(burst: &mut BurstGuard<'_, T>, packet: &mut Packet<'_>, host: &Host, now: u64) {
    let mut transit = Transit::new(packet, Family::Ipv4, Hook::Input, host);
    transit.time = Some(now);
    std::hint::black_box(burst.walk(0, &mut transit, Alive::Certain));
}

/// Each chain is for a network of its own; its rules match every second packet of that.
fn ruleset() -> Ruleset {
    let mut text = String::from("*filter\n:INPUT ACCEPT [0:0]\n");
    // Writing to a string does not fail.
    for chain in 0..CHAINS {
        let _ = writeln!(text, ":c{chain} - [0:0]");
    }
    for chain in 0..CHAINS {
        let _ = writeln!(text, "-A INPUT -s 10.{chain}.0.0/16 -j c{chain}");
        for rule in 0..RULES {
            let destination = if rule % 2 == 0 { "10.0.0.2" } else { "10.0.0.3" };
            let _ = writeln!(text, "-A c{chain} -s 10.{chain}.0.1 -d {destination}");
        }
    }
    text.push_str("COMMIT\n");
    read(&text)
}

fn read(text: &str) -> Ruleset {
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    match load(text, &options) {
        Ok(loaded) => loaded.ruleset,
        Err(error) => panic!("the rules are not taken: {error}"),
    }
}

/// From 10.50.0.1 to 10.0.0.2.
fn datagram() -> Vec<u8> {
    let mut bytes = vec![0; 84];
    (bytes[0], bytes[3], bytes[8], bytes[9]) = (0x45, 84, 64, 17);
    bytes[12..16].copy_from_slice(&[10, 50, 0, 1]);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_walk_while_rules_are_published() {
        let slice = Duration::from_millis(20);
        let load = Load { readers: 1, updates: 100, pairs: 3, slice };
        let rates = measure::<Local>(load).expect("readers move on");
        assert_eq!((rates.quiet.len(), rates.updated.len(), rates.updates.len()), (3, 3, 3));
        assert!(rates.quiet.iter().chain(&rates.updated).any(|rate| *rate > 0.0));
        assert!(rates.updates.iter().all(|rate| *rate > 0.0));
        assert!(rates.commits.len() >= 3);
    }

    #[test]
    fn a_packet_runs_half_of_a_chain() {
        let published = Published::new([&ruleset()], Config::default());
        let (mut worker, mut bytes, host) = (published.worker(), datagram(), Host::default());
        let len = bytes.len();
        let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
        walk(&mut worker.burst(), &mut packet, &host, 0);
        let snapshot = published.snapshot().expect("it rests");
        let revision = snapshot.program.revision(Family::Ipv4).expect("it has rules");
        let counts = |chain: &str| {
            let rules = (0..).map_while(|at| revision.rule("filter", chain, at));
            rules.map(|rule| snapshot.rule(rule).packets).sum::<u64>()
        };
        assert_eq!((counts("INPUT"), counts("c50"), counts("c51")), (1, RULES as u64 / 2, 0));
    }

    #[test]
    fn what_is_kept_is_the_median_of_pairs() {
        let (quiet, updated) = (vec![10.0, 10.0, 100.0], vec![9.0, 5.0, 95.0]);
        let rates = Rates { quiet, updated, ..Rates::default() };
        assert!((median(rates.kept().into_iter()) - 0.9).abs() < 1e-9);
        assert!(median(std::iter::empty()).is_nan());
    }
}
