//! [`PlaceName`]: where a verdict came from, as people write it: `filter/FORWARD/12`.

use std::fmt;

use rules::eval::By;

use crate::decider::Decider;
use crate::rules_file::RulesFile;

/// Where a verdict came from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PlaceName {
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

impl PlaceName {
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

    /// The name of where a decider stands; `None` if it is no rule, policy or time to live.
    #[must_use]
    pub fn of(decider: &Decider, files: &[RulesFile]) -> Option<Self> {
        let (family, by) = match decider {
            Decider::Rules(family, by) => (*family, *by),
            Decider::Ttl => return Some(Self::Ttl),
            _ => return None,
        };
        let file = files.iter().find(|file| file.ruleset.family == family)?;
        let named = |table: u32, chain: u32| {
            let table = &file.ruleset.tables[table as usize];
            (file.ruleset.title(table).to_owned(), table.chains[chain as usize].name.to_string())
        };
        Some(match by {
            By::Rule(at) | By::HotDrop(at) => {
                let (table, chain) = named(at.table, at.chain);
                Self::Rule { table, chain, number: file.number(at) as usize }
            }
            By::Policy { table, chain } => {
                let (table, chain) = named(table, chain);
                Self::Policy { table, chain }
            }
        })
    }
}

impl fmt::Display for PlaceName {
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
            assert_eq!(PlaceName::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_no_place() {
        for text in ["", "filter", "filter/FORWARD", "filter//1", "/FORWARD/1", "filter/FORWARD/0"]
        {
            assert_eq!(PlaceName::parse(text), None, "{text}");
        }
        assert_eq!(PlaceName::parse("filter/FORWARD/-1"), None);
        assert_eq!(PlaceName::parse("filter/FORWARD/99999999999999999999"), None);
    }
}
