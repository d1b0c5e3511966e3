//! [`Finding`]: something that is found, and the words for rules in it.

use rules::model::{Chain, Rule, Ruleset, Table};
use rules::save::print_rule;
use serde::Serialize;

use super::code::{Code, Severity};

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
    /// Lines of the rules that make it so, or of the first of them where they are too many for all findings of a table.
    pub by: Vec<u32>,
    /// A packet that shows it, as `tamis why --packet` takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<String>,
}

/// All that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Findings in the order of the file.
    pub findings: Vec<Finding>,
    /// Tables that were too large, so that not all is known of them that depends on packets.
    pub unproven: Vec<String>,
    /// Findings that the reference walk contradicted, and which therefore are none.
    pub contradicted: usize,
}

/// A finding about a rule.
pub(super) fn of_rule(
    ruleset: &Ruleset,
    table: &Table,
    chain: &Chain,
    rule: &Rule,
    (code, severity, text): (Code, Severity, String),
) -> Finding {
    Finding {
        code,
        severity,
        table: table.name.to_string(),
        chain: chain.name.to_string(),
        line: rule.line,
        rule: print_rule(ruleset.family, table, chain, rule),
        text,
        about: String::new(),
        by: Vec::new(),
        witness: None,
    }
}

/// `line 7`, `lines 7, 9 and 12`, `lines 7, 9, 12 and 40 more`, or at least 40 where these are not all.
pub(super) fn lines(numbers: &[u32], is_all: bool) -> String {
    const MOST: usize = 6;
    let words = |numbers: &[u32]| {
        let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
        words.join(", ")
    };
    match numbers {
        [] => "no line".to_owned(),
        [one] => format!("line {one}"),
        [most @ .., last] if numbers.len() <= MOST => format!("lines {} and {last}", words(most)),
        _ => {
            let more = if is_all { "" } else { "at least " };
            format!("lines {} and {more}{} more", words(&numbers[..MOST]), numbers.len() - MOST)
        }
    }
}
