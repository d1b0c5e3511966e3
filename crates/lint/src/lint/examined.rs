//! [`Examined`]: all packets through one table, and what was found out about them so far.

use std::collections::{HashMap, HashSet};

use rules::eval::{Memories, RuleRef};
use rules::model::{Action, Chain, Hook, Rule, Ruleset, Table};

use super::code::{Code, Severity};
use super::effort::Effort;
use super::finding::{Finding, of_rule};
use crate::diagram::{Diagrams, Region, TooLarge};
use crate::flow::{Altered, Flow, Remembering, Sent, Visit, flow};
use crate::meeting::Meeting;
use crate::space::Space;

/// A flow and a visit in it.
pub(super) type Place = (usize, usize);

/// All packets through one table.
pub(super) struct Examined<'r> {
    pub(super) ruleset: &'r Ruleset,
    pub(super) index: usize,
    pub(super) table: &'r Table,
    pub(super) space: Space,
    pub(super) flows: Vec<Flow>,
    /// For each chain and rule the places of its visits.
    pub(super) places: Vec<Vec<Vec<Place>>>,
    /// For each flow the visits that take packets, once somebody asked for them.
    pub(super) takers: Vec<Option<Takers>>,
    /// For each flow the rules that some packet, drawn from all, hits, once somebody asked for them.
    pub(super) met: Vec<Option<HashSet<RuleRef>>>,
    /// For each time that packets came into a chain, by the flow and the first rule's visit, why they get no farther.
    pub(super) ends: HashMap<(usize, usize, Region), Ends>,
    /// For each flow the visits that alter packets.
    pub(super) altering: Vec<Vec<usize>>,
    pub(super) effort: Effort,
    /// What tests remember of the packets that findings are held to.
    pub(super) memories: Memories,
    /// Some test remembers packets.
    pub(super) remembers: bool,
}

impl<'r> Examined<'r> {
    pub(super) fn of(ruleset: &'r Ruleset, index: usize) -> Result<Self, TooLarge> {
        let table = &ruleset.tables[index];
        let mut space = Space::of(&[ruleset]);
        let sent = Sent { remembering: Remembering::Apart(""), altered: Altered::GoesOn };
        let mut flows = Vec::new();
        for hook in Hook::ALL {
            flows.extend(flow(&mut space, ruleset, index, hook, sent)?);
        }
        let mut places: Vec<Vec<Vec<Place>>> =
            table.chains.iter().map(|chain| vec![Vec::new(); chain.rules.len()]).collect();
        for (number, flow) in flows.iter().enumerate() {
            for (at, visit) in flow.visits.iter().enumerate() {
                places[visit.at.chain as usize][visit.at.rule as usize].push((number, at));
            }
        }
        let alters = |at: RuleRef| {
            let rule = &table.chains[at.chain as usize].rules[at.rule as usize];
            matches!(&rule.action, Action::Target(target) if !target.body.only_watches())
        };
        let altering = |flow: &Flow| {
            let visits = flow.visits.iter().enumerate();
            let altering = visits.filter(|(_, visit)| visit.is_hit && alters(visit.at));
            altering.map(|(place, _)| place).collect()
        };
        Ok(Self {
            ruleset,
            index,
            table,
            space,
            takers: flows.iter().map(|_| None).collect(),
            met: vec![None; flows.len()],
            ends: HashMap::new(),
            altering: flows.iter().map(altering).collect(),
            effort: Effort::showing(),
            flows,
            places,
            memories: Memories::of(ruleset),
            remembers: ruleset
                .rules()
                .flat_map(|rule| &rule.matches)
                .any(|used| used.memory.is_some()),
        })
    }

    pub(super) fn chain(&self, at: RuleRef) -> &'r Chain {
        &self.table.chains[at.chain as usize]
    }

    pub(super) fn rule(&self, at: RuleRef) -> &'r Rule {
        &self.chain(at).rules[at.rule as usize]
    }

    pub(super) fn line(&self, at: RuleRef) -> u32 {
        self.rule(at).line
    }

    pub(super) fn places(&self, at: RuleRef) -> &[Place] {
        &self.places[at.chain as usize][at.rule as usize]
    }

    pub(super) fn visits(&self, at: RuleRef) -> impl Iterator<Item = (&Flow, &Visit)> {
        self.places(at).iter().map(|(flow, visit)| {
            let flow = &self.flows[*flow];
            (flow, &flow.visits[*visit])
        })
    }

    /// Every rule of the table, in the order of the file.
    pub(super) fn rules(&self) -> impl Iterator<Item = RuleRef> + use<'r> {
        let table = self.index as u32;
        self.table.chains.iter().enumerate().flat_map(move |(chain, rules)| {
            (0..rules.rules.len() as u32).map(move |rule| RuleRef {
                table,
                chain: chain as u32,
                rule,
            })
        })
    }

    /// The name of the built-in chain at a hook.
    pub(super) fn hook_name(&self, hook: Hook) -> &'r str {
        self.table.base_chain(hook).map_or("", |chain| &self.table.chains[chain].name)
    }

    pub(super) fn lines_of(&self, rules: &[RuleRef]) -> Vec<u32> {
        let mut lines: Vec<u32> = rules.iter().map(|at| self.line(*at)).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    pub(super) fn finding(
        &self,
        at: RuleRef,
        code: Code,
        severity: Severity,
        text: String,
    ) -> Finding {
        of_rule(self.ruleset, self.table, self.chain(at), self.rule(at), (code, severity, text))
    }

    /// The first taking visit of a flow, counted among these from `from` on, that may take a packet of a region, with its
    /// place among all visits.
    pub(super) fn next_taker(
        &mut self,
        flow: usize,
        from: usize,
        region: Region,
    ) -> Option<(usize, usize)> {
        let diagrams = &mut self.space.diagrams;
        let visits = &self.flows[flow].visits;
        let takers = self.takers[flow].get_or_insert_with(|| Takers::of(diagrams, visits));
        let number = takers.meeting.next(diagrams, from, region)?;
        Some((number, takers.places[number]))
    }
}

/// Why packets that came into a chain get to no rule after some of its rules.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Lines of the rules that take them, and of the jumps that do not give all of them back.
    pub(super) by: Vec<u32>,
    /// The jumps that give no packet back.
    pub(super) never_return: Vec<RuleRef>,
}

/// Visits that take packets, in the order of evaluation.
#[derive(Debug)]
pub(super) struct Takers {
    places: Vec<usize>,
    meeting: Meeting,
}

impl Takers {
    fn of(diagrams: &mut Diagrams, visits: &[Visit]) -> Self {
        let takes = |(_, visit): &(usize, &Visit)| visit.takes && visit.is_hit;
        let taking: Vec<(usize, &Visit)> = visits.iter().enumerate().filter(takes).collect();
        let regions = diagrams.within_quarter(|diagrams| {
            let taken = |visit: &Visit| diagrams.and(visit.entry, visit.hit);
            let taken = taking.iter().map(|(_, visit)| *visit).map(taken);
            taken.map(|region| region.unwrap_or(Region::ALL)).collect()
        });
        let places = taking.iter().map(|(place, _)| *place).collect();
        Self { places, meeting: Meeting::of(diagrams, regions) }
    }
}
