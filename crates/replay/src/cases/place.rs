//! [`Place`]: where a verdict came from, as people write it: `filter/FORWARD/12`.

use std::fmt;

use dataplane::{Disposition, DropReason, Judgement};
use rules::eval::By;

use crate::rules_file::RulesFile;

/// Where a verdict came from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// A rule: `table/chain/number`.
    Rule {
        /// The table's name.
        table: String,
        /// The chain's name.
        chain: String,
        /// The rule's number in the chain, from 1.
        number: usize,
    },
    /// A policy: `table/chain/policy`.
    Policy {
        /// The table's name.
        table: String,
        /// The chain's name.
        chain: String,
    },
    /// Time to live that ran out while forwarding: `ttl`.
    Ttl,
}

impl Place {
    /// Reads one. A chain's name may hold a `/`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "ttl" {
            return Some(Self::Ttl);
        }
        let (table, rest) = text.split_once('/')?;
        let (chain, last) = rest.rsplit_once('/')?;
        if table.is_empty() || chain.is_empty() {
            return None;
        }
        let (table, chain) = (table.to_owned(), chain.to_owned());
        if last == "policy" {
            return Some(Self::Policy { table, chain });
        }
        let number = last.parse().ok().filter(|number| *number > 0)?;
        Some(Self::Rule { table, chain, number })
    }

    /// What decided about a packet; `None` if no rule, policy or time to live did.
    #[must_use]
    pub fn of(file: &RulesFile, end: &Disposition) -> Option<Self> {
        if end.judgement == Judgement::Drop(DropReason::Ttl) {
            return Some(Self::Ttl);
        }
        Some(match decided_by(end)? {
            By::Rule(at) | By::HotDrop(at) => {
                let (table, chain, _) = file.rule(at);
                Self::Rule {
                    table: table.name.to_owned(),
                    chain: chain.name.to_string(),
                    number: at.rule as usize + 1,
                }
            }
            By::Policy { table, chain } => {
                let table = &file.ruleset.tables[table as usize];
                let chain = table.chains[chain as usize].name.to_string();
                Self::Policy { table: table.name.to_owned(), chain }
            }
        })
    }
}

/// The rule or policy that decided.
pub(super) fn decided_by(end: &Disposition) -> Option<By> {
    match end.judgement {
        Judgement::Accept(by) => by,
        Judgement::Reject(by) => Some(by),
        Judgement::Drop(DropReason::Rule(at)) => Some(By::Rule(at)),
        Judgement::Drop(DropReason::HotDrop(at)) => Some(By::HotDrop(at)),
        Judgement::Drop(DropReason::Policy { table, chain }) => Some(By::Policy { table, chain }),
        Judgement::Drop(DropReason::Stack(_) | DropReason::Ttl)
        | Judgement::Unknown
        | Judgement::Skip(_) => None,
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { table, chain, number } => write!(f, "{table}/{chain}/{number}"),
            Self::Policy { table, chain } => write!(f, "{table}/{chain}/policy"),
            Self::Ttl => f.write_str("ttl"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_print_as_they_were_written() {
        for text in ["filter/FORWARD/12", "filter/FORWARD/policy", "mangle/a/b/1", "ttl"] {
            assert_eq!(Place::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_no_place() {
        for text in ["", "filter", "filter/FORWARD", "filter//1", "/FORWARD/1", "filter/FORWARD/0"]
        {
            assert_eq!(Place::parse(text), None, "{text}");
        }
        assert_eq!(Place::parse("filter/FORWARD/-1"), None);
        assert_eq!(Place::parse("filter/FORWARD/99999999999999999999"), None);
    }
}
