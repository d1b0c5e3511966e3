//! [`run`]: rulesets drawn one after the other, each in a fresh namespace, compared batch by batch.
//!
//! Contract: ruleset number `n` of a seed is the same whatever the number of threads and whatever came
//! before it. A difference is located, shrunk and explained; the campaign goes on until it has
//! [`Plan::most_failures`] of them.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use host::Kernel;
use rules::model::{Action, Family};

use super::compare::{Difference, Session, locate};
use super::explain::explain;
use super::netns::in_fresh;
use super::record::record;
use super::shrink::{Failing, shrink};
use crate::evaluator::{Evaluator, Fate};
use crate::failure::Failure;
use crate::generate::ruleset::RulesetText;
use crate::generate::{Draw, packets, ruleset};
use crate::layouts::{Layouts, name_of};
use crate::scene::{Placement, Scene, Wire};
use crate::summary::{Compared, Summary};

/// Frames between two readings of the counters.
const BATCH: u16 = 500;
/// Batches for each ruleset.
const BATCHES: u16 = 8;
/// Multiplier that spreads ruleset numbers over seeds (the golden ratio of 64 bits).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// First seed.
    pub seed: u64,
    /// Packets to compare for each family.
    pub packets: u64,
    /// Families.
    pub families: Vec<Family>,
    /// Stop drawing rulesets then.
    pub until: Option<Instant>,
    /// What tamis walks them as.
    pub layouts: Layouts,
    /// The kernel that is asked.
    pub kernel: Kernel,
    /// Rulesets at a time.
    pub threads: usize,
    /// Stop after as many differences.
    pub most_failures: usize,
}

/// Of twenty rulesets of a family: how many in which scene.
const SHARES: [(Wire, Placement, u64); 4] = [
    (Wire::Tun, Placement::Raw, 10),
    (Wire::Tun, Placement::Forward, 5),
    (Wire::Veth, Placement::Raw, 3),
    (Wire::Veth, Placement::Forward, 2),
];

/// The scene of a ruleset's number.
#[must_use]
pub fn scene_of(number: u64, plan: &Plan) -> Scene {
    let count = plan.families.len() as u64;
    let family = plan.families[(number % count) as usize];
    // Spread out, so that a short campaign visits every scene.
    let mut place = number / count * 7 % 20;
    let mut found = SHARES[0];
    for share in SHARES {
        found = share;
        if place < share.2 {
            break;
        }
        place -= share.2;
    }
    let layout = plan.layouts.of(number / count);
    Scene { layout, kernel: plan.kernel, ..Scene::new(family, found.0, found.1) }
}

/// Runs a plan.
pub fn run(plan: &Plan) -> io::Result<(Summary, Vec<Failure>)> {
    let per_ruleset = u64::from(BATCH) * u64::from(BATCHES);
    let rulesets = plan.packets.div_ceil(per_ruleset) * plan.families.len() as u64;
    let next = AtomicU64::new(0);
    let total: Mutex<(Summary, Vec<Failure>)> = Mutex::default();
    let work = || -> io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let late = plan.until.is_some_and(|until| Instant::now() >= until);
            if number >= rulesets || late {
                return Ok(());
            }
            let scene = scene_of(number, plan);
            let (summary, failure) = one(plan.seed, number, scene)?;
            let Ok(mut total) = total.lock() else { return Ok(()) };
            total.0.add(&summary);
            total.1.extend(failure);
            if total.1.len() >= plan.most_failures {
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

/// Draws and compares one ruleset.
pub fn one(seed: u64, number: u64, scene: Scene) -> io::Result<(Summary, Option<Failure>)> {
    let mut draw = Draw::new(scene, seed ^ (number + 1).wrapping_mul(SPREAD));
    let rules = ruleset::draw(&mut draw);
    let mut sent = Vec::new();
    let mut summary = Summary::default();
    let difference = in_fresh(|| compare(scene, &mut draw, &rules, &mut sent, &mut summary))?;
    let Some(difference) = difference else { return Ok((summary, None)) };
    let failure = examine(scene, number, rules, sent, difference, &mut summary)?;
    Ok((summary, Some(failure)))
}

fn compare(
    scene: Scene,
    draw: &mut Draw,
    rules: &RulesetText,
    sent: &mut Vec<Vec<u8>>,
    summary: &mut Summary,
) -> io::Result<Option<Difference>> {
    let mut session = match Session::new(scene, &rules.text())? {
        Ok(session) => session,
        Err(difference) => return Ok(Some(difference)),
    };
    let mut compared = Compared { rulesets: 1, ..Compared::default() };
    let mut difference = None;
    for batch in 0..BATCHES {
        let frames = packets::draw(draw, rules, batch * BATCH, BATCH);
        difference = session.batch(&frames)?;
        compared.packets += frames.len() as u64;
        for evaluated in session.fates() {
            compared.stack += u64::from(evaluated.fate == Fate::Stack);
            compared.accepted += u64::from(evaluated.fate == Fate::Accept);
        }
        sent.extend(frames);
        if difference.is_some() {
            break;
        }
    }
    summary.layouts.insert(name_of(scene.layout), compared.packets);
    summary.scenes.insert(scene.words(), compared);
    add_up(scene, session.evaluator(), summary);
    Ok(difference)
}

fn add_up(scene: Scene, evaluator: &Evaluator, summary: &mut Summary) {
    let family = scene.family.name();
    let mut asked = std::collections::BTreeMap::new();
    evaluator.asked(&mut asked);
    summary.matches.extend(asked.into_iter().map(|(name, sum)| (format!("{family} {name}"), sum)));
    let mut targets = std::collections::BTreeMap::new();
    evaluator.targets(&mut targets);
    summary
        .targets
        .extend(targets.into_iter().map(|(name, sum)| (format!("{family} {name}"), sum)));
}

/// Finds the packet, makes the case small, and tells it.
pub(super) fn examine(
    scene: Scene,
    number: u64,
    rules: RulesetText,
    mut frames: Vec<Vec<u8>>,
    difference: Difference,
    summary: &mut Summary,
) -> io::Result<Failure> {
    let layout = name_of(scene.layout);
    let first = format!("ruleset {number}, {layout}: {difference}, in {} frames", frames.len());
    let located = locate(scene, &rules.text(), &frames)?;
    let difference = match located {
        Some((index, difference)) => {
            frames.truncate(index + 1);
            difference
        }
        None => Difference::Counter(format!("{difference} (not when sent one by one)")),
    };
    let found = format!("{first}; one by one at {}: {difference}", frames.len());
    let failing = shrink(scene, Failing { rules, frames, difference })?;
    let text = failing.rules.text();
    summary.failures += 1;
    for name in names(scene, &text) {
        *summary.differences.entry(name).or_default() += 1;
    }
    let story = explain(scene, &text, &failing.frames, &failing.difference)?;
    let story = format!("{found}\n{story}");
    let case = record(scene, &text, &failing.frames).ok();
    Ok(Failure { number, story, case })
}

/// Matches and targets of a ruleset, with the family.
fn names(scene: Scene, rules: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Ok(evaluator) = Evaluator::new(scene, rules) else { return names };
    let family = scene.family.name();
    for chain in evaluator.ruleset().tables.iter().flat_map(|table| &table.chains) {
        for rule in &chain.rules {
            names.extend(rule.matches.iter().map(|used| format!("{family} {}", used.name)));
            if let Action::Target(target) = &rule.action {
                names.insert(format!("{family} {}", target.name));
            }
        }
    }
    names
}
