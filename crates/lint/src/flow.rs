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
use rules::ext::{Alters, Course, Effect, MatchUse, Printer, TargetUse};
use rules::model::{Action, Chain, FallThrough, Hook, Policy, Rule, Ruleset};

use crate::diagram::{Region, TooLarge};
use crate::space::Space;

/// Rules that one walk may come to, each as often as it does.
const MOST_VISITS: usize = 400_000;
/// Jumps within jumps that are followed: each takes a part of the machine's stack.
const DEEPEST: usize = 256;

/// What becomes of packets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fate {
    /// The packets go on to what comes after the table.
    Accept,
    /// The packets are dropped silently.
    Drop,
    /// The packets are dropped, and their sender gets the answer that this target names.
    Reject(String),
    /// The packets' flow is translated, as this target says.
    Translate(String),
    /// The fate depends on this target.
    Open(String),
    /// One of these fates, by what a test says that remembers packets.
    OneOf(Vec<Fate>),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accept => f.write_str("ACCEPT"),
            Self::Drop => f.write_str("DROP"),
            Self::Reject(target) | Self::Translate(target) | Self::Open(target) => {
                f.write_str(target.trim_start_matches("-j "))
            }
            Self::OneOf(fates) => {
                let words: Vec<String> = fates.iter().map(Self::to_string).collect();
                match &*words {
                    [first @ .., last] if !first.is_empty() => {
                        write!(f, "{} or {last}", first.join(", "))
                    }
                    all => f.write_str(&all.join("")),
                }
            }
        }
    }
}

/// Packets that get to a rule. Regions are of packets that came into the chain, and of others: where a chain is entered
/// makes no difference to what its rules do, and regions that do not say it stay small.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    /// The rule.
    pub at: RuleRef,
    /// The visit of the first rule of its chain, when packets came into that.
    pub first: usize,
    /// Packets that came into the chain, this time.
    pub entry: Region,
    /// The packets of `entry` that get to the rule are in this region.
    pub reach: Region,
    /// The packets of `reach` that the rule matches.
    pub hit: Region,
    /// All that it would match.
    pub matches: Region,
    /// Some packet gets to the rule.
    pub is_reached: bool,
    /// The rule matches some packet.
    pub is_hit: bool,
    /// No packet that the rule matches goes on in the chain.
    pub takes: bool,
    /// A test of the rule remembers packets: its answer about one depends on others.
    pub remembers: bool,
}

/// Packets whose walk ends.
#[derive(Debug, Clone)]
pub struct Decision {
    /// What decided.
    pub by: By,
    /// What becomes of them.
    pub fate: Fate,
    /// Packets that it decides about.
    pub region: Region,
}

/// All packets through a built-in chain.
#[derive(Debug)]
pub struct Flow {
    /// Index of the table.
    pub table: usize,
    /// Hook of the built-in chain.
    pub hook: Hook,
    /// Every packet that comes to it.
    pub all: Region,
    /// Visits in the order of evaluation.
    pub visits: Vec<Visit>,
    /// Decisions in the order of evaluation, disjoint; none where packets go on that may have been altered in any way.
    pub decisions: Vec<Decision>,
    /// How packets are altered on the way, as a number; 0 if they are not.
    pub alterations: u64,
    /// Each test that remembers packets, with the packets that it is asked about if that matters.
    pub remembering: Vec<(String, Region)>,
}

/// How tests that remember packets are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembering<'n> {
    /// Each by itself; the word keeps rulesets apart.
    Apart(&'n str),
    /// Tests of one text that are asked about the same packets are the same. That holds for two rulesets whose tests
    /// that remember packets are the same in all, one by one.
    Together,
}

/// Where packets go that a target may have altered in any way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Altered {
    /// They go on, as any packet may.
    GoesOn,
    /// They go nowhere: that is all that is known of them.
    IsOpen,
}

/// How packets are sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'n> {
    /// How tests that remember packets are distinguished.
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
    let mut sending = Sending { space, ruleset, flow, sent, deep: 0 };
    let left = sending.chain(chain, all)?;
    let left = (left.entry, left.back);
    let base = ruleset.tables[table].chains[chain].base;
    let fate = policy_fate(base.map_or(Policy::Accept, |base| base.policy));
    let by = By::Policy { table: table as u32, chain: chain as u32 };
    sending.decide(by, fate, left)?;
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
    /// Jumps within jumps, now.
    deep: usize,
}

/// Packets in a chain: packets of `entry` that are in the other regions, too.
#[derive(Clone, Copy)]
struct Here {
    /// The visit of the chain's first rule.
    first: usize,
    entry: Region,
    /// Before the next rule.
    reach: Region,
    /// Gone back.
    back: Region,
}

impl<'s> Sending<'s, '_> {
    /// Sends packets through a chain: packets that are left at its end have gone back.
    fn chain(&mut self, index: usize, entry: Region) -> Result<Here, TooLarge> {
        let ruleset: &'s Ruleset = self.ruleset;
        let chain: &'s Chain = &ruleset.tables[self.flow.table].chains[index];
        let mut here =
            Here { first: self.flow.visits.len(), entry, reach: Region::ALL, back: Region::NONE };
        let table = self.flow.table as u32;
        for (number, rule) in chain.rules.iter().enumerate() {
            let at = RuleRef { table, chain: index as u32, rule: number as u32 };
            self.rule(at, rule, &mut here)?;
        }
        match chain.fall_through {
            FallThrough::Return => here.back = self.space.diagrams.or(here.back, here.reach)?,
            FallThrough::Policy(policy) => {
                let by = By::Policy { table, chain: index as u32 };
                self.decide(by, policy_fate(policy), (here.entry, here.reach))?;
            }
        }
        Ok(here)
    }

    /// Sends packets to a rule, and on to the next rule what goes on.
    fn rule(&mut self, at: RuleRef, rule: &'s Rule, here: &mut Here) -> Result<(), TooLarge> {
        if self.flow.visits.len() >= MOST_VISITS {
            return Err(TooLarge);
        }
        let Here { entry, reach, .. } = *here;
        let asked = self.flow.remembering.len();
        let matches = self.matches(rule, (entry, reach))?;
        let remembers = self.flow.remembering.len() > asked;
        let hit = self.space.diagrams.and(reach, matches)?;
        let is_reached = self.space.diagrams.meet(entry, reach);
        let is_hit = self.space.diagrams.meet(entry, hit);
        let takes = takes(&rule.action);
        self.flow.visits.push(Visit {
            at,
            first: here.first,
            entry,
            reach,
            hit,
            matches,
            is_reached,
            is_hit,
            takes,
            remembers,
        });
        if is_hit { self.act(By::Rule(at), &rule.action, hit, here) } else { Ok(()) }
    }

    fn act(
        &mut self,
        by: By,
        action: &Action,
        hit: Region,
        here: &mut Here,
    ) -> Result<(), TooLarge> {
        let ends = |fate| (Some(fate), true);
        let (fate, leaves) = match action {
            Action::None => return Ok(()),
            Action::Accept => ends(Fate::Accept),
            Action::Drop => ends(Fate::Drop),
            Action::Return => (None, true),
            Action::Jump(to) => return self.jump(*to, hit, here, false),
            Action::Goto(to) => return self.jump(*to, hit, here, true),
            Action::Target(target) => self.apply(target, hit, here)?,
        };
        match fate {
            Some(fate) => self.decide(by, fate, (here.entry, hit))?,
            None if leaves => here.back = self.space.diagrams.or(here.back, hit)?,
            None => {}
        }
        if leaves {
            here.reach = self.space.diagrams.without(here.reach, hit)?;
        }
        Ok(())
    }

    /// Sends packets through another chain; `leaves` says that they do not come back to the next rule.
    fn jump(
        &mut self,
        to: u32,
        hit: Region,
        here: &mut Here,
        leaves: bool,
    ) -> Result<(), TooLarge> {
        let entry = self.space.diagrams.and(here.entry, hit)?;
        if self.deep >= DEEPEST {
            return Err(TooLarge);
        }
        self.deep += 1;
        let there = self.chain(to as usize, entry)?;
        self.deep -= 1;
        let mut returned = there.back;
        let missed = self.space.diagrams.without(here.reach, hit)?;
        if there.entry == entry {
            returned = self.space.diagrams.and(hit, returned)?;
            here.reach = missed;
        } else {
            // They may be other packets now than the packets that came in.
            returned = self.space.diagrams.and(there.entry, returned)?;
            here.reach = missed;
            self.settle(here)?;
        }
        let to = if leaves { &mut here.back } else { &mut here.reach };
        *to = self.space.diagrams.or(*to, returned)?;
        Ok(())
    }

    /// Makes regions independent of the packets that came into the chain, from here on.
    fn settle(&mut self, here: &mut Here) -> Result<(), TooLarge> {
        here.reach = self.space.diagrams.and(here.entry, here.reach)?;
        here.back = self.space.diagrams.and(here.entry, here.back)?;
        here.entry = self.flow.all;
        Ok(())
    }

    /// What a target makes of packets: their fate if it decides, and whether they leave the chain.
    fn apply(
        &mut self,
        target: &TargetUse,
        hit: Region,
        here: &mut Here,
    ) -> Result<(Option<Fate>, bool), TooLarge> {
        let text = target_text(target);
        Ok(match target.body.course() {
            Course::Passes(Alters::Nothing) => (None, false),
            Course::Passes(Alters::Unnamed) => {
                self.alter(&text, (here.entry, hit))?;
                let changes = target.body.changes();
                if changes.iter().any(|change| self.space.is_tested(change.field)) {
                    let true_hit = self.space.diagrams.and(here.entry, hit)?;
                    let altered = self.space.after(true_hit, &changes)?;
                    self.go_on_altered(hit, altered, here)?;
                }
                (None, false)
            }
            Course::Passes(Alters::State) => {
                self.alter(&text, (here.entry, hit))?;
                let true_hit = self.space.diagrams.and(here.entry, hit)?;
                let altered = self.space.in_any_state(true_hit)?;
                self.go_on_altered(hit, altered, here)?;
                (None, false)
            }
            Course::Ends(Effect::Accept) => (Some(Fate::Accept), true),
            Course::Ends(Effect::Drop) => (Some(Fate::Drop), true),
            Course::Ends(Effect::Return) => (None, true),
            Course::Ends(Effect::Reject) => (Some(Fate::Reject(text)), true),
            Course::Ends(Effect::Translate) => (Some(Fate::Translate(text)), true),
            Course::Ends(Effect::Either) => (Some(Fate::Open(text)), true),
            Course::Ends(_) | Course::Depends => {
                self.alter(&text, (here.entry, hit))?;
                if self.sent.altered == Altered::GoesOn {
                    self.settle(here)?;
                    here.reach = self.flow.all;
                    return Ok((None, false));
                }
                (Some(Fate::Open(text)), true)
            }
        })
    }

    /// Packets that a rule matched go on as others.
    fn go_on_altered(
        &mut self,
        hit: Region,
        altered: Region,
        here: &mut Here,
    ) -> Result<(), TooLarge> {
        here.reach = self.space.diagrams.without(here.reach, hit)?;
        self.settle(here)?;
        here.reach = self.space.diagrams.or(here.reach, altered)?;
        Ok(())
    }

    /// Makes tests that can only be asked different tests from now on.
    fn alter(&mut self, how: &str, (entry, hit): (Region, Region)) -> Result<(), TooLarge> {
        let which = self.space.diagrams.and(entry, hit)?;
        let mut hasher = DefaultHasher::new();
        (self.flow.alterations, how, which).hash(&mut hasher);
        self.flow.alterations = hasher.finish();
        Ok(())
    }

    fn decide(
        &mut self,
        by: By,
        fate: Fate,
        (entry, region): (Region, Region),
    ) -> Result<(), TooLarge> {
        // Decisions are for comparisons: where packets that may be any go on, nobody asks for them.
        if self.sent.altered == Altered::GoesOn {
            return Ok(());
        }
        let region = self.space.diagrams.and(entry, region)?;
        if !region.is_empty() {
            self.flow.decisions.push(Decision { by, fate, region });
        }
        Ok(())
    }

    /// What a rule matches, of packets that get to it.
    fn matches(&mut self, rule: &Rule, reach: (Region, Region)) -> Result<Region, TooLarge> {
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
        (entry, reach): (Region, Region),
    ) -> Result<Region, TooLarge> {
        let text = match_text(used);
        if let Some(predicate) = self.space.predicate_of(used) {
            return self.space.of_match(&predicate, &text);
        }
        if self.space.repeats(used) {
            return match self.flow.alterations {
                0 => self.space.asked(&text),
                number => self.space.asked(&format!("{text} (altered, {number:x})")),
            };
        }
        let about = match self.sent.remembering {
            Remembering::Apart(_) => Region::NONE,
            Remembering::Together => {
                let here = self.space.diagrams.and(entry, reach)?;
                self.space.diagrams.and(here, before)?
            }
        };
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

/// Whether an action lets no packet go on in the chain.
fn takes(action: &Action) -> bool {
    match action {
        Action::Accept | Action::Drop | Action::Return | Action::Goto(_) => true,
        Action::None | Action::Jump(_) => false,
        Action::Target(target) => matches!(target.body.course(), Course::Ends(_)),
    }
}

/// A match in the words of a rule.
pub(crate) fn match_text(used: &MatchUse) -> String {
    let mut to = Printer::default();
    used.body.print(&mut to);
    format!("-m {} {}", used.name, to.finish().trim()).trim_end().to_owned()
}

/// A target in the words of a rule.
#[must_use]
pub fn target_text(target: &TargetUse) -> String {
    let mut to = Printer::default();
    target.body.print(&mut to);
    format!("-j {} {}", target.name, to.finish().trim()).trim_end().to_owned()
}
