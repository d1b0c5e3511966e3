//! What counters say of each item: how often it was asked, and how often it answered yes.

use std::collections::BTreeMap;

use super::kernel::Counted;
use crate::generate::nft::Sort;
use crate::generate::nft::ruleset::{NftRuleset, Rule};
use rules::model::Counters;

/// Answers of an item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    /// Packets for which it answered yes; of a statement, those that it was applied to.
    pub yes: u64,
    /// Packets for which it answered no.
    pub no: u64,
}

/// Answers by the item's name.
pub type Items = BTreeMap<String, Answers>;

/// Adds one collection to another.
pub fn add(into: &mut Items, from: &Items) {
    for (name, answers) in from {
        let sum = into.entry(name.clone()).or_default();
        sum.yes += answers.yes;
        sum.no += answers.no;
    }
}

/// Reads off the counters of a ruleset what its items answered.
#[must_use]
pub fn of(ruleset: &NftRuleset, counted: &Counted) -> Items {
    let mut items = Items::new();
    for table in &ruleset.tables {
        for chain in &table.chains {
            let key = (table.family.name().to_owned(), table.name.clone(), chain.name.clone());
            let Some(counted) = counted.get(&key) else { continue };
            for (rule, counters) in chain.rules.iter().zip(counted) {
                of_rule(rule, counters, &mut items);
            }
        }
    }
    items
}

fn of_rule(rule: &Rule, counters: &[Counters], items: &mut Items) {
    // Packets that come to the part at hand, where a counter told.
    let mut here: Option<u64> = None;
    let mut rest = counters.iter();
    for (index, part) in rule.parts.iter().enumerate() {
        match part.sort {
            Sort::Counter => here = rest.next().map(|counters| counters.packets),
            Sort::Statement => {
                for item in &part.items {
                    items.entry(item.clone()).or_default().yes += here.unwrap_or_default();
                }
            }
            Sort::Test => {
                let is_counted =
                    rule.parts.get(index + 1).is_some_and(|next| next.sort == Sort::Counter);
                let after =
                    rest.clone().next().filter(|_| is_counted).map(|counters| counters.packets);
                if let (Some(before), Some(after)) = (here, after) {
                    let passed = after.min(before);
                    let (yes, no) = (passed, before - passed);
                    for item in &part.items {
                        let sum = items.entry(item.clone()).or_default();
                        sum.yes += yes;
                        sum.no += no;
                    }
                }
                here = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Piece;
    use crate::generate::nft::Part;

    fn count(packets: u64) -> Counters {
        Counters { packets, bytes: 0 }
    }

    #[test]
    fn answers_are_the_difference_of_two_counters() {
        let test = |name| Part::test(&[name], Piece::plain(""));
        let parts = vec![
            Part::counter(),
            test("a"),
            Part::counter(),
            Part::statement("s", ""),
            test("b"),
            test("c"),
            Part::counter(),
        ];
        let mut items = Items::new();
        of_rule(&Rule { parts, to: None }, &[count(10), count(7), count(2)], &mut items);
        // Nobody counts between `b` and `c`.
        let expected = [("a", Answers { yes: 7, no: 3 }), ("s", Answers { yes: 7, no: 0 })];
        assert_eq!(items, expected.map(|(name, answers)| (name.to_owned(), answers)).into());
    }
}
