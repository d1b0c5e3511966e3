//! The words for what a chain does at its end.

use crate::error::What;
use crate::family::Family;
use crate::lexer::Word;
use crate::model::{FallThrough, Policy};

/// The policy of a built-in chain.
pub(crate) fn built_in(word: &Word<'_>) -> Result<Policy, What> {
    let wrong = || What::new(word.column, format!("ACCEPT or DROP, found \"{}\"", word.text));
    named(&word.text).ok_or_else(wrong)
}

/// The end of a user chain, where its family's text may have this word for it.
pub(crate) fn user(word: &str, family: Family) -> Option<FallThrough> {
    let has_policies = family.dialect().user_policies;
    match word {
        "-" => Some(FallThrough::Return),
        "RETURN" if has_policies => Some(FallThrough::Return),
        _ if has_policies => named(word).map(FallThrough::Policy),
        _ => None,
    }
}

fn named(word: &str) -> Option<Policy> {
    match word {
        "ACCEPT" => Some(Policy::Accept),
        "DROP" => Some(Policy::Drop),
        _ => None,
    }
}
