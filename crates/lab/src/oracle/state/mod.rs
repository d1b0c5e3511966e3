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
use std::time::{Duration, Instant};

use fastrand::Rng;
use host::Kernel;
use rules::model::Family;

use self::trial::{Packets, Trial};
use crate::generate::Draw;
use crate::hex::hex;
use crate::layouts::Layouts;
use crate::state::rules::{Drawn, Sort, draw as draw_rules};
use crate::state::stage::Stage;
use crate::state::summary::{Heard, StateFailure};
use crate::state::talk::{Ports, Talk};
use crate::state::{Came, Sent};

/// Packets for each ruleset.
const PACKETS: usize = 3000;
/// Under one that depends on the clock, where there are pauses.
const TIMED_PACKETS: usize = 1500;
/// Longer than what tamis takes a clock tick of the kernel for, three times.
const PAUSE: Duration = Duration::from_millis(32);
/// Runs of a ruleset that depends on the clock, where the machine was too busy to tell when packets came.
const RETRIES: usize = 3;
/// Packets between two readings of the counters.
const BATCH: usize = 250;

/// What a campaign is to do.
#[derive(Debug, Clone)]
pub struct StatePlan {
    /// First seed.
    pub seed: u64,
    /// Packets for each family.
    pub packets: u64,
    /// Rulesets are drawn for these in turn.
    pub families: Vec<Family>,
    /// What tamis walks them as.
    pub layouts: Layouts,
    /// The kernel that is asked.
    pub kernel: Kernel,
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
    /// By family and the sort of the rules.
    pub heard: BTreeMap<(&'static str, Sort), Heard>,
    /// What differed, with what led to it.
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
            let (named, heard, failure) = one(plan, number)?;
            let Ok(mut total) = total.lock() else { return Ok(()) };
            total.heard.entry(named).or_default().add(&heard);
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

/// What a ruleset came to: its family's tool and its sort, what was heard, and what differed.
pub type Compared = ((&'static str, Sort), Heard, Option<StateFailure>);

/// Draws and compares one ruleset of a plan.
pub fn one(plan: &StatePlan, number: u64) -> io::Result<Compared> {
    let family = plan.families[number as usize % plan.families.len()];
    let mut stage = Stage::usual(family);
    stage.scene.layout = plan.layouts.of(number / plan.families.len() as u64);
    stage.scene.kernel = plan.kernel;
    let seed = plan.seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut draw = Draw::new(stage.scene, seed);
    let Drawn { rules, sort } = draw_rules(&mut draw);
    let text = rules.text();
    let trial = Trial { stage: &stage, rules: &text, strict: sort.is_strict(), batch: BATCH };
    let mut spoken = speak(&stage, sort, seed);
    let (mut heard, mut parting) = trial.run(&mut spoken)?;
    for _ in 0..RETRIES {
        if !sort.is_timed || parting.is_none() || heard.late == 0 {
            break;
        }
        spoken = speak(&stage, sort, seed);
        (heard, parting) = trial.run(&mut spoken)?;
    }
    let Some((_, what)) = parting else { return Ok(((family.tool(), sort), heard, None)) };
    let story = match what.contains(" refuses ") {
        true => format!("{what}\n{text}"),
        false => match shrink::tell(&stage, sort.is_strict(), rules, spoken.packets, &what)? {
            Some(story) => story,
            None => again(&trial, &mut speak(&stage, sort, seed), &what)?,
        },
    };
    Ok(((family.tool(), sort), heard, Some(StateFailure { name: number.to_string(), story })))
}

/// The conversation of a seed under rules of a sort.
fn speak(stage: &Stage, sort: Sort, seed: u64) -> Spoken {
    let (mut ports, mut hosts) = (Ports::usual(sort.translates), stage.clone());
    if sort.is_helped {
        ports.help();
        hosts.front_translated();
    }
    let (packets, pauses) = match sort.is_timed {
        true => (TIMED_PACKETS, Some(Rng::with_seed(seed))),
        false => (PACKETS, None),
    };
    Spoken::new(Talk::new(seed, hosts, ports), packets, pauses)
}

/// A difference that the same packets do not show again, for the kernel drew something else: it is told with the packet
/// after which it shows where counters are read after each.
fn again(trial: &Trial<'_>, spoken: &mut Spoken, first: &str) -> io::Result<String> {
    let (_, parting) = Trial { batch: 1, ..*trial }.run(spoken)?;
    let packet = match (parting, spoken.packets.last()) {
        (Some((index, what)), Some(sent)) => {
            let (side, bytes) = (if sent.from_far { "far" } else { "near" }, hex(&sent.bytes));
            format!("packet {index}, {side} {bytes}: {what}")
        }
        _ => "not when counters are read after every packet".to_owned(),
    };
    Ok(format!("{first}\n{packet}\n{}", trial.rules))
}

/// A conversation as it is drawn, kept so that it can be had again.
#[derive(Debug)]
struct Spoken {
    talk: Talk,
    packets: Vec<Sent>,
    most: usize,
    /// Draws pauses, where there are any.
    pauses: Option<Rng>,
}

impl Spoken {
    fn new(talk: Talk, most: usize, pauses: Option<Rng>) -> Self {
        Self { talk, packets: Vec::new(), most, pauses }
    }
}

impl Packets for Spoken {
    fn next(&mut self, index: usize) -> Option<Sent> {
        if index >= self.most {
            return None;
        }
        let mut sent = self.talk.next(index as u16);
        if let Some(rng) = &mut self.pauses
            && rng.u8(..6) == 0
        {
            sent.pause = PAUSE;
        }
        self.packets.push(sent.clone());
        Some(sent)
    }

    fn came(&mut self, came: &Came) {
        self.talk.came(came);
    }
}
