//! [`run`]: packets through rules with sets, in the kernel and in tamis, under drawn sets and rules.
//!
//! After each packet: did it come out at the other device? After each batch: every rule's and policy's
//! counters.

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::layouts::Kind;
use dataplane::{Config, Path, Start};
use rules::ipset::Sets;
use rules::model::{Family, Ruleset};
use rules::save::{LoadError, LoadOptions, load};

use super::compare::same_addresses;
use super::counters::Reader;
use super::kernel::wait_for_routes;
use super::load::restore;
use super::netns::{feed, in_fresh, ip};
use super::tun::Tun;
use crate::generate::Draw;
use crate::generate::sets::{Host, draw, packet};
use crate::layouts::{Layouts, name_of};
use crate::scene::{Placement, Scene, Wire, serial};
use crate::state::Sent;
use crate::state::evaluator::{Egress, StateEvaluator};
use crate::state::stage::Stage;

/// Packets for each ruleset.
const PACKETS: u16 = 2000;
/// Packets between two readings of the counters.
const BATCH: u16 = 100;

/// On a busy machine a softirq may still be under way when a packet was sent.
const SOFTIRQ: Duration = Duration::from_millis(20);

/// What a campaign adds up to.
#[derive(Debug, Clone, Default)]
pub struct SetSummary {
    /// Rulesets compared.
    pub rulesets: u64,
    /// Packets compared.
    pub packets: u64,
    /// Of these, packets that came through.
    pub passed: u64,
    /// Differences, each with its sets and rules.
    pub failures: Vec<String>,
}

/// What this oracle needs and this machine lacks, if anything.
#[must_use]
pub fn lacking() -> Option<String> {
    if let Some(reason) = super::load::lacking() {
        return Some(reason);
    }
    let probe = "create a hash:net,iface\ncreate b list:set\ncreate c bitmap:port range 0-9\n";
    in_fresh(|| load_sets(probe)).err().map(|error| error.to_string())
}

fn load_sets(text: &str) -> io::Result<()> {
    feed(Command::new("ipset").args(["-exist", "restore"]), text)
}

/// Compares at least `packets` packets, of both families; at most `threads` rulesets at a time.
pub fn run(seed: u64, packets: u64, threads: usize, layouts: Layouts) -> io::Result<SetSummary> {
    let rulesets = packets.div_ceil(PACKETS.into());
    let next = AtomicU64::new(0);
    let total: Mutex<SetSummary> = Mutex::default();
    let work = || -> io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= rulesets {
                return Ok(());
            }
            let (sent, passed, failure) = one(seed, number, layouts.of(number))?;
            let Ok(mut total) = total.lock() else { return Ok(()) };
            total.rulesets += 1;
            total.packets += sent;
            total.passed += passed;
            total.failures.extend(failure);
            if total.failures.len() >= 4 {
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

/// Draws and compares one host: packets sent and passed, and what differed.
pub fn one(seed: u64, number: u64, layout: Option<Kind>) -> io::Result<(u64, u64, Option<String>)> {
    let family = if number % 3 == 2 { Family::Ipv6 } else { Family::Ipv4 };
    let scene = Scene { layout, ..Scene::new(family, Wire::Tun, Placement::Forward) };
    let mut random = Draw::new(scene, seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let host = draw(&mut random);
    let mut told = None;
    let (ruleset, sets) = read(scene.family, &host)?;
    let (sent, passed) = in_fresh(|| {
        let mut trial = match Trial::new(scene, &host) {
            Ok(trial) => trial,
            Err(error) => {
                told = Some(error.to_string());
                return Ok((0, 0));
            }
        };
        trial.run(&ruleset, sets, &mut random, &mut told)
    })?;
    let story = told.map(|what| {
        let Host { sets, rules } = &host;
        format!("host {number}, {}: {what}\n{sets}{rules}", name_of(layout))
    });
    Ok((sent, passed, story))
}

/// The host as tamis reads it.
fn read(family: Family, host: &Host) -> io::Result<(Arc<Ruleset>, Sets)> {
    let refused = |error: LoadError| {
        io::Error::other(format!("tamis refuses the text: {error}\n{}{}", host.sets, host.rules))
    };
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    let ruleset = load(&host.rules, &options).map_err(refused)?.ruleset;
    Ok((Arc::new(ruleset), Sets::parse(&host.sets).map_err(refused)?))
}

/// The kernel with a host's sets and rules.
struct Trial {
    scene: Scene,
    tun: Tun,
    reader: Reader,
    buffer: Vec<u8>,
}

impl Trial {
    fn new(scene: Scene, host: &Host) -> io::Result<Self> {
        let tun = Tun::new(&scene)?;
        wait_for_routes(scene)?;
        let near = scene.devices[0];
        ip(&format!("route add 10.0.255.0/24 dev {}\n", near.name()))?;
        load_sets(&host.sets)?;
        restore(scene.family, &host.rules)?;
        Ok(Self { scene, tun, reader: Reader::open(scene.family)?, buffer: vec![0; 1 << 16] })
    }

    fn run(
        &mut self,
        ruleset: &Arc<Ruleset>,
        sets: Sets,
        draw: &mut Draw,
        told: &mut Option<String>,
    ) -> io::Result<(u64, u64)> {
        let stage = Stage::usual(self.scene.family);
        let config = Config {
            reference: self.scene.layout.is_none(),
            path: Some(Path::Forward),
            output: Some(stage.device(true).to_owned()),
            nets: Vec::new(),
            host: host::Host::default(),
            ..stage.config()
        };
        let mut evaluator = StateEvaluator::starting(
            ruleset,
            &config,
            Start { sets: Some(sets), ..Start::default() },
        );
        let (mut sent, mut passed) = (0, 0);
        for number in 0..PACKETS {
            let bytes = packet(draw, number);
            self.tun.send(&bytes)?;
            let mut came = self.comes(&bytes)?;
            let ours = Sent::at_once(false, bytes.clone());
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let egress = evaluator.evaluate(&stage, &ours, now.as_nanos() as u64);
            if matches!(egress, Egress::Packet(_)) && !came {
                thread::sleep(SOFTIRQ);
                came = self.comes(&bytes)?;
            }
            sent += 1;
            passed += u64::from(came);
            let what = match (egress, came) {
                (Egress::Packet(_), true) | (Egress::Nothing, false) => None,
                (egress, came) => {
                    let kernel = if came { "accept" } else { "drop" };
                    let unknown = evaluator.unknown().unwrap_or_default();
                    Some(format!("tamis {egress:?} {unknown}, kernel {kernel}"))
                }
            };
            let what = match what {
                None if (number + 1) % BATCH == 0 => {
                    self.settled_counters_differ(ruleset, &evaluator)?
                }
                what => what,
            };
            if let Some(what) = what {
                let (path, hex) = (evaluator.path().join(" "), crate::hex::hex(&bytes));
                *told = Some(format!("packet {number}: {what}; tamis's path: {path}\n{hex}"));
                break;
            }
        }
        Ok((sent, passed))
    }

    /// Whether a packet that was sent comes out by the other device.
    fn comes(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let mut came = false;
        while let Some(len) = self.tun.receive(&mut self.buffer)? {
            // Anything else is the kernel's own.
            let received = &self.buffer[..len];
            came |= serial(received) == serial(bytes) && same_addresses(received, bytes);
        }
        Ok(came)
    }

    fn settled_counters_differ(
        &mut self,
        ruleset: &Ruleset,
        evaluator: &StateEvaluator,
    ) -> io::Result<Option<String>> {
        if self.counters_differ(ruleset, evaluator)?.is_none() {
            return Ok(None);
        }
        thread::sleep(SOFTIRQ);
        self.counters_differ(ruleset, evaluator)
    }

    fn counters_differ(
        &mut self,
        ruleset: &Ruleset,
        evaluator: &StateEvaluator,
    ) -> io::Result<Option<String>> {
        for (t, table) in ruleset.tables.iter().enumerate() {
            let kernel = self.reader.read(&table.name)?;
            for (c, chain) in table.chains.iter().enumerate() {
                let Some(theirs) = kernel.iter().find(|theirs| *theirs.chain == *chain.name) else {
                    continue;
                };
                let entries = chain.rules.len() + usize::from(chain.base.is_some());
                for (index, theirs) in theirs.entries.iter().enumerate().take(entries) {
                    let ours = evaluator.hits(t, c, index);
                    if (ours.packets, ours.bytes) != (theirs.packets, theirs.bytes) {
                        let (table, chain, number) = (&table.name, &chain.name, index + 1);
                        let ours = format!("{}:{}", ours.packets, ours.bytes);
                        return Ok(Some(format!(
                            "{table} {chain} {number}: tamis {ours}, kernel {theirs}"
                        )));
                    }
                }
            }
        }
        Ok(None)
    }
}
