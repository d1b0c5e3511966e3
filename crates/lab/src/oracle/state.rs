//! [`run`]: conversations through the kernel and through tamis, packet by packet, under drawn rulesets.
//!
//! The kernel runs in real time and tamis is told that time, so conversations are short against every
//! timeout. After each packet: did it come out at the other device, with the same bytes? After each
//! conversation: every rule's and policy's counters.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use rules::model::{Counters, Family, Ruleset};
use rules::save::{LoadOptions, load};

use super::compare::same_addresses;
use super::counters::Reader;
use super::kernel::wait_for_routes;
use super::load::restore;
use super::netns::{in_fresh, ip};
use super::tun::Tun;
use crate::generate::Draw;
use crate::generate::ruleset::RulesetText;
use crate::judge::Fate;
use crate::scene::{Placement, Scene, Wire, serial};
use crate::state::judge::{StateJudge, config};
use crate::state::rules::draw as draw_rules;
use crate::state::talk::Talk;
use crate::state::{INSIDE_V4, INSIDE_V6, Sent};

/// Packets for each ruleset.
const PACKETS: u16 = 3000;
/// Packets between two readings of the counters.
const BATCH: usize = 250;
/// Times that a shrinker starts over.
const ROUNDS: usize = 3;

/// A difference, with what led to it.
#[derive(Debug, Clone)]
pub struct StateFailure {
    /// Number of the ruleset.
    pub number: u64,
    /// Rules, packets and what differed.
    pub story: String,
}

/// What a campaign adds up to.
#[derive(Debug, Clone, Default)]
pub struct StateSummary {
    /// By family: rulesets, packets, and packets that came through.
    pub families: BTreeMap<&'static str, [u64; 3]>,
    /// The differences.
    pub failures: Vec<StateFailure>,
}

/// Where the kernel and tamis part: after how many packets, and how.
type Parting = (usize, String);

/// The kernel's side.
struct Side {
    scene: Scene,
    tun: Tun,
    reader: Reader,
    buffer: Vec<u8>,
}

/// Compares `packets` packets of each family; at most `threads` rulesets at a time.
pub fn run(
    seed: u64,
    packets: u64,
    families: &[Family],
    threads: usize,
) -> io::Result<StateSummary> {
    let rulesets = packets.div_ceil(PACKETS.into()) * families.len() as u64;
    let next = AtomicU64::new(0);
    let total: Mutex<StateSummary> = Mutex::default();
    let work = || -> io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= rulesets {
                return Ok(());
            }
            let family = families[number as usize % families.len()];
            let (passed, failure) = one(seed, number, family)?;
            let Ok(mut total) = total.lock() else { return Ok(()) };
            let sums = total.families.entry(family.tool()).or_default();
            sums[0] += 1;
            sums[1] += u64::from(PACKETS);
            sums[2] += passed;
            total.failures.extend(failure);
            if total.failures.len() >= 8 {
                next.store(rulesets, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    Ok(total.into_inner().unwrap_or_default())
}

/// Draws and compares one ruleset; how many packets came through, and what differed.
pub fn one(seed: u64, number: u64, family: Family) -> io::Result<(u64, Option<StateFailure>)> {
    let scene = Scene::new(family, Wire::Tun, Placement::Forward);
    let seed = seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut draw = Draw::new(scene, seed);
    let rules = draw_rules(&mut draw);
    let mut talk = Talk::new(seed, family == Family::Ipv6);
    let packets: Vec<Sent> = (0..PACKETS).map(|serial| talk.next(serial)).collect();
    let (passed, parting) = compare(scene, &rules.text(), &packets, BATCH)?;
    let Some((_, what)) = parting else { return Ok((passed, None)) };
    let story = tell(scene, rules, packets, what)?;
    Ok((passed, Some(StateFailure { number, story })))
}

/// Runs packets through both in a fresh namespace.
fn compare(
    scene: Scene,
    rules: &str,
    packets: &[Sent],
    batch: usize,
) -> io::Result<(u64, Option<Parting>)> {
    let options = LoadOptions { family: Some(scene.family), ..LoadOptions::default() };
    let ruleset = match load(rules, &options) {
        Ok(loaded) => loaded.ruleset,
        Err(error) => return Ok((0, Some((0, format!("tamis refuses the rules: {error}"))))),
    };
    in_fresh(|| {
        let mut side = Side::new(scene)?;
        // What the kernel itself sends must not be counted at POSTROUTING.
        let rules = rules.replace("*mangle\n", "*mangle\n:OUTPUT DROP [0:0]\n");
        if let Err(error) = restore(scene.family, &rules) {
            return Ok((0, Some((0, format!("the kernel refuses the rules: {error}")))));
        }
        side.converse(&ruleset, packets, batch)
    })
}

impl Side {
    fn new(scene: Scene) -> io::Result<Self> {
        let tun = Tun::new(&scene)?;
        wait_for_routes(scene)?;
        let near = scene.devices[0];
        let near = near.name();
        ip(&format!("route add {INSIDE_V4} dev {near}\nroute add {INSIDE_V6} dev {near}\n"))?;
        let reader = Reader::open(scene.family)?;
        Ok(Self { scene, tun, reader, buffer: vec![0; 1 << 16] })
    }

    fn converse(
        &mut self,
        ruleset: &Ruleset,
        packets: &[Sent],
        batch: usize,
    ) -> io::Result<(u64, Option<Parting>)> {
        let config = config();
        let mut judge = StateJudge::new(ruleset, &config);
        let mut passed = 0;
        for (index, sent) in packets.iter().enumerate() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let mut ours = sent.clone();
            let came = self.pass(sent)?;
            let fate = judge.judge(self.scene, &mut ours, now.as_nanos() as u64);
            passed += u64::from(came.is_some());
            let what = match (fate, &came) {
                (Fate::Accept, Some(bytes)) if *bytes == ours.bytes => None,
                (Fate::Accept, Some(_)) => Some("other bytes".to_owned()),
                (Fate::Drop, None) => None,
                (fate, came) => {
                    let kernel = if came.is_some() { "accept" } else { "drop" };
                    let unknown = judge.unknown().unwrap_or_default();
                    Some(format!("tamis {} {unknown}, kernel {kernel}", fate.word()))
                }
            };
            let what = match what {
                None if (index + 1) % batch == 0 || index + 1 == packets.len() => {
                    self.counters_differ(&judge)?
                }
                what => what,
            };
            if let Some(what) = what {
                let path = judge.path().join(" ");
                return Ok((passed, Some((index, format!("{what}; tamis's path: {path}")))));
            }
        }
        Ok((passed, None))
    }

    /// Sends a packet in by one device; its bytes if it comes out by the other.
    fn pass(&mut self, sent: &Sent) -> io::Result<Option<Vec<u8>>> {
        if sent.from_far {
            self.tun.send_far(&sent.bytes)?;
        } else {
            self.tun.send(&sent.bytes)?;
        }
        let mut came = None;
        loop {
            let received = match sent.from_far {
                true => self.tun.receive_near(&mut self.buffer)?,
                false => self.tun.receive(&mut self.buffer)?,
            };
            let Some(len) = received else { return Ok(came) };
            let bytes = &self.buffer[..len];
            // Anything else is the kernel's own.
            if serial(bytes) == serial(&sent.bytes) && same_addresses(bytes, &sent.bytes) {
                came = Some(bytes.to_vec());
            }
        }
    }

    fn counters_differ(&mut self, judge: &StateJudge<'_>) -> io::Result<Option<String>> {
        if let Some(unknown) = judge.unknown() {
            return Ok(Some(format!("tamis cannot tell: {unknown}")));
        }
        let mut kernel: BTreeMap<(&str, String), Vec<Counters>> = BTreeMap::new();
        for table in ["raw", "mangle", "filter"] {
            let ours = judge.counters();
            if ours.iter().any(|tally| tally.name.0 == table) {
                let chains = self.reader.read(table)?;
                kernel.extend(chains.into_iter().map(|c| ((table, c.chain), c.entries)));
            }
        }
        for tally in judge.counters() {
            let (table, chain) = &tally.name;
            let Some(theirs) = kernel.get(&(*table, chain.clone())) else { continue };
            let compared = tally.entries.len() - usize::from(!tally.built_in);
            let pairs = tally.entries.iter().zip(theirs).take(compared).enumerate();
            for (index, (ours, theirs)) in pairs {
                if ours != theirs {
                    let number = index + 1;
                    let what = format!("{table} {chain} {number}: tamis {ours}, kernel {theirs}");
                    return Ok(Some(what));
                }
            }
        }
        Ok(None)
    }
}

/// Makes a difference small and tells it.
fn tell(scene: Scene, rules: RulesetText, packets: Vec<Sent>, first: String) -> io::Result<String> {
    let (_, parting) = compare(scene, &rules.text(), &packets, 1)?;
    if parting.as_ref().is_some_and(|(_, what)| what.contains(" refuses ")) {
        return Ok(format!("{first}\n{}", rules.text()));
    }
    let Some((index, mut what)) = parting else {
        return Ok(format!("{first}\n(not when counted one by one)\n{}", rules.text()));
    };
    let (mut rules, mut packets) = (rules, packets);
    packets.truncate(index + 1);
    for _ in 0..ROUNDS {
        fewer_packets(scene, &rules, &mut packets, &mut what)?;
        fewer_rules(scene, &mut rules, &packets, &mut what)?;
    }
    let mut story = format!("{first}\n{what}\n{}", rules.text());
    for sent in &packets {
        let device = scene.devices[usize::from(sent.from_far)];
        story += &format!("packet {} {}\n", device.name(), super::compare::hex(&sent.bytes));
    }
    Ok(story)
}

fn fewer_packets(
    scene: Scene,
    rules: &RulesetText,
    packets: &mut Vec<Sent>,
    what: &mut String,
) -> io::Result<()> {
    let mut chunk = packets.len() / 2;
    while chunk > 0 {
        let mut at = 0;
        while at + chunk < packets.len() {
            let mut fewer = packets.clone();
            fewer.drain(at..at + chunk);
            match compare(scene, &rules.text(), &fewer, 1)?.1 {
                Some((index, found)) if !found.contains(" refuses ") => {
                    fewer.truncate(index + 1);
                    (*packets, *what) = (fewer, found);
                }
                _ => at += chunk,
            }
        }
        chunk /= 2;
    }
    Ok(())
}

fn fewer_rules(
    scene: Scene,
    rules: &mut RulesetText,
    packets: &[Sent],
    what: &mut String,
) -> io::Result<()> {
    for table in 0..rules.tables.len() {
        for chain in 0..rules.tables[table].chains.len() {
            for rule in (0..rules.tables[table].chains[chain].rules.len()).rev() {
                let mut fewer = rules.clone();
                fewer.tables[table].chains[chain].rules.remove(rule);
                if let Some((index, found)) = compare(scene, &fewer.text(), packets, 1)?.1
                    && index + 1 == packets.len()
                    && !found.contains(" refuses ")
                {
                    (*rules, *what) = (fewer, found);
                }
            }
        }
    }
    Ok(())
}
