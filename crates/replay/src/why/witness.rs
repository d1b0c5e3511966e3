//! What a line of the log proves: the packet came to the rule whose prefix the line has, and matched it.
//!
//! Rules after it that ask the same match, too. Contract: where it may have come to one such rule once, nothing before that
//! rule ended its walk. Where it may have come there more than once, or to several, nothing is proved. Where it comes to
//! none as the first packet of all, something came before it: it has the one state of its connection that leads there, and
//! rules that hang on other things of the past may match or not. Where it comes to none even so, or no rule logs so,
//! other rules wrote the line, and that is the answer.

use conntrack::CtState;
use dataplane::{Arrival, Path};
use rules::eval::{Proof, RuleRef, Test, tests_of, tests_of_text};
use rules::ext::MatchUse;
use rules::model::{Action, Family, Hook};
use rules::{Outcome, Transit};

use super::story::{Contradiction, Step, Story};
use crate::logged::{Logger, Loggers};
use crate::rules_file::RulesFile;
use crate::spec::Spec;

/// The rules that may have logged a packet.
#[derive(Debug, Default, Clone)]
pub(super) struct Known {
    family: Option<Family>,
    rules: Vec<RuleRef>,
    /// There is one such rule, and the packet may have come to it once.
    is_sure: bool,
    /// All of them stand before routing, so that the way is open.
    before_routing: bool,
    /// Packets came before it of which nothing is known.
    has_past: bool,
    /// The state of its connection, if only one is possible.
    state: Option<CtState>,
}

impl Known {
    /// Packets came before it, which left its connection in this state, if that is known.
    pub(super) fn past(state: Option<CtState>) -> Self {
        Self { has_past: true, state, ..Self::default() }
    }

    /// Whether this rule may have logged the packet.
    pub(super) fn may_be(&self, family: Family, at: RuleRef) -> bool {
        self.family == Some(family) && self.rules.contains(&at)
    }

    /// Whether the only one did.
    pub(super) fn is_sure(&self) -> bool {
        self.is_sure
    }

    /// The arrival of the packet: a line from before routing does not say where it goes.
    pub(super) fn arrival<'a>(&self, arrival: Arrival<'a>) -> Arrival<'a> {
        let is_open = self.before_routing && arrival.path == Some(Path::Input);
        let ctstate = arrival.ctstate.or(self.state);
        Arrival { path: arrival.path.filter(|_| !is_open), ctstate, ..arrival }
    }

    /// Whether a rule may match the packet and may not, by what came before.
    pub(super) fn hangs_on_past(
        &self,
        files: &[RulesFile],
        at: RuleRef,
        transit: &Transit<'_, '_>,
    ) -> bool {
        if !self.has_past {
            return false;
        }
        let file = files.iter().find(|file| file.ruleset.family == transit.family);
        let Some(file) = file else { return false };
        let hangs = |used: &MatchUse| match used.body.states() {
            Some(_) => self.state.is_none(),
            None if &*used.name == "set" => changes_sets(file),
            None => used.memory.is_some() || is_of_past(&used.name),
        };
        let (.., rule) = file.rule(at);
        if !rule.matches.iter().any(&hangs) {
            return false;
        }
        let tests = tests_of(transit.family, rule, transit);
        let (own, used) = tests.split_at(tests.len() - rule.matches.len());
        let used = used.iter().zip(&rule.matches).filter(|(_, used)| !hangs(used));
        own.iter().chain(used.map(|(test, _)| test)).all(|test| test.outcome != Some(Outcome::NO))
    }
}

/// What contradicts rules here.
const LOG: &str = "the line of the log";

/// Matches of what packets before left, besides matches that remember it themselves. Marks may be a connection's.
const OF_PAST: [&str; 7] =
    ["connbytes", "connlabel", "connmark", "conntrack", "helper", "mark", "rateest"];

/// Whether a match asks for what packets before left; matches of nft have the names of what they read.
fn is_of_past(name: &str) -> bool {
    let reads = |part: &str| part.starts_with("ct ") || part.starts_with("meta mark");
    OF_PAST.contains(&name) || name.split(" . ").any(reads)
}

/// Matches that say the same of a packet wherever it comes in a table that rewrites none.
const LASTING: [&str; 14] = [
    "addrtype", "ah", "bpf", "cgroup", "esp", "geoip", "mac", "osf", "owner", "policy", "set",
    "string", "tcpmss", "u32",
];

/// What the rule that logged a packet proves of the rules after it in its table.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    /// Tests that hold.
    hold: Vec<String>,
    /// The rule that was asked last, where something is proved of it.
    last: Option<(RuleRef, Proof)>,
}

impl Proofs {
    /// Returns what is proved of a rule, if it was asked last.
    pub(super) fn of(&self, at: RuleRef) -> Proof {
        self.last.filter(|(last, _)| *last == at).map_or(Proof::Nothing, |(_, proof)| proof)
    }

    /// A rule was asked that may match.
    pub(super) fn rule(
        &mut self,
        known: &Known,
        files: &[RulesFile],
        at: RuleRef,
        outcome: Outcome,
        transit: &Transit<'_, '_>,
    ) {
        self.last = None;
        let is_it = known.may_be(transit.family, at);
        if !is_it && (self.hold.is_empty() || outcome.is_known()) {
            return;
        }
        let Some(file) = files.iter().find(|file| file.ruleset.family == transit.family) else {
            return;
        };
        let (table, _, rule) = file.rule(at);
        if is_it {
            self.last = Some((at, Proof::Came));
            if matches!(&*table.name, "raw" | "filter" | "security") && !changes_sets(file) {
                self.hold = tests_of_text(transit.family, rule);
                self.hold.retain(|test| is_lasting(test));
            }
            return;
        }
        let holds =
            |test: &Test| test.outcome == Some(Outcome::YES) || self.hold.contains(&test.text);
        if tests_of(transit.family, rule, transit).iter().all(holds) {
            self.last = Some((at, Proof::Matches));
        }
    }
}

fn is_lasting(test: &str) -> bool {
    let name = test.strip_prefix("-m ").and_then(|rest| rest.split(' ').next());
    name.is_some_and(|name| LASTING.contains(&name))
}

/// Whether a rule puts packets' addresses into sets, or takes them out.
fn changes_sets(file: &RulesFile) -> bool {
    file.rules().any(
        |(.., rule)| matches!(&rule.action, Action::Target(target) if target.body.changes_sets()),
    )
}

/// Tells the story of a packet, which `walked` tells with what is known of who logged it, so that it holds what the line of
/// the log proves, if it comes from one.
pub(super) fn hold(
    loggers: &Loggers,
    spec: &Spec,
    walked: impl Fn(&Known) -> (Story, Vec<RuleRef>),
) -> Story {
    let plain = || walked(&Known::default()).0;
    let Some((prefix, family)) = spec.logged.as_ref().zip(family_of(spec)) else { return plain() };
    let hooks = hooks_of(spec);
    let Some(may) = loggers.of_line(prefix, family, hooks) else { return plain() };
    if may.is_empty() {
        let what = format!(
            "no rule here that logs at this place has the prefix of the line, \"{}\"",
            prefix.text.trim_end()
        );
        return Story { contradiction: Some(Contradiction { by: LOG, what }), ..plain() };
    }
    let is_before = |logger: &&Logger| {
        logger.hooks.iter().all(|hook| *hook == Hook::Prerouting || !hooks.contains(hook))
    };
    let mut known = Known {
        family: Some(family),
        rules: may.iter().map(|logger| logger.at).collect(),
        before_routing: may.iter().all(is_before),
        ..Known::default()
    };
    let (mut story, mut met) = walked(&known);
    if met.is_empty() {
        known.has_past = true;
        let open = walked(&known);
        if !open.1.is_empty() {
            (story, met) = in_its_state(&mut known, open, &walked);
        }
    }
    let shown = |is_met: &dyn Fn(&RuleRef) -> bool| -> Vec<String> {
        let rules = may.iter().filter(|logger| is_met(&logger.at));
        rules.map(|logger| logger.shown.clone()).collect()
    };
    let mut told = match met[..] {
        [] => {
            let rules = shown(&|_| true).join(" or ");
            let what = format!("{rules} wrote the line, {}", story.not_there(&known));
            Story { contradiction: Some(Contradiction { by: LOG, what }), ..story }
        }
        [rule] => {
            known.rules = vec![rule];
            known.is_sure = true;
            let (story, _) = walked(&known);
            Story { logged: shown(&|at| *at == rule), ..story }
        }
        _ => Story { logged: shown(&|at| met.contains(at)), ..story },
    };
    if !known.has_past {
        told.assumed.push("nothing else came before it".to_owned());
    }
    told
}

/// The story of a packet that something came before, in the one state of its connection that leads it to a rule that may
/// have logged it; where several do, as it is `open`.
fn in_its_state(
    known: &mut Known,
    open: (Story, Vec<RuleRef>),
    walked: impl Fn(&Known) -> (Story, Vec<RuleRef>),
) -> (Story, Vec<RuleRef>) {
    let states = CtState::ALL.into_iter().map(Some);
    let told = states.map(|state| (state, walked(&Known { state, ..known.clone() })));
    let mut found: Vec<_> = told.filter(|(_, (_, met))| !met.is_empty()).collect();
    match (found.pop(), found.is_empty()) {
        (Some((state, told)), true) => {
            known.state = state;
            told
        }
        _ => open,
    }
}

impl Story {
    /// Why none of the rules that may have logged the packet did.
    fn not_there(&self, known: &Known) -> String {
        let refused = self.steps.iter().find_map(|step| match step {
            Step::Rule { at, outcome: Outcome::NO, refused, .. } if known.rules.contains(at) => {
                Some(refused.as_deref().unwrap_or("its tests"))
            }
            _ => None,
        });
        match refused {
            Some(test) => format!("but does not match the packet: {test}"),
            None => "but the packet does not come to it here".to_owned(),
        }
    }
}

/// The family of a packet that a line of the log shows.
fn family_of(spec: &Spec) -> Option<Family> {
    Some(if spec.source()?.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 })
}

/// The hooks at which a packet has the interfaces of a line.
fn hooks_of(spec: &Spec) -> &'static [Hook] {
    match (&spec.input, &spec.output) {
        (Some(_), None) => &[Hook::Prerouting, Hook::Input],
        (None, Some(_)) => &[Hook::Output, Hook::Postrouting],
        (Some(_), Some(_)) => &[Hook::Forward, Hook::Postrouting],
        (None, None) => {
            &[Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting]
        }
    }
}
