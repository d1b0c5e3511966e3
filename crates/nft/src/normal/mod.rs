//! The forms in which nft lists rules, however they were written: both front ends apply them, so that text and JSON of
//! one ruleset are one model.

mod depend;
mod simple;

use crate::model::{Family, Rule, Set};

/// Brings a rule into the form in which it is listed.
pub(crate) fn rule(rule: &mut Rule, family: Family) {
    for stmt in &mut rule.stmts {
        simple::stmt(stmt, family);
    }
    depend::rule(rule, family);
    // Rulesets have a hundred thousand rules, most of few statements.
    rule.stmts.shrink_to_fit();
}

/// Brings a set into the form in which it is listed.
pub(crate) fn set(set: &mut Set) {
    if set.timeout.is_some() {
        set.flags |= 4;
    }
}
