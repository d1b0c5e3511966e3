//! Which rules may come after one, whatever the packet, and what they may decide.
//!
//! Contract: too many, never too few: of tests, only that a rule has some counts.

use std::collections::{BTreeMap, BTreeSet};

use rules::eval::RuleRef;
use rules::ext::{Course, Effect};
use rules::model::{Action, Chain, FallThrough, Hook, Rule, Ruleset};

use super::stage::policy_fate;
use crate::flow::{Fate, target_text};

/// What comes after a rule.
#[derive(Debug, Default)]
pub(super) struct After {
    pub(super) rules: BTreeSet<RuleRef>,
    pub(super) fates: BTreeSet<Fate>,
    /// The first rule to walk of each chain, by table and number.
    walked: BTreeMap<(u32, u32), u32>,
    /// Chains that packets leave at the end.
    left: BTreeSet<(u32, u32)>,
    /// Packets go on to later tables.
    goes_on: bool,
}

/// What is left to walk.
#[derive(Debug, Clone, Copy)]
enum Left {
    /// A chain from a rule on.
    Walk((u32, u32), u32),
    /// Packets go back from a chain to where they came from.
    Back((u32, u32)),
}

impl After {
    /// What comes for packets that a rule matches, and what for the others.
    pub(super) fn each(ruleset: &Ruleset, at: RuleRef) -> [Self; 2] {
        let place = (at.table, at.chain);
        let next = Left::Walk(place, at.rule + 1);
        let mut left = Vec::new();
        let mut hit = Self::default();
        if hit.act(place, &chain(ruleset, place).rules[at.rule as usize].action, &mut left) {
            left.push(next);
        }
        let mut missed = Self::default();
        hit.all(ruleset, at, left);
        missed.all(ruleset, at, vec![next]);
        [hit, missed]
    }

    fn all(&mut self, ruleset: &Ruleset, at: RuleRef, mut left: Vec<Left>) {
        self.table(ruleset, &mut left);
        if self.goes_on {
            left.extend(later(ruleset, at).into_iter().map(|place| Left::Walk(place, 0)));
            self.table(ruleset, &mut left);
        }
    }

    fn table(&mut self, ruleset: &Ruleset, left: &mut Vec<Left>) {
        while let Some(one) = left.pop() {
            match one {
                Left::Walk(place, from) => self.walk(ruleset, place, from, left),
                Left::Back(place) => self.back(ruleset, place, left),
            }
        }
    }

    fn walk(&mut self, ruleset: &Ruleset, place: (u32, u32), from: u32, left: &mut Vec<Left>) {
        let walked = self.walked.entry(place).or_insert(u32::MAX);
        if *walked <= from {
            return;
        }
        *walked = from;
        for (number, rule) in (0..).zip(&chain(ruleset, place).rules).skip(from as usize) {
            self.rules.insert(RuleRef { table: place.0, chain: place.1, rule: number });
            let goes_on = self.act(place, &rule.action, left);
            if !goes_on && takes_all(rule) {
                return;
            }
        }
        left.push(Left::Back(place));
    }

    /// What an action does with packets; whether some go on with the next rule.
    fn act(&mut self, place: (u32, u32), action: &Action, left: &mut Vec<Left>) -> bool {
        match action {
            Action::None => return true,
            Action::Accept => self.end(Fate::Accept),
            Action::Drop => self.end(Fate::Drop),
            Action::Return => left.push(Left::Back(place)),
            Action::Jump(to) => {
                left.push(Left::Walk((place.0, *to), 0));
                return true;
            }
            Action::Goto(to) => left.extend([Left::Walk((place.0, *to), 0), Left::Back(place)]),
            Action::Target(target) => match target.body.course() {
                Course::Passes(_) => return true,
                Course::Ends(Effect::Accept) => self.end(Fate::Accept),
                Course::Ends(Effect::Drop) => self.end(Fate::Drop),
                Course::Ends(Effect::Reject) => self.end(Fate::Reject(target_text(target))),
                Course::Ends(Effect::Return) => left.push(Left::Back(place)),
                Course::Ends(Effect::Translate) => self.end(Fate::Translate(target_text(target))),
                Course::Ends(_) | Course::Depends => {
                    self.end(Fate::Open(target_text(target)));
                    return true;
                }
            },
        }
        false
    }

    fn end(&mut self, fate: Fate) {
        self.goes_on |= !matches!(fate, Fate::Drop | Fate::Reject(_));
        self.fates.insert(fate);
    }

    fn back(&mut self, ruleset: &Ruleset, place: (u32, u32), left: &mut Vec<Left>) {
        if !self.left.insert(place) {
            return;
        }
        let of_place = chain(ruleset, place);
        if let FallThrough::Policy(policy) = of_place.fall_through {
            return self.end(policy_fate(policy));
        }
        if let Some(base) = of_place.base {
            return self.end(policy_fate(base.policy));
        }
        for (caller, of_caller) in (0..).zip(&ruleset.tables[place.0 as usize].chains) {
            for (number, rule) in (0..).zip(&of_caller.rules) {
                match rule.action {
                    Action::Jump(to) if to == place.1 => {
                        left.push(Left::Walk((place.0, caller), number + 1));
                    }
                    Action::Goto(to) if to == place.1 => left.push(Left::Back((place.0, caller))),
                    _ => {}
                }
            }
        }
    }
}

/// The built-in chains that packets which get to a rule may pass later.
fn later(ruleset: &Ruleset, at: RuleRef) -> Vec<(u32, u32)> {
    let turn = |table: u32, hook: Hook| {
        let name = &ruleset.tables[table as usize].name;
        let kind = ruleset.family.tables().iter().find(|kind| *name == kind.name);
        (hook_turn(hook), kind.and_then(|kind| kind.priority(hook)))
    };
    let first = hooks(ruleset, at).into_iter().map(|hook| turn(at.table, hook)).min();
    let mut found = Vec::new();
    for (table, of_table) in (0..).zip(&ruleset.tables) {
        for (number, of_chain) in (0..).zip(&of_table.chains) {
            let is_later = |hook: Hook| first.is_none_or(|first| turn(table, hook) > first);
            found.extend(of_chain.base.filter(|base| is_later(base.hook)).map(|_| (table, number)));
        }
    }
    found
}

fn chain(ruleset: &Ruleset, (table, chain): (u32, u32)) -> &Chain {
    &ruleset.tables[table as usize].chains[chain as usize]
}

/// Whether a rule matches every packet.
fn takes_all(rule: &Rule) -> bool {
    rule.header.is_none() && rule.matches.is_empty()
}

/// Which hooks come before others on a way.
fn hook_turn(hook: Hook) -> u32 {
    match hook {
        Hook::Brouting => 0,
        Hook::Prerouting | Hook::Output => 1,
        Hook::Input | Hook::Forward => 2,
        Hook::Postrouting => 3,
    }
}

/// The hooks whose chains lead to a rule.
pub(super) fn hooks(ruleset: &Ruleset, at: RuleRef) -> BTreeSet<Hook> {
    let chains = &ruleset.tables[at.table as usize].chains;
    let (mut found, mut seen, mut left) = (BTreeSet::new(), BTreeSet::new(), vec![at.chain]);
    while let Some(to) = left.pop() {
        if !seen.insert(to) {
            continue;
        }
        found.extend(chains[to as usize].base.map(|base| base.hook));
        for (caller, chain) in (0..).zip(chains) {
            let leads = |rule: &Rule| matches!(rule.action, Action::Jump(it) | Action::Goto(it) if it == to);
            if chain.rules.iter().any(|rule| leads(rule)) {
                left.push(caller);
            }
        }
    }
    found
}
