//! Rules whose packets would get the same verdict without them.
//!
//! For each chain, from its last rule to its first: the packets that would come to one end, once they are after a rule,
//! without meeting a rule that does anything but count. A rule is redundant if the packets that it takes are among
//! them.

use std::collections::{BTreeMap, HashSet};

use rules::eval::RuleRef;
use rules::model::{Action, Policy};

use super::code::{Code, Severity};
use super::dead::action_text;
use super::examined::Examined;
use super::finding::{Finding, lines};
use crate::diagram::{Region, TooLarge};
use crate::meeting::Meeting;

/// An end that rules of one chain may come to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Accept,
    Drop,
    Return,
    Target(String),
}

/// What one rule does to all that visit it.
struct Known {
    /// Where it leads, if it is an end; `None` where it only counts.
    end: Option<End>,
    matches: Region,
    /// What comes into the chain at each visit, and what of that the rule takes.
    taken: Vec<(Region, Region)>,
}

pub(super) fn findings(
    examined: &mut Examined<'_>,
    dead: &HashSet<RuleRef>,
) -> Result<Vec<Finding>, TooLarge> {
    let mut found = Vec::new();
    for chain in 0..examined.table.chains.len() {
        of_chain(examined, chain as u32, dead, &mut found)?;
    }
    Ok(found)
}

fn of_chain(
    examined: &mut Examined<'_>,
    chain: u32,
    dead: &HashSet<RuleRef>,
    found: &mut Vec<Finding>,
) -> Result<(), TooLarge> {
    let base = examined.table.chains[chain as usize].base;
    let at_end = match base.map(|base| base.policy) {
        Some(Policy::Accept) => End::Accept,
        Some(Policy::Drop) => End::Drop,
        None => End::Return,
    };
    let mut same: BTreeMap<End, Region> = BTreeMap::from([(at_end.clone(), Region::ALL)]);
    let count = examined.table.chains[chain as usize].rules.len() as u32;
    let mut ending = None;
    for rule in (0..count).rev() {
        let at = RuleRef { table: examined.index as u32, chain, rule };
        let known = known(examined, at, base.map(|_| &at_end))?;
        if let Some(Known { end: Some(end), taken, .. }) = &known
            && !dead.contains(&at)
        {
            let others = same.get(end).copied().unwrap_or(Region::NONE);
            if covers(examined, taken, others)? {
                let ending = ending.get_or_insert_with(|| ending_rules(examined, at));
                found.push(redundant(examined, (at, taken), (end, &at_end), ending)?);
            }
        }
        let stays = !dead.contains(&at);
        step(examined, &mut same, known, stays)?;
    }
    Ok(())
}

/// Whether all that a rule takes, and something is, is in a region.
fn covers(
    examined: &mut Examined<'_>,
    taken: &[(Region, Region)],
    region: Region,
) -> Result<bool, TooLarge> {
    let mut is_hit = false;
    for (entry, hit) in taken {
        let outside = examined.space.diagrams.without(*hit, region)?;
        if examined.space.diagrams.meet(*entry, outside) {
            return Ok(false);
        }
        is_hit |= examined.space.diagrams.meet(*entry, *hit);
    }
    Ok(is_hit)
}

/// Turns what is known after a rule into what is known before it.
fn step(
    examined: &mut Examined<'_>,
    same: &mut BTreeMap<End, Region>,
    known: Option<Known>,
    stays: bool,
) -> Result<(), TooLarge> {
    let Some(Known { end, matches, .. }) = known else {
        same.clear();
        return Ok(());
    };
    for (of, region) in same.iter_mut() {
        if end.as_ref() != Some(of) {
            *region = examined.space.diagrams.without(*region, matches)?;
        }
    }
    // A rule that never matches is to be taken away: no other may rest on it.
    if let Some(end) = end.filter(|_| stays) {
        let region = same.entry(end).or_insert(Region::NONE);
        *region = examined.space.diagrams.or(*region, matches)?;
    }
    Ok(())
}

/// What a rule does, if it is the same at every visit: `base` is where a built-in chain returns to.
fn known(
    examined: &mut Examined<'_>,
    at: RuleRef,
    base: Option<&End>,
) -> Result<Option<Known>, TooLarge> {
    let mut visits = examined.visits(at).map(|(_, visit)| *visit);
    let Some(first) = visits.next() else { return Ok(None) };
    let others: Vec<_> = visits.collect();
    let differ = others.iter().any(|visit| visit.matches != first.matches);
    if differ || first.remembers {
        return Ok(None);
    }
    let rule = examined.rule(at);
    let end = match &rule.action {
        // Nobody counts on counters here, but what a rule logs, marks or sends elsewhere is to be kept.
        Action::None | Action::Jump(_) | Action::Goto(_) => None,
        Action::Accept => Some(End::Accept),
        Action::Drop => Some(End::Drop),
        Action::Return => Some(base.cloned().unwrap_or(End::Return)),
        Action::Target(target) if target.body.answer().is_some() => {
            Some(End::Target(action_text(rule)))
        }
        Action::Target(_) => None,
    };
    let taken = [first].iter().chain(&others).map(|visit| (visit.entry, visit.hit)).collect();
    Ok(Some(Known { end, matches: first.matches, taken }))
}

/// What the rules of a rule's chain match, for rules that do more than count.
fn ending_rules(examined: &mut Examined<'_>, at: RuleRef) -> Meeting {
    let matches = |rule| {
        let at = RuleRef { rule, ..at };
        let ends = !matches!(examined.rule(at).action, Action::None);
        let visit = examined.visits(at).next().filter(|_| ends);
        visit.map_or(Region::NONE, |(_, visit)| visit.matches)
    };
    let all = (0..examined.chain(at).rules.len() as u32).map(matches).collect();
    Meeting::of(&mut examined.space.diagrams, all)
}

fn redundant(
    examined: &mut Examined<'_>,
    (at, taken): (RuleRef, &[(Region, Region)]),
    (end, at_end): (&End, &End),
    ending: &Meeting,
) -> Result<Finding, TooLarge> {
    let mut left = Region::NONE;
    for (entry, hit) in taken {
        let part = examined.space.diagrams.and(*entry, *hit)?;
        left = examined.space.diagrams.or(left, part)?;
    }
    let (mut by, mut is_all) = (Vec::new(), true);
    let mut from = at.rule as usize + 1;
    while let Some(later) = ending.next(&mut examined.space.diagrams, from, left) {
        if !examined.effort.names(by.len()) {
            is_all = false;
            break;
        }
        from = later + 1;
        let later = RuleRef { rule: later as u32, ..at };
        by.push(later);
        let matches = examined.visits(later).next().map_or(Region::NONE, |(_, it)| it.matches);
        left = examined.space.diagrams.without(left, matches)?;
    }
    let numbers = examined.lines_of(&by);
    let rest = match (left.is_empty() || !is_all, end == at_end, examined.chain(at).base) {
        (true, ..) => String::new(),
        (false, true, Some(_)) => "the policy".to_owned(),
        (false, ..) => "the end of the chain".to_owned(),
    };
    let lines = if numbers.is_empty() { String::new() } else { lines(&numbers, is_all) };
    let joint = if lines.is_empty() || rest.is_empty() { "" } else { " and " };
    let text = format!("the same happens without it, by {lines}{joint}{rest}");
    let mut finding = examined.finding(at, Code::Redundant, Severity::Note, text);
    finding.by = numbers;
    Ok(finding)
}
