//! Holds findings to the reference walk.

use rules::eval::RuleRef;
use rules::model::Hook;

use super::{Code, Examined};
use crate::diagram::Region;
use crate::packet::{Walked, spec, walked, walked_after};
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
    let mut aims: Vec<(Hook, Region)> = Vec::new();
    for (flow, visit) in examined.visits(at).take(VISITS) {
        // What would match, and where nothing does, what gets there.
        aims.extend([visit.matches, flow.all].map(|region| (flow.hook, region)));
    }
    if aims.is_empty() {
        // Nothing was sent there: no packet of the built-in chains may get there.
        aims.extend(examined.flows.iter().map(|flow| (flow.hook, flow.all)));
    }
    aims.into_iter().all(|(hook, region)| !is_hit(examined, at, hook, region))
}

fn is_hit(examined: &mut Examined<'_>, at: RuleRef, hook: Hook, region: Region) -> bool {
    let Some(flow) = examined.flows.iter().find(|flow| flow.hook == hook) else { return false };
    let Ok(possible) = examined.space.diagrams.and(region, flow.all) else { return false };
    (0..PACKETS).any(|seed| {
        let preferred = match seed {
            0 => Preferred::usual(examined.space.family()),
            _ => Preferred::drawn(examined.space.family(), seed),
        };
        let Some(sample) = examined.space.sample(possible, &preferred) else { return false };
        let place = (examined.index, hook);
        let memories = &mut examined.memories;
        let walked = walked_after(memories, examined.ruleset, place, &sample.values);
        walked.is_some_and(|walked| walked.hits.contains(&at))
    })
}

/// A packet of a region whose walk shows what it is to show, in the words of a packet spec.
pub(super) fn witness(
    examined: &Examined<'_>,
    hook: Hook,
    region: Region,
    is_shown: impl Fn(&Walked) -> bool,
) -> Option<String> {
    let family = examined.space.family();
    (0..8).find_map(|seed| {
        let preferred = match seed {
            0 => Preferred::usual(family),
            _ => Preferred::drawn(family, seed),
        };
        let sample = examined.space.sample(region, &preferred)?;
        let walked = walked(examined.ruleset, examined.index, hook, &sample.values)?;
        if !is_shown(&walked) {
            return None;
        }
        spec(family, hook, &sample.values)
    })
}
