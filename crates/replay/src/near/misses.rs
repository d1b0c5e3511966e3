//! [`Misses`]: the rules that a packet missed by one test, the nearest ones kept.

use std::collections::{HashMap, VecDeque};

use rules::eval::{RuleRef, Test, tests_of};
use rules::model::{Action, Rule, Table};
use rules::save::{LoadOptions, load};
use rules::{Outcome, Transit, protocol_number};

use super::gives::Gives;
use super::value::{self, value_at};

/// Matches whose options must all hold, each by itself.
const ALL_OF: &[&str] = &["tcp", "udp", "udplite", "sctp", "dccp", "iprange"];

/// A rule that would have matched but for one test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NearMiss {
    pub(crate) at: RuleRef,
    /// The test, in the words of the rule.
    pub(crate) test: String,
    /// What the packet has there, if there are words for it.
    pub(crate) has: Option<String>,
    /// What it would have come to.
    pub(crate) gives: Gives,
    /// Place among the near misses, in the order of evaluation.
    turn: u64,
}

/// What kind of rule it is; the later ones are shown later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The rule asks for the connection of a packet that looks like part of one.
    State,
    /// The rule has several tests.
    Several,
    /// The rule has no other test, so that it nearly matches everything.
    Alone,
}

impl Kind {
    const ALL: [Self; 3] = [Self::State, Self::Several, Self::Alone];
}

/// The one test for which a rule certainly did not match, from all its tests; `None` for a rule that does nothing.
fn missed(rule: &Rule, tests: &[Test], transit: &Transit<'_, '_>) -> Option<(String, Kind)> {
    let watches = match &rule.action {
        Action::None => true,
        Action::Target(target) => target.body.only_watches(),
        _ => false,
    };
    let mut refusing = tests.iter().filter(|test| test.outcome != Some(Outcome::YES));
    let (Some(refused), None, false) = (refusing.next(), refusing.next(), watches) else {
        return None;
    };
    // A match that remembers packets cannot be asked again: alone in refusing, it said no.
    if !matches!(refused.outcome, None | Some(Outcome::NO)) {
        return None;
    }
    let (test, options) = narrowed(&refused.text, transit)?;
    let alone = tests.len() == 1 && options == 1;
    let kind = match alone {
        _ if asks_for_state(&test) && value::is_answer(transit) => Kind::State,
        true => Kind::Alone,
        false => Kind::Several,
    };
    Some((test, kind))
}

/// Whether a test asks which connection a packet is part of.
pub(crate) fn asks_for_state(test: &str) -> bool {
    test.split(' ').any(|word| matches!(word, "--ctstate" | "--state"))
}

/// The near misses of a walk: of those nearest to the decision, as many as were asked for.
#[derive(Debug)]
pub(crate) struct Misses {
    most: usize,
    noted: u64,
    /// What jumps to chains give, by table and chain.
    jumps: HashMap<(u32, u32), Gives>,
    /// Near misses by kind and by what they give, in the order of evaluation.
    kept: [[VecDeque<NearMiss>; Gives::ALL.len()]; Kind::ALL.len()],
}

impl Misses {
    /// Room for this number.
    pub(crate) fn of_most(most: usize) -> Self {
        Self { most, noted: 0, jumps: HashMap::new(), kept: Default::default() }
    }

    /// Notes a rule that certainly did not match, if it is a near miss.
    pub(crate) fn add(
        &mut self,
        at: RuleRef,
        (table, rule): (&Table, &Rule),
        tests: &[Test],
        transit: &Transit<'_, '_>,
    ) {
        let Some((test, kind)) = missed(rule, tests, transit) else { return };
        let gives = match rule.action {
            Action::Jump(to) | Action::Goto(to) => {
                let chain = (at.table, to);
                *self.jumps.entry(chain).or_insert_with(|| Gives::of_chain(table, to))
            }
            _ => Gives::of(rule),
        };
        self.noted += 1;
        let (has, turn) = (value_at(&test, transit), self.noted);
        let of_its_kind = &mut self.kept[kind as usize][gives as usize];
        of_its_kind.push_back(NearMiss { at, test, has, gives, turn });
        if of_its_kind.len() > self.most {
            of_its_kind.pop_front();
        }
    }

    /// Near misses to show, for a packet that was accepted, or was not: of rules that give another verdict first, and
    /// of each kind the nearest to the decision.
    pub(crate) fn nearest(&self, accepted: bool) -> Vec<&NearMiss> {
        let of = |changes: bool| {
            Kind::ALL.into_iter().flat_map(move |kind| {
                let mut kept: Vec<&NearMiss> = self.kept[kind as usize]
                    .iter()
                    .flatten()
                    .filter(|miss| miss.gives.changes(accepted) == changes)
                    .collect();
                // A verdict tells more than a chain that may give one.
                kept.sort_by_key(|miss| (miss.gives.leads(), std::cmp::Reverse(miss.turn)));
                kept
            })
        };
        of(true).chain(of(false)).take(self.most).collect()
    }
}

/// The one option of a test that does not hold, and how many it has; `None` if several do not.
fn narrowed(text: &str, transit: &Transit<'_, '_>) -> Option<(String, usize)> {
    let Some((name, options)) = text.strip_prefix("-m ").and_then(|rest| rest.split_once(' '))
    else {
        return Some((text.to_owned(), 1));
    };
    let options = split_options(options);
    if options.len() < 2 || !ALL_OF.contains(&name) {
        return Some((options.join(" "), 1));
    }
    let count = options.len();
    let refuses = |option: &String| holds(name, option, transit) != Some(Outcome::YES);
    let mut refusing = options.into_iter().filter(refuses);
    match (refusing.next(), refusing.next()) {
        (Some(option), None) => Some((option, count)),
        _ => None,
    }
}

/// `--a 1 ! --b 2` in its options. Words in quotes hold no option here: no match of [`ALL_OF`] has any.
pub(super) fn split_options(text: &str) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    let mut inverted = false;
    for word in text.split(' ') {
        let starts = word == "!" || word.starts_with("--");
        match options.last_mut() {
            Some(last) if !starts || inverted => {
                last.push(' ');
                last.push_str(word);
            }
            _ => options.push(word.to_owned()),
        }
        inverted = word == "!";
    }
    options
}

/// What one option of a match says by itself.
fn holds(name: &str, option: &str, transit: &Transit<'_, '_>) -> Option<Outcome> {
    let protocol = protocol_number(name).map_or_else(String::new, |_| format!("-p {name} "));
    let text = format!("*filter\n:INPUT ACCEPT\n-A INPUT {protocol}-m {name} {option}\nCOMMIT\n");
    let options = LoadOptions { family: Some(transit.family), ..LoadOptions::default() };
    let loaded = load(&text, &options).ok()?;
    let rule = loaded.ruleset.tables.first()?.chains.first()?.rules.first()?;
    tests_of(transit.family, rule, transit).last()?.outcome
}
