//! What a rule loads, in the words of `nft --debug=netlink`: by it the comparisons that listings leave out, and the bytes that
//! are needed, are held to what nft makes of the same rule.

use super::items::Item;
use super::rule;
use super::scope::Scope;
use crate::model::{self, Table};
use rules::model::Family;

/// Lists what the bytecode of a rule loads of a packet, in its order, as the walk reads it; `None` if something of the rule is
/// not evaluated.
pub fn loads(of: &model::Rule, table: &Table, family: Family) -> Option<Vec<String>> {
    let scope = Scope::new(table, family);
    let (_, lacks) = rule::lower(of, 1, &scope);
    if !lacks.is_empty() {
        return None;
    }
    let mut loads = Vec::new();
    let mut show = |load: String| loads.push(load);
    for item in rule::all_items(of, &rule::texts(of, &scope), &scope) {
        match &item {
            Item::Test(_, test) => test.bytecode(&mut show),
            Item::Choice(_, choices) => {
                let first = choices.iter().find_map(|(test, _)| test.as_ref());
                first.into_iter().for_each(|test| test.bytecode(&mut show));
            }
            Item::Act(act) => act.bytecode(&mut show),
            Item::End(end) => end.bytecode(&mut show),
            Item::State(..) | Item::Count(_) => {}
        }
    }
    Some(loads)
}
