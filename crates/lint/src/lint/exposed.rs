//! Ports that INPUT denies and that are open all the same: a rule of nat sends their packets elsewhere, as docker does with
//! published ports, and FORWARD lets them through.
//!
//! Each finding has a packet that walks show it of: nat takes it, INPUT would have denied it by a rule that names its port,
//! FORWARD accepts what it becomes. The address that it is sent to is taken for one of the host's.

use std::collections::HashMap;

use conntrack::CtState;
use rules::eval::{By, RuleRef, Verdict};
use rules::model::{Hook, Ruleset};
use rules::predicate::{ADDRESS_TYPES, Field, Values};

use super::code::{Code, Severity};
use super::effort::Effort;
use super::finding::{Finding, of_rule};
use crate::diagram::{Region, TooLarge};
use crate::diff::through;
use crate::flow::{Altered, Fate, Remembering, Sent, flow};
use crate::meeting::Meeting;
use crate::packet::{Walked, spec, walked};
use crate::reach::sent_on;
use crate::space::{Part, Preferred, Space};

/// Packets that are tried for each pair of rules.
const TRIED: u64 = 8;

/// Finds what is open all the same; an error where that is too much to follow, or to show.
pub(super) fn findings(ruleset: &Ruleset) -> Result<Vec<Finding>, TooLarge> {
    let has = |name: &str| ruleset.tables.iter().position(|table| table.name == name);
    match (has("nat"), has("filter")) {
        (Some(nat), Some(filter)) => {
            let space = Space::of(&[ruleset]);
            let mut exposed = Exposed { ruleset, nat, filter, space, effort: Effort::showing() };
            exposed.find()
        }
        _ => Ok(Vec::new()),
    }
}

struct Exposed<'r> {
    ruleset: &'r Ruleset,
    nat: usize,
    filter: usize,
    space: Space,
    effort: Effort,
}

/// A rule of INPUT, and the packets that it denies, wherever they would go out.
type Denying = (RuleRef, Region);

impl Exposed<'_> {
    fn find(&mut self) -> Result<Vec<Finding>, TooLarge> {
        let mut found = Vec::new();
        if !self.ruleset.tables[self.nat].chains.iter().any(|it| !it.rules.is_empty()) {
            return Ok(found);
        }
        let denying = self.denying()?;
        if denying.is_empty() {
            return Ok(found);
        }
        let new = self.space.in_states(&[CtState::New])?;
        let come = self.space.arriving()?;
        let come = self.space.diagrams.and(come, new)?;
        let through = through(&mut self.space, self.ruleset, false, come, Region::ALL)?;
        let accepted = self.space.for_some_answers(through.accepted)?;
        let regions = denying.iter().map(|(_, region)| *region).collect();
        let meeting = Meeting::of(&mut self.space.diagrams, regions);
        for (by, region) in &through.sent_on {
            let By::Rule(at) = *by else { continue };
            let region = self.space.for_some_answers(*region)?;
            let open = self.space.diagrams.and(accepted, region)?;
            let mut from = 0;
            while let Some(place) = meeting.next(&mut self.space.diagrams, from, open) {
                from = place + 1;
                let (denies, region) = denying[place];
                let both = self.space.diagrams.and(open, region)?;
                if let Some((witness, accepts)) = self.witness(at, denies, both) {
                    found.push(self.finding(at, denies, accepts, witness));
                    break;
                }
                self.effort.found_none();
            }
        }
        if self.effort.lacks() { Err(TooLarge) } else { Ok(found) }
    }

    /// Rules of INPUT that deny packets by their port.
    fn denying(&mut self) -> Result<Vec<Denying>, TooLarge> {
        let sent = Sent { remembering: Remembering::Apart(""), altered: Altered::IsOpen };
        let place = (self.filter, Hook::Input);
        let Some(flow) = flow(&mut self.space, self.ruleset, place.0, place.1, sent)? else {
            return Ok(Vec::new());
        };
        let mut matches = HashMap::new();
        for visit in &flow.visits {
            matches.entry(visit.at).or_insert(visit.matches);
        }
        let mut all = Vec::new();
        for decision in &flow.decisions {
            let By::Rule(at) = decision.by else { continue };
            if !matches!(decision.fate, Fate::Drop | Fate::Reject(_))
                || !self.names_port(matches.get(&at).copied().unwrap_or(Region::NONE))?
            {
                continue;
            }
            let region = self.space.for_some_answers(decision.region)?;
            let region = self.space.with_any(region, Part::Output)?;
            all.push((at, self.space.with_any(region, Part::Field(Field::DestinationType))?));
        }
        Ok(all)
    }

    fn names_port(&mut self, matches: Region) -> Result<bool, TooLarge> {
        let port = Part::Field(Field::DestinationPort);
        Ok(self.space.with_any(matches, port)? != matches)
    }

    /// A packet of a region that shows it, and what accepts it in FORWARD.
    fn witness(
        &mut self,
        at: RuleRef,
        denies: RuleRef,
        region: Region,
    ) -> Option<(String, Option<By>)> {
        let family = self.space.family();
        (0..TRIED).find_map(|seed| {
            if !self.effort.walks() {
                return None;
            }
            let preferred = match seed {
                0 => Preferred::usual(family),
                _ => Preferred::drawn(family, seed),
            };
            let values = self.space.sample(region, &preferred)?.values;
            let mut came = values.clone();
            came.output.clear();
            let local = ADDRESS_TYPES.iter().position(|name| *name == "LOCAL")?;
            came.set(Field::DestinationType, local as u128);
            let translated = self.walked(self.nat, Hook::Prerouting, &came)?;
            let (denied, by) = self.walked(self.filter, Hook::Input, &came)?.verdict?;
            let becomes = sent_on(self.ruleset, By::Rule(at), &values)?;
            let accepted = self.walked(self.filter, Hook::Forward, &becomes)?;
            let (Verdict::Accept, accepts) = accepted.verdict? else { return None };
            let is_denied = denied != Verdict::Accept && by == Some(By::Rule(denies));
            let holds = translated.hits.contains(&at) && is_denied;
            let words = spec(family, Hook::Forward, &values)?;
            holds.then_some((words, accepts))
        })
    }

    fn walked(&mut self, table: usize, hook: Hook, values: &Values) -> Option<Walked> {
        let walked = walked(self.ruleset, table, hook, values)?;
        self.effort.walked(walked.rules);
        Some(walked)
    }

    fn finding(
        &self,
        at: RuleRef,
        denies: RuleRef,
        accepts: Option<By>,
        witness: String,
    ) -> Finding {
        let place = |at: RuleRef| {
            let table = &self.ruleset.tables[at.table as usize];
            let chain = &table.chains[at.chain as usize];
            (table, chain, &*chain.rules[at.rule as usize])
        };
        let (table, chain, rule) = place(at);
        let denied = place(denies).2.line;
        let accepted = match accepts {
            Some(By::Rule(at) | By::HotDrop(at)) => format!("by line {}", place(at).2.line),
            Some(By::Policy { .. }) => "by its policy".to_owned(),
            None => "by no rule".to_owned(),
        };
        let text = format!(
            "line {denied} of INPUT denies such packets, but they go elsewhere by this rule, and FORWARD accepts them {accepted}"
        );
        let what = (Code::PastInput, Severity::Warning, text);
        let mut finding = of_rule(self.ruleset, table, chain, rule, what);
        finding.by = vec![denied];
        if let Some(By::Rule(at)) = accepts {
            finding.by.push(place(at).2.line);
        }
        finding.witness = Some(witness);
        finding
    }
}
