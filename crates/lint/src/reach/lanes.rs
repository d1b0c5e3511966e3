//! Packets along their way, table after table, by what becomes of their destination: a lane for each rule that gives
//! them another one, and one for all others. Regions are of packets as they came in.
//!
//! Each table is asked about every packet of a lane. What it accepts whatever tests answer that can only be asked goes
//! on for certain; what it accepts by some answer may. A test may answer otherwise at the next table.

use std::collections::BTreeSet;

use rules::eval::{By, tables_at};
use rules::model::{Hook, Ruleset};

use super::States;
use super::question::Question;
use super::translation::Change;
use super::way::{Way, leaves_untracked};
use crate::diagram::{Region, TooLarge};
use crate::flow::{Altered, Fate, Flow, Remembering, Sent, flow_of};
use crate::space::{Part, Space};

/// Packets to one destination rule, or to none.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    /// Those that are on it for certain.
    pub(super) sure: Region,
    /// Those that may be; all of the others are among them.
    pub(crate) may: Region,
    /// Their other destination.
    pub(crate) change: Option<Change>,
    /// What those that may be depend on.
    pub(super) depends: BTreeSet<String>,
    /// What the filter table accepts them by.
    pub(super) by: Vec<(By, Region)>,
    /// Rules that may give them another source.
    pub(super) leaves_as: Vec<(By, Region)>,
}

/// All packets of a way.
pub(crate) struct Lanes<'a> {
    ruleset: &'a Ruleset,
    question: &'a Question,
    way: Way,
    pub(crate) lanes: Vec<Lane>,
}

/// What a table does with packets at a hook.
struct Passed {
    sure: Region,
    may: Region,
    depends: BTreeSet<String>,
}

impl<'a> Lanes<'a> {
    /// These packets, at the beginning of their way.
    pub(crate) fn of(ruleset: &'a Ruleset, question: &'a Question, way: Way, come: Region) -> Self {
        let lane = Lane {
            sure: come,
            may: come,
            change: None,
            depends: BTreeSet::new(),
            by: Vec::new(),
            leaves_as: Vec::new(),
        };
        Self { ruleset, question, way, lanes: vec![lane] }
    }

    /// Follows them to the end of their way.
    pub(crate) fn follow(&mut self, space: &mut Space) -> Result<(), TooLarge> {
        for hook in self.way.hooks() {
            let mut is_routed = *hook != Hook::Prerouting && *hook != Hook::Output;
            for (_, table) in tables_at(self.ruleset, *hook) {
                let name = self.ruleset.tables[table].name;
                // What is on its way out is told by what the filter is asked about.
                if name == "filter" && !is_routed {
                    self.arrive(space)?;
                    is_routed = true;
                }
                match name {
                    "nat" => self.translate(space, (table, *hook))?,
                    _ => self.pass(space, (table, *hook))?,
                }
            }
            if !is_routed {
                self.arrive(space)?;
            }
        }
        Ok(())
    }

    /// Leaves those that arrive elsewhere, or are not asked about.
    fn arrive(&mut self, space: &mut Space) -> Result<(), TooLarge> {
        let here = self.way.arriving(space, self.question)?;
        let asked = self.question.arriving(space)?;
        // What is sent on elsewhere is taken to be sent on, where nobody says that the host is there.
        if self.way.hook == Hook::Input && self.question.is_open() {
            self.lanes.retain(|lane| lane.change.as_ref().is_none_or(|change| change.to_host));
        }
        for lane in &mut self.lanes {
            let (here_sure, here_may, wanted) = match &lane.change {
                None => (here, here, asked),
                Some(change) if change.to_host => {
                    let is_input = self.way.hook == Hook::Input;
                    let here = if is_input { Region::ALL } else { Region::NONE };
                    let arrives = change.before_some(space, asked)?;
                    (here, here, space.diagrams.or(arrives, asked)?)
                }
                Some(change) => {
                    let sure = change.before_all(space, here)?;
                    let may = change.before_some(space, here)?;
                    let arrives = change.before_some(space, asked)?;
                    (sure, may, space.diagrams.or(arrives, asked)?)
                }
            };
            // Those that may arrive, of several destinations, but were not sent there.
            let surely_wanted = match &lane.change {
                None => wanted,
                Some(change) => {
                    let arrives = change.before_all(space, asked)?;
                    space.diagrams.or(arrives, asked)?
                }
            };
            if (here_sure, surely_wanted) != (here_may, wanted)
                && let Some(change) = &lane.change
            {
                lane.depends.insert(format!("the destination that {} gives", change.shown.by));
            }
            lane.may = and(space, &[lane.may, here_may, wanted])?;
            lane.sure = and(space, &[lane.sure, here_sure, surely_wanted])?;
        }
        self.lanes.retain(|lane| !lane.may.is_empty());
        Ok(())
    }

    /// All packets of the lanes, as they are at a hook.
    fn there(&self, space: &mut Space, hook: Hook) -> Result<Region, TooLarge> {
        let mut all = Region::NONE;
        for lane in &self.lanes {
            let region = match &lane.change {
                None => lane.may,
                Some(change) => change.after(space, lane.may)?,
            };
            all = space.diagrams.or(all, region)?;
        }
        if self.way.hook == Hook::Forward && hook == Hook::Prerouting {
            all = space.with_any(all, Part::Output)?;
        }
        let seen = space.at_hook(hook)?;
        space.diagrams.and(all, seen)
    }

    /// A region of packets at a hook, of packets on their way.
    fn on_way(&self, space: &mut Space, hook: Hook, region: Region) -> Result<Region, TooLarge> {
        match self.way.hook == Hook::Forward && hook == Hook::Prerouting {
            true => space.with_any(region, Part::Output),
            false => Ok(region),
        }
    }

    fn flow(
        &self,
        space: &mut Space,
        (table, hook): (usize, Hook),
    ) -> Result<Option<Flow>, TooLarge> {
        let all = self.there(space, hook)?;
        let sent = Sent { remembering: Remembering::Apart(""), altered: Altered::IsOpen };
        flow_of(space, self.ruleset, (table, hook), all, sent)
    }

    /// Sends the lanes through a table that accepts or drops.
    fn pass(&mut self, space: &mut Space, place: (usize, Hook)) -> Result<(), TooLarge> {
        let Some(flow) = self.flow(space, place)? else { return Ok(()) };
        let (_, hook) = place;
        let passed = self.passed(space, &flow, hook)?;
        let is_filter = self.ruleset.tables[place.0].name == "filter" && hook == self.way.hook;
        let deciding = if is_filter { deciding(space, &flow)? } else { Vec::new() };
        for lane in &mut self.lanes {
            let (sure, may) = match &lane.change {
                None => (passed.sure, passed.may),
                Some(change) => {
                    (change.before_all(space, passed.sure)?, change.before_some(space, passed.may)?)
                }
            };
            let before = lane.may;
            lane.sure = space.diagrams.and(lane.sure, sure)?;
            lane.may = space.diagrams.and(lane.may, may)?;
            let open = space.diagrams.without(before, sure)?;
            if space.diagrams.meet(open, lane.may) {
                lane.depends.extend(passed.depends.iter().cloned());
            }
            for (by, region) in &deciding {
                let region = match &lane.change {
                    None => *region,
                    Some(change) => change.before_some(space, *region)?,
                };
                lane.by.push((*by, region));
            }
        }
        self.untrack(space, &flow, hook)?;
        self.lanes.retain(|lane| !lane.may.is_empty());
        Ok(())
    }

    /// What a table lets pass.
    fn passed(&self, space: &mut Space, flow: &Flow, hook: Hook) -> Result<Passed, TooLarge> {
        let (mut accepted, mut may) = (Region::NONE, Region::NONE);
        let mut depends = BTreeSet::new();
        for decision in &flow.decisions {
            match &decision.fate {
                Fate::Accept | Fate::Translate(_) => {
                    accepted = space.diagrams.or(accepted, decision.region)?;
                }
                Fate::Open(target) => {
                    depends.insert(target.clone());
                    may = space.diagrams.or(may, decision.region)?;
                }
                Fate::Drop | Fate::Reject(_) => {}
            }
        }
        depends.extend(space.asks(accepted));
        may = space.diagrams.or(may, accepted)?;
        let sure = space.for_all_answers(accepted)?;
        let may = space.for_some_answers(may)?;
        let [sure, may] = [self.on_way(space, hook, sure)?, self.on_way(space, hook, may)?];
        Ok(Passed { sure, may, depends })
    }

    /// Takes apart what a table leaves untracked and what it does not, by the states that they come with.
    fn untrack(&mut self, space: &mut Space, flow: &Flow, hook: Hook) -> Result<(), TooLarge> {
        let mut hit = Region::NONE;
        for visit in &flow.visits {
            let chain =
                &self.ruleset.tables[visit.at.table as usize].chains[visit.at.chain as usize];
            if leaves_untracked(&chain.rules[visit.at.rule as usize].action) {
                let one = space.diagrams.and(visit.entry, visit.hit)?;
                hit = space.diagrams.or(hit, one)?;
            }
        }
        if hit.is_empty() {
            return Ok(());
        }
        let depends = space.asks(hit);
        let hit = space.with_any(hit, Part::State)?;
        let hit = self.on_way(space, hook, hit)?;
        let [sure, may] = [space.for_all_answers(hit)?, space.for_some_answers(hit)?];
        let untracked = space.in_states(&[conntrack::CtState::Untracked])?;
        let tracked = space.diagrams.without(Region::ALL, untracked)?;
        // Both as they should come: untracked where hit, tracked where not.
        let as_hit = |space: &mut Space, hit, not_hit| {
            let hit = space.diagrams.and(untracked, hit)?;
            let others = space.diagrams.without(tracked, not_hit)?;
            space.diagrams.or(hit, others)
        };
        let for_sure = as_hit(space, sure, may)?;
        let for_some = as_hit(space, may, sure)?;
        for lane in &mut self.lanes {
            lane.sure = space.diagrams.and(lane.sure, for_sure)?;
            lane.may = space.diagrams.and(lane.may, for_some)?;
            if for_sure != for_some {
                lane.depends.extend(depends.iter().cloned());
            }
        }
        Ok(())
    }

    /// Sends the lanes through a table that translates: by the destinations that they get, and by their sources.
    fn translate(&mut self, space: &mut Space, place: (usize, Hook)) -> Result<(), TooLarge> {
        // Once a connection is there, it is translated as its first packet was: told of what the filter sees.
        if self.way.states == States::Established {
            return Ok(());
        }
        let Some(flow) = self.flow(space, place)? else { return Ok(()) };
        let (_, hook) = place;
        match hook {
            Hook::Prerouting | Hook::Output => self.part(space, &flow, hook),
            _ => self.note_sources(space, &flow, hook),
        }
    }

    /// A lane for each rule that gives another destination.
    fn part(&mut self, space: &mut Space, flow: &Flow, hook: Hook) -> Result<(), TooLarge> {
        let untracked = space.in_states(&[conntrack::CtState::Untracked])?;
        let mut parts: Vec<(Option<By>, Region)> = vec![(None, untracked)];
        let mut open = BTreeSet::new();
        let mut may_stay = Region::NONE;
        for decision in &flow.decisions {
            let by = match &decision.fate {
                Fate::Translate(_) => Some(decision.by),
                Fate::Accept => None,
                Fate::Open(target) => {
                    open.insert(target.clone());
                    may_stay = space.diagrams.or(may_stay, decision.region)?;
                    continue;
                }
                Fate::Drop | Fate::Reject(_) => continue,
            };
            let region = space.diagrams.without(decision.region, untracked)?;
            match parts.iter_mut().find(|(known, _)| *known == by) {
                Some((_, all)) => *all = space.diagrams.or(*all, region)?,
                None => parts.push((by, region)),
            }
        }
        let before = std::mem::take(&mut self.lanes);
        for (by, region) in parts {
            let asks = space.asks(region);
            let sure = space.for_all_answers(region)?;
            let mut may = region;
            if by.is_none() {
                may = space.diagrams.or(may, may_stay)?;
            }
            let may = space.for_some_answers(may)?;
            let change =
                by.and_then(|by| Change::by(space, self.ruleset, self.question, (by, hook), may));
            let [sure, may] = [self.on_way(space, hook, sure)?, self.on_way(space, hook, may)?];
            for lane in &before {
                let mut lane = lane.clone();
                lane.sure = space.diagrams.and(lane.sure, sure)?;
                lane.may = space.diagrams.and(lane.may, may)?;
                if lane.may.is_empty() {
                    continue;
                }
                if sure != may {
                    lane.depends.extend(asks.iter().cloned());
                    lane.depends.extend(open.iter().filter(|_| by.is_none()).cloned());
                }
                if let (Some(by), None) = (by, &change) {
                    let (_, text) = super::decider(self.ruleset, by);
                    lane.sure = Region::NONE;
                    lane.depends.insert(format!("the destination that {text} gives"));
                }
                lane.change = change.clone();
                self.lanes.push(lane);
            }
        }
        Ok(())
    }

    /// Notes which rules give another source.
    fn note_sources(&mut self, space: &mut Space, flow: &Flow, hook: Hook) -> Result<(), TooLarge> {
        for decision in &flow.decisions {
            if !matches!(decision.fate, Fate::Translate(_)) {
                continue;
            }
            let region = space.for_some_answers(decision.region)?;
            let region = self.on_way(space, hook, region)?;
            for lane in &mut self.lanes {
                let region = match &lane.change {
                    None => region,
                    Some(change) => change.before_some(space, region)?,
                };
                if space.diagrams.meet(lane.may, region) {
                    lane.leaves_as.push((decision.by, region));
                }
            }
        }
        Ok(())
    }
}

/// What lets packets through, each with those that it may be about.
fn deciding(space: &mut Space, flow: &Flow) -> Result<Vec<(By, Region)>, TooLarge> {
    let mut all = Vec::new();
    for decision in &flow.decisions {
        if matches!(decision.fate, Fate::Accept | Fate::Open(_)) {
            all.push((decision.by, space.for_some_answers(decision.region)?));
        }
    }
    Ok(all)
}

fn and(space: &mut Space, regions: &[Region]) -> Result<Region, TooLarge> {
    regions.iter().try_fold(Region::ALL, |all, region| space.diagrams.and(all, *region))
}
