//! Holds findings to the reference walk.

use std::collections::HashSet;

use rules::eval::{Memories, RuleRef};
use rules::model::Hook;

use super::code::Code;
use super::examined::Examined;
use crate::diagram::Region;
use crate::packet::{Walked, spec, walked_after};
use crate::space::Preferred;

/// Packets that a finding is held to, at each visit of its rule.
const PACKETS: u64 = 48;
/// Visits that are looked at.
const VISITS: usize = 8;

/// Whether no packet, of many that are aimed at it, certainly hits a rule.
pub(super) fn never_hits(examined: &mut Examined<'_>, at: RuleRef, code: Code) -> bool {
    if code == Code::Duplicate {
        return true;
    }
    let places: Vec<_> = examined.places(at).iter().copied().take(VISITS).collect();
    // Where nothing was sent there, no packet of the built-in chains may get there.
    let flows: Vec<usize> = match places.is_empty() {
        true => (0..examined.flows.len()).collect(),
        false => places.iter().map(|(flow, _)| *flow).collect(),
    };
    if flows.into_iter().any(|flow| met(examined, flow).contains(&at)) {
        return false;
    }
    !places.into_iter().any(|(flow, place)| {
        let aim = examined.flows[flow].visits[place].matches;
        hits(examined, flow, aim, |walked| walked.hits.contains(&at))
    })
}

/// The rules that packets hit which are drawn from all that come to a hook.
fn met<'e>(examined: &'e mut Examined<'_>, flow: usize) -> &'e HashSet<RuleRef> {
    if examined.met[flow].is_none() {
        let (all, mut met) = (examined.flows[flow].all, HashSet::new());
        hits(examined, flow, all, |walked| {
            met.extend(walked.hits.iter().copied());
            false
        });
        examined.met[flow] = Some(met);
    }
    examined.met[flow].get_or_insert_default()
}

/// Whether the walk of a packet, of many that are drawn from a region, is as it says.
fn hits(
    examined: &mut Examined<'_>,
    flow: usize,
    region: Region,
    mut is_so: impl FnMut(&Walked) -> bool,
) -> bool {
    let (all, hook) = (examined.flows[flow].all, examined.flows[flow].hook);
    let Ok(possible) = examined.space.diagrams.and(region, all) else { return false };
    (0..PACKETS).any(|seed| {
        if !examined.effort.walks() {
            return false;
        }
        let preferred = match seed {
            0 => Preferred::usual(examined.space.family()),
            _ => Preferred::drawn(examined.space.family(), seed),
        };
        let Some(sample) = examined.space.sample(possible, &preferred) else { return false };
        let place = (examined.index, hook);
        let memories = &mut examined.memories;
        let walked = walked_after(memories, examined.ruleset, place, &sample.values);
        examined.effort.walked(walked.as_ref().map_or(0, |walked| walked.rules));
        walked.is_some_and(|walked| is_so(&walked))
    })
}

/// A packet of a region whose walk shows what it is to show, in the words of a packet spec.
pub(super) fn witness(
    examined: &mut Examined<'_>,
    hook: Hook,
    region: Region,
    is_shown: impl Fn(&Walked) -> bool,
) -> Option<String> {
    let family = examined.space.family();
    (0..8).find_map(|seed| {
        if !examined.effort.walks() {
            return None;
        }
        let preferred = match seed {
            0 => Preferred::usual(family),
            _ => Preferred::drawn(family, seed),
        };
        let sample = examined.space.sample(region, &preferred)?;
        let place = (examined.index, hook);
        let (walked, made) = match examined.remembers {
            true => {
                let mut none = Memories::of(examined.ruleset);
                let walked = walked_after(&mut none, examined.ruleset, place, &sample.values)?;
                (walked, examined.ruleset.rules().count())
            }
            false => {
                let memories = &mut examined.memories;
                (walked_after(memories, examined.ruleset, place, &sample.values)?, 0)
            }
        };
        examined.effort.walked(walked.rules + made);
        if !is_shown(&walked) {
            return None;
        }
        spec(family, hook, &sample.values)
    })
}
