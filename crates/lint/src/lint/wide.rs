//! Rules that may let more through than was meant.

use rules::eval::{By, RuleRef, Verdict};
use rules::model::{Action, Hook, IfaceTest, Policy};
use rules::predicate::Predicate;

use super::{Code, Examined, Finding, Severity, check, lines};
use crate::diagram::{Region, TooLarge};

/// Those of the filter table's INPUT and FORWARD.
pub(super) fn findings(examined: &mut Examined<'_>) -> Result<Vec<Finding>, TooLarge> {
    let mut found = Vec::new();
    if examined.table.name != "filter" {
        return Ok(found);
    }
    for flow in 0..examined.flows.len() {
        if !matches!(examined.flows[flow].hook, Hook::Input | Hook::Forward) {
            continue;
        }
        for place in 0..examined.flows[flow].visits.len() {
            let at = examined.flows[flow].visits[place].at;
            if examined.chain(at).base.is_none() {
                continue;
            }
            found.extend(accepts_all(examined, flow, place, at)?);
            found.extend(late_state(examined, flow, place, at)?);
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
    let Some(witness) = witness else { return Ok(None) };
    let text = format!(
        "accepts every packet that gets here: the policy DROP of {} never decides",
        examined.hook_name(hook)
    );
    let mut finding = examined.finding(at, Code::AcceptsAll, Severity::Warning, text);
    finding.witness = Some(witness);
    Ok(Some(finding))
}

/// A rule that drops all packets of some states, where rules before it accept some of them.
fn late_state(
    examined: &mut Examined<'_>,
    flow: usize,
    place: usize,
    at: RuleRef,
) -> Result<Option<Finding>, TooLarge> {
    let rule = examined.rule(at);
    let states = match (&rule.header, &*rule.matches) {
        (None, [only]) => only.body.predicate().filter(|it| matches!(it, Predicate::State(_))),
        _ => None,
    };
    let drops = match &rule.action {
        Action::Drop => true,
        Action::Target(target) => target.body.answer().is_some(),
        _ => false,
    };
    if states.is_none() || !drops {
        return Ok(None);
    }
    let (matches, hook) = (examined.flows[flow].visits[place].matches, examined.flows[flow].hook);
    let from_outside = not_local(examined, matches)?;
    let before = examined.flows[flow].visits[..place].to_vec();
    let (mut by, mut witness) = (Vec::new(), None);
    for visit in before.iter().filter(|visit| visit.takes) {
        let accepts = matches!(examined.rule(visit.at).action, Action::Accept);
        let hit = examined.space.diagrams.and(visit.entry, visit.hit)?;
        let part = examined.space.diagrams.and(hit, from_outside)?;
        if !accepts || part.is_empty() || by.contains(&visit.at) {
            continue;
        }
        let shown = check::witness(examined, hook, part, |walked| {
            walked.verdict == Some((Verdict::Accept, Some(By::Rule(visit.at))))
        });
        if let Some(shown) = shown {
            by.push(visit.at);
            witness.get_or_insert(shown);
        }
    }
    if by.is_empty() {
        return Ok(None);
    }
    let numbers = examined.lines_of(&by);
    let text = format!("some of these packets are accepted before, by {}", lines(&numbers));
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
