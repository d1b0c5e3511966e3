//! Sends packets through one chain, separated by what was made of them on their way.

use std::collections::HashMap;

use rules::eval::{By, RuleRef};
use rules::ext::{Alters, Course, Effect, MatchUse, TargetUse};
use rules::model::{Action, Chain, FallThrough, Hook, Policy, Rule, Ruleset};
use rules::predicate::{Change, Field, Predicate};

use super::altered::{Alterations, Packets, Request};
use super::apart::Apart;
use super::remember::{SETS, list_of};
use super::stage::{Asked, Decided, Stage, is_idle, policy_fate};
use super::translate;
use crate::diagram::{Region, TooLarge};
use crate::flow::{Fate, match_text, target_text};
use crate::space::{Part, Space};

/// Rules that one comparison may come to, each as often as it does.
const MOST_VISITS: usize = 2_000_000;
/// Jumps within jumps that are followed: each takes a part of the machine's stack.
const DEEPEST: usize = 256;

/// What both rulesets are sent through with.
#[derive(Debug)]
pub(super) struct Sending<'s> {
    pub(super) space: &'s mut Space,
    pub(super) alterations: &'s mut Alterations,
    /// Tests that are asked about other packets on one side.
    pub(super) apart: &'s Apart,
    pub(super) ruleset: &'s Ruleset,
    /// Which of the two it is.
    pub(super) side: usize,
    pub(super) stage: Stage,
    /// The stage's table.
    pub(super) table: usize,
    pub(super) decided: Vec<Decided>,
    pub(super) asked: Vec<Asked>,
    /// How often a test was asked about the same.
    pub(super) times: HashMap<String, u32>,
    /// What rules match of packets of which nothing was made.
    pub(super) known: HashMap<(Hook, RuleRef), Region>,
    pub(super) visits: usize,
    /// Chains that packets jumped to and are in.
    pub(super) jumps: Vec<&'s str>,
}

impl<'s> Sending<'s> {
    /// Sends packets through the stage's built-in chain; returns the packets that go on.
    pub(super) fn pass(&mut self, packets: Vec<Packets>) -> Result<Vec<Packets>, TooLarge> {
        let ruleset: &'s Ruleset = self.ruleset;
        let table = &ruleset.tables[self.table];
        let Some(chain) = table.base_chain(self.stage.hook) else { return Ok(packets) };
        let done = self.decided.len();
        let left = self.chain(chain, packets)?;
        let policy = table.chains[chain].base.map_or(Policy::Accept, |base| base.policy);
        let by = By::Policy { table: self.table as u32, chain: chain as u32 };
        for packets in left {
            self.decide(by, policy_fate(policy), packets);
        }
        let mut on = Vec::new();
        for decided in &self.decided[done..] {
            if matches!(decided.fate, Fate::Accept | Fate::Translate(_)) {
                on.push(decided.packets);
            }
        }
        self.merged(on)
    }

    fn chain(&mut self, index: usize, packets: Vec<Packets>) -> Result<Vec<Packets>, TooLarge> {
        let ruleset: &'s Ruleset = self.ruleset;
        let chain: &'s Chain = &ruleset.tables[self.table].chains[index];
        let (mut here, mut back) = (packets, Vec::new());
        for (number, rule) in chain.rules.iter().enumerate() {
            if here.is_empty() {
                break;
            }
            let (table, chain) = (self.table as u32, index as u32);
            let at = RuleRef { table, chain, rule: number as u32 };
            if !is_idle(rule) {
                here = self.rule(at, rule, here, &mut back)?;
            }
        }
        match chain.fall_through {
            FallThrough::Return => back.extend(here),
            FallThrough::Policy(policy) => {
                let by = By::Policy { table: self.table as u32, chain: index as u32 };
                for packets in here {
                    self.decide(by, policy_fate(policy), packets);
                }
            }
        }
        self.merged(back)
    }

    /// Sends packets to a rule; returns the packets that go on to the next rule.
    fn rule(
        &mut self,
        at: RuleRef,
        rule: &'s Rule,
        here: Vec<Packets>,
        back: &mut Vec<Packets>,
    ) -> Result<Vec<Packets>, TooLarge> {
        let (mut next, mut hit) = (Vec::new(), Vec::new());
        for packets in here {
            self.visits += 1;
            if self.visits > MOST_VISITS {
                return Err(TooLarge);
            }
            let matches = self.matches(at, rule, packets)?;
            let matched = self.space.diagrams.and(packets.region, matches)?;
            let missed = self.space.diagrams.without(packets.region, matches)?;
            next.extend((!missed.is_empty()).then_some(Packets { region: missed, ..packets }));
            hit.extend((!matched.is_empty()).then_some(Packets { region: matched, ..packets }));
        }
        if !hit.is_empty() {
            self.act(at, &rule.action, hit, &mut next, back)?;
        }
        self.merged(next)
    }

    fn act(
        &mut self,
        at: RuleRef,
        action: &'s Action,
        hit: Vec<Packets>,
        next: &mut Vec<Packets>,
        back: &mut Vec<Packets>,
    ) -> Result<(), TooLarge> {
        let by = By::Rule(at);
        let mut all = |fate: &Fate| {
            for packets in &hit {
                self.decide(by, fate.clone(), *packets);
            }
        };
        match action {
            Action::None => next.extend(hit),
            Action::Accept => all(&Fate::Accept),
            Action::Drop => all(&Fate::Drop),
            Action::Return => back.extend(hit),
            Action::Jump(to) => next.extend(self.jump(*to, hit)?),
            Action::Goto(to) => back.extend(self.jump(*to, hit)?),
            Action::Target(target) => {
                for packets in hit {
                    self.apply(by, target, packets, next, back)?;
                }
            }
        }
        Ok(())
    }

    fn jump(&mut self, to: u32, hit: Vec<Packets>) -> Result<Vec<Packets>, TooLarge> {
        if self.jumps.len() >= DEEPEST {
            return Err(TooLarge);
        }
        let ruleset: &'s Ruleset = self.ruleset;
        self.jumps.push(&ruleset.tables[self.table].chains[to as usize].name);
        let back = self.chain(to as usize, hit);
        self.jumps.pop();
        back
    }

    fn apply(
        &mut self,
        by: By,
        target: &TargetUse,
        packets: Packets,
        next: &mut Vec<Packets>,
        back: &mut Vec<Packets>,
    ) -> Result<(), TooLarge> {
        let text = target_text(target);
        if target.body.changes_sets() {
            let key = format!("{text} {:?} {}", packets.region, packets.altered);
            self.remember(key, String::new(), Some(SETS.to_owned()), by);
        }
        match target.body.course() {
            Course::Passes(Alters::Nothing) => next.push(packets),
            Course::Passes(Alters::Unnamed) => {
                next.extend(self.changed(packets, &target.body.changes(), &text)?);
            }
            Course::Passes(Alters::State) => next.push(self.requested(packets, target, &text)?),
            Course::Ends(Effect::Accept) => self.decide(by, Fate::Accept, packets),
            Course::Ends(Effect::Drop) => self.decide(by, Fate::Drop, packets),
            Course::Ends(Effect::Return) => back.push(packets),
            Course::Ends(Effect::Reject) => self.decide(by, Fate::Reject(text), packets),
            Course::Ends(Effect::Translate) => {
                for packets in translate::translated(
                    self.space,
                    self.alterations,
                    (self.stage.hook, target),
                    packets,
                    &text,
                )? {
                    self.decide(by, Fate::Translate(text.clone()), packets);
                }
            }
            Course::Ends(_) | Course::Depends => {
                self.decide(by, Fate::Open(text), packets);
            }
        }
        Ok(())
    }

    /// Applies what a target changes; changes of a connection apply only to packets that have one.
    fn changed(
        &mut self,
        packets: Packets,
        changes: &[Change],
        by: &str,
    ) -> Result<Vec<Packets>, TooLarge> {
        let mut with = packets.region;
        if changes.iter().any(|change| change.of_connection) {
            let has = self.space.of_predicate(&Predicate::has_connection())?;
            let has = self.alterations.were(self.space, packets.altered, has)?;
            with = self.space.diagrams.and(with, has)?;
        }
        let without = self.space.diagrams.without(packets.region, with)?;
        let mut altered = self.alterations.get(packets.altered).clone();
        altered.change(self.space, changes, by)?;
        let altered = self.alterations.number(altered)?;
        let both = [Packets { altered, region: with }, Packets { region: without, ..packets }];
        Ok(both.into_iter().filter(|one| !one.region.is_empty()).collect())
    }

    /// The raw table asks for packets to be tracked in some way; the first request counts.
    fn requested(
        &mut self,
        packets: Packets,
        target: &TargetUse,
        text: &str,
    ) -> Result<Packets, TooLarge> {
        let mut altered = self.alterations.get(packets.altered).clone();
        if altered.request.is_some() {
            return Ok(packets);
        }
        let (request, state) = match (target.body.untracks(), target.body.retracks()) {
            (true, _) => (Request::Untracked, conntrack::CtState::Untracked),
            (false, false) => (Request::Plain, conntrack::CtState::New),
            (false, true) => (Request::Other(text.to_owned()), conntrack::CtState::New),
        };
        altered.request = Some(request);
        let number = self.space.state(state);
        altered.set(self.space, Part::State, number);
        Ok(Packets { altered: self.alterations.number(altered)?, ..packets })
    }

    fn decide(&mut self, by: By, fate: Fate, packets: Packets) {
        self.decided.push(Decided { stage: self.stage, by, fate, packets });
    }

    /// Unites packets that were altered alike into one region.
    pub(super) fn merged(&mut self, packets: Vec<Packets>) -> Result<Vec<Packets>, TooLarge> {
        let mut merged: Vec<Packets> = Vec::with_capacity(packets.len().min(4));
        for one in packets {
            match merged.iter_mut().find(|other| other.altered == one.altered) {
                Some(other) => other.region = self.space.diagrams.or(other.region, one.region)?,
                None => merged.push(one),
            }
        }
        Ok(merged)
    }

    /// Packets, as they came, that a rule matches.
    fn matches(&mut self, at: RuleRef, rule: &Rule, packets: Packets) -> Result<Region, TooLarge> {
        let is_plain = rule.matches.iter().all(|used| self.space.predicate_of(used).is_some());
        if is_plain {
            let key = (self.stage.hook, at);
            let now = match self.known.get(&key) {
                Some(now) => *now,
                None => {
                    let now = self.plain(rule)?;
                    self.known.insert(key, now);
                    now
                }
            };
            return self.alterations.were(self.space, packets.altered, now);
        }
        let header = self.header(rule)?;
        let mut all = self.alterations.were(self.space, packets.altered, header)?;
        for used in &rule.matches {
            let one = self.one_match(at, used, all, packets)?;
            all = self.space.diagrams.and(all, one)?;
        }
        Ok(all)
    }

    fn plain(&mut self, rule: &Rule) -> Result<Region, TooLarge> {
        let mut all = self.header(rule)?;
        for used in &rule.matches {
            if let Some(predicate) = self.space.predicate_of(used) {
                let one = self.of_match(&predicate, used)?;
                all = self.space.diagrams.and(all, one)?;
            }
        }
        Ok(all)
    }

    /// Before it is lowered, time to live is one more than FORWARD sees.
    fn of_match(&mut self, predicate: &Predicate, used: &MatchUse) -> Result<Region, TooLarge> {
        let text = match_text(used);
        let as_seen = self.space.of_match(predicate, &text)?;
        if self.stage.hook != Hook::Prerouting || !self.space.is_tested(Field::Ttl) {
            return Ok(as_seen);
        }
        let lowered = self.space.of_match(&lowered(predicate), &text)?;
        let to_host = self.space.range(Part::Way, 0, 0)?;
        let as_seen = self.space.diagrams.and(to_host, as_seen)?;
        let lowered = self.space.diagrams.without(lowered, to_host)?;
        self.space.diagrams.or(as_seen, lowered)
    }

    fn header(&mut self, rule: &Rule) -> Result<Region, TooLarge> {
        let Some(header) = &rule.header else { return Ok(Region::ALL) };
        match header.predicate(self.space.family()) {
            Some(predicate) => self.space.of_predicate(&predicate),
            None => self.space.asked(&format!("{header:?}")),
        }
    }

    fn one_match(
        &mut self,
        at: RuleRef,
        used: &MatchUse,
        before: Region,
        packets: Packets,
    ) -> Result<Region, TooLarge> {
        if let Some(predicate) = self.space.predicate_of(used) {
            let now = self.of_match(&predicate, used)?;
            return self.alterations.were(self.space, packets.altered, now);
        }
        let text = match_text(used);
        if self.space.repeats(used) {
            let by: Vec<&str> =
                self.alterations.get(packets.altered).by.iter().map(|by| &**by).collect();
            return match by.is_empty() {
                true => self.space.asked(&text),
                false => self.space.asked(&format!("{text}\tafter {}", by.join(" "))),
            };
        }
        let list = list_of(used, &text);
        let is_apart = self.apart.rules[self.side].contains(&at)
            || list.as_ref().is_some_and(|list| self.apart.lists.contains(list));
        let about = self.space.diagrams.and(packets.region, before)?;
        let mut key = format!("{text}\t{:?} {about:?} {}", self.stage.hook, packets.altered);
        let times = self.times.entry(key.clone()).or_default();
        *times += 1;
        key.push_str(&format!(" {times}"));
        if is_apart {
            key.push_str(&format!(" {} {at:?}", self.side));
        }
        let region = self.space.asked(&key)?;
        let mut place = format!("{text}\t{:?} {:?} {}", self.stage, self.jumps, packets.altered);
        let times = self.times.entry(place.clone()).or_default();
        *times += 1;
        place.push_str(&format!(" {times}"));
        self.remember(key, place, list, By::Rule(at));
        Ok(region)
    }

    fn remember(&mut self, key: String, place: String, list: Option<String>, by: By) {
        if let By::Rule(at) = by {
            self.asked.push(Asked { key, place, list, rule: (self.side, at) });
        }
    }
}

/// The predicate for packets whose time to live is one less.
fn lowered(predicate: &Predicate) -> Predicate {
    match predicate {
        Predicate::All(all) => Predicate::All(all.iter().map(lowered).collect()),
        Predicate::Any(any) => Predicate::Any(any.iter().map(lowered).collect()),
        Predicate::Not(one) => Predicate::Not(Box::new(lowered(one))),
        Predicate::Range { field: Field::Ttl, high: 0, .. } => Predicate::NEVER,
        Predicate::Range { field: field @ Field::Ttl, low, high } => {
            Predicate::Range { field: *field, low: low.saturating_sub(1), high: high - 1 }
        }
        other => other.clone(),
    }
}
