//! Rules that never match a packet.

use super::check;
use super::code::{Code, Severity};
use super::examined::{Ends, Examined};
use super::finding::{Finding, lines};
use crate::diagram::{Region, TooLarge};
use crate::flow::{Visit, match_text, target_text};
use rules::eval::RuleRef;
use rules::ext::{Course, Effect};
use rules::model::{Action, Header, HeaderTests, Rule};
use rules::save::print_rule;
use std::collections::{HashMap, HashSet};

/// Jumps that never return and are named one by one.
const MOST_JUMPS: usize = 6;

/// Rules that take what another would match.
#[derive(Default)]
struct By {
    rules: Vec<RuleRef>,
    known: HashSet<RuleRef>,
    /// There may be more such rules.
    is_cut: bool,
}

/// Rules that no packet hits, each once, of chains that are used.
pub(super) fn findings(
    examined: &mut Examined<'_>,
    used: &[bool],
) -> Result<Vec<(RuleRef, Finding)>, TooLarge> {
    let mut found: Vec<(RuleRef, Finding)> = Vec::new();
    let family = examined.ruleset.family;
    let mut texts: HashMap<(u32, String), u32> = HashMap::new();
    for at in examined.rules() {
        let text = print_rule(family, examined.table, examined.chain(at), examined.rule(at));
        let first = *texts.entry((at.chain, text)).or_insert(at.rule);
        let is_entered = examined.visits(at).any(|(_, visit)| !visit.entry.is_empty());
        let is_hit = examined.visits(at).any(|(_, visit)| visit.is_hit);
        if is_hit {
            found.extend(twice(examined, at, first).map(|finding| (at, finding)));
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
    let mut by = By::default();
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
    if by.rules.is_empty() {
        return Ok(altered(examined, at));
    }
    let mut finding = shadowed(examined, at, &by);
    finding.witness = taken_packet(examined, at, &by.known)?;
    Ok(finding)
}

/// The rules that take all that a rule would match, where none of it comes into its chain.
fn taken_elsewhere(examined: &mut Examined<'_>, at: RuleRef) -> Result<Option<By>, TooLarge> {
    let mut by = By::default();
    for (flow, place) in examined.places(at).to_vec() {
        let (all, matches) = (examined.flows[flow].all, examined.flows[flow].visits[place].matches);
        let mut left = examined.space.diagrams.and(matches, all)?;
        for taker in takers(examined, flow, place, left, &mut by)? {
            let taker = examined.flows[flow].visits[taker];
            let taken = examined.space.diagrams.and(taker.entry, taker.hit)?;
            left = examined.space.diagrams.without(left, taken)?;
        }
        // Where not all takers are looked for, the named ones stand for the others.
        if !left.is_empty() && !by.is_cut {
            return Ok(None);
        }
    }
    Ok(Some(by).filter(|by| !by.rules.is_empty()))
}

/// Notes the rules before a visit that take packets of a region, and gives their visits.
fn takers(
    examined: &mut Examined<'_>,
    flow: usize,
    place: usize,
    region: Region,
    by: &mut By,
) -> Result<Vec<usize>, TooLarge> {
    let here = examined.flows[flow].visits[place];
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some((number, taker)) = examined.next_taker(flow, from, region) {
        if taker >= place {
            break;
        }
        if !examined.effort.names(by.rules.len()) {
            by.is_cut = true;
            break;
        }
        from = number + 1;
        let visit = examined.flows[flow].visits[taker];
        // What goes back or elsewhere out of another chain may still come here.
        let ends = !matches!(examined.rule(visit.at).action, Action::Return | Action::Goto(_));
        let is_there = ends || visit.at.chain == here.at.chain && visit.entry == here.entry;
        let taken = examined.space.diagrams.and(visit.entry, region)?;
        if is_there && examined.space.diagrams.meet(taken, visit.hit) {
            found.push(taker);
            if by.known.insert(visit.at) {
                by.rules.push(visit.at);
            }
        }
    }
    Ok(found)
}

fn shadowed(examined: &Examined<'_>, at: RuleRef, by: &By) -> Finding {
    let By { rules: by, is_cut, .. } = by;
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
            let text =
                format!("never matches: all of it is taken by {}{end}", lines(&numbers, !is_cut));
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
    by: &HashSet<RuleRef>,
) -> Result<Option<String>, TooLarge> {
    const TRIED: usize = 4;
    for (flow, place) in examined.places(at).to_vec() {
        let hook = examined.flows[flow].hook;
        let visit = examined.flows[flow].visits[place];
        let into = examined.space.diagrams.and(visit.matches, visit.entry)?;
        let wanted = if into.is_empty() { visit.matches } else { into };
        let (mut from, mut tried) = (0, 0);
        while let Some((number, taker)) = examined.next_taker(flow, from, wanted) {
            from = number + 1;
            let taker_visit = examined.flows[flow].visits[taker];
            if taker >= place || tried == TRIED {
                break;
            }
            if !by.contains(&taker_visit.at) {
                continue;
            }
            tried += 1;
            let hit = examined.space.diagrams.and(taker_visit.entry, taker_visit.hit)?;
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
    let (mut numbers, mut never_return, mut is_all) = (Vec::new(), Vec::new(), true);
    for (flow, place) in examined.places(at).to_vec() {
        let visit = examined.flows[flow].visits[place];
        let entered = (flow, visit.first, visit.entry);
        if !examined.ends.contains_key(&entered) {
            let ends = ends_before(examined, flow, place)?;
            examined.ends.insert(entered, ends);
        }
        let ends = &examined.ends[&entered];
        let named = examined.effort.of(ends.by.len());
        is_all &= named == ends.by.len();
        numbers.extend(&ends.by[..named]);
        never_return.extend(&ends.never_return[..ends.never_return.len().min(named)]);
    }
    numbers.sort_unstable();
    numbers.dedup();
    never_return.sort_unstable();
    never_return.dedup();
    let mut text = match numbers.is_empty() {
        false => format!("no packet gets here: all are taken by {}", lines(&numbers, is_all)),
        true => "no packet gets here".to_owned(),
    };
    for jump in never_return.iter().take(MOST_JUMPS) {
        if let Action::Jump(to) = examined.rule(*jump).action {
            let name = &examined.table.chains[to as usize].name;
            let line = examined.line(*jump);
            text.push_str(&format!("; the jump to {name} at line {line} never returns"));
        }
    }
    if let Some(more @ 1..) = never_return.len().checked_sub(MOST_JUMPS) {
        text.push_str(&format!("; nor do {more} other jumps"));
    }
    let mut finding = examined.finding(at, Code::Unreachable, Severity::Warning, text);
    finding.by = numbers;
    Ok(finding)
}

/// Why packets get no farther in a chain than to a visit, as far as rules before it say.
fn ends_before(examined: &mut Examined<'_>, flow: usize, place: usize) -> Result<Ends, TooLarge> {
    let (mut by, mut never_return) = (Vec::new(), Vec::new());
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
    Ok(Ends { by: examined.lines_of(&by), never_return })
}

/// The earlier rules of a visit's chain that take packets or jump: each with the next rule's visit.
fn before(examined: &Examined<'_>, flow: usize, place: usize) -> Vec<(Visit, Visit)> {
    let here = examined.flows[flow].visits[place];
    let visits = examined.flows[flow].visits[here.first..=place].iter();
    let is_of_chain = |it: &&Visit| it.first == here.first && it.entry == here.entry;
    let of_chain: Vec<Visit> = visits.filter(is_of_chain).copied().collect();
    let pairs = of_chain.windows(2).map(|pair| (pair[0], pair[1]));
    let leads = |it: &Visit| it.takes || matches!(examined.rule(it.at).action, Action::Jump(_));
    pairs.filter(|(one, _)| one.is_hit && leads(one)).collect()
}

/// What a rule tests others before it in its way have changed, so that none of its packets is left.
fn altered(examined: &mut Examined<'_>, at: RuleRef) -> Finding {
    let (mut by, mut is_all) = (Vec::new(), true);
    for (flow, place) in examined.places(at).to_vec() {
        let altering = &examined.altering[flow];
        let before = &altering[..altering.partition_point(|visit| *visit < place)];
        let named = examined.effort.of(before.len());
        is_all &= named == before.len();
        by.extend(before[..named].iter().map(|visit| examined.flows[flow].visits[*visit].at));
    }
    let numbers = examined.lines_of(&by);
    let text = match numbers.as_slice() {
        [] => "never matches: no packet that gets here passes its tests".to_owned(),
        [_] => format!("never matches: what it tests is changed by {}", lines(&numbers, true)),
        [..] => format!(
            "never matches: what it tests is changed by {}, taken together",
            lines(&numbers, is_all)
        ),
    };
    let mut finding = examined.finding(at, Code::NeverMatches, Severity::Error, text);
    finding.by = numbers;
    finding
}

/// Whether a rule only drops packets of one interface, in a chain that rules lead to: where these leave that interface
/// out, it is there for other networks than the host has now.
fn keeps_apart(examined: &Examined<'_>, at: RuleRef) -> bool {
    let rule = examined.rule(at);
    let drops = match &rule.action {
        Action::Drop => true,
        Action::Target(target) => target.body.course() == Course::Ends(Effect::Reject),
        _ => false,
    };
    let mut tests = rule.header.as_ref().map_or_else(HeaderTests::default, Header::tests);
    let interfaces = tests.input.take().or(tests.output.take());
    let is_only_one =
        interfaces.is_some_and(|test| !test.invert) && tests == HeaderTests::default();
    drops && is_only_one && rule.matches.is_empty() && examined.chain(at).base.is_none()
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
        (false, _) if keeps_apart(examined, at) => {
            let text = "never matches as yet: the rules that lead here leave its interface out";
            return Ok(examined.finding(at, Code::NeverMatches, Severity::Note, text.to_owned()));
        }
        (false, _) => {
            "never matches: no packet that comes into this chain passes its tests".to_owned()
        }
    };
    Ok(examined.finding(at, Code::NeverMatches, Severity::Error, text))
}

/// A rule that packets pass, and that was there before in the same chain: `first` is the first that prints like it.
fn twice(examined: &Examined<'_>, at: RuleRef, first: u32) -> Option<Finding> {
    let rule = examined.rule(at);
    if examined.visits(at).any(|(_, visit)| visit.remembers) || alters(&rule.action) {
        return None;
    }
    let before = examined.rule(RuleRef { rule: first, ..at });
    if first == at.rule || !same_text(rule, before) {
        return None;
    }
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
