//! What one ruleset lets through, of packets as they come: which arrive where, by what decides, and by which translations.

use std::collections::HashMap;

use rules::TableKind;
use rules::eval::By;
use rules::model::{Hook, Ruleset};

use super::altered::Alterations;
use super::apart::Apart;
use super::paths::Paths;
use super::stage::Origin;
use super::translate::OWN;
use super::way::{Both, translates};
use crate::diagram::{Region, TooLarge};
use crate::flow::Fate;
use crate::space::Space;

/// All that is let through.
#[derive(Debug)]
pub(crate) struct Through {
    /// Packets that are let through everywhere.
    pub(crate) accepted: Region,
    /// The accepted packets that arrive at the place in question.
    pub(crate) arriving: Region,
    /// Packets whose fate depends on a target, and the target.
    pub(crate) open: Vec<(String, Region)>,
    /// What the filter table accepts, at each hook.
    pub(crate) filtered: Vec<(Hook, By, Region)>,
    /// Rules that give another destination.
    pub(crate) sent_on: Vec<(By, Region)>,
    /// Rules that give another source.
    pub(crate) leaving: Vec<(By, Region)>,
}

/// Sends packets that come in, or that the host sends, through all tables; `arriving` is the region of packets at the
/// place in question, as they arrive there.
pub(crate) fn through(
    space: &mut Space,
    ruleset: &Ruleset,
    is_sent: bool,
    entry: Region,
    arriving: Region,
) -> Result<Through, TooLarge> {
    // No other packet arrives there, whatever becomes of it.
    let paths = Paths::of(space, ruleset)?;
    let asked = paths.at_some_time(space, arriving)?;
    let entry = space.diagrams.and(entry, asked)?;
    let mut alterations = Alterations::default();
    let apart = Apart::default();
    let origin = if is_sent { Origin::Sent } else { Origin::Arriving };
    let mut both = Both { space, alterations: &mut alterations, apart: &apart };
    let passed = both.pass(ruleset, 0, origin, entry)?;
    let mut all = Through {
        accepted: Region::NONE,
        arriving: Region::NONE,
        open: Vec::new(),
        filtered: Vec::new(),
        sent_on: Vec::new(),
        leaving: Vec::new(),
    };
    for packets in &passed.accepted {
        all.accepted = space.diagrams.or(all.accepted, packets.region)?;
        let there = alterations.were(space, packets.altered, arriving)?;
        let there = space.diagrams.and(packets.region, there)?;
        all.arriving = space.diagrams.or(all.arriving, there)?;
    }
    let mut places = [HashMap::new(), HashMap::new()];
    let mut filters = HashMap::new();
    let [sent_on, leaving] = &mut places;
    for decided in passed.decided {
        let region = decided.packets.region;
        let (by, hook) = (decided.by, decided.stage.hook);
        match decided.fate {
            Fate::Open(target) => all.open.push((target, region)),
            Fate::Translate(_) if matches!(hook, Hook::Prerouting | Hook::Output) => {
                put(space, (&mut all.sent_on, sent_on), by, region)?;
            }
            Fate::Translate(_) => put(space, (&mut all.leaving, leaving), by, region)?,
            Fate::Accept if translates(decided.stage) => {}
            Fate::Accept if decided.stage.table == TableKind::FILTER => {
                let place = *filters.entry((hook, by)).or_insert(all.filtered.len());
                match all.filtered.get_mut(place) {
                    Some((.., known)) => *known = space.diagrams.or(*known, region)?,
                    None => all.filtered.push((hook, by, region)),
                }
            }
            Fate::Accept | Fate::Drop | Fate::Reject(_) | Fate::OneOf(_) => {}
        }
    }
    Ok(all)
}

/// A chain that several rules lead to decides more than once.
fn put(
    space: &mut Space,
    (all, places): (&mut Vec<(By, Region)>, &mut HashMap<By, usize>),
    by: By,
    region: Region,
) -> Result<(), TooLarge> {
    let place = *places.entry(by).or_insert(all.len());
    match all.get_mut(place) {
        Some((_, known)) => *known = space.diagrams.or(*known, region)?,
        None => all.push((by, region)),
    }
    Ok(())
}

/// The packets of a region, where addresses that packets are sent on to are of other hosts, unless something tells.
pub(crate) fn sent_on_elsewhere(space: &mut Space, region: Region) -> Result<Region, TooLarge> {
    let mut all = region;
    for name in space.asked_in(region).iter().filter(|name| name.starts_with(OWN)) {
        let level = space.asked_level(name)?;
        let own = space.asked(name)?;
        all = space.diagrams.without(all, own)?;
        all = space.diagrams.whatever(all, level..level + 1)?;
    }
    Ok(all)
}

/// What something depends on, in words.
pub(crate) fn cause(name: &str) -> String {
    match name.strip_prefix(OWN) {
        Some(address) => format!("whether {address} is an address of this host"),
        None => name.split('\t').next().unwrap_or(name).to_owned(),
    }
}
