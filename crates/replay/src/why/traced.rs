//! What a trace proves: the rules that its packet passed, in their order, and the policies that it met.
//!
//! Contract: rules that the walk is sure of have to be in the trace from its first rule on, and what is in the trace has to
//! be possible. A trace tells nothing of what came before its packet: a state of the connection in which the walk agrees
//! with the trace is the packet's, and rules that hang on other things of the past may match or not. Tables that the rules
//! here lack are passed over, unless they drop the packet. A trace may end anywhere; where a chain accepted the packet,
//! the others at the hook have to be in it.

use conntrack::CtState;
use dataplane::FinalVerdict;
use nft::model;
use nft::text::{Printer, parse_rule, print};
use rules::Outcome;
use rules::eval::{Alive, RuleRef};
use rules::model::{Action, Policy, Rule, Table};

use super::story::{Contradiction, Detail, Step, Story};
use super::together::PASSED;
use super::witness::Known;
use crate::rules_file::RulesFile;
use crate::spec::{Passed, What};

/// Tells the story of a packet, which `walked` tells with what is known of what came before it, so that it agrees with what
/// a trace says that it passed.
pub(super) fn hold(passed: &[(u64, Passed)], walked: impl Fn(&Known, Detail) -> Story) -> Story {
    let first = walked(&Known::default(), Detail::End);
    let agrees = |story: &Story| differs(story, passed).is_none();
    let is_first = agrees(&first);
    if first.untold > 0 || is_first && first.verdict() != FinalVerdict::Unknown {
        return first;
    }
    let states = CtState::ALL.into_iter().map(|state| Known::past(Some(state)));
    let told = states.map(|known| walked(&known, Detail::End)).filter(agrees);
    let told: Vec<Story> = told.collect();
    let is_one = told.windows(2).all(|pair| pair[0].decision() == pair[1].decision());
    if let (Some(story), true) = (told.into_iter().next(), is_one) {
        return story;
    }
    if is_first {
        return first;
    }
    // Of several states the trace does not tell which it was.
    if !is_one {
        return walked(&Known::past(None), Detail::End);
    }
    let story = walked(&Known::default(), Detail::Steps);
    let contradiction = differs(&story, passed).map(|what| Contradiction { by: "the trace", what });
    Story { contradiction, ..story }
}

/// Where a story and a trace part, in words.
fn differs(story: &Story, passed: &[(u64, Passed)]) -> Option<String> {
    let file = story.end.family.and_then(|family| story.report.file(family))?;
    let (mut next, mut is_begun, mut ends) = (0, false, false);
    for (line, passed) in passed {
        let Some(place) = Place::of(file, passed) else {
            if passed.drops() {
                return Some(format!("line {line} has {passed}, a table that is not here"));
            }
            continue;
        };
        let is_it = match place.what(file, passed) {
            Here::Is(is) => is,
            Here::Other(why) => return Some(format!("line {line} has {passed}, {why}")),
            Here::Unheld => continue,
        };
        let found = story.steps[next..].iter().position(|step| is_it.may_be(file, step));
        let Some(found) = found.map(|found| next + found) else {
            return Some(format!("line {line} has {passed}, {}", story.not_passed(file, &is_it)));
        };
        let before = if is_begun { &story.steps[next..found] } else { &[] };
        if let Some(other) = before.iter().find_map(|step| surely_passed(file, step, &place)) {
            return Some(format!("line {line} has {passed}, but here {other} comes before it"));
        }
        (next, is_begun) = (found + 1, true);
        ends = passed.accepts();
    }
    let rest = story.steps[next..].iter();
    let rest = rest.take_while(|step| is_at_hook(story, next, step));
    let is_whole = ends && passed.len() < PASSED;
    let place = passed.last().and_then(|(_, passed)| Place::of(file, passed))?;
    let other = rest.filter(|_| is_whole).find_map(|step| surely_passed(file, step, &place))?;
    Some(format!("here {other} comes after what the trace has at this hook"))
}

/// A table and a chain of a trace among the rules.
struct Place {
    table: u32,
    /// `None` if the table has none of that name.
    chain: Option<u32>,
    /// The table is one of nft's own.
    is_listed: bool,
}

/// A rule or a policy of a trace among the rules.
enum Is {
    /// Rules of a chain by their numbers: several may have one text.
    Rules {
        table: u32,
        chain: u32,
        numbers: Vec<u32>,
    },
    Policy {
        table: u32,
        chain: u32,
    },
}

/// What a trace says, held to the rules.
enum Here {
    Is(Is),
    /// It is another here, in words.
    Other(String),
    /// It is in words that are not compared.
    Unheld,
}

impl Place {
    fn of(file: &RulesFile, passed: &Passed) -> Option<Self> {
        // Tables of iptables-nft stand in traces of nft with their family.
        let bare = |table: &&Table| {
            let mut words = passed.table.split(' ').rev();
            words.next() == Some(&*table.name)
                && words.next().is_none_or(|family| family == file.ruleset.family.name())
        };
        let tables = &file.ruleset.tables;
        let table = tables.iter().position(|table| table.name == *passed.table);
        let table = table.or_else(|| tables.iter().position(|table| bare(&table)))?;
        let of = &tables[table];
        let chain = of.chain_index(&passed.chain).map(|chain| chain as u32);
        Some(Self { table: table as u32, chain, is_listed: is_of_nft(of) })
    }

    /// The rule or policy here.
    fn what(&self, file: &RulesFile, passed: &Passed) -> Here {
        let table = self.table;
        let Some(chain) = self.chain else { return Here::Other("a chain that is not here".into()) };
        let of = &file.ruleset.tables[table as usize].chains[chain as usize];
        let rules = |numbers: Vec<u32>| Here::Is(Is::Rules { table, chain, numbers });
        match &passed.what {
            What::Rule { .. } if !self.is_listed => Here::Unheld,
            What::Rule { text, handle, .. } => {
                let numbers = numbers(file, passed, &of.rules, text, *handle);
                match numbers.is_empty() {
                    true => Here::Other("a rule that its chain lacks here".into()),
                    false => rules(numbers),
                }
            }
            What::Number(number) if *number as usize <= of.rules.len() => rules(vec![*number]),
            What::Number(_) if of.base.is_none() => Here::Unheld,
            What::Number(_) => Here::Is(Is::Policy { table, chain }),
            What::Policy { drops } => match of.base.map(|base| base.policy == Policy::Drop) {
                Some(own) if own == *drops => Here::Is(Is::Policy { table, chain }),
                Some(_) => Here::Other("but here it is another one".into()),
                None => Here::Other("but here it is no base chain".into()),
            },
        }
    }
}

/// The numbers of the rules of a chain that a trace may mean by a text, or by a handle where it has no text.
fn numbers(
    file: &RulesFile,
    passed: &Passed,
    rules: &[std::sync::Arc<Rule>],
    text: &str,
    handle: Option<u64>,
) -> Vec<u32> {
    let listed = || rules.iter().filter_map(|rule| rule.listed.as_ref());
    if let Some(handle) = handle.filter(|_| text.starts_with("handle ")) {
        // Without handles any rule may be it.
        let may_be = |own: Option<u64>| own.is_none_or(|own| own == handle);
        return listed().filter(|rule| may_be(rule.handle)).map(|rule| rule.number).collect();
    }
    let by_text = |text: &str| -> Vec<u32> {
        let wanted = bare(text);
        listed().filter(|rule| bare(&rule.text) == wanted).map(|rule| rule.number).collect()
    };
    let found = by_text(without_comment(text));
    match found.is_empty() {
        true => as_printed(file, passed, text).map_or(found, |text| by_text(&text)),
        false => found,
    }
}

/// The text of a rule as it is printed here: releases of nft print some rules in other words.
fn as_printed(file: &RulesFile, passed: &Passed, text: &str) -> Option<String> {
    let (family, name) = passed.table.split_once(' ')?;
    let tables = &file.listing.as_ref()?.ruleset.tables;
    let table = tables.iter().find(|t| t.family.name() == family && &*t.name == name)?;
    let sets = table.sets.clone();
    let alone = model::Table { sets, ..model::Table::new(table.family, name) };
    let around = model::Ruleset { tables: vec![alone], ..Default::default() };
    let mut rule = parse_rule(table.family, text, around).ok()?;
    rule.comment = None;
    Some(print::rule(&rule, Printer { family: table.family, ..Printer::default() }))
}

fn without_comment(text: &str) -> &str {
    text.rsplit_once(" comment \"").filter(|(_, end)| end.ends_with('"')).map_or(text, |(t, _)| t)
}

/// A rule without what it has counted.
fn bare(text: &str) -> String {
    let mut words = text.split_ascii_whitespace().peekable();
    let mut bare = Vec::new();
    while let Some(word) = words.next() {
        bare.push(word);
        if word == "counter" && words.peek() == Some(&"packets") {
            words.nth(3);
        }
        // Of a quota and of `last`.
        while bare.len() > 1 && words.next_if_eq(&"used").is_some() {
            words.nth(1);
        }
    }
    bare.join(" ")
}

impl Is {
    /// Whether a step may be this.
    fn may_be(&self, file: &RulesFile, step: &Step) -> bool {
        let is_refused = matches!(step, Step::Rule { outcome, .. } if !outcome.may_match());
        !is_refused && self.is(file, step)
    }

    fn is(&self, file: &RulesFile, step: &Step) -> bool {
        match (self, step) {
            (Self::Rules { table, chain, numbers }, Step::Rule { at, .. }) => {
                (at.table, at.chain) == (*table, *chain) && numbers.contains(&file.number(*at))
            }
            (Self::Policy { table, chain }, Step::Policy { table: t, chain: c }) => {
                (table, chain) == (t, c)
            }
            _ => false,
        }
    }
}

impl Story {
    /// Why a packet does not pass this here.
    fn not_passed(&self, file: &RulesFile, is: &Is) -> String {
        let refused = self.steps.iter().find_map(|step| match step {
            Step::Rule { outcome: Outcome::NO, refused, .. } if is.is(file, step) => {
                Some(refused.as_deref().unwrap_or("its tests"))
            }
            _ => None,
        });
        match refused {
            Some(test) => format!("which does not match the packet here: {test}"),
            None => "to which the packet does not come here".to_owned(),
        }
    }
}

/// A rule that the packet surely passes, in words, of tables like that of a place.
fn surely_passed(file: &RulesFile, step: &Step, like: &Place) -> Option<String> {
    let Step::Rule { at, outcome: Outcome::YES, alive: Alive::Certain, .. } = step else {
        return None;
    };
    let (table, _, rule) = file.rule(*at);
    // Statements of nft may end their rule without a match.
    let may_end = rule.listed.is_some() && matches!(rule.action, Action::Target(_));
    (is_of_nft(table) == like.is_listed && !may_end).then(|| shown(file, *at))
}

fn shown(file: &RulesFile, at: RuleRef) -> String {
    format!("L{} {}", file.line(file.rule(at).2.line).1, file.rule_text(at))
}

/// Whether a table is one of nft's own, whose rules traces show in the words of listings.
fn is_of_nft(table: &Table) -> bool {
    table.name.contains(' ')
}

/// Whether a step after others is at the hook of the one before them.
fn is_at_hook(story: &Story, next: usize, step: &Step) -> bool {
    let hook = |step: &Step| match step {
        Step::Enters { hook, .. } => Some(*hook),
        _ => None,
    };
    let here = story.steps[..next].iter().rev().find_map(hook);
    !matches!(step, Step::Starts { .. } | Step::Ttl(_) | Step::Rerouted { .. })
        && hook(step).is_none_or(|hook| Some(hook) == here)
}
