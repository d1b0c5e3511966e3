//! Packets to which a change of rules may matter: they match a rule of one ruleset which the other lacks at its place.
//! Every other packet meets the same rules in the same order under both, and gets the same verdict.
//!
//! Contract: too many packets, never too few: all that may get to such a rule, as `paths` says, and match it.

use std::collections::{BTreeMap, BTreeSet};

use rules::eval::RuleRef;
use rules::ext::{Course, TargetUse};
use rules::model::{Action, Chain, Family, Hook, Policy, Ruleset, Table};
use rules::save::print_rule;

use super::paths::Paths;
use super::stage::{Origin, is_idle};
use crate::diagram::{Region, TooLarge};
use crate::space::Space;

/// Pairs of rules that are compared where a chain changed.
const MOST_PAIRS: usize = 4_000_000;

/// What two rulesets differ in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// Rules that one has, by its side.
    rules: [BTreeSet<RuleRef>; 2],
    /// Where chains have another policy.
    policies: Vec<Hook>,
    /// The change may matter to any packet.
    everything: bool,
}

impl Changed {
    /// Compares them, chain by chain of a name.
    pub(super) fn of(rulesets: [&Ruleset; 2]) -> Self {
        let mut changed = Self::default();
        if rulesets[0].backend != rulesets[1].backend {
            changed.everything = true;
        }
        let tables: BTreeSet<&str> =
            rulesets.iter().flat_map(|it| it.tables.iter().map(|table| &*table.name)).collect();
        for name in tables {
            let tables = rulesets.map(|it| index(it, name).map(|at| (at, &it.tables[at])));
            changed.table(rulesets[0].family, tables);
        }
        // A program may make anything of packets, and they meet changed rules after that.
        let is_open =
            |it: &&Ruleset| targets(it).any(|target| target.body.course() == Course::Depends);
        changed.everything |= !changed.is_nothing() && rulesets.iter().any(is_open);
        changed
    }

    /// Whether the rulesets are the same.
    pub(super) fn is_nothing(&self) -> bool {
        !self.everything && self.policies.is_empty() && self.rules.iter().all(BTreeSet::is_empty)
    }

    /// Whether the change may matter to any packet.
    pub(super) fn is_everything(&self) -> bool {
        self.everything
    }

    /// Whether a rule is one of the changed rules.
    pub(super) fn has(&self, side: usize, rule: RuleRef) -> bool {
        self.rules[side].contains(&rule)
    }

    /// Adds a rule to the changed ones.
    pub(super) fn note(&mut self, side: usize, rule: RuleRef) {
        self.rules[side].insert(rule);
    }

    fn table(&mut self, family: Family, sides: [Option<(usize, &Table)>; 2]) {
        let mut chains: BTreeMap<&str, [Option<usize>; 2]> = BTreeMap::new();
        for (side, (_, table)) in sides.iter().enumerate().filter_map(|(at, it)| Some((at, (*it)?)))
        {
            for (at, chain) in table.chains.iter().enumerate() {
                chains.entry(&chain.name).or_default()[side].get_or_insert(at);
            }
        }
        for chains in chains.into_values() {
            self.chain(family, sides, chains);
        }
    }

    fn chain(
        &mut self,
        family: Family,
        sides: [Option<(usize, &Table)>; 2],
        chains: [Option<usize>; 2],
    ) {
        let chain = |side: usize| {
            let (at, table) = sides[side]?;
            Some((at, chains[side]?, table))
        };
        let policy = |side| {
            let (_, at, table) = chain(side)?;
            let base = table.chains[at].base?;
            Some((base.hook, base.policy))
        };
        let accepts =
            |policy: Option<(_, Policy)>| policy.is_none_or(|(_, it)| it == Policy::Accept);
        let (old, new) = (policy(0), policy(1));
        if old != new && !(accepts(old) && accepts(new)) {
            self.policies.extend([old, new].into_iter().flatten().map(|(hook, _)| hook));
        }
        let texts = [0, 1].map(|side| {
            chain(side)
                .map_or_else(Vec::new, |(_, at, table)| texts(family, table, &table.chains[at]))
        });
        let lacking = lacking(&texts[0], &texts[1]);
        for (side, numbers) in lacking.into_iter().enumerate() {
            let Some((table, chain, _)) = chain(side) else { continue };
            let at = |rule: usize| RuleRef {
                table: table as u32,
                chain: chain as u32,
                rule: rule as u32,
            };
            let rules = sides[side].map_or(&[][..], |(_, table)| &table.chains[chain].rules);
            let counts = |rule: &usize| rules.get(*rule).is_some_and(|it| !is_idle(it));
            self.rules[side].extend(numbers.into_iter().filter(counts).map(at));
        }
    }

    /// The packets of an origin that are meant, as they come.
    pub(super) fn packets(
        &self,
        space: &mut Space,
        rulesets: [&Ruleset; 2],
        origin: Origin,
    ) -> Result<Region, TooLarge> {
        if self.everything {
            return Ok(Region::ALL);
        }
        let mut any = Region::NONE;
        for (ruleset, rules) in rulesets.into_iter().zip(&self.rules) {
            let mut paths = Paths::of(space, ruleset)?;
            for hook in &self.policies {
                let one = paths.at_hook(space, origin, *hook)?;
                any = space.diagrams.or(any, one)?;
            }
            for at in rules {
                let (table, chain) = (at.table as usize, at.chain as usize);
                let rule = &ruleset.tables[table].chains[chain].rules[at.rule as usize];
                let one = paths.that_match(space, (table, chain), rule, origin)?;
                any = space.diagrams.or(any, one)?;
            }
        }
        Ok(any)
    }
}

fn index(ruleset: &Ruleset, name: &str) -> Option<usize> {
    ruleset.tables.iter().position(|table| table.name == name)
}

fn targets(ruleset: &Ruleset) -> impl Iterator<Item = &TargetUse> {
    let chains = ruleset.tables.iter().flat_map(|table| &table.chains);
    chains.flat_map(|chain| &chain.rules).filter_map(|rule| match &rule.action {
        Action::Target(target) => Some(&**target),
        _ => None,
    })
}

/// Rules by what they say, without counters.
fn texts(family: Family, table: &Table, chain: &Chain) -> Vec<String> {
    chain.rules.iter().map(|rule| print_rule(family, table, chain, rule)).collect()
}

/// The places of what each has that the other lacks, in a longest common order.
fn lacking(old: &[String], new: &[String]) -> [Vec<usize>; 2] {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let same_end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b);
    let end = same_end.count();
    let (old, new) = (&old_rest[..old_rest.len() - end], &new_rest[..new_rest.len() - end]);
    let all = |len: usize| (start..start + len).collect();
    if old.is_empty() || new.is_empty() || old.len().saturating_mul(new.len()) > MOST_PAIRS {
        return [all(old.len()), all(new.len())];
    }
    // How long the common order of what is left is.
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let at = i * width + j;
            longest[at] = match a == b {
                true => longest[at + width + 1] + 1,
                false => longest[at + width].max(longest[at + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lacking = [Vec::new(), Vec::new()];
    while i < old.len() || j < new.len() {
        let at = i * width + j;
        let takes_old = j == new.len() || i < old.len() && longest[at + width] >= longest[at + 1];
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if takes_old {
            lacking[0].push(start + i);
            i += 1;
        } else {
            lacking[1].push(start + j);
            j += 1;
        }
    }
    lacking
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_common_is_in_one_order() {
        let of = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        for (old, new, lacks) in [
            ("abc", "abc", [vec![], vec![]]),
            ("abc", "axc", [vec![1], vec![1]]),
            ("abc", "ac", [vec![1], vec![]]),
            ("", "ab", [vec![], vec![0, 1]]),
            ("ab", "ba", [vec![0], vec![1]]),
            ("xabcdy", "xbcday", [vec![1], vec![4]]),
        ] {
            assert_eq!(lacking(&of(old), &of(new)), lacks, "{old} {new}");
        }
    }
}
