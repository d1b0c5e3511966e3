//! [`run`]: conversations through the kernel and through tamis, packet by packet, under drawn rulesets.
//!
//! The kernel runs in real time and tamis is told that time, so conversations are short against every
//! timeout. [`side`] is the kernel, [`trial`] compares, [`real`] does so under rulesets of the wild, `shrink` makes
//! a difference small.

pub mod ask;
pub mod real;
mod shrink;
pub mod side;
pub mod trial;

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use rules::model::Family;

use self::trial::{Packets, Trial};
use crate::generate::Draw;
use crate::state::rules::{Drawn, draw as draw_rules};
use crate::state::stage::Stage;
use crate::state::summary::{Heard, StateFailure};
use crate::state::talk::{Ports, Talk};
use crate::state::{Came, Sent};

/// Packets for each ruleset.
const PACKETS: usize = 3000;
/// Packets between two readings of the counters.
const BATCH: usize = 250;

/// What a campaign is to do.
#[derive(Debug, Clone)]
pub struct StatePlan {
    /// First seed.
    pub seed: u64,
    /// Packets for each family.
    pub packets: u64,
    /// The families.
    pub families: Vec<Family>,
    /// Most rulesets at a time.
    pub threads: usize,
    /// No ruleset is begun after this.
    pub until: Option<Instant>,
    /// Differences after which it ends.
    pub most_failures: usize,
}

/// What a campaign adds up to.
#[derive(Debug, Clone, Default)]
pub struct StateSummary {
    /// By family and whether its rules translate.
    pub heard: BTreeMap<(&'static str, bool), Heard>,
    /// The differences.
    pub failures: Vec<StateFailure>,
}

/// Compares as planned.
pub fn run(plan: &StatePlan) -> io::Result<StateSummary> {
    let rulesets = plan.packets.div_ceil(PACKETS as u64) * plan.families.len() as u64;
    let next = AtomicU64::new(0);
    let total: Mutex<StateSummary> = Mutex::default();
    let work = || -> io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let late = plan.until.is_some_and(|until| Instant::now() > until);
            if number >= rulesets || late {
                return Ok(());
            }
            let family = plan.families[number as usize % plan.families.len()];
            let (translates, heard, failure) = one(plan.seed, number, family)?;
            let Ok(mut total) = total.lock() else { return Ok(()) };
            total.heard.entry((family.tool(), translates)).or_default().add(&heard);
            total.failures.extend(failure);
            if total.failures.len() >= plan.most_failures {
                next.store(rulesets, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.threads.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    Ok(total.into_inner().unwrap_or_default())
}

/// Draws and compares one ruleset: whether it translates, what was heard, and what differed.
pub fn one(
    seed: u64,
    number: u64,
    family: Family,
) -> io::Result<(bool, Heard, Option<StateFailure>)> {
    let stage = Stage::usual(family);
    let seed = seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut draw = Draw::new(stage.scene, seed);
    let Drawn { rules, translates } = draw_rules(&mut draw);
    let text = rules.text();
    let trial = Trial { stage: &stage, rules: &text, strict: !translates, batch: BATCH };
    let talk = Talk::new(seed, stage.clone(), Ports::usual(translates));
    let mut said = Spoken::new(talk, PACKETS);
    let (heard, parting) = trial.run(&mut said)?;
    let Some((_, what)) = parting else { return Ok((translates, heard, None)) };
    let story = match what.contains(" refuses ") {
        true => format!("{what}\n{text}"),
        false => shrink::tell(&stage, !translates, rules, said.packets, &what)?,
    };
    Ok((translates, heard, Some(StateFailure { name: number.to_string(), story })))
}

/// A conversation as it is drawn, kept so that it can be had again.
#[derive(Debug)]
struct Spoken {
    talk: Talk,
    packets: Vec<Sent>,
    most: usize,
}

impl Spoken {
    fn new(talk: Talk, most: usize) -> Self {
        Self { talk, packets: Vec::new(), most }
    }
}

impl Packets for Spoken {
    fn next(&mut self, index: usize) -> Option<Sent> {
        if index >= self.most {
            return None;
        }
        let sent = self.talk.next(index as u16);
        self.packets.push(sent.clone());
        Some(sent)
    }

    fn came(&mut self, came: &Came) {
        self.talk.came(came);
    }
}
