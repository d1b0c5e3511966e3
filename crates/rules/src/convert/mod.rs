//! Translates rules from one family's text to another's.
//!
//! A rule is translated whole or left out: with a test less it would mean something else. What is left out,
//! and what a rule that is kept does not say any more, is a [`Loss`]. Every translated rule is loaded again as
//! the restore command would, so that nothing comes out that the other family refuses.
//!
//! Contract: rules of the same family come back as they print. Chains are kept, empty or not.

mod between;
mod draft;
mod extension;
mod piece;

use std::fmt::Write;

use crate::family::{Family, TableKind};
use crate::model::{Action, Chain, Counters, FallThrough, Policy, Rule, Ruleset, Table};
use crate::save::{LoadOptions, load, print_rule, print_ruleset};

use draft::{Draft, ethertype};

/// Something that the other family's text does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Line of the rule, from 1; of a chain, the line that declares it, or 0.
    pub line: u32,
    /// The rule or chain as it prints.
    pub text: String,
    /// What the translation leaves out.
    pub what: String,
    /// Without it packets may get another verdict: a rule that decides or leads elsewhere, or a policy. Not so a rule that
    /// is kept and says less.
    pub decides: bool,
}

/// Rules of another family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// Save text.
    pub text: String,
    /// What it lacks.
    pub losses: Vec<Loss>,
}

/// Translates a ruleset.
#[must_use]
pub fn convert(ruleset: &Ruleset, to: Family) -> Converted {
    if ruleset.family == to {
        let text = print_ruleset(ruleset, false, |t, c, rule| match rule {
            None => ruleset.counters(t, c, None),
            Some(_) => Counters::default(),
        });
        return Converted { text, losses: Vec::new() };
    }
    let mut conversion = Conversion { from: ruleset.family, to, losses: Vec::new() };
    let text = ruleset.tables.iter().map(|table| conversion.table(table)).collect();
    Converted { text, losses: conversion.losses }
}

struct Conversion {
    from: Family,
    to: Family,
    losses: Vec<Loss>,
}

impl Conversion {
    fn table(&mut self, table: &Table) -> String {
        // Tables of one name do one thing in all families but nat, whose rules translate different addresses.
        let both_ip = self.from.is_ip() && self.to.is_ip();
        let known =
            self.to.table(&table.name).filter(|_| both_ip || table.name == TableKind::FILTER);
        let Some(kind) = known else {
            for chain in &table.chains {
                let what = || format!("table {}", table.name);
                if chain.base.is_some_and(|base| base.policy == Policy::Drop) {
                    self.lose(chain.line, format!(":{} DROP", chain.name), what(), true);
                }
                for rule in &chain.rules {
                    let text = print_rule(self.from, table, chain, rule);
                    self.lose(rule.line, text, what(), decides(rule));
                }
            }
            return String::new();
        };
        let mut text = format!("*{}\n", kind.name);
        for chain in &table.chains {
            self.declare(chain, &mut text);
        }
        for chain in &table.chains {
            for rule in &chain.rules {
                self.rule(table, chain, rule, &mut text);
            }
            self.fall_through(chain, &mut text);
        }
        text.push_str(if self.to.dialect().commits { "COMMIT\n" } else { "" });
        text
    }

    /// `:CHAIN POLICY`. What drops all packets of a family must not drop all frames.
    fn declare(&mut self, chain: &Chain, text: &mut String) {
        let policy = match chain.base {
            Some(_) if self.to == Family::Bridge => "ACCEPT".to_owned(),
            Some(base) => base.policy.to_string(),
            None if self.to.dialect().user_policies => "RETURN".to_owned(),
            None => "-".to_owned(),
        };
        let counters = if self.to.dialect().commits { " [0:0]" } else { "" };
        let _ = writeln!(text, ":{} {policy}{counters}", chain.name);
        let drops = chain.base.is_some_and(|base| base.policy == Policy::Drop);
        if drops && self.from == Family::Bridge {
            let what = format!("frames that {} rules do not see are not dropped", self.to.tool());
            self.lose(chain.line, format!(":{} DROP", chain.name), what, true);
        }
    }

    /// What a policy says that has to be a rule here.
    fn fall_through(&mut self, chain: &Chain, text: &mut String) {
        let dropped = chain.base.is_some_and(|base| base.policy == Policy::Drop);
        let verdict = match chain.fall_through {
            _ if dropped && self.to == Family::Bridge => "DROP".to_owned(),
            FallThrough::Policy(policy) if chain.base.is_none() => policy.to_string(),
            _ => return,
        };
        let kind = ethertype(self.from).filter(|_| self.to == Family::Bridge);
        let test = kind.map_or_else(String::new, |kind| format!(" -p {kind}"));
        let _ = match self.to.dialect().target_first {
            true => writeln!(text, "-A {} -j {verdict}", chain.name),
            false => writeln!(text, "-A {}{test} -j {verdict}", chain.name),
        };
    }

    fn rule(&mut self, table: &Table, chain: &Chain, rule: &Rule, text: &mut String) {
        let source = print_rule(self.from, table, chain, rule);
        let translated = between::translate(self.from, self.to, table, rule)
            .and_then(|draft| self.printed(table, chain, rule, &draft).map(|line| (line, draft)));
        match translated {
            Ok((line, draft)) => {
                text.push_str(&line);
                text.push('\n');
                for what in draft.notes {
                    self.lose(rule.line, source.clone(), what, false);
                }
            }
            Err(what) => self.lose(rule.line, source, what, decides(rule)),
        }
    }

    /// The rule in the other family's own text, or what that refuses about it.
    fn printed(
        &self,
        table: &Table,
        chain: &Chain,
        rule: &Rule,
        draft: &Draft,
    ) -> Result<String, String> {
        let policy = |chain: &Chain| match chain.base {
            Some(_) => "ACCEPT",
            None if self.to.dialect().user_policies => "RETURN",
            None => "-",
        };
        let mut text = format!("*{}\n:{} {}\n", table.name, chain.name, policy(chain));
        if let Some(to) = between::jump(table, rule).filter(|to| to.name != chain.name) {
            let _ = writeln!(text, ":{} {}", to.name, policy(to));
        }
        let _ = writeln!(text, "-A {} {}", chain.name, draft.words());
        text.push_str(if self.to.dialect().commits { "COMMIT\n" } else { "" });
        let options = LoadOptions { family: Some(self.to), strict: true, ..LoadOptions::default() };
        let refused = |what: String| format!("{}: expected {what}", self.to.tool());
        let loaded = load(&text, &options).map_err(|error| refused(error.what))?;
        let table = &loaded.ruleset.tables[0];
        let found = table.chains.iter().find_map(|chain| Some((chain, chain.rules.first()?)));
        let (chain, rule) = found.ok_or_else(|| refused("a rule".to_owned()))?;
        Ok(print_rule(self.to, table, chain, rule))
    }

    fn lose(&mut self, line: u32, text: String, what: String, decides: bool) {
        self.losses.push(Loss { line, text, what, decides });
    }
}

/// Whether packets may get another verdict without a rule: not if all that it does is count or tell.
fn decides(rule: &Rule) -> bool {
    const TELLS: [&str; 9] =
        ["LOG", "log", "NFLOG", "nflog", "ULOG", "ulog", "AUDIT", "LED", "TRACE"];
    match &rule.action {
        Action::None => false,
        Action::Target(used) => !TELLS.contains(&&*used.name),
        Action::Accept | Action::Drop | Action::Return | Action::Jump(_) | Action::Goto(_) => true,
    }
}
