//! All packets through a chain at once: which of them get to each rule, which it takes, and what becomes of them.
//!
//! It is the reference walk with regions in place of a packet. A test that can only be asked is a bit that may be either,
//! the same one wherever the same text is asked about a packet that nothing altered in between, so what is empty here is
//! empty for every packet. A target that may alter anything, or whose effect depends on the packet, leaves everything
//! open: whatever comes after it may get any packet.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};

use rules::eval::{By, RuleRef};
use rules::ext::{Alters, Course, Effect, MatchUse, Printer, Support, TargetUse};
use rules::model::{Action, Chain, FallThrough, Hook, Policy, Rule, Ruleset};

use crate::diagram::{Region, TooLarge};
use crate::space::Space;

/// Rules that one walk may come to, each as often as it does.
const MOST_VISITS: usize = 400_000;

/// What becomes of packets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fate {
    /// They go on to what comes after the table.
    Accept,
    /// They are dropped silently.
    Drop,
    /// They are dropped and their sender told, as this target says.
    Reject(String),
    /// Their flow is translated, as this target says.
    Translate(String),
    /// It depends on this target.
    Open(String),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accept => f.write_str("ACCEPT"),
            Self::Drop => f.write_str("DROP"),
            Self::Reject(target) | Self::Translate(target) | Self::Open(target) => {
                f.write_str(target.trim_start_matches("-j "))
            }
        }
    }
}

/// Packets that get to a rule.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    /// The rule.
    pub at: RuleRef,
    /// Those that get there.
    pub reach: Region,
    /// Those of them that it matches.
    pub hit: Region,
    /// All that it would match.
    pub matches: Region,
    /// Those that came into the chain, this time.
    pub entry: Region,
    /// None of those that it matches goes on in the chain.
    pub takes: bool,
    /// One of its tests remembers packets: what it says of one hangs on others.
    pub remembers: bool,
}

/// Packets whose walk ends.
#[derive(Debug, Clone)]
pub struct Decision {
    /// What decided.
    pub by: By,
    /// What becomes of them.
    pub fate: Fate,
    /// Those packets.
    pub region: Region,
}

/// All packets through a built-in chain.
#[derive(Debug)]
pub struct Flow {
    /// Its table.
    pub table: usize,
    /// Its hook.
    pub hook: Hook,
    /// Every packet that comes to it.
    pub all: Region,
    /// In the order of evaluation.
    pub visits: Vec<Visit>,
    /// Likewise, disjoint.
    pub decisions: Vec<Decision>,
    /// How packets are altered on the way, as a number; 0 if they are not.
    pub alterations: u64,
    /// Each test that remembers packets, with those that it is asked about.
    pub remembering: Vec<(String, Region)>,
}

/// How tests that remember packets are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembering<'n> {
    /// Each by itself; the word keeps rulesets apart.
    Apart(&'n str),
    /// Those of one text that are asked about the same packets are the same. That holds for two rulesets whose tests
    /// that remember packets are the same in all, one by one.
    Together,
}

/// Where packets go that a target may have altered in any way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Altered {
    /// On, as any packet may.
    GoesOn,
    /// Nowhere: that is all that is known of them.
    IsOpen,
}

/// How packets are sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'n> {
    /// How tests that remember packets are told apart.
    pub remembering: Remembering<'n>,
    /// What becomes of packets that may be any afterwards.
    pub altered: Altered,
}

/// Sends every packet through the built-in chain of a table at a hook.
///
/// # Errors
/// There is no room, or it takes too long.
pub fn flow(
    space: &mut Space,
    ruleset: &Ruleset,
    table: usize,
    hook: Hook,
    sent: Sent<'_>,
) -> Result<Option<Flow>, TooLarge> {
    let Some(chain) = ruleset.tables.get(table).and_then(|table| table.base_chain(hook)) else {
        return Ok(None);
    };
    let all = space.at_hook(hook)?;
    let flow = Flow {
        table,
        hook,
        all,
        visits: Vec::new(),
        decisions: Vec::new(),
        alterations: 0,
        remembering: Vec::new(),
    };
    let mut sending = Sending { space, ruleset, flow, sent };
    let left = sending.chain(chain, all)?;
    let base = ruleset.tables[table].chains[chain].base;
    let fate = policy_fate(base.map_or(Policy::Accept, |base| base.policy));
    let by = By::Policy { table: table as u32, chain: chain as u32 };
    sending.decide(by, fate, left);
    Ok(Some(sending.flow))
}

fn policy_fate(policy: Policy) -> Fate {
    match policy {
        Policy::Accept => Fate::Accept,
        Policy::Drop => Fate::Drop,
    }
}

struct Sending<'s, 'n> {
    space: &'s mut Space,
    ruleset: &'s Ruleset,
    flow: Flow,
    sent: Sent<'n>,
}

impl<'s> Sending<'s, '_> {
    /// Sends packets through a chain; those that come back out of its end are returned.
    fn chain(&mut self, index: usize, mut reach: Region) -> Result<Region, TooLarge> {
        let ruleset: &'s Ruleset = self.ruleset;
        let chain: &'s Chain = &ruleset.tables[self.flow.table].chains[index];
        let (entry, mut back) = (reach, Region::NONE);
        for (number, rule) in chain.rules.iter().enumerate() {
            let table = self.flow.table as u32;
            let at = RuleRef { table, chain: index as u32, rule: number as u32 };
            (reach, back) = self.rule(at, rule, (entry, reach), back)?;
        }
        match chain.fall_through {
            FallThrough::Return => self.space.diagrams.or(back, reach),
            FallThrough::Policy(policy) => {
                let by = By::Policy { table: self.flow.table as u32, chain: index as u32 };
                self.decide(by, policy_fate(policy), reach);
                Ok(back)
            }
        }
    }

    /// Sends packets to a rule: those that go on to the next one, and all that go back so far.
    fn rule(
        &mut self,
        at: RuleRef,
        rule: &'s Rule,
        (entry, reach): (Region, Region),
        back: Region,
    ) -> Result<(Region, Region), TooLarge> {
        if self.flow.visits.len() >= MOST_VISITS {
            return Err(TooLarge);
        }
        let asked = self.flow.remembering.len();
        let matches = self.matches(rule, reach)?;
        let remembers = self.flow.remembering.len() > asked;
        let hit = self.space.diagrams.and(reach, matches)?;
        let takes = self.takes(&rule.action);
        self.flow.visits.push(Visit { at, reach, hit, matches, entry, takes, remembers });
        if hit.is_empty() {
            return Ok((reach, back));
        }
        let missed = self.space.diagrams.without(reach, hit)?;
        let by = By::Rule(at);
        match &rule.action {
            Action::None => Ok((reach, back)),
            Action::Accept => Ok(self.end(by, Fate::Accept, hit, missed, back)),
            Action::Drop => Ok(self.end(by, Fate::Drop, hit, missed, back)),
            Action::Return => Ok((missed, self.space.diagrams.or(back, hit)?)),
            Action::Jump(to) => {
                let returned = self.chain(*to as usize, hit)?;
                Ok((self.space.diagrams.or(missed, returned)?, back))
            }
            Action::Goto(to) => {
                let returned = self.chain(*to as usize, hit)?;
                Ok((missed, self.space.diagrams.or(back, returned)?))
            }
            Action::Target(target) => self.target(by, target, (reach, hit, missed), back),
        }
    }

    fn target(
        &mut self,
        by: By,
        target: &TargetUse,
        (reach, hit, missed): (Region, Region, Region),
        back: Region,
    ) -> Result<(Region, Region), TooLarge> {
        let text = || target_text(target);
        match target.body.course() {
            Course::Passes(Alters::Nothing) => Ok((reach, back)),
            Course::Passes(Alters::Unnamed) => {
                self.alter(&text(), hit);
                Ok((reach, back))
            }
            Course::Passes(Alters::State) => {
                self.alter(&text(), hit);
                let altered = self.space.in_any_state(hit)?;
                Ok((self.space.diagrams.or(missed, altered)?, back))
            }
            Course::Ends(Effect::Accept) => Ok(self.end(by, Fate::Accept, hit, missed, back)),
            Course::Ends(Effect::Drop) => Ok(self.end(by, Fate::Drop, hit, missed, back)),
            Course::Ends(Effect::Return) => Ok((missed, self.space.diagrams.or(back, hit)?)),
            Course::Ends(Effect::Reject) => {
                Ok(self.end(by, Fate::Reject(text()), hit, missed, back))
            }
            Course::Ends(Effect::Translate) => {
                Ok(self.end(by, Fate::Translate(text()), hit, missed, back))
            }
            Course::Ends(Effect::Continue | Effect::Unknown) | Course::Depends => {
                self.alter(&text(), hit);
                self.decide(by, Fate::Open(text()), hit);
                let left =
                    if self.sent.altered == Altered::GoesOn { self.flow.all } else { missed };
                Ok((left, back))
            }
        }
    }

    /// From now on, tests that can only be asked are others.
    fn alter(&mut self, how: &str, which: Region) {
        let mut hasher = DefaultHasher::new();
        (self.flow.alterations, how, which).hash(&mut hasher);
        self.flow.alterations = hasher.finish();
    }

    fn end(
        &mut self,
        by: By,
        fate: Fate,
        hit: Region,
        missed: Region,
        back: Region,
    ) -> (Region, Region) {
        self.decide(by, fate, hit);
        (missed, back)
    }

    fn decide(&mut self, by: By, fate: Fate, region: Region) {
        if !region.is_empty() {
            self.flow.decisions.push(Decision { by, fate, region });
        }
    }

    fn takes(&self, action: &Action) -> bool {
        match action {
            Action::Accept | Action::Drop | Action::Return | Action::Goto(_) => true,
            Action::None | Action::Jump(_) => false,
            Action::Target(target) => matches!(target.body.course(), Course::Ends(_)),
        }
    }

    /// What a rule matches, of packets that get to it.
    fn matches(&mut self, rule: &Rule, reach: Region) -> Result<Region, TooLarge> {
        let mut all = Region::ALL;
        if let Some(header) = &rule.header {
            all = match header.predicate(self.space.family()) {
                Some(predicate) => self.space.of_predicate(&predicate)?,
                None => self.space.asked(&format!("{header:?}"))?,
            };
        }
        for used in &rule.matches {
            let one = self.one_match(used, all, reach)?;
            all = self.space.diagrams.and(all, one)?;
        }
        Ok(all)
    }

    fn one_match(
        &mut self,
        used: &MatchUse,
        before: Region,
        reach: Region,
    ) -> Result<Region, TooLarge> {
        let text = match_text(used);
        if let Some(predicate) = used.body.predicate() {
            return self.space.of_match(&predicate, &text);
        }
        if used.support == Support::Evaluated && used.body.repeats() {
            return match self.flow.alterations {
                0 => self.space.asked(&text),
                number => self.space.asked(&format!("{text} (altered, {number:x})")),
            };
        }
        let about = self.space.diagrams.and(reach, before)?;
        let number = self.flow.remembering.len();
        self.flow.remembering.push((text.clone(), about));
        match self.sent.remembering {
            Remembering::Apart(word) => {
                let place = (self.flow.table, self.flow.hook);
                self.space.asked(&format!("{text} ({word}{place:?} {number})"))
            }
            Remembering::Together => self.space.asked(&format!("{text} ({about:?})")),
        }
    }
}

/// A match in the words of a rule.
pub(crate) fn match_text(used: &MatchUse) -> String {
    let mut to = Printer::default();
    used.body.print(&mut to);
    format!("-m {} {}", used.name, to.finish().trim()).trim_end().to_owned()
}

/// A target in the words of a rule.
pub(crate) fn target_text(target: &TargetUse) -> String {
    let mut to = Printer::default();
    target.body.print(&mut to);
    format!("-j {} {}", target.name, to.finish().trim()).trim_end().to_owned()
}
