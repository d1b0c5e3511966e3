//! [`run`]: rulesets drawn one after the other, each in a fresh namespace, compared batch by batch.
//!
//! Contract: ruleset number `n` of a seed is the same whatever the number of threads and whatever came before it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use rules::model::Family;

use super::super::netns::in_fresh;
use super::compare::{Difference, Reads, Session, Terms, is_compared, locate};
use super::items::{self, Items};
use super::shrink::{Failing, shrink};
use crate::generate::mutate::network_offset;
use crate::generate::nft::TableFamily;
use crate::generate::nft::ruleset::{self, Ending, NftRuleset};
use crate::generate::{Draw, answers, checksums, packets};
use crate::scene::{Placement, Scene, Wire};

/// Packets for each ruleset.
const PACKETS: u16 = 2000;
/// Where packets end, how they get in, and how many there are between two readings of the counters: one ruleset after the
/// other.
const TURNS: [(Ending, Wire, u16); 10] = [
    (Ending::Early, Wire::Tun, 500),
    (Ending::Kept, Wire::Tun, 500),
    (Ending::Forwarded, Wire::Tun, 500),
    (Ending::Translated, Wire::Tun, 100),
    (Ending::Early, Wire::Tap, 500),
    (Ending::Forwarded, Wire::Tap, 500),
    (Ending::Translated, Wire::Tun, 100),
    (Ending::Kept, Wire::Tap, 500),
    (Ending::Translated, Wire::Tun, 100),
    (Ending::Forwarded, Wire::Tun, 500),
];
/// Multiplier that spreads ruleset numbers over seeds (the golden ratio of 64 bits).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// First seed.
    pub seed: u64,
    /// Packets to compare for each family.
    pub packets: u64,
    /// Families of the tables.
    pub families: Vec<TableFamily>,
    /// Stop drawing rulesets then.
    pub until: Option<Instant>,
    /// Rulesets at a time.
    pub threads: usize,
    /// Stop after as many differences.
    pub most_failures: usize,
    /// Beginnings of the names of items that are drawn; all if there are none.
    pub only: Vec<String>,
    /// What tamis reads.
    pub reads: Reads,
    /// Whether the packet of a difference is found and its case made small, which asks the kernel some hundred times.
    pub shrinks: bool,
}

/// What a family's rulesets add up to.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Rulesets.
    pub rulesets: u64,
    /// Rules that nft took.
    pub rules: u64,
    /// Packets.
    pub packets: u64,
    /// Of these, packets that left.
    pub left: u64,
    /// Packets of which tamis could not tell everything, by the cause.
    pub unknown: BTreeMap<String, u64>,
    /// What tamis does not evaluate, and in how many rules of a family.
    pub lacks: BTreeMap<String, u64>,
    /// Answers of each item, by the kernel's counters.
    pub items: Items,
    /// Lines that nft refused, by the reason; one of them.
    pub refused: BTreeMap<String, (u64, String)>,
}

/// What a campaign adds up to.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// By the family's name.
    pub families: BTreeMap<&'static str, Tally>,
    /// Differences: number of the ruleset, and the reproducer.
    pub failures: Vec<(u64, String)>,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.rulesets += other.rulesets;
        self.rules += other.rules;
        self.packets += other.packets;
        self.left += other.left;
        for (cause, count) in &other.unknown {
            *self.unknown.entry(cause.clone()).or_default() += count;
        }
        for (lack, count) in &other.lacks {
            *self.lacks.entry(lack.clone()).or_default() += count;
        }
        items::add(&mut self.items, &other.items);
        for (reason, (count, text)) in &other.refused {
            let sum = self.refused.entry(reason.clone()).or_insert_with(|| (0, text.clone()));
            sum.0 += count;
        }
    }
}

/// Runs a plan.
pub fn run(plan: &Plan) -> io::Result<Summary> {
    let rulesets = plan.packets.div_ceil(u64::from(PACKETS)) * plan.families.len() as u64;
    let next = AtomicU64::new(0);
    let total: Mutex<Summary> = Mutex::default();
    let work = || -> io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let late = plan.until.is_some_and(|until| Instant::now() >= until);
            if number >= rulesets || late {
                return Ok(());
            }
            let (family, tally, failure) = one(plan, number)?;
            let Ok(mut total) = total.lock() else { return Ok(()) };
            total.families.entry(family.name()).or_default().add(&tally);
            total.failures.extend(failure.map(|story| (number, story)));
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

/// Draws and compares one ruleset; the reproducer, if there is a difference.
pub fn one(plan: &Plan, number: u64) -> io::Result<(TableFamily, Tally, Option<String>)> {
    let count = plan.families.len() as u64;
    let (family, turn) = (plan.families[(number % count) as usize], number / count);
    let (ending, wire, batch) = TURNS[(turn % TURNS.len() as u64) as usize];
    let terms = Terms { ending, reads: plan.reads, wire };
    let placement = if ending.leaves() { Placement::Forward } else { Placement::Raw };
    let packets = if family == TableFamily::Ip6 { Family::Ipv6 } else { Family::Ipv4 };
    let scene = Scene::new(packets, wire, placement);
    let mut draw = Draw::new(scene, plan.seed ^ (number + 1).wrapping_mul(SPREAD));
    draw.mixed = family == TableFamily::Inet;
    draw.earlier = Some(Vec::new());
    let drawn = ruleset::draw(&mut draw, family, ending, &plan.only);
    let mut tally = Tally { rulesets: 1, ..Tally::default() };
    let mut sent = Vec::new();
    let compared = in_fresh(|| compare((terms, batch), drawn, &mut draw, &mut sent, &mut tally));
    let (ruleset, difference) = match compared {
        Ok((ruleset, Some(difference))) => (ruleset, difference),
        Ok((_, None)) => return Ok((family, tally, None)),
        Err(error) => return Ok((family, tally, Some(error.to_string()))),
    };
    if !plan.shrinks {
        return Ok((family, tally, Some(format!("{terms:?}\n{difference}"))));
    }
    let story = examine((terms, batch), ruleset, sent, difference)?;
    Ok((family, tally, Some(format!("{terms:?}\n{story}"))))
}

fn compare(
    (terms, size): (Terms, u16),
    drawn: NftRuleset,
    draw: &mut Draw,
    sent: &mut Vec<Vec<u8>>,
    tally: &mut Tally,
) -> io::Result<(NftRuleset, Option<Difference>)> {
    let (mut session, refusals, mut difference) = Session::new(terms, drawn)?;
    for refusal in refusals {
        let (reason, text) = refusal.split_once(": add ").unwrap_or((&refusal, ""));
        tally.refused.entry(reason.to_owned()).or_insert_with(|| (0, text.to_owned())).0 += 1;
    }
    let ruleset = session.ruleset().clone();
    tally.rules = ruleset.rule_count() as u64;
    for lack in session.lacks() {
        *tally.lacks.entry(lack.clone()).or_default() += 1;
    }
    for batch in 0..PACKETS / size {
        if difference.is_some() {
            break;
        }
        let mut frames = packets::draw(draw, &ruleset, batch * size, size);
        for frame in &mut frames {
            let at = network_offset(terms.scene(), frame);
            if !draw.one_in(4) {
                checksums::fill(frame.get_mut(at..).unwrap_or_default());
            }
        }
        frames.retain(|frame| is_compared(terms, frame));
        difference = session.batch(&frames)?;
        tally.packets += frames.len() as u64;
        sent.extend(frames);
        if terms.ending == Ending::Translated {
            let answers = session.departed.iter().filter_map(|left| answers::draft(draw, left));
            let answers: Vec<_> = answers.collect();
            draw.answers = answers;
        }
    }
    tally.left = session.left;
    tally.unknown = std::mem::take(&mut session.unknown);
    tally.items = items::of(&ruleset, &session.counters()?);
    Ok((ruleset, difference))
}

/// Finds the packet, makes the case small, and tells it.
fn examine(
    (terms, size): (Terms, u16),
    ruleset: NftRuleset,
    mut frames: Vec<Vec<u8>>,
    difference: Difference,
) -> io::Result<String> {
    let before = frames.len().saturating_sub(usize::from(size));
    let located = locate(terms, &ruleset, &frames, before)?;
    let Some((index, difference)) = located else {
        return Ok(format!("{difference} (not when sent one by one)\n{}", ruleset.text()));
    };
    frames.truncate(index + 1);
    Ok(shrink(terms, Failing { ruleset, frames, difference })?.story(terms.scene().link()))
}
