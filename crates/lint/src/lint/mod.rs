//! Findings in rules, each checked before it is one.
//!
//! Whatever depends on packets is found with all of them at once ([`crate::flow()`]), and then held to the reference
//! walk: packets drawn from what a rule that never matches would match have to get past it. A finding that the walk
//! contradicts is none; it is counted, as a fault of ours.

mod chains;
mod check;
mod code;
mod dead;
mod exposed;
mod names;
mod redundant;
mod wide;

use host::{Links, Policy};
use rules::eval::{Memories, RuleRef};
use rules::ipset::Sets;
use rules::model::{Chain, Hook, Rule, Ruleset, Table};
use rules::save::print_rule;
use serde::Serialize;

use crate::diagram::TooLarge;
use crate::flow::{Altered, Flow, Remembering, Sent, Visit, flow};
use crate::space::Space;

pub use code::{Code, Severity};

/// Something that is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Table.
    pub table: String,
    /// Chain.
    pub chain: String,
    /// Line of the rule, or of the chain's declaration, from 1.
    pub line: u32,
    /// The rule as it prints, or the chain's name.
    pub rule: String,
    /// What is wrong, in a sentence.
    pub text: String,
    /// The chain, set or mark that it is about, where it is not the rule.
    #[serde(skip)]
    pub about: String,
    /// Lines of the rules that make it so.
    pub by: Vec<u32>,
    /// A packet that shows it, as `tamis why --packet` takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<String>,
}

/// All that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// In the order of the file.
    pub findings: Vec<Finding>,
    /// Tables that were too large, so that what depends on packets is not known of them.
    pub unproven: Vec<String>,
    /// Findings that the reference walk contradicted, and which therefore are none.
    pub contradicted: usize,
}

/// What is known of the host that rules stand on.
#[derive(Debug, Clone, Default)]
pub struct OnHost {
    /// Its links.
    pub links: Option<Links>,
    /// Its sets.
    pub sets: Option<Sets>,
    /// Its policy rules, which may route by mark.
    pub policy: Option<Policy>,
}

/// Looks for everything that there is to find. `links` are those of the host, if they are known.
#[must_use]
pub fn lint(ruleset: &Ruleset, links: Option<&Links>) -> Findings {
    lint_on(ruleset, &OnHost { links: links.cloned(), ..OnHost::default() })
}

/// The same with all that is known of the host.
#[must_use]
pub fn lint_on(ruleset: &Ruleset, host: &OnHost) -> Findings {
    let mut all = Findings { findings: names::findings(ruleset, host), ..Findings::default() };
    all.findings.extend(exposed::findings(ruleset));
    let links = host.links.as_ref();
    for (index, table) in ruleset.tables.iter().enumerate() {
        let used = chains::used(table);
        all.findings.extend(chains::findings(ruleset, table, &used));
        if let Some(links) = links.filter(|links| !links.is_empty()) {
            all.findings.extend(chains::lacking_interfaces(ruleset, table, links));
        }
        match of_packets(ruleset, index, &used) {
            Ok(found) => {
                all.findings.extend(found.findings);
                all.contradicted += found.contradicted;
            }
            Err(TooLarge) => all.unproven.push(table.name.to_owned()),
        }
    }
    all.findings.sort_by_key(|finding| (finding.line, finding.severity, finding.code));
    all
}

/// All packets through one table.
pub(super) struct Examined<'r> {
    ruleset: &'r Ruleset,
    index: usize,
    table: &'r Table,
    space: Space,
    flows: Vec<Flow>,
    /// For each chain and rule the places of its visits.
    places: Vec<Vec<Vec<Place>>>,
    /// What tests remember of the packets that findings are held to.
    memories: Memories,
}

/// A flow and a visit in it.
type Place = (usize, usize);

fn of_packets(ruleset: &Ruleset, index: usize, used: &[bool]) -> Result<Findings, TooLarge> {
    let mut examined = Examined::of(ruleset, index)?;
    let mut found = Findings::default();
    let mut dead = dead::findings(&mut examined, used)?;
    dead.retain(|(at, finding)| {
        let holds = check::never_hits(&mut examined, *at, finding.code);
        found.contradicted += usize::from(!holds);
        holds
    });
    let are_dead: Vec<RuleRef> = dead.iter().map(|(at, _)| *at).collect();
    found.findings.extend(dead.into_iter().map(|(_, finding)| finding));
    found.findings.extend(redundant::findings(&mut examined, &are_dead)?);
    found.findings.extend(wide::findings(&mut examined)?);
    Ok(found)
}

impl<'r> Examined<'r> {
    fn of(ruleset: &'r Ruleset, index: usize) -> Result<Self, TooLarge> {
        let table = &ruleset.tables[index];
        let mut space = Space::of(&[ruleset]);
        let sent = Sent { remembering: Remembering::Apart(""), altered: Altered::GoesOn };
        let mut flows = Vec::new();
        for hook in Hook::ALL {
            flows.extend(flow(&mut space, ruleset, index, hook, sent)?);
        }
        let mut places: Vec<Vec<Vec<Place>>> =
            table.chains.iter().map(|chain| vec![Vec::new(); chain.rules.len()]).collect();
        for (number, flow) in flows.iter().enumerate() {
            for (at, visit) in flow.visits.iter().enumerate() {
                places[visit.at.chain as usize][visit.at.rule as usize].push((number, at));
            }
        }
        let memories = Memories::of(ruleset);
        Ok(Self { ruleset, index, table, space, flows, places, memories })
    }

    fn chain(&self, at: RuleRef) -> &'r Chain {
        &self.table.chains[at.chain as usize]
    }

    fn rule(&self, at: RuleRef) -> &'r Rule {
        &self.chain(at).rules[at.rule as usize]
    }

    fn line(&self, at: RuleRef) -> u32 {
        self.rule(at).line
    }

    fn places(&self, at: RuleRef) -> &[Place] {
        &self.places[at.chain as usize][at.rule as usize]
    }

    fn visits(&self, at: RuleRef) -> impl Iterator<Item = (&Flow, &Visit)> {
        self.places(at).iter().map(|(flow, visit)| {
            let flow = &self.flows[*flow];
            (flow, &flow.visits[*visit])
        })
    }

    /// Every rule of the table, in the order of the file.
    fn rules(&self) -> impl Iterator<Item = RuleRef> + use<'r> {
        let table = self.index as u32;
        self.table.chains.iter().enumerate().flat_map(move |(chain, rules)| {
            (0..rules.rules.len() as u32).map(move |rule| RuleRef {
                table,
                chain: chain as u32,
                rule,
            })
        })
    }

    /// The name of the built-in chain at a hook.
    fn hook_name(&self, hook: Hook) -> &'r str {
        self.table.base_chain(hook).map_or("", |chain| &self.table.chains[chain].name)
    }

    fn lines_of(&self, rules: &[RuleRef]) -> Vec<u32> {
        let mut lines: Vec<u32> = rules.iter().map(|at| self.line(*at)).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    fn finding(&self, at: RuleRef, code: Code, severity: Severity, text: String) -> Finding {
        of_rule(self.ruleset, self.table, self.chain(at), self.rule(at), (code, severity, text))
    }
}

/// A finding about a rule.
fn of_rule(
    ruleset: &Ruleset,
    table: &Table,
    chain: &Chain,
    rule: &Rule,
    (code, severity, text): (Code, Severity, String),
) -> Finding {
    Finding {
        code,
        severity,
        table: table.name.to_owned(),
        chain: chain.name.to_string(),
        line: rule.line,
        rule: print_rule(ruleset.family, table, chain, rule),
        text,
        about: String::new(),
        by: Vec::new(),
        witness: None,
    }
}

/// `line 7`, `lines 7, 9 and 12`, `lines 7, 9, 12 and 40 more`.
fn lines(numbers: &[u32]) -> String {
    const MOST: usize = 6;
    let words = |numbers: &[u32]| {
        let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
        words.join(", ")
    };
    match numbers {
        [] => "no line".to_owned(),
        [one] => format!("line {one}"),
        [most @ .., last] if numbers.len() <= MOST => format!("lines {} and {last}", words(most)),
        _ => format!("lines {} and {} more", words(&numbers[..MOST]), numbers.len() - MOST),
    }
}
