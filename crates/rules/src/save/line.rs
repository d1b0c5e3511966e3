//! Reads the rules of one line for a table that stands already: every chain it names must be there.

use super::options::Arguments;
use super::rule;
use super::rule::{RuleLine, Setting, Verdict};
use super::warnings::{LineWarnings, Warnings};
use crate::error::What;
use crate::family::{Family, Hook};
use crate::lexer::Word;
use crate::model::{Action, Rule};

/// The chain that the line is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain<'a> {
    pub(crate) family: Family,
    pub(crate) table: &'a str,
    pub(crate) hook: Option<Hook>,
    pub(crate) name: &'a str,
}

/// The rules that a line `-A CHAIN …` makes, one for each pair of listed addresses. `chain_of` finds chains.
pub(crate) fn rules(
    list: Vec<Word<'_>>,
    end: u32,
    chain: Chain<'_>,
    chain_of: impl Fn(&str) -> Option<u32>,
) -> Result<Vec<Rule>, What> {
    let Chain { family, table, hook, name } = chain;
    let is_chain = |name: &str| chain_of(name).is_some();
    let warnings = &mut Warnings { strict: true, ..Warnings::default() };
    let words = &mut Arguments::new(list, end);
    let (place, own) = rule::command(words)?;
    let mut parsed = RuleLine::new(place, own, family);
    parsed.read(words, is_chain, &mut LineWarnings { warnings, line: 1 })?;
    if parsed.other_family {
        return Err(What::new(1, "a rule of this family, without the other's -4 or -6"));
    }
    let at = Setting { family, table, hook, chain: name, strict: true };
    parsed.check(at)?;
    let counters = parsed.counters.unwrap_or_default();
    parsed
        .headers()
        .map(|header| {
            let built = parsed.build(at)?;
            let action = match (built.target, &parsed.verdict) {
                (Some(target), _) => Action::Target(target),
                (None, verdict) => action(verdict.as_ref(), chain, &chain_of)?,
            };
            Ok(Rule {
                header,
                matches: built.matches,
                action,
                counters,
                line: 0,
                slot: 0,
                id: 0,
                listed: None,
            })
        })
        .collect()
}

fn action(
    verdict: Option<&Verdict<'_>>,
    at: Chain<'_>,
    chain_of: impl Fn(&str) -> Option<u32>,
) -> Result<Action, What> {
    let find = |name: &Word<'_>| {
        let none = || What::new(name.column, format!("a chain, found \"{}\"", name.text));
        chain_of(&name.text).ok_or_else(none)
    };
    Ok(match verdict {
        None => Action::None,
        Some(Verdict::Accept) => Action::Accept,
        Some(Verdict::Drop) => Action::Drop,
        Some(Verdict::Return) => Action::Return,
        Some(Verdict::Jump(name)) => match chain_of(&name.text) {
            Some(chain) => Action::Jump(chain),
            None => {
                let target = rule::unknown_target(name, Vec::new(), at.table, at.family)?;
                Action::Target(Box::new(target))
            }
        },
        Some(Verdict::Goto(name)) => Action::Goto(find(name)?),
    })
}
