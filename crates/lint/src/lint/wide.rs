//! Rules that may let more through than was meant.

use std::collections::{HashMap, HashSet};

use rules::eval::{By, RuleRef, Verdict};
use rules::model::{Action, Hook, IfaceTest, Policy};
use rules::predicate::Predicate;

use super::check;
use super::code::{Code, Severity};
use super::examined::Examined;
use super::finding::{Finding, lines};
use crate::diagram::{Region, TooLarge};

/// Finds such rules in the filter table's INPUT and FORWARD.
pub(super) fn findings(examined: &mut Examined<'_>) -> Result<Vec<Finding>, TooLarge> {
    let mut found = Vec::new();
    if examined.table.name != "filter" {
        return Ok(found);
    }
    for flow in 0..examined.flows.len() {
        if !matches!(examined.flows[flow].hook, Hook::Input | Hook::Forward) {
            continue;
        }
        let mut by_states = HashMap::new();
        for place in 0..examined.flows[flow].visits.len() {
            let at = examined.flows[flow].visits[place].at;
            if examined.chain(at).base.is_none() {
                continue;
            }
            found.extend(accepts_all(examined, flow, place, at)?);
            found.extend(late_state(examined, flow, (place, at), &mut by_states)?);
        }
    }
    Ok(found)
}

fn accepts_all(
    examined: &mut Examined<'_>,
    flow: usize,
    place: usize,
    at: RuleRef,
) -> Result<Option<Finding>, TooLarge> {
    let (all, hook) = (examined.flows[flow].all, examined.flows[flow].hook);
    let visit = examined.flows[flow].visits[place];
    let drops = examined.chain(at).base.is_some_and(|base| base.policy == Policy::Drop);
    let accepts = matches!(examined.rule(at).action, Action::Accept);
    if !drops || !accepts || !visit.is_hit {
        return Ok(None);
    }
    if !examined.space.diagrams.without(all, visit.matches)?.is_empty() {
        return Ok(None);
    }
    let hit = examined.space.diagrams.and(visit.entry, visit.hit)?;
    let witness = check::witness(examined, hook, hit, |walked| {
        walked.verdict == Some((Verdict::Accept, Some(By::Rule(at))))
    });
    let Some(witness) = witness else {
        examined.effort.found_none();
        return Ok(None);
    };
    let text = format!(
        "accepts every packet that gets here: the policy DROP of {} never decides",
        examined.hook_name(hook)
    );
    let mut finding = examined.finding(at, Code::AcceptsAll, Severity::Warning, text);
    finding.witness = Some(witness);
    Ok(Some(finding))
}

/// What accepts packets of some states, of the visits up to one.
#[derive(Default)]
struct Accepting {
    by: Vec<RuleRef>,
    rules: HashSet<RuleRef>,
    witness: Option<String>,
    /// Taking visits that were looked at.
    seen: usize,
    is_cut: bool,
}

/// A rule that drops all packets of some states, where rules before it accept some of them.
fn late_state(
    examined: &mut Examined<'_>,
    flow: usize,
    (place, at): (usize, RuleRef),
    by_states: &mut HashMap<Region, Accepting>,
) -> Result<Option<Finding>, TooLarge> {
    let rule = examined.rule(at);
    let asks_for_states = match (&rule.header, &*rule.matches) {
        (None, [only]) => only.body.states().is_some(),
        _ => false,
    };
    let drops = match &rule.action {
        Action::Drop => true,
        Action::Target(target) => target.body.answer().is_some(),
        _ => false,
    };
    if !asks_for_states || !drops {
        return Ok(None);
    }
    let (matches, hook) = (examined.flows[flow].visits[place].matches, examined.flows[flow].hook);
    let from_outside = not_local(examined, matches)?;
    let known = by_states.entry(matches).or_default();
    while let Some((number, taker)) = examined.next_taker(flow, known.seen, from_outside) {
        if taker >= place {
            break;
        }
        known.seen = number + 1;
        let visit = examined.flows[flow].visits[taker];
        let accepts = matches!(examined.rule(visit.at).action, Action::Accept);
        if !accepts || known.rules.contains(&visit.at) {
            continue;
        }
        if !examined.effort.walks() || !examined.effort.names(known.by.len()) {
            known.is_cut = true;
            break;
        }
        let hit = examined.space.diagrams.and(visit.entry, visit.hit)?;
        let part = examined.space.diagrams.and(hit, from_outside)?;
        let shown = check::witness(examined, hook, part, |walked| {
            walked.verdict == Some((Verdict::Accept, Some(By::Rule(visit.at))))
        });
        if let Some(shown) = shown {
            known.rules.insert(visit.at);
            known.by.push(visit.at);
            known.witness.get_or_insert(shown);
        }
    }
    if known.by.is_empty() {
        examined.effort.found_none();
        return Ok(None);
    }
    let named = examined.effort.of(known.by.len());
    let is_all = !known.is_cut && named == known.by.len();
    let (by, witness) = (known.by[..named].to_vec(), known.witness.clone());
    let numbers = examined.lines_of(&by);
    let text = format!("some of these packets are accepted before, by {}", lines(&numbers, is_all));
    let mut finding = examined.finding(at, Code::LateState, Severity::Note, text);
    (finding.by, finding.witness) = (numbers, witness);
    Ok(Some(finding))
}

/// The packets of a region that do not come from `lo`.
fn not_local(examined: &mut Examined<'_>, region: Region) -> Result<Region, TooLarge> {
    let lo = IfaceTest { name: "lo".into(), prefix: false, invert: false };
    let local = examined.space.of_predicate(&Predicate::Input(lo))?;
    examined.space.diagrams.without(region, local)
}
