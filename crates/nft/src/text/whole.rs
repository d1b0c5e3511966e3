//! Whole rulesets, and rules by themselves.

use super::lexer::Kind;
use super::parser::{Includes, Parser};
use super::{Result, commands};
use crate::model::{Family, Rule, Ruleset};

/// Reads a ruleset.
pub fn parse(file: &str, text: &str, includes: &Includes) -> Result<Ruleset> {
    let mut parser = Parser::new(file, text, includes);
    commands::all(&mut parser)?;
    if let Some(error) = parser.lex.error.take() {
        return Err(error);
    }
    Ok(parser.ruleset)
}

/// Reads a rule by itself, as it stands in a table of that family.
pub fn parse_rule(family: Family, text: &str, around: Ruleset) -> Result<Rule> {
    let mut parser = Parser::new("rule", text, &|_| Err("a rule has no files".to_owned()));
    parser.family = family;
    parser.ruleset = around;
    parser.next();
    let rule = parser.rule()?;
    if parser.lex.kind != Kind::End || parser.lex.error.is_some() {
        return Err(parser.wanted("the end of the rule"));
    }
    Ok(rule)
}
