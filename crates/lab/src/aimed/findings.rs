//! What `tamis lint` finds in rules, held to packets: what is dead is met by none, and what is redundant changes nothing
//! when it is taken away.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use lint::{Code, Finding, Findings, Region, Space, TooLarge, lint};
use rules::eval::{By, RuleRef};
use rules::ext::Course;
use rules::model::{Action, Hook, Rule, Ruleset};
use rules::predicate::Values;

use super::edges::{Edges, preferred};
use super::edit::copied;
use super::regions::matches;
use super::walk::Walker;

/// Ways that lead to a chain, of those that are looked for packets on.
const WAYS: usize = 8;

/// What a finding says that a packet can contradict.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claim {
    /// No packet is met by these rules.
    Dead(Vec<RuleRef>),
    /// Without this rule every packet gets the same verdict in its table.
    Needless(RuleRef),
    /// Without this rule every packet gets the same verdict on its whole way.
    Unread(RuleRef),
    /// The policy of this chain decides about no packet.
    Decided { table: usize, chain: usize },
}

/// Findings of one ruleset, by what packets can say of them.
#[derive(Debug)]
pub struct Claims<'r> {
    ruleset: &'r Ruleset,
    claims: Vec<(Finding, Claim)>,
    /// All rules that are said to be dead, and by what.
    dead: BTreeMap<RuleRef, usize>,
    /// Findings that packets say nothing of: those about names and idle chains' like, and those that one packet shows.
    pub others: usize,
}

/// What came of one finding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Packets that were walked.
    pub walked: u64,
    /// Of them, those that met the rule which is said to be needless.
    pub met: u64,
}

impl<'r> Claims<'r> {
    /// What lint finds, and what is not proven.
    #[must_use]
    pub fn of(ruleset: &'r Ruleset) -> (Self, Findings) {
        let found = lint(ruleset, None);
        (Self::said(ruleset, &found), found)
    }

    /// What somebody says to have found.
    #[must_use]
    pub fn said(ruleset: &'r Ruleset, found: &Findings) -> Self {
        let mut all = Self { ruleset, claims: Vec::new(), dead: BTreeMap::new(), others: 0 };
        for finding in &found.findings {
            let Some(claim) = claim(ruleset, finding) else {
                all.others += 1;
                continue;
            };
            if let Claim::Dead(rules) = &claim {
                let number = all.claims.len();
                all.dead.extend(rules.iter().map(|at| (*at, number)));
            }
            all.claims.push((finding.clone(), claim));
        }
        all
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.claims.len()
    }

    /// Holds one to so many packets that are aimed at it, and all that are said to be dead to those, too.
    ///
    /// # Errors
    /// A packet contradicts one: in words.
    pub fn hold(&self, number: usize, packets: u64, seed: u64) -> Result<Held, String> {
        let (finding, claim) = &self.claims[number];
        let mut space = Space::of(&[self.ruleset]);
        let aims = self.aims(&mut space, finding, claim);
        let aims = aims.map_err(|error| format!("{}: aims: {error}", finding.line))?;
        let (near, all) = self.edges(&space, finding, claim);
        let less = match claim {
            Claim::Needless(at) | Claim::Unread(at) => Some(without(self.ruleset, *at)),
            Claim::Dead(_) | Claim::Decided { .. } => None,
        };
        let mut walkers = (Walker::of(self.ruleset), less.as_ref().map(Walker::of));
        let (mut held, mut rng) = (Held::default(), Rng::with_seed(seed));
        if aims.is_empty() {
            return Ok(held);
        }
        for count in 0..packets {
            let (table, hook, region) = aims[count as usize % aims.len()];
            let wanted = preferred(space.family(), &near, &all, &mut rng);
            let Some(sample) = space.sample(region, &wanted) else { continue };
            let place = (table, hook);
            let said = match claim {
                Claim::Unread(_) => unread(&mut walkers, hook, &sample, &mut held),
                _ => self.at_table(claim, place, &mut walkers, &sample.values, &mut held),
            };
            said.map_err(|wrong| {
                format!(
                    "line {}: {} {}: {wrong}\n  {}\n  packet at {hook:?} {sample:?}",
                    finding.line, finding.code, finding.text, finding.rule
                )
            })?;
        }
        Ok(held)
    }

    fn at_table(
        &self,
        claim: &Claim,
        (table, hook): (usize, Hook),
        (walker, less): &mut (Walker<'_>, Option<Walker<'_>>),
        values: &Values,
        held: &mut Held,
    ) -> Result<(), String> {
        let Some(walked) = walker.table(table, hook, values) else { return Ok(()) };
        held.walked += 1;
        if let Some(met) = walked.hits.iter().find(|at| self.dead.contains_key(at)) {
            let dead = &self.claims[self.dead[met]].0;
            return Err(format!("line {} ({}) is met by it", dead.line, dead.code));
        }
        match claim {
            Claim::Dead(_) | Claim::Unread(_) => Ok(()),
            Claim::Decided { table, chain } => match walked.verdict {
                Some((_, Some(By::Policy { table: of, chain: at })))
                    if (of as usize, at as usize) == (*table, *chain) =>
                {
                    Err("the policy decides about it".to_owned())
                }
                _ => Ok(()),
            },
            Claim::Needless(at) if walked.hits.contains(at) => {
                held.met += 1;
                let other = less.as_mut().and_then(|less| less.table(table, hook, values));
                let verdict = |it: &lint::Walked| it.verdict.map(|(verdict, _)| verdict);
                let verdicts = (verdict(&walked), other.as_ref().and_then(verdict));
                match verdicts {
                    (Some(with), Some(without)) if with != without => Err(format!(
                        "{with:?} with the rule ({:?}), {without:?} without",
                        walked.verdict
                    )),
                    _ => Ok(()),
                }
            }
            Claim::Needless(_) => Ok(()),
        }
    }

    fn edges(&self, space: &Space, finding: &Finding, claim: &Claim) -> (Edges, Edges) {
        let (mut near, mut all) = (Edges::default(), Edges::default());
        let rules: Vec<RuleRef> = claim.rules();
        for (table, of_table) in self.ruleset.tables.iter().enumerate() {
            for (chain, of_chain) in of_table.chains.iter().enumerate() {
                for (number, rule) in of_chain.rules.iter().enumerate() {
                    let at =
                        RuleRef { table: table as u32, chain: chain as u32, rule: number as u32 };
                    let is_near = rules.contains(&at) || finding.by.contains(&rule.line);
                    let edges = if is_near { &mut near } else { &mut all };
                    edges.note_rule(space, rule);
                }
            }
        }
        all.take(&near);
        (near, all)
    }

    /// Where packets are looked for: at each hook that leads to the rule, those that it matches, come in by the rules that
    /// jump there, with what the named rules take and without it, and all.
    fn aims(
        &self,
        space: &mut Space,
        finding: &Finding,
        claim: &Claim,
    ) -> Result<Vec<(usize, Hook, Region)>, TooLarge> {
        let (table, chain) = claim.place();
        let of_table = &self.ruleset.tables[table];
        let mut own = Region::NONE;
        for at in claim.rules() {
            let region = matches(space, self.rule(at))?;
            own = space.diagrams.or(own, region)?;
        }
        if matches!(claim, Claim::Decided { .. }) {
            own = Region::ALL;
        }
        let mut taken = Vec::new();
        let rules = of_table.chains.iter().flat_map(|chain| &chain.rules);
        for rule in rules.filter(|rule| finding.by.contains(&rule.line)).take(WAYS) {
            taken.push(matches(space, rule)?);
        }
        let mut aims = Vec::new();
        for hook in Hook::ALL {
            let universe = match claim {
                Claim::Unread(_) if hook == Hook::Prerouting => space.arriving()?,
                Claim::Unread(_) if hook == Hook::Output => space.sent()?,
                Claim::Unread(_) => continue,
                _ => space.at_hook(hook)?,
            };
            let Some(base) = of_table.base_chain(hook) else { continue };
            let ways = self.ways(space, table, base, chain)?;
            if ways.is_empty() && !matches!(claim, Claim::Dead(_) | Claim::Unread(_)) {
                continue;
            }
            let mut wanted = vec![Region::ALL, own];
            for way in ways {
                let region = space.diagrams.and(way, own)?;
                // A rule that is dead may have none: then what comes into its chain.
                wanted.extend([region, region, if region.is_empty() { way } else { region }]);
                for one in &taken {
                    wanted.push(space.diagrams.and(region, *one)?);
                    wanted.push(space.diagrams.without(region, *one)?);
                }
            }
            for region in wanted {
                let region = space.diagrams.and(universe, region)?;
                if !region.is_empty() {
                    aims.push((table, hook, region));
                }
            }
        }
        Ok(aims)
    }

    /// What some ways to a chain ask for: every jump of them matches.
    fn ways(
        &self,
        space: &mut Space,
        table: usize,
        from: usize,
        to: usize,
    ) -> Result<Vec<Region>, TooLarge> {
        let chains = &self.ruleset.tables[table].chains;
        let leads: Vec<bool> = leading_to(self.ruleset, table, to);
        let mut found = Vec::new();
        let mut left = vec![(from, Region::ALL, 0)];
        while let Some((chain, region, deep)) = left.pop() {
            if found.len() >= WAYS {
                break;
            }
            if chain == to {
                found.push(region);
                continue;
            }
            for rule in &chains[chain].rules {
                let next = match rule.action {
                    Action::Jump(to) | Action::Goto(to) => to as usize,
                    _ => continue,
                };
                if !leads[next] || deep > chains.len() || left.len() > 64 * WAYS {
                    continue;
                }
                let one = matches(space, rule)?;
                let both = space.diagrams.and(region, one)?;
                if !both.is_empty() {
                    left.push((next, both, deep + 1));
                }
            }
        }
        Ok(found)
    }

    fn rule(&self, at: RuleRef) -> &'r Rule {
        &self.ruleset.tables[at.table as usize].chains[at.chain as usize].rules[at.rule as usize]
    }
}

impl Claim {
    fn rules(&self) -> Vec<RuleRef> {
        match self {
            Self::Dead(rules) => rules.clone(),
            Self::Needless(at) | Self::Unread(at) => vec![*at],
            Self::Decided { .. } => Vec::new(),
        }
    }

    /// Table and chain.
    fn place(&self) -> (usize, usize) {
        match self {
            Self::Decided { table, chain } => (*table, *chain),
            _ => self.rules().first().map_or((0, 0), |at| (at.table as usize, at.chain as usize)),
        }
    }
}

/// What packets can say of a finding, if they can.
fn claim(ruleset: &Ruleset, finding: &Finding) -> Option<Claim> {
    let table = ruleset.tables.iter().position(|table| table.name == *finding.table)?;
    let chains = &ruleset.tables[table].chains;
    let chain = chains.iter().position(|chain| *chain.name == *finding.chain)?;
    let rule =
        |number: usize| RuleRef { table: table as u32, chain: chain as u32, rule: number as u32 };
    let number = chains[chain].rules.iter().position(|rule| rule.line == finding.line);
    match finding.code {
        Code::UnusedChain if chains[chain].rules.is_empty() => None,
        Code::UnusedChain => Some(Claim::Dead((0..chains[chain].rules.len()).map(rule).collect())),
        Code::Shadowed | Code::Unreachable | Code::NeverMatches => {
            Some(Claim::Dead(vec![rule(number?)]))
        }
        Code::Duplicate if ends(&chains[chain].rules[number?]) => {
            Some(Claim::Dead(vec![rule(number?)]))
        }
        Code::Duplicate | Code::Redundant | Code::IdleChain => Some(Claim::Needless(rule(number?))),
        Code::MarkUnread => Some(Claim::Unread(rule(number?))),
        Code::AcceptsAll => Some(Claim::Decided { table, chain }),
        Code::LateState
        | Code::NoSuchInterface
        | Code::MissingSet
        | Code::SetUnread
        | Code::MarkUnset
        | Code::PastInput
        | Code::OpenCommit => None,
    }
}

/// No packet that the rule matches gets to the next one.
fn ends(rule: &Rule) -> bool {
    match &rule.action {
        Action::None | Action::Jump(_) => false,
        Action::Accept | Action::Drop | Action::Return | Action::Goto(_) => true,
        Action::Target(target) => matches!(target.body.course(), Course::Ends(_)),
    }
}

fn without(ruleset: &Ruleset, at: RuleRef) -> Ruleset {
    let mut less = copied(ruleset);
    let rules: &mut Vec<Arc<Rule>> =
        &mut less.tables[at.table as usize].chains[at.chain as usize].rules;
    rules.remove(at.rule as usize);
    less
}

/// For each chain, whether it is another one or leads to it.
fn leading_to(ruleset: &Ruleset, table: usize, to: usize) -> Vec<bool> {
    let chains = &ruleset.tables[table].chains;
    let mut leads = vec![false; chains.len()];
    leads[to] = true;
    loop {
        let mut changed = false;
        for (number, chain) in chains.iter().enumerate() {
            let jumps = |rule: &Arc<Rule>| match rule.action {
                Action::Jump(next) | Action::Goto(next) => leads[next as usize],
                _ => false,
            };
            if !leads[number] && chain.rules.iter().any(jumps) {
                leads[number] = true;
                changed = true;
            }
        }
        if !changed {
            return leads;
        }
    }
}

/// A packet on its whole way, with the rule and without it.
fn unread(
    (walker, less): &mut (Walker<'_>, Option<Walker<'_>>),
    hook: Hook,
    sample: &lint::Sample,
    held: &mut Held,
) -> Result<(), String> {
    let is_sent = hook == Hook::Output;
    let with = walker.whole(is_sent, sample);
    let without = less.as_mut().and_then(|less| less.whole(is_sent, sample));
    let (Some(with), Some(without)) = (with, without) else { return Ok(()) };
    held.walked += 1;
    match with.is_same(&without) {
        true => Ok(()),
        false => Err(format!("{} with the rule, {} without", with.fate, without.fate)),
    }
}
