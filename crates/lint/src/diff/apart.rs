//! Tests that remember packets and were asked about others than under the other ruleset: what they say of any packet may be
//! another thing from then on. Which those are, which others follow from them, and what they decide about.
//!
//! Contract: too many tests, never too few. Whatever may come after such a test may be asked about other packets, too.

use std::collections::BTreeSet;

use rules::eval::RuleRef;
use rules::ext::{Alters, Course};
use rules::model::{Action, Rule, Ruleset};
use rules::save::print_rule;

use super::after::{After, hooks};
use super::changed::Changed;
use super::remember::{EVERYTHING, SETS, changes_sets, list_of, remembers, rules_of_lists};
use super::stage::{Passed, hook_name};
use crate::flow::{Fate, match_text};

/// What both rulesets do not have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Apart {
    /// What tests share their memory by.
    pub(super) lists: BTreeSet<String>,
    /// Rules with such tests, by their side.
    pub(super) rules: [BTreeSet<RuleRef>; 2],
}

impl Default for Apart {
    /// How many connections there are depends on all packets.
    fn default() -> Self {
        Self { lists: BTreeSet::from([EVERYTHING.to_owned()]), rules: Default::default() }
    }
}

impl Apart {
    /// Notes tests that were asked about others than on the other side; whether any is new.
    pub(super) fn note<'p>(&mut self, passed: impl Iterator<Item = &'p [Passed; 2]>) -> bool {
        let before = self.clone();
        for sides in passed {
            let keys: [BTreeSet<&str>; 2] =
                [0, 1].map(|side: usize| sides[side].asked.iter().map(|it| &*it.key).collect());
            for asked in sides.iter().flat_map(|passed| &passed.asked) {
                if !keys.iter().all(|keys| keys.contains(&*asked.key)) {
                    let (side, rule) = asked.rule;
                    self.rules[side].insert(rule);
                    self.lists.extend(asked.list.clone());
                }
            }
        }
        *self != before
    }

    /// What changed, and all rules with such tests.
    pub(super) fn widened(&self, rulesets: [&Ruleset; 2], changed: &Changed) -> Changed {
        let mut wider = changed.clone();
        if !changed.is_everything() {
            for (side, ruleset) in rulesets.into_iter().enumerate() {
                for rule in self.of(side, ruleset) {
                    wider.note(side, rule);
                }
            }
        }
        wider
    }

    /// Rules whose tests may say another thing of some packet.
    pub(super) fn of(&self, side: usize, ruleset: &Ruleset) -> BTreeSet<RuleRef> {
        let of_lists = rules_of_lists(ruleset, &self.lists);
        self.rules[side].iter().copied().chain(of_lists).collect()
    }

    /// Adds all that may follow: packets of which such a test says another thing may go on to other tests.
    pub(super) fn followed(&self, rulesets: [&Ruleset; 2]) -> Self {
        let sets_change = rulesets.iter().any(|it| changes_sets(it));
        let mut all = self.clone();
        let mut done: [BTreeSet<RuleRef>; 2] = Default::default();
        loop {
            let mut is_new = false;
            for (side, ruleset) in rulesets.into_iter().enumerate() {
                for at in all.of(side, ruleset) {
                    if !done[side].insert(at) || !decides(&rule_at(ruleset, at).action) {
                        continue;
                    }
                    is_new = true;
                    let after = After::each(ruleset, at);
                    for rule in after.iter().flat_map(|after| &after.rules) {
                        all.take((side, *rule), ruleset, sets_change);
                    }
                }
            }
            if !is_new {
                return all;
            }
        }
    }

    fn take(&mut self, (side, at): (usize, RuleRef), ruleset: &Ruleset, sets_change: bool) {
        let rule = rule_at(ruleset, at);
        for used in rule.matches.iter().filter(|used| remembers(used, sets_change)) {
            self.rules[side].insert(at);
            self.lists.extend(list_of(used, &match_text(used)));
        }
        if matches!(&rule.action, Action::Target(target) if target.body.changes_sets()) {
            self.lists.insert(SETS.to_owned());
        }
    }

    /// What may become of packets that match no changed rule, rule by rule.
    pub(super) fn words(&self, rulesets: [&Ruleset; 2], changed: &Changed) -> Vec<String> {
        let ruleset = rulesets[1];
        let mut words = Vec::new();
        for at in self.of(1, ruleset) {
            let rule = rule_at(ruleset, at);
            if changed.has(1, at) || !decides(&rule.action) {
                continue;
            }
            let [hit, missed] = After::each(ruleset, at);
            if hit.fates == missed.fates && hit.fates.len() == 1 {
                continue;
            }
            words.push(line(ruleset, at, hit.fates.into_iter().chain(missed.fates).collect()));
        }
        words
    }
}

fn line(ruleset: &Ruleset, at: RuleRef, fates: BTreeSet<Fate>) -> String {
    let table = &ruleset.tables[at.table as usize];
    let chain = &table.chains[at.chain as usize];
    let rule = rule_at(ruleset, at);
    let text = print_rule(ruleset.family, table, chain, rule);
    let hooks: Vec<String> = hooks(ruleset, at).into_iter().map(hook_name).collect();
    let tests = rule.matches.iter().filter(|used| remembers(used, true));
    let tests: Vec<String> = tests.map(match_text).collect();
    format!(
        "{} {}: {}: any packet that gets to line {} ({text}): depends on {}, which other packets than before may come to",
        table.name,
        hooks.join(", "),
        Fate::OneOf(fates.into_iter().collect()),
        rule.line,
        tests.join("; "),
    )
}

/// Whether what happens to packets depends on what the tests of a rule with this action say.
fn decides(action: &Action) -> bool {
    match action {
        Action::None => false,
        Action::Target(target) => target.body.course() != Course::Passes(Alters::Nothing),
        _ => true,
    }
}

fn rule_at(ruleset: &Ruleset, at: RuleRef) -> &Rule {
    &ruleset.tables[at.table as usize].chains[at.chain as usize].rules[at.rule as usize]
}
