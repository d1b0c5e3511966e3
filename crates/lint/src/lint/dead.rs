//! Rules that never match a packet.

use std::collections::HashSet;

use rules::eval::RuleRef;
use rules::model::{Action, Rule};

use super::{Code, Examined, Finding, Severity, check, lines};
use crate::diagram::{Region, TooLarge};
use crate::flow::{Visit, match_text, target_text};

/// Rules that no packet hits, each once, of chains that are used.
pub(super) fn findings(
    examined: &mut Examined<'_>,
    used: &[bool],
) -> Result<Vec<(RuleRef, Finding)>, TooLarge> {
    let mut found: Vec<(RuleRef, Finding)> = Vec::new();
    for at in examined.rules() {
        let is_entered = examined.visits(at).any(|(_, visit)| !visit.entry.is_empty());
        let is_hit = examined.visits(at).any(|(_, visit)| visit.is_hit);
        if is_hit {
            found.extend(twice(examined, at).map(|finding| (at, finding)));
        } else if used[at.chain as usize] && is_entered {
            found.push((at, dead(examined, at)?));
        }
    }
    Ok(found)
}

fn dead(examined: &mut Examined<'_>, at: RuleRef) -> Result<Finding, TooLarge> {
    if examined.visits(at).all(|(_, visit)| !visit.is_reached) {
        return unreachable(examined, at);
    }
    let mut possible = Region::NONE;
    let mut by = Vec::new();
    for (flow, place) in examined.places(at).to_vec() {
        let visit = examined.flows[flow].visits[place];
        let part = examined.space.diagrams.and(visit.matches, visit.entry)?;
        possible = examined.space.diagrams.or(possible, part)?;
        takers(examined, flow, place, part, &mut by)?;
    }
    if possible.is_empty() {
        match taken_elsewhere(examined, at)? {
            Some(elsewhere) => by = elsewhere,
            None => return never_matches(examined, at),
        }
    }
    let mut finding = shadowed(examined, at, &by);
    finding.witness = taken_packet(examined, at, &by)?;
    Ok(finding)
}

/// The rules that take all that a rule would match, where none of it comes into its chain.
fn taken_elsewhere(
    examined: &mut Examined<'_>,
    at: RuleRef,
) -> Result<Option<Vec<RuleRef>>, TooLarge> {
    let mut by = Vec::new();
    for (flow, place) in examined.places(at).to_vec() {
        let (all, matches) = (examined.flows[flow].all, examined.flows[flow].visits[place].matches);
        let mut left = examined.space.diagrams.and(matches, all)?;
        takers(examined, flow, place, left, &mut by)?;
        let before = examined.flows[flow].visits[..place].to_vec();
        for taker in before.iter().filter(|taker| by.contains(&taker.at)) {
            let taken = examined.space.diagrams.and(taker.entry, taker.hit)?;
            left = examined.space.diagrams.without(left, taken)?;
        }
        if !left.is_empty() {
            return Ok(None);
        }
    }
    Ok(Some(by).filter(|by| !by.is_empty()))
}

/// The rules before a visit that take packets of a region, or all of them where no region is given.
fn takers(
    examined: &mut Examined<'_>,
    flow: usize,
    place: usize,
    region: Region,
    by: &mut Vec<RuleRef>,
) -> Result<(), TooLarge> {
    let known: HashSet<RuleRef> = by.iter().copied().collect();
    let here = examined.flows[flow].visits[place];
    let takes = |visit: &&Visit| {
        // What goes back or elsewhere out of another chain may still come here.
        let ends = !matches!(examined.rule(visit.at).action, Action::Return | Action::Goto(_));
        let is_there = ends || visit.at.chain == here.at.chain && visit.entry == here.entry;
        visit.takes && visit.is_hit && is_there && !known.contains(&visit.at)
    };
    let before: Vec<Visit> =
        examined.flows[flow].visits[..place].iter().filter(takes).copied().collect();
    for visit in before {
        let taken = examined.space.diagrams.and(visit.entry, region)?;
        if examined.space.diagrams.meet(taken, visit.hit) && !by.contains(&visit.at) {
            by.push(visit.at);
        }
    }
    Ok(())
}

fn shadowed(examined: &Examined<'_>, at: RuleRef, by: &[RuleRef]) -> Finding {
    let rule = examined.rule(at);
    let same = |other: &&RuleRef| same_text(rule, examined.rule(**other));
    let in_chain = |other: &&RuleRef| other.chain == at.chain;
    let numbers = examined.lines_of(by);
    let mut finding = match by.iter().filter(in_chain).find(same) {
        Some(first) => {
            let text = format!("the same rule stands at line {}", examined.line(*first));
            examined.finding(at, Code::Duplicate, Severity::Warning, text)
        }
        None => {
            // What chains before this one drop of it is dropped whatever stands here.
            let beside: Vec<&RuleRef> = by.iter().filter(in_chain).collect();
            let takers = if beside.is_empty() { by.iter().collect() } else { beside };
            let other = |by: &&RuleRef| action_text(examined.rule(**by)) != action_text(rule);
            let contrary = takers.iter().any(other) && ends(&rule.action);
            let severity = if contrary { Severity::Error } else { Severity::Warning };
            let end = match (contrary, by.len()) {
                (false, _) => "",
                (true, 1) => ", which does something else",
                (true, _) => ", some of which do something else",
            };
            let text = format!("never matches: all of it is taken by {}{end}", lines(&numbers));
            examined.finding(at, Code::Shadowed, severity, text)
        }
    };
    finding.by = numbers;
    finding
}

/// A packet that the rule would match, and that another rule takes.
fn taken_packet(
    examined: &mut Examined<'_>,
    at: RuleRef,
    by: &[RuleRef],
) -> Result<Option<String>, TooLarge> {
    const TRIED: usize = 4;
    for (flow, place) in examined.places(at).to_vec() {
        let hook = examined.flows[flow].hook;
        let visit = examined.flows[flow].visits[place];
        let into = examined.space.diagrams.and(visit.matches, visit.entry)?;
        let wanted = if into.is_empty() { visit.matches } else { into };
        let before = &examined.flows[flow].visits[..place];
        let takers = before.iter().filter(|taker| by.contains(&taker.at)).take(TRIED);
        for hit in takers.map(|taker| (taker.entry, taker.hit)).collect::<Vec<_>>() {
            let hit = examined.space.diagrams.and(hit.0, hit.1)?;
            let taken = examined.space.diagrams.and(hit, wanted)?;
            let shown = check::witness(examined, hook, taken, |walked| {
                walked.hits.iter().any(|hit| by.contains(hit)) && !walked.hits.contains(&at)
            });
            if shown.is_some() {
                return Ok(shown);
            }
        }
    }
    Ok(None)
}

fn unreachable(examined: &mut Examined<'_>, at: RuleRef) -> Result<Finding, TooLarge> {
    let (mut by, mut never_return) = (Vec::new(), Vec::new());
    for (flow, place) in examined.places(at).to_vec() {
        for (one, next) in before(examined, flow, place) {
            if one.takes {
                by.push(one.at);
                continue;
            }
            let left = examined.space.diagrams.and(one.entry, one.hit)?;
            let returned = examined.space.diagrams.and(left, next.reach)?;
            if returned != left {
                by.push(one.at);
                never_return.extend(returned.is_empty().then_some(one.at));
            }
        }
    }
    by.sort_unstable();
    by.dedup();
    never_return.sort_unstable();
    never_return.dedup();
    let numbers = examined.lines_of(&by);
    let mut text = match by.last() {
        Some(_) => format!("no packet gets here: all are taken by {}", lines(&numbers)),
        None => "no packet gets here".to_owned(),
    };
    for jump in never_return {
        if let Action::Jump(to) = examined.rule(jump).action {
            let name = &examined.table.chains[to as usize].name;
            let line = examined.line(jump);
            text.push_str(&format!("; the jump to {name} at line {line} never returns"));
        }
    }
    let mut finding = examined.finding(at, Code::Unreachable, Severity::Warning, text);
    finding.by = numbers;
    Ok(finding)
}

/// The rules of its chain that a visit comes after, of those that take packets or jump: each with the next one's visit.
fn before(examined: &Examined<'_>, flow: usize, place: usize) -> Vec<(Visit, Visit)> {
    let visits = &examined.flows[flow].visits[..=place];
    let here = visits[place];
    let is_of_chain =
        |it: &&Visit| it.at.chain == here.at.chain && it.entry == here.entry && it.at <= here.at;
    // Of the last time that packets came into the chain: rules of it are visited one after the other.
    let mut of_chain: Vec<Visit> = visits.iter().filter(is_of_chain).copied().collect();
    let start = of_chain.iter().rposition(|it| it.at.rule == 0).unwrap_or(0);
    of_chain.drain(..start);
    let pairs = of_chain.windows(2).map(|pair| (pair[0], pair[1]));
    let leads = |it: &Visit| it.takes || matches!(examined.rule(it.at).action, Action::Jump(_));
    pairs.filter(|(one, _)| one.is_hit && leads(one)).collect()
}

fn never_matches(examined: &mut Examined<'_>, at: RuleRef) -> Result<Finding, TooLarge> {
    let mut anywhere = Region::NONE;
    for (flow, place) in examined.places(at).to_vec() {
        let (all, matches) = (examined.flows[flow].all, examined.flows[flow].visits[place].matches);
        let part = examined.space.diagrams.and(matches, all)?;
        anywhere = examined.space.diagrams.or(anywhere, part)?;
    }
    let alone = examined.visits(at).all(|(_, visit)| visit.matches.is_empty());
    let text = match (anywhere.is_empty(), alone) {
        (true, true) => "never matches: its tests contradict each other".to_owned(),
        (true, false) => {
            let hooks = examined.visits(at).map(|(flow, _)| examined.hook_name(flow.hook));
            let mut hooks: Vec<&str> = hooks.collect();
            hooks.dedup();
            format!("never matches: no packet of {} passes its tests", hooks.join(" or "))
        }
        (false, _) => {
            "never matches: no packet that comes into this chain passes its tests".to_owned()
        }
    };
    Ok(examined.finding(at, Code::NeverMatches, Severity::Error, text))
}

/// A rule that packets pass, and that was there before in the same chain.
fn twice(examined: &Examined<'_>, at: RuleRef) -> Option<Finding> {
    let rule = examined.rule(at);
    if examined.visits(at).any(|(_, visit)| visit.remembers) || alters(&rule.action) {
        return None;
    }
    let rules = &examined.chain(at).rules;
    let before = rules[..at.rule as usize].iter().find(|other| same_text(rule, other))?;
    let text = format!("the same rule stands at line {}: packets pass both", before.line);
    let mut finding = examined.finding(at, Code::Duplicate, Severity::Warning, text);
    finding.by = vec![before.line];
    Some(finding)
}

/// The target may do something else the second time.
fn alters(action: &Action) -> bool {
    match action {
        Action::Jump(_) | Action::Goto(_) => true,
        Action::Target(target) => !target.body.only_watches(),
        _ => false,
    }
}

fn ends(action: &Action) -> bool {
    matches!(action, Action::Accept | Action::Drop | Action::Return | Action::Target(_))
}

fn same_text(one: &Rule, other: &Rule) -> bool {
    one.header == other.header
        && action_text(one) == action_text(other)
        && one.matches.len() == other.matches.len()
        && one.matches.iter().zip(&other.matches).all(|(a, b)| match_text(a) == match_text(b))
}

/// What a rule does, as text.
pub(super) fn action_text(rule: &Rule) -> String {
    match &rule.action {
        Action::Target(target) => target_text(target),
        action => format!("{action:?}"),
    }
}
