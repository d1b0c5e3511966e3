//! Conversations through random NAT rules: what leaves the kernel, byte by byte, and its counters, against
//! tamis. Needs root and the legacy tools; without them it says so and passes.
//!
//! Clients live behind `t0`, everything else behind `t1`. Answers go to what came out, errors quote it. Where
//! tamis says unknown nothing is compared but the counters: the kernel's lie between certain and maybe.

pub(crate) mod packets;
mod rulesets;

use std::sync::Arc;

use conntrack::Side;
use dataplane::{Arrival, Config, Counters, Evaluator, FinalVerdict, Observer, Path, Program};
use fastrand::Rng;
use lab::oracle::counters::Reader;
use lab::oracle::load::{lacking, restore};
use lab::oracle::netns::{in_fresh, ip};
use lab::oracle::tun::Tun;
use lab::scene::{Placement, Scene, Wire};
use packet::{Checksums, Link};
use rules::Transit;
use rules::eval::{self, RuleRef};
use rules::model::{Chain, Family, Ruleset};
use rules::nat::Translated;
use rules::save::{LoadOptions, load};

use crate::setting;

const PACKETS: u64 = 60;

struct Hits {
    counters: Counters,
    /// Some byte of the packet is not known.
    bytes_unknown: bool,
}

impl eval::Observer for Hits {
    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        self.counters.hit_rule(at, certain, transit.packet.len() as u64, transit.time);
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.counters.hit_policy(table, chain, certain, transit.packet.len() as u64, transit.time);
    }
}

impl Observer for Hits {
    fn translated(&mut self, _: Side, to: Translated) {
        self.bytes_unknown |= to == Translated::Unknown;
    }
}

#[test]
fn tamis_translates_as_the_kernel_does() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let (seed, rulesets) = (setting("TAMIS_ORACLE_SEED", 1), setting("TAMIS_NAT_RULESETS", 150));
    let (mut known, mut all) = (0, 0);
    for number in 0..rulesets {
        let family = if number % 3 == 2 { Family::Ipv6 } else { Family::Ipv4 };
        let mut rng = Rng::with_seed(seed * 1_000_003 + number);
        let found = in_fresh(|| {
            let text = rulesets::draw(family, &mut rng);
            Ok(Trial::new(family, &text)?.run(&mut rng))
        });
        let (certain, packets) = found.unwrap().unwrap_or_else(|story| {
            panic!("seed {seed}, ruleset {number}:\n{story}");
        });
        known += certain;
        all += packets;
    }
    println!("{known} of {all} packets certain");
    assert!(known * 2 > all, "only {known} of {all} packets were certain");
}

struct Trial {
    family: Family,
    text: String,
    ruleset: Ruleset,
    config: Config,
    tun: Tun,
    reader: Reader,
}

impl Trial {
    fn new(family: Family, text: &str) -> std::io::Result<Self> {
        let tun = Tun::new(&Scene::new(family, Wire::Tun, Placement::Forward))?;
        ip("route add 10.1.0.0/16 dev t0\nroute add fd01::/16 dev t0\n")?;
        std::thread::sleep(std::time::Duration::from_millis(30));
        restore(family, text).map_err(|e| std::io::Error::other(format!("{e}\n{text}")))?;
        let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
        let ruleset = load(text, &options).expect("rules").ruleset;
        let reader = Reader::open(family)?;
        Ok(Self {
            family,
            text: text.to_owned(),
            ruleset,
            config: super::two_devices(),
            tun,
            reader,
        })
    }

    /// Packets with a certain verdict, and all; or what differs.
    fn run(mut self, rng: &mut Rng) -> Result<(u64, u64), String> {
        let mut hits = Hits { counters: Counters::of(&self.ruleset), bytes_unknown: false };
        let config = self.config.clone();
        let options = LoadOptions { family: Some(self.family), ..LoadOptions::default() };
        let ruleset = Arc::new(load(&self.text, &options).expect("rules").ruleset);
        let program = Program::new([Arc::clone(&ruleset)], config);
        let mut evaluator = Evaluator::new(&program);
        let mut certain = 0;
        let mut seen: Vec<(bool, Vec<u8>)> = Vec::new();
        let mut story = self.text.clone();
        for number in 1..=PACKETS {
            let (from_client, sent) = packets::draw(self.family, &seen, rng);
            story +=
                &format!("\n{number} {} {}", if from_client { "t0" } else { "t1" }, show(&sent));
            let left = self.pass(from_client, &sent);
            for (by_near, bytes) in &left {
                story +=
                    &format!("\n   kernel {} {}", if *by_near { "t0" } else { "t1" }, show(bytes));
            }
            let mut bytes = sent.clone();
            let arrival = Arrival {
                time: Some(1_000_000_000 + number * 1000),
                input: Some(if from_client { "t0" } else { "t1" }),
                ..Arrival::new(number, Link::Raw, bytes.len())
            };
            hits.bytes_unknown = false;
            let end = evaluator.handle(&mut bytes, &arrival, &mut hits).outcome.end;
            story += &format!("\n   tamis {:?} {:?} {}", end.verdict, end.path, show(&bytes));
            let forwarded = match (end.verdict, end.path) {
                (FinalVerdict::Unknown, _) => None,
                (FinalVerdict::Accept(_), Some(Path::Forward)) => Some(true),
                _ => Some(false),
            };
            certain += u64::from(forwarded.is_some());
            let agree = match forwarded {
                None => true,
                Some(true) => left.len() == 1 && (hits.bytes_unknown || left[0].1 == bytes),
                Some(false) => left.is_empty(),
            };
            if !agree {
                return Err(story);
            }
            seen.extend(left);
        }
        match self.counters_differ(&ruleset, &hits.counters) {
            Some(what) => Err(format!("{story}\n{what}")),
            None => Ok((certain, PACKETS)),
        }
    }

    /// What leaves the kernel, and whether by `t0`.
    fn pass(&mut self, from_client: bool, sent: &[u8]) -> Vec<(bool, Vec<u8>)> {
        if from_client { self.tun.send(sent) } else { self.tun.send_far(sent) }.expect("sent");
        let mut buffer = vec![0; 1 << 16];
        let mut left = Vec::new();
        while let Some(len) = self.tun.receive_near(&mut buffer).expect("read") {
            left.push((true, buffer[..len].to_vec()));
        }
        while let Some(len) = self.tun.receive(&mut buffer).expect("read") {
            left.push((false, buffer[..len].to_vec()));
        }
        // The host itself says which groups it listens to.
        left.retain(|(_, bytes)| bytes.get(8..24) != Some(&[0; 16]));
        left
    }

    fn counters_differ(&mut self, ruleset: &Ruleset, ours: &Counters) -> Option<String> {
        for (t, table) in ruleset.tables.iter().enumerate() {
            if table.name == "raw" {
                continue;
            }
            for chain in self.reader.read(&table.name).expect("counters") {
                let known = |known: &Chain| *known.name == *chain.chain;
                // The kernel has built-in chains that the text does not name.
                let Some(c) = table.chains.iter().position(known) else { continue };
                for (index, kernel) in chain.entries.iter().enumerate() {
                    let (table_number, chain_number) = (t as u32, c as u32);
                    let hits = match index == table.chains[c].rules.len() {
                        true => ours.policy(table_number, chain_number),
                        false => ours.rule(RuleRef {
                            table: table_number,
                            chain: chain_number,
                            rule: index as u32,
                        }),
                    };
                    let most = hits.packets + hits.maybe;
                    if !(hits.packets..=most).contains(&kernel.packets) {
                        let place = format!("{} {} {}", table.name, chain.chain, index + 1);
                        return Some(format!("{place}: kernel {kernel:?}, tamis {hits:?}"));
                    }
                }
            }
        }
        None
    }
}

fn show(bytes: &[u8]) -> String {
    let mut bytes = bytes.to_vec();
    let len = bytes.len();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let packet = packet::Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    format!("{packet} {hex}")
}
