//! Rules: one of nft becomes one of the walk, or several that follow each other.
//!
//! The comparisons that stand first are its matches; what follows is its target. A counter or a log line that stands
//! before other comparisons is a part of its own, with the comparisons before it, as long as those say the same when they
//! are asked twice. Parts of a rule carry its number.

use std::sync::Arc;

use super::compare::Tested;
use super::depend::Known;
use super::items::{self, Item};
use super::scope::Scope;
use super::state::count::Count;
use super::statement::Act;
use super::statement::sequence::{End, Sequence};
use super::statement::tested::Test;
use super::statement::unevaluated::{Harm, Unevaluated};
use crate::expr::{Element, Expr, Field};
use crate::json::Json;
use crate::model;
use crate::stmt::{self, Stmt, Verdict};
use crate::types::{IFNAME, MARK};
use rules::ext::{Effect, Match, MatchUse, Support, TargetUse};
use rules::model::{Action, Counters, Header, HeaderTests, Listed, Rule};

/// A rule under construction.
struct Builder<'s, 'r> {
    scope: &'s Scope<'r>,
    text: Box<str>,
    number: u32,
    handle: Option<u64>,
    comment: Option<Box<str>>,
    line: u32,
    /// What the part that comes next tests itself.
    header: HeaderTests,
    /// What it asks besides.
    matches: Vec<MatchUse>,
    /// What it does.
    acts: Vec<Box<dyn Act>>,
    /// The counter that it has.
    counter: Option<Option<(u64, u64)>>,
    parts: Vec<Rule>,
    lacks: Vec<String>,
}

/// The parts of a rule, and what is not evaluated of it.
pub(crate) fn lower(
    rule: &model::Rule,
    number: u32,
    scope: &Scope<'_>,
) -> (Vec<Rule>, Vec<String>) {
    let texts = texts(rule, scope);
    let mut builder = Builder {
        scope,
        text: texts.join(" ").into(),
        number,
        handle: rule.handle,
        comment: rule.comment.clone(),
        line: rule.position.line,
        header: HeaderTests::default(),
        matches: Vec::new(),
        acts: Vec::new(),
        counter: None,
        parts: Vec::new(),
        lacks: Vec::new(),
    };
    builder.build(all_items(rule, &texts, scope));
    (builder.parts, builder.lacks)
}

/// What nft prints for each statement of a rule.
pub(crate) fn texts(rule: &model::Rule, scope: &Scope<'_>) -> Vec<String> {
    rule.stmts.iter().map(|stmt| items::text(scope, |p| stmt.print(p))).collect()
}

/// What the statements of a rule are, whose texts are given, with the comparisons that a listing leaves out.
pub(crate) fn all_items(rule: &model::Rule, texts: &[String], scope: &Scope<'_>) -> Vec<Item> {
    let mut known = Known::of(scope.table.family);
    let needed = |need: super::depend::Need| {
        let (name, test) = need.test(scope.family);
        Item::Test(name.to_owned(), test)
    };
    let mut later = Vec::new();
    let mut first = Vec::new();
    for (stmt, text) in rule.stmts.iter().zip(texts) {
        first.extend(known.needs_first(stmt).into_iter().map(needed));
        later.extend(known.needs(stmt).into_iter().map(needed));
        first.extend(known.needs_at_start().into_iter().map(needed));
        later.push(items::item(stmt, text, scope));
    }
    first.extend(later);
    first
}

/// Whether an item becomes a match of its rule.
fn tests(item: &Item) -> bool {
    matches!(item, Item::Test(..) | Item::State(..) | Item::Choice(..))
}

/// What may come of a map that is not evaluated, if only a verdict follows it: an element may say `continue`.
fn followed(effects: Box<[Effect]>, items: impl Iterator<Item = Item>) -> Option<Box<[Effect]>> {
    let mut left = items.filter(|item| !matches!(item, Item::Count(_)));
    match (left.next(), left.next()) {
        (None, _) => Some(effects),
        (Some(Item::End(End::Verdict(effect))), None) => {
            Some(effects.into_iter().chain([effect]).collect())
        }
        _ => None,
    }
}

impl Builder<'_, '_> {
    fn build(&mut self, items: Vec<Item>) {
        let mut left = items.iter().filter(|item| tests(item)).count();
        let mut ended = false;
        let mut items = items.into_iter().peekable();
        while let Some(item) = items.next() {
            left -= usize::from(tests(&item));
            match item {
                Item::Test(name, test) => {
                    self.lacks.extend(test.lacks().map(str::to_owned));
                    let support =
                        if test.lacks().is_some() { Support::Parsed } else { Support::Evaluated };
                    self.before_a_test();
                    self.test(name, support, test);
                }
                Item::State(name, state) => {
                    self.before_a_test();
                    ended = name == Count::NAME && self.is_late(name);
                    if ended {
                        break;
                    }
                    self.state(name, state);
                }
                Item::Count(counted) => self.count(counted, left > 0),
                Item::Act(act) => {
                    self.lacks.extend(act.lacks().map(str::to_owned));
                    if !act.watches() || act.log_prefix().is_some() {
                        self.acts.push(act);
                    }
                }
                Item::End(End::Map(map)) if items.peek().is_some() => {
                    self.track(map.key.iter().any(|part| part.tracks()));
                    self.end(End::unevaluated("statements after a verdict map"));
                    ended = true;
                    break;
                }
                Item::End(End::Unevaluated(why, effects)) => {
                    let effects = effects.and_then(|effects| followed(effects, items));
                    self.end(End::Unevaluated(why, effects));
                    ended = true;
                    break;
                }
                Item::End(end) => {
                    self.end(end);
                    ended = true;
                    break;
                }
                Item::Choice(name, choices) => {
                    self.before_a_test();
                    // A key that the map has not ends the rule, and so does a verdict.
                    let goes_on = |(_, effect): &(_, Effect)| *effect == Effect::Continue;
                    if items.peek().is_some() && choices.iter().any(goes_on) {
                        let why = "statements after a verdict map that goes on";
                        self.track(
                            choices
                                .iter()
                                .any(|(test, _)| test.as_ref().is_some_and(|test| test.tracks())),
                        );
                        self.end(End::unevaluated(why));
                    } else {
                        self.choose(name, choices);
                    }
                    ended = true;
                    break;
                }
            }
        }
        if !ended {
            self.end(End::Verdict(Effect::Continue));
        }
    }

    /// Whether a count of connections, which may drop the packet, stands after a statement: then it ends what is evaluated of the rule.
    fn is_late(&mut self, name: &str) -> bool {
        let is_late = !self.acts.is_empty();
        if is_late {
            self.track(true);
            self.end(End::unevaluated(&format!("{name} after a statement")));
        }
        is_late
    }

    fn test(&mut self, name: String, support: Support, test: Box<dyn Tested>) {
        if test.is_always() {
            return;
        }
        if !self.acts.is_empty() {
            self.acts.push(Box::new(Test(test)));
            return;
        }
        // What a rule tests itself comes before its matches: none of those may remember packets.
        let held = test.header().filter(|_| self.repeats());
        if !held.is_some_and(|held| held.put(&mut self.header)) {
            self.matches.push(MatchUse::new(name, support, test));
        }
    }

    /// Keeps of what is not evaluated that it makes the kernel track connections.
    fn track(&mut self, tracks: bool) {
        if tracks {
            let name = "ct".into();
            self.acts.push(Box::new(Unevaluated { name, tracks, harm: Harm::Nothing }));
        }
    }

    /// Whether the matches so far say the same when they are asked twice.
    fn repeats(&self) -> bool {
        self.matches.iter().all(|used| used.body.repeats())
    }

    /// What only watches becomes a part of its own before another comparison.
    fn before_a_test(&mut self) {
        if self.acts.is_empty() || !self.acts.iter().all(|act| act.watches()) || !self.repeats() {
            return;
        }
        let acts = std::mem::take(&mut self.acts);
        let action = self.target("log", acts, End::Verdict(Effect::Continue));
        self.part(action, true, None);
    }

    fn state(&mut self, name: &'static str, state: Box<dyn Match>) {
        if self.acts.is_empty() {
            self.matches.push(MatchUse::new(name, Support::Evaluated, state));
            return;
        }
        let why = format!("{name} after a statement that changes something");
        self.lacks.push(why.clone());
        let unevaluated = Unevaluated { name: why.into(), tracks: false, harm: Harm::End };
        self.acts.push(Box::new(unevaluated));
    }

    fn count(&mut self, counted: Option<(u64, u64)>, tests_follow: bool) {
        if self.acts.iter().any(|act| act.may_end()) {
            // Not every packet that the rule matches comes here.
            self.lacks.push("a counter after a statement that may end its rule".to_owned());
        } else if self.counter.is_some() {
            self.lacks.push("a second counter".to_owned());
        } else if !tests_follow || !self.acts.iter().all(|act| act.watches()) {
            self.counter = Some(counted);
        } else if self.repeats() {
            self.part(Action::None, true, Some(counted));
        } else {
            self.lacks.push("a counter between tests that remember packets".to_owned());
        }
    }

    fn end(&mut self, end: End) {
        if let End::Unevaluated(why, _) = &end {
            self.lacks.push(why.to_string());
            // Its key may be of the connection.
            let reads_ct = self.text.starts_with("ct ") || self.text.contains(" ct ");
            self.track(reads_ct);
        }
        let acts = std::mem::take(&mut self.acts);
        let plain = match &end {
            End::Verdict(effect) if acts.is_empty() => plain(*effect),
            _ => None,
        };
        let name = match &end {
            End::Verdict(_) => "statements",
            End::Map(_) => "vmap",
            End::Reject(_) => "reject",
            End::Nat(_) => "nat",
            End::Queue(_) => "queue",
            End::Unevaluated(..) => "unknown",
        };
        let action = plain.unwrap_or_else(|| self.target(name, acts, end));
        let counter = self.counter.take();
        self.part(action, false, counter);
    }

    fn choose(&mut self, name: String, choices: Vec<(Option<Box<dyn Tested>>, Effect)>) {
        if let Some(counted) = self.counter.take() {
            self.part(Action::None, true, Some(counted));
        }
        let matches = self.matches.clone();
        let acts = std::mem::take(&mut self.acts);
        if !acts.is_empty() || !self.repeats() {
            // Statements are done once, and states asked once: what a part of it would do again is not known.
            self.acts = acts;
            let effects: Vec<Effect> = choices.iter().map(|(_, effect)| *effect).collect();
            let effects = effects.into_iter().chain([Effect::Continue]).collect();
            let why = "a verdict map after a statement".into();
            return self.end(End::Unevaluated(why, Some(effects)));
        }
        for (test, effect) in choices {
            self.matches.clone_from(&matches);
            if let Some(test) = test {
                self.matches.push(MatchUse::new(name.clone(), Support::Evaluated, test));
            }
            self.part(plain(effect).unwrap_or(Action::None), false, None);
        }
    }

    fn target(&self, name: &'static str, acts: Vec<Box<dyn Act>>, end: End) -> Action {
        let evaluated =
            !matches!(end, End::Unevaluated(..)) && acts.iter().all(|act| act.lacks().is_none());
        let support = if evaluated { Support::Evaluated } else { Support::Parsed };
        let sequence = Sequence::new(acts, end, self.scope.family);
        let body = Arc::new(sequence);
        Action::Target(Box::new(TargetUse { name: name.into(), support, body }))
    }

    fn part(&mut self, action: Action, is_part: bool, counter: Option<Option<(u64, u64)>>) {
        let (packets, bytes) = counter.flatten().unwrap_or_default();
        let listed = Listed {
            text: self.text.clone(),
            handle: self.handle,
            comment: self.comment.clone(),
            number: self.number,
            counts: counter.is_some(),
            is_part,
        };
        self.parts.push(Rule {
            header: (self.header != HeaderTests::default())
                .then(|| Header::from(self.header.clone())),
            matches: self.matches.clone().into(),
            action,
            counters: Counters { packets, bytes },
            line: self.line,
            slot: 0,
            id: 0,
            listed: Some(Box::new(listed)),
        });
    }
}

/// The action of an effect that needs no target.
fn plain(effect: Effect) -> Option<Action> {
    Some(match effect {
        Effect::Continue => Action::None,
        Effect::Accept => Action::Accept,
        Effect::Drop => Action::Drop,
        Effect::Return => Action::Return,
        Effect::Jump(chain) => Action::Jump(chain),
        Effect::Goto(chain) => Action::Goto(chain),
        Effect::Translate | Effect::Reject | Effect::Either | Effect::Unknown => return None,
    })
}

/// The rule before all others of a chain for some devices, which lets packets of other devices by.
pub(crate) fn of_other_devices(devices: &[Box<str>], scope: &Scope<'_>) -> Rule {
    let left = Field::read("meta", &Json::object(vec![("key", Json::text("iifname"))]));
    let compare = stmt::Compare {
        op: stmt::Op::Differs,
        left: left.map_or(Expr::Any, Field::expr),
        right: Expr::Set(
            devices.iter().map(|device| Element::new(Expr::text(&IFNAME, device))).collect(),
        ),
    };
    let rule = model::Rule {
        handle: None,
        comment: None,
        stmts: vec![Stmt::Compare(compare), Stmt::Verdict(Verdict::Accept)],
        position: Default::default(),
    };
    let (mut parts, _) = lower(&rule, 0, scope);
    parts.swap_remove(0)
}

/// A rule that does nothing, but has connections tracked, as some objects of a table do.
pub(crate) fn that_tracks(scope: &Scope<'_>) -> Rule {
    let left = Field::read("ct", &Json::object(vec![("key", Json::text("mark"))]));
    let left = left.map_or(Expr::Any, Field::expr);
    let compare = stmt::Compare { op: stmt::Op::Equal, left, right: Expr::number(&MARK, 0) };
    let rule = model::Rule {
        handle: None,
        comment: None,
        stmts: vec![Stmt::Compare(compare)],
        position: Default::default(),
    };
    let (mut parts, _) = lower(&rule, 0, scope);
    parts.swap_remove(0)
}
