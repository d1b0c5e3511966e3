//! Writes down what the kernel alone says, as a [`Case`] that tamis is later held to without a kernel.

use std::io;

use super::kernel::Kernel;
use super::netns::in_fresh;
use crate::case::{Case, Count};
use crate::evaluator::Fate;
use crate::generate::matches::{GENERATORS, MatchGen};
use crate::generate::ruleset::sample;
use crate::generate::{Draw, packets};
use crate::scene::{Placement, Scene, Wire};
use rules::ext::{Support, find_match};
use rules::model::Family;

/// Frames of one sample.
const FRAMES: u16 = 24;

/// Asks the kernel alone, and keeps what it says. A first rule that matches everything is put before the
/// others, which tells packets that the stack refused from those that were dropped.
pub fn record(scene: Scene, rules: &str, frames: &[Vec<u8>]) -> io::Result<Case> {
    let base = scene.hook().chain_name();
    let head = format!("*{}\n", scene.tables()[0]);
    let counter = format!("-A {base}\n");
    let at = rules.find(&head).map_or(0, |at| at + head.len());
    let rest = &rules[at..];
    let first = rest.find("-A ").unwrap_or_else(|| rest.find("COMMIT").unwrap_or(0));
    let has_counter = rest[first..].starts_with(&counter);
    let counter = if has_counter { "" } else { &*counter };
    let rules = format!("{}{}{counter}{}", &rules[..at], &rest[..first], &rest[first..]);
    in_fresh(|| {
        let mut kernel = Kernel::new(scene)?;
        kernel.load(&rules)?;
        let (why, counts) = (String::new(), Vec::new());
        let mut case = Case { why, scene, rules: rules.clone(), frames: Vec::new(), counts };
        let mut seen = 0;
        for frame in frames {
            kernel.send(frame)?;
            let survived = !kernel.survivors()?.is_empty();
            let now = first_count(&mut kernel, scene)?;
            let fate = match (survived, now > seen) {
                (true, _) => Fate::Accept,
                (false, true) => Fate::Drop,
                (false, false) => Fate::Stack,
            };
            seen = now;
            case.frames.push((frame.clone(), fate));
        }
        for (table, chain, entries) in kernel.counters()? {
            let built_in = chain == base;
            let shown = if built_in { entries.len() } else { entries.len().saturating_sub(1) };
            for (index, counters) in entries.iter().take(shown).enumerate() {
                let known = rules.contains(&format!(":{chain} "));
                if known {
                    let (table, chain) = (table.into(), chain.clone());
                    case.counts.push(Count {
                        table,
                        chain,
                        number: index + 1,
                        counters: *counters,
                    });
                }
            }
        }
        Ok(case)
    })
}

/// Packets of the first rule of the first table's built-in chain.
fn first_count(kernel: &mut Kernel, scene: Scene) -> io::Result<u64> {
    let table = scene.tables()[0];
    let base = scene.hook().chain_name();
    let chains = kernel.counters()?;
    let chain = chains.iter().find(|(t, chain, _)| *t == table && chain == base);
    Ok(chain.and_then(|(_, _, entries)| entries.first()).map_or(0, |counters| counters.packets))
}

/// Asks the kernel again about a case whose verdicts and counts may be missing or wrong.
pub fn again(case: &Case) -> io::Result<Case> {
    let frames: Vec<Vec<u8>> = case.frames.iter().map(|(frame, _)| frame.clone()).collect();
    let fresh = record(case.scene, &case.rules, &frames)?;
    Ok(Case { why: case.why.clone(), ..fresh })
}

/// A sample of every match that is drawn, in each of its families: a few rules of it, packets made for
/// them, and what the kernel answered. With the name of its file.
pub fn samples(seed: u64) -> io::Result<Vec<(String, Case)>> {
    let mut all = Vec::new();
    for kind in GENERATORS {
        for family in kind.families {
            let known = find_match(kind.name, *family);
            if known.is_some_and(|known| known.support == Support::Evaluated) {
                all.push((file_name(kind, *family), draw_sample(kind, *family, seed)?));
            }
        }
    }
    Ok(all)
}

fn file_name(kind: &MatchGen, family: Family) -> String {
    format!("sample-{}-{}.case", kind.name, family.name())
}

fn draw_sample(kind: &'static MatchGen, family: Family, seed: u64) -> io::Result<Case> {
    let scene = Scene::new(family, Wire::Veth, Placement::Raw);
    let mut draw = Draw::new(scene, seed);
    let rules = sample(&mut draw, kind);
    let frames = packets::draw(&mut draw, &rules, 0, FRAMES);
    let mut case = record(scene, &rules.text(), &frames)?;
    case.why = format!("-m {}: drawn rules and packets, seed {seed}\n", kind.name);
    Ok(case)
}
