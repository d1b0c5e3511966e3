//! [`Trial`]: one ruleset in the kernel and in tamis, fed one conversation.
//!
//! After each packet: did it come out, with the same bytes? After each batch: every rule's and policy's counters,
//! exactly, or, where tamis could not tell whether packets hit, between those that surely did and those that may
//! have.

use std::io;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dataplane::Config;
use dataplane::counters::HitCount;
use rules::model::{Counters, Ruleset};
use rules::save::{LoadOptions, load};

use super::side::Side;
use crate::oracle::netns::in_fresh;
use crate::state::evaluator::{Egress, StateEvaluator, agree};
use crate::state::stage::Stage;
use crate::state::summary::Heard;
use crate::state::{Came, Sent};

/// A packet that takes longer was held up, nobody knows where.
const LATE: Duration = Duration::from_millis(2);

/// Where the kernel and tamis part: after how many packets, and how.
pub type Parting = (usize, String);

/// The result of an attempt: what was heard, and where the two part.
pub type Outcome = (Heard, Option<Parting>);

/// The rules, and how strictly tamis is held to them.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// Where it plays.
    pub stage: &'a Stage,
    /// Save text.
    pub rules: &'a str,
    /// tamis must know every verdict.
    pub strict: bool,
    /// Packets between two readings of the counters.
    pub batch: usize,
}

/// Where the packets of a conversation come from: each is asked for, and what came of it is told.
pub trait Packets {
    /// The packet of this index; `None` ends the conversation.
    fn next(&mut self, index: usize) -> Option<Sent>;
    /// What came out for it.
    fn came(&mut self, _came: &Came) {}
}

impl Packets for &[Sent] {
    fn next(&mut self, index: usize) -> Option<Sent> {
        self.get(index).cloned()
    }
}

impl Trial<'_> {
    /// Runs a conversation through both in a fresh namespace.
    pub fn run(&self, packets: &mut (impl Packets + Send)) -> io::Result<Outcome> {
        let options =
            LoadOptions { family: Some(self.stage.scene.family), ..LoadOptions::default() };
        let ruleset = match load(self.rules, &options) {
            Ok(loaded) => loaded.ruleset,
            Err(error) => return Ok(refused("tamis", &error)),
        };
        let config = self.stage.config();
        in_fresh(|| match Side::new(self.stage, self.rules)? {
            Err(error) => Ok(refused("the kernel", &error)),
            Ok(side) => self.converse(side, &ruleset, &config, packets),
        })
    }

    fn converse(
        &self,
        mut side: Side,
        ruleset: &Ruleset,
        config: &Config,
        packets: &mut impl Packets,
    ) -> io::Result<Outcome> {
        let mut evaluator = StateEvaluator::new(ruleset, config);
        let mut heard = Heard { rulesets: 1, ..Heard::default() };
        let mut index = 0;
        while let Some(sent) = packets.next(index) {
            thread::sleep(sent.pause);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let begun = Instant::now();
            let mut came = side.pass(&sent)?;
            heard.late += u64::from(begun.elapsed() > LATE);
            let egress = evaluator.evaluate(self.stage, &sent, now.as_nanos() as u64);
            if came.is_none() && matches!(egress, Egress::Packet(_)) {
                came = side.wait_for(&sent)?;
            }
            heard.note(&egress, came.is_some());
            let what = match self.differ(&egress, came.as_ref()) {
                None if (index + 1) % self.batch == 0 => {
                    counters_differ(&mut side, ruleset, &evaluator)?
                }
                what => what,
            };
            if let Some(what) = what {
                return Ok((heard, Some((index, told(&evaluator, &what)))));
            }
            if let Some(came) = &came {
                packets.came(came);
            }
            index += 1;
        }
        let what = counters_differ(&mut side, ruleset, &evaluator)?;
        Ok((heard, what.map(|what| (index.saturating_sub(1), told(&evaluator, &what)))))
    }

    fn differ(&self, egress: &Egress, came: Option<&Came>) -> Option<String> {
        match (egress, came) {
            (Egress::Unknown, _) if self.strict => Some("tamis cannot tell".to_owned()),
            (Egress::Unknown, _) | (Egress::Nothing, None) | (Egress::Packet(None), Some(_)) => {
                None
            }
            (Egress::Packet(Some(ours)), Some(came)) if *ours == came.bytes => None,
            (Egress::Packet(Some(ours)), Some(came)) => {
                let hex = crate::hex::hex;
                Some(format!("tamis sends {}, kernel {}", hex(ours), hex(&came.bytes)))
            }
            (Egress::Packet(_), None) => Some("tamis accept, kernel drop".to_owned()),
            (Egress::Nothing, Some(_)) => Some("tamis drop, kernel accept".to_owned()),
        }
    }
}

fn told(evaluator: &StateEvaluator<'_>, what: &str) -> String {
    let unknown = evaluator.unknown().unwrap_or_default();
    format!("{what} {unknown}; tamis's path: {}", evaluator.path().join(" "))
}

fn refused(who: &str, error: &impl std::fmt::Display) -> Outcome {
    (Heard::default(), Some((0, format!("{who} refuses the rules: {error}"))))
}

fn counters_differ(
    side: &mut Side,
    ruleset: &Ruleset,
    evaluator: &StateEvaluator<'_>,
) -> io::Result<Option<String>> {
    let differs = |side: &mut Side| -> io::Result<Option<String>> {
        let chains = side.all_counters(ruleset)?;
        Ok(chains.iter().find_map(|(table, chain)| {
            chain_differs(ruleset, evaluator, *table, &chain.chain, &chain.entries)
        }))
    };
    if differs(side)?.is_none() {
        return Ok(None);
    }
    // On a busy machine a softirq may still be under way.
    thread::sleep(std::time::Duration::from_millis(20));
    differs(side)
}

fn chain_differs(
    ruleset: &Ruleset,
    evaluator: &StateEvaluator<'_>,
    table_index: usize,
    name: &str,
    theirs: &[Counters],
) -> Option<String> {
    let table = &ruleset.tables[table_index];
    let index = table.chains.iter().position(|chain| *chain.name == *name)?;
    let chain = &table.chains[index];
    if name == "OUTPUT" {
        return None;
    }
    let compared = chain.rules.len() + usize::from(chain.base.is_some());
    theirs.iter().take(compared).enumerate().find_map(|(rule, theirs)| {
        let ours = evaluator.hits(table_index, index, rule);
        let place = format!("{} {name} {}", table.name, rule + 1);
        (!agree(&ours, theirs)).then(|| {
            let HitCount { packets, bytes, maybe, .. } = ours;
            format!("{place}: tamis [{packets}:{bytes}] and {maybe} maybe, kernel {theirs}")
        })
    })
}
