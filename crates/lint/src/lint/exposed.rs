//! Ports that INPUT denies and that are open all the same: a rule of nat sends their packets elsewhere, as docker does with
//! published ports, and FORWARD lets them through.
//!
//! Each finding has a packet that walks show it of: nat takes it, INPUT would have denied it by a rule that names its port,
//! FORWARD accepts what it becomes. The address that it is sent to is taken for one of the host's.

use host::{Host, Network};
use rules::eval::{By, RuleRef, Verdict};
use rules::model::{Hook, Ruleset};
use rules::predicate::{Field, Values};

use super::{Code, Finding, Severity, of_rule};
use crate::diagram::{Region, TooLarge};
use crate::flow::{Altered, Fate, Remembering, Sent, flow};
use crate::packet::{Walked, spec, walked_on};
use crate::reach::{Change, Lanes, Question, States, Way};
use crate::space::{Part, Preferred, Space, ip};

/// Packets that are tried for each pair of rules.
const TRIED: u64 = 8;

pub(super) fn findings(ruleset: &Ruleset) -> Vec<Finding> {
    let has = |name: &str| ruleset.tables.iter().position(|table| table.name == name);
    match (has("nat"), has("filter")) {
        // What cannot be followed is not said to be open.
        (Some(nat), Some(filter)) => Exposed { ruleset, nat, filter, space: Space::of(&[ruleset]) }
            .find()
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

struct Exposed<'r> {
    ruleset: &'r Ruleset,
    nat: usize,
    filter: usize,
    space: Space,
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
        let question = Question::default();
        let way = Way { hook: Hook::Forward, states: States::New };
        let Some(come) = way.packets(&mut self.space, self.ruleset, &question)? else {
            return Ok(found);
        };
        let mut lanes = Lanes::of(self.ruleset, &question, way, come);
        lanes.follow(&mut self.space)?;
        for lane in &lanes.lanes {
            let Some(change) = lane.change.as_ref().filter(|change| !change.to_host) else {
                continue;
            };
            for (denies, region) in &denying {
                let both = self.space.diagrams.and(lane.may, *region)?;
                if let Some((witness, accepts)) = self.witness(change, *denies, both) {
                    found.push(self.finding(change.at, *denies, accepts, witness));
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Rules of INPUT that deny packets by their port.
    fn denying(&mut self) -> Result<Vec<Denying>, TooLarge> {
        let sent = Sent { remembering: Remembering::Apart(""), altered: Altered::IsOpen };
        let place = (self.filter, Hook::Input);
        let Some(flow) = flow(&mut self.space, self.ruleset, place.0, place.1, sent)? else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for decision in &flow.decisions {
            let By::Rule(at) = decision.by else { continue };
            if !matches!(decision.fate, Fate::Drop | Fate::Reject(_))
                || !self.names_port(&flow.visits, at)?
            {
                continue;
            }
            let region = self.space.for_some_answers(decision.region)?;
            all.push((at, self.space.with_any(region, Part::Output)?));
        }
        Ok(all)
    }

    fn names_port(&mut self, visits: &[crate::flow::Visit], at: RuleRef) -> Result<bool, TooLarge> {
        let Some(visit) = visits.iter().find(|visit| visit.at == at) else { return Ok(false) };
        let port = Part::Field(Field::DestinationPort);
        Ok(self.space.with_any(visit.matches, port)? != visit.matches)
    }

    /// A packet of a region that shows it, and what accepts it in FORWARD.
    fn witness(
        &self,
        change: &Change,
        denies: RuleRef,
        region: Region,
    ) -> Option<(String, Option<By>)> {
        let family = self.space.family();
        (0..TRIED).find_map(|seed| {
            let preferred = match seed {
                0 => Preferred::usual(family),
                _ => Preferred::drawn(family, seed),
            };
            let values = self.space.sample(region, &preferred)?.values;
            let translated = self.walk(self.nat, Hook::Prerouting, &without_output(&values), &values)?;
            let denied = self.walk(self.filter, Hook::Input, &without_output(&values), &values)?;
            let is_denied = matches!(denied.verdict, Some((Verdict::Drop | Verdict::Reject, Some(By::Rule(at)))) if at == denies);
            let becomes = change.one(&values)?;
            let accepted = self.walk(self.filter, Hook::Forward, &becomes, &values)?;
            let (Verdict::Accept, accepts) = accepted.verdict? else { return None };
            let holds = translated.hits.contains(&change.at) && is_denied;
            let words = spec(family, Hook::Forward, &values)?;
            holds.then_some((words, accepts))
        })
    }

    /// A walk on a host whose address the packet was sent to, as it came.
    fn walk(&self, table: usize, hook: Hook, values: &Values, came: &Values) -> Option<Walked> {
        let addr = ip(self.space.family(), came.number(Field::Destination));
        let bits = if addr.is_ipv4() { 32 } else { 128 };
        let host = Host { local: Some(vec![Network { addr, bits }]), ..Host::default() };
        walked_on(&host, self.ruleset, (table, hook), values)
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

fn without_output(values: &Values) -> Values {
    let mut values = values.clone();
    values.output.clear();
    values
}
