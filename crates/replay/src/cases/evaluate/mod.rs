//! Holds rules to cases.

use std::sync::Arc;
use std::time::Instant;

use dataplane::{Disposition, Evaluator};
use host::Host;
use packet::visible;
use rules::eval::{By, RuleRef};
use rules::model::{Chain, Rule, Table};
use rules::save::{LoadOptions, load, print_rule};

use super::{Case, Cases, Expect, ExpectedBy, PlaceName};
use crate::decider::Decider;
use crate::report::walk_flags;
use crate::rules_file::{RulesFile, program};
use crate::shell;
use crate::spec::{self, Lack, Spec, arrivals};
use crate::walk::Setup;
use crate::why::{self, Past, Story};

/// Connections that there is room for in every case.
const LEAST_CONNECTIONS: usize = 16;

/// The result of every case. They own what they show.
#[derive(Debug)]
pub struct Results {
    /// The file that they are from.
    pub cases: Arc<Cases>,
    /// The rules that evaluated them, at most one file for each family.
    pub files: Arc<[RulesFile]>,
    /// Options to be typed again for the same answer.
    pub(super) options: String,
    /// Results of the cases, in their order.
    pub results: Vec<CaseResult>,
    /// Wall time in seconds.
    pub elapsed_s: f64,
}

/// The result of one case.
#[derive(Debug)]
pub struct CaseResult {
    /// What was asked, by its index in the file.
    pub case: usize,
    /// Results of the packets, in their order.
    pub got: Vec<Got>,
    /// What was expected and what came instead, in words; `None` if the case passes.
    pub wrong: Option<Wrong>,
    /// Wall time in seconds.
    pub elapsed_s: f64,
}

/// Why a case fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Index of the packet whose verdict was not as expected.
    pub packet: usize,
    /// What was expected and what came instead.
    pub what: String,
}

impl Wrong {
    /// `what` stays on one line, whatever the cases file says in `by` and `by_text`.
    fn new(packet: usize, what: &str) -> Self {
        Self { packet, what: visible::word(what).into_owned() }
    }
}

/// The result of one packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Got {
    /// The word of `--verdicts`.
    pub verdict: &'static str,
    /// What decided, if a rule, a policy or the time to live did.
    pub by: Option<Decided>,
    /// What may have decided, in words, where one of several did.
    pub either: Option<String>,
}

/// What decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Where it stands in the rules.
    pub place: PlaceName,
    /// Line in the rules file, 0 if none.
    pub line: u32,
    /// The rule's text, or the policy in words.
    pub text: String,
    /// A rule decided, and `text` is its canonical text.
    pub is_rule: bool,
}

/// Runs the cases. `also` are options to be typed again besides the options that follow from the configuration.
#[must_use]
pub fn evaluate(
    cases: impl Into<Arc<Cases>>,
    files: &[RulesFile],
    setup: &Setup,
    also: &str,
) -> Results {
    let started = Instant::now();
    let cases = cases.into();
    let each = cases.cases.iter().enumerate();
    let results = each.map(|(at, case)| CaseResult::of(at, case, files, setup)).collect();
    let options = format!("{also}{}", walk_flags(files, &setup.config, spec::CT));
    let files = files.into();
    Results { cases, files, options, results, elapsed_s: started.elapsed().as_secs_f64() }
}

impl CaseResult {
    fn of(at: usize, case: &Case, files: &[RulesFile], setup: &Setup) -> Self {
        let started = Instant::now();
        let specs = case.packets.iter().map(|packet| &packet.spec);
        let got = conversation(specs, files, setup);
        let wrong =
            wrong_verdict(case, &got, files, setup).or_else(|| wrong_decider(case, &got, files));
        Self { case: at, got, wrong, elapsed_s: started.elapsed().as_secs_f64() }
    }
}

/// A setup with room for the connections of a conversation of `packets` packets: every case has a table of its own.
fn small(setup: &Setup, packets: usize) -> Setup {
    let mut small = setup.clone();
    let listed = small.start.connections.as_ref().map_or(0, |listing| listing.len());
    // Each packet may begin a connection, and a helper's.
    let max = &mut small.config.ct.max;
    *max = (*max).min((2 * packets + listed).max(LEAST_CONNECTIONS));
    small
}

/// The results of packets that arrive one after the other.
pub(super) fn conversation<'s>(
    specs: impl Iterator<Item = &'s Spec> + Clone,
    files: &[RulesFile],
    setup: &Setup,
) -> Vec<Got> {
    let program = program(files, &small(setup, specs.clone().count()));
    let mut evaluator = Evaluator::new(&program);
    let ends = arrivals(specs, program.config()).map(|(_, mut frame, arrival)| {
        evaluator.handle(&mut frame, &arrival, &mut Past::default()).outcome.end
    });
    ends.map(|end| Got::of(&end, files, &program.config().host)).collect()
}

/// The first packet whose verdict is another one.
fn wrong_verdict(case: &Case, got: &[Got], files: &[RulesFile], setup: &Setup) -> Option<Wrong> {
    let pairs = case.packets.iter().zip(got).enumerate();
    let (packet, (expected, got)) =
        pairs.into_iter().find(|(_, (expected, got))| expected.verdict.word() != got.verdict)?;
    let which = which(case, packet);
    let mut what = format!("{which}expected {}, got {}", expected.verdict.word(), got.words());
    if got.verdict == Expect::Unknown.word()
        && let Some(story) = story(case, packet, files, setup)
    {
        if let Some(reasons) = story.depends_on() {
            what = format!("{what}: depends on {reasons}");
        }
        what.push_str(&to_give(&story.lacks()));
    }
    Some(Wrong::new(packet, &what))
}

/// What to write so that the verdict of a packet is known, which hangs on what its words do not give.
fn to_give(lacks: &[Lack]) -> String {
    let examples: Vec<&str> = lacks.iter().map(|lack| lack.example()).collect();
    let mut lines: Vec<&str> = lacks.iter().filter_map(|lack| lack.default()).collect();
    if lacks.is_empty() {
        return String::new();
    }
    lines.dedup();
    let examples = examples.join(", and ");
    match lines.is_empty() {
        true => format!(", which is not given: write {examples} in the packet"),
        false => format!(
            ", which is not given: write {examples} in the packet, or for all packets below [defaults]: {}",
            lines.join("; ")
        ),
    }
}

/// The story of a packet of a case: the conversation is walked once more, up to it.
fn story(case: &Case, packet: usize, files: &[RulesFile], setup: &Setup) -> Option<Story> {
    let specs: Vec<Spec> = case.packets.iter().take(packet + 1).map(|p| p.spec.clone()).collect();
    let (last, before) = specs.split_last()?;
    Some(why::of_conversation(files, &small(setup, specs.len()), before, last, None))
}

/// The last packet, if something else decided it.
fn wrong_decider(case: &Case, got: &[Got], files: &[RulesFile]) -> Option<Wrong> {
    let packet = got.len().checked_sub(1)?;
    let (expected, last) = (case.by.as_ref()?, &got[packet]);
    let by = last.by.as_ref();
    let (named, remark) = match expected {
        ExpectedBy::Place(place) if by.is_some_and(|by| by.place == *place) => return None,
        ExpectedBy::Place(place) => (place.to_string(), gone(place, files)),
        ExpectedBy::Text(text) => match canonical(text, files) {
            Ok(texts) if by.is_some_and(|by| by.is_rule && texts.contains(&by.text)) => {
                return None;
            }
            Ok(texts) => (text.clone(), not_found(&texts, files)),
            Err(what) => (text.clone(), Some(format!("no such rule: expected {what}"))),
        },
    };
    let remark = remark.map_or_else(String::new, |remark| format!(" ({remark})"));
    let (which, verdict) = (which(case, packet), last.verdict);
    let what = format!("{which}expected {verdict} by {named}{remark}, got {}", last.words());
    Some(Wrong::new(packet, &what))
}

/// The packet of a conversation that is meant.
fn which(case: &Case, packet: usize) -> String {
    match case.packets.len() {
        1 => String::new(),
        packets => format!("packet {} of {packets}: ", packet + 1),
    }
}

/// What to say of a place that the rules do not have.
fn gone(place: &PlaceName, files: &[RulesFile]) -> Option<String> {
    let (table, chain, number) = match place {
        PlaceName::Rule { table, chain, number } => (table, chain, *number),
        PlaceName::Policy { table, chain } => (table, chain, 0),
        PlaceName::Ttl => return None,
    };
    let tables: Vec<&Table> = files.iter().filter_map(|file| file.ruleset.table(table)).collect();
    if tables.is_empty() {
        return Some(format!("there is no table {table}"));
    }
    let found = tables.iter().filter_map(|table| {
        let rules = &table.chains[table.chain_index(chain)?].rules;
        let listed = rules.last().and_then(|rule| rule.listed.as_ref());
        Some(listed.map_or(rules.len(), |listed| listed.number as usize))
    });
    match found.max() {
        None => Some(format!("table {table} has no chain {chain}")),
        Some(has) => (number > has).then(|| format!("chain {chain} has {has} rules")),
    }
}

/// The canonical texts of a rule, one for each table that takes it.
fn canonical(text: &str, files: &[RulesFile]) -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    let mut refused = None;
    for file in files {
        if file.listing.is_some() {
            texts.extend(listed(text, file));
        }
        if file.listing.is_some() && file.others.is_empty() {
            continue;
        }
        for table in &file.ruleset.tables {
            match canonical_in(table, text, file) {
                Ok(text) => texts.push(text),
                Err(what) => refused = refused.or(Some(what)),
            }
        }
    }
    match refused {
        Some(what) if texts.is_empty() => Err(what),
        _ => Ok(texts),
    }
}

/// The texts of the rules of nft that are listed so: with their table and chain or without, as with their comment and their
/// handle.
fn listed<'t>(text: &'t str, file: &'t RulesFile) -> impl Iterator<Item = String> + use<'t> {
    let is_it = move |(at, .., rule): &(RuleRef, &Table, &Chain, &Rule)| {
        let alone = rule.listed.as_ref().is_some_and(|listed| *listed.text == *text);
        alone || text == file.text_in_chain(*at) || text == file.rule_text(*at)
    };
    file.rules().filter(is_it).map(|(at, ..)| file.rule_text(at))
}

/// Reads a rule as if it stood in this table, among its chains.
fn canonical_in(table: &Table, text: &str, rules: &RulesFile) -> Result<String, String> {
    let family = rules.ruleset.family;
    let mut file = format!("*{}\n", table.name);
    for chain in &table.chains {
        let policy = chain.base.map_or_else(|| "-".to_owned(), |base| base.policy.to_string());
        file.push_str(&format!(":{} {policy} [0:0]\n", chain.name));
    }
    file.push_str(&format!("{}\nCOMMIT\n", text.replace(['\n', '\r'], " ")));
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    let loaded = load(&file, &options).map_err(|error| error.what)?;
    let chains = loaded.ruleset.tables.first().map_or(&[][..], |table| &table.chains);
    let added = chains.iter().find_map(|chain| Some((chain, chain.rules.first()?)));
    match (loaded.ruleset.tables.first(), added) {
        (Some(table), Some((chain, rule))) => Ok(print_rule(family, table, chain, rule)),
        _ => Err("-A CHAIN …".to_owned()),
    }
}

/// What to say of a text that no rule has.
fn not_found(texts: &[String], files: &[RulesFile]) -> Option<String> {
    let has = |file: &RulesFile| file.rules().any(|(at, ..)| texts.contains(&file.rule_text(at)));
    let found = files.iter().any(has);
    (!found).then(|| "no rule reads so".to_owned())
}

impl Got {
    pub(super) fn of(end: &Disposition, files: &[RulesFile], host: &Host) -> Self {
        let decider = Decider::of(end, None);
        let by = PlaceName::of(&decider, files).map(|place| {
            let family = |family| files.iter().find(|file| file.ruleset.family == family);
            let found = decider.place(host, family);
            let is_rule = matches!(decider, Decider::Rules(_, By::Rule(_)));
            Decided { place, line: found.line.unwrap_or(0), text: found.text, is_rule }
        });
        let either = matches!(decider, Decider::Either(..)).then(|| {
            decider
                .place(host, |family| files.iter().find(|file| file.ruleset.family == family))
                .text
        });
        Self { verdict: end.verdict.word(), by, either }
    }

    /// The verdict and what decided it.
    #[must_use]
    pub fn words(&self) -> String {
        if let Some(either) = &self.either {
            return format!("{} by {either}", self.verdict);
        }
        match &self.by {
            None if self.verdict == "skip" => "skip: there are no rules for its family".to_owned(),
            None => self.verdict.to_owned(),
            Some(Decided { place: PlaceName::Ttl, text, .. }) => {
                format!("{} by {text}", self.verdict)
            }
            Some(Decided { place: place @ PlaceName::Policy { .. }, line, .. }) => {
                format!("{} by {place} L{line}", self.verdict)
            }
            Some(Decided { place, line, text, .. }) => {
                format!("{} by {place} L{line} {text}", self.verdict)
            }
        }
    }
}

impl Results {
    /// How many cases pass.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.results.len() - self.failed().count()
    }

    /// What a result is about.
    #[must_use]
    pub fn case(&self, result: &CaseResult) -> &Case {
        &self.cases.cases[result.case]
    }

    /// The cases that fail, each with why.
    pub fn failed(&self) -> impl Iterator<Item = (&Case, &Wrong)> {
        let failed = self.results.iter().filter_map(|of| Some((of, of.wrong.as_ref()?)));
        failed.map(|(of, wrong)| (self.case(of), wrong))
    }

    /// The command that tells the story of a packet of a case, with more options.
    #[must_use]
    pub fn why_command(&self, case: &Case, packet: usize, more: &str) -> String {
        let rules = self.files.first().map_or("RULES", |file| &*file.given);
        let packets = case.packets.iter().take(packet + 1);
        let packets = packets.map(|packet| shell::option("packet", &packet.typed));
        let options = self.options.clone() + &packets.collect::<String>() + more;
        shell::command("why", &[rules], &options)
    }
}

#[cfg(test)]
mod tests;
