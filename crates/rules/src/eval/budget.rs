//! How much work a walk may be, and what happens to chains that ask for more.
//!
//! Work is counted in steps: one for each rule, and one for every [`BYTES_A_STEP`](crate::ext::kit::work) bytes that a match looks at beyond
//! the headers ([`crate::ext::Match::work`]).
//!
//! Contract: a walk takes at most [`MAX_STEPS`] and what one rule takes. Whether some packet's may take more is known
//! from the rules alone ([`exceeded`]), so that rules under which that happens are walked by one thread: which packets
//! a chain is given up for depends on the packets before.

use crate::ext::kit::work::LONGEST;
use crate::model::{Chain, Rule, Table};

/// Steps that one walk may take. Chains that jump to each other twice over make walks exponential in the text; the
/// kernel would spin for them.
pub const MAX_STEPS: u32 = 1 << 22;

/// Packets that a chain is walked for in vain, before it is given up at once for those that follow.
pub const PATIENCE: u32 = 8;

/// The first built-in chain in which a walk may take more steps than [`MAX_STEPS`].
pub(crate) fn exceeded(table: &Table) -> Option<usize> {
    let chains = &table.chains;
    let mut longest = vec![None; chains.len()];
    let mut bases = chains.iter().enumerate().filter(|(_, chain)| chain.base.is_some());
    let base = bases.find(|(base, _)| measure(chains, *base, &mut longest) > MAX_STEPS.into());
    base.map(|(base, _)| base)
}

/// How far a chain was measured.
#[derive(Default)]
struct Measured {
    chain: usize,
    /// The rule that is being measured.
    rule: usize,
    /// Which of the chains that the rule may lead to is next.
    way: usize,
    /// The most steps of those before.
    inside: u64,
    /// Steps of the rules before.
    steps: u64,
}

/// Steps that a walk through a chain takes if every rule is evaluated and every jump taken; those of chains that it
/// leads to are noted once.
fn measure(chains: &[Chain], start: usize, longest: &mut [Option<u64>]) -> u64 {
    // The chains from `start`, each with how far it was measured: no machine stack.
    let mut path = vec![Measured { chain: start, ..Measured::default() }];
    while let Some(at) = path.last_mut() {
        let Some(rule) = chains[at.chain].rules.get(at.rule) else {
            longest[at.chain] = Some(at.steps);
            path.pop();
            continue;
        };
        if let Some(to) = rule.leads_to().nth(at.way) {
            match longest[to as usize] {
                Some(inside) => (at.way, at.inside) = (at.way + 1, at.inside.max(inside)),
                None => path.push(Measured { chain: to as usize, ..Measured::default() }),
            }
            continue;
        }
        let steps = at.steps.saturating_add(at.inside).saturating_add(self::steps(rule));
        *at = Measured { chain: at.chain, rule: at.rule + 1, steps, ..Measured::default() };
    }
    longest[start].unwrap_or(0)
}

/// Steps that a rule takes by itself, of any packet at most.
pub(crate) fn steps(rule: &Rule) -> u64 {
    1 + rule.matches.iter().map(|used| u64::from(used.body.work(LONGEST))).sum::<u64>()
}

/// Packets that built-in chains were walked for in vain.
#[derive(Debug, Default)]
pub(super) struct GivenUp(Vec<((u32, u32), u32)>);

impl GivenUp {
    /// Whether this chain of this table is not worth a walk.
    #[inline]
    pub(super) fn at_once(&self, table: u32, chain: u32) -> bool {
        let place = (table, chain);
        !self.0.is_empty() && self.0.iter().any(|(at, times)| *at == place && *times >= PATIENCE)
    }

    /// It was walked in vain.
    pub(super) fn count(&mut self, table: u32, chain: u32) {
        let place = (table, chain);
        match self.0.iter_mut().find(|(at, _)| *at == place) {
            Some((_, times)) => *times += 1,
            None => self.0.push((place, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::save::{LoadOptions, load};

    fn longest(rules: &str) -> u64 {
        let text = format!("*filter\n:FORWARD ACCEPT\n:a -\n:b -\n{rules}\nCOMMIT\n");
        let table = &load(&text, &LoadOptions::default()).unwrap().ruleset.tables[0];
        measure(&table.chains, 0, &mut vec![None; table.chains.len()])
    }

    #[test]
    fn a_chain_is_given_up_once_it_was_walked_in_vain_often_enough() {
        let mut given_up = GivenUp::default();
        for _ in 0..PATIENCE {
            assert!(!given_up.at_once(1, 2));
            given_up.count(1, 2);
        }
        assert!(given_up.at_once(1, 2));
        assert!(!given_up.at_once(1, 3) && !given_up.at_once(2, 2), "others are walked");
    }

    #[test]
    fn the_longest_walk_takes_every_jump() {
        assert_eq!(longest(""), 0);
        assert_eq!(longest("-A FORWARD\n-A FORWARD -j DROP"), 2);
        let shared = "-A FORWARD -j a\n-A FORWARD -g b\n-A a -j b\n-A a -j b\n-A b\n-A b\n-A b";
        assert_eq!(longest(shared), 2 + 3 + (2 + 2 * 3));
    }

    #[test]
    fn matches_that_look_at_bytes_take_more() {
        let search = "-A FORWARD -m string --string x --algo bm";
        assert_eq!(longest(search), 1 + 1024);
        assert_eq!(longest(&format!("{search} --from 64 --to 192")), 1 + 2);
        let program =
            format!("-A FORWARD -m bpf --bytecode \"16,{}6 0 0 1\"", "0 0 0 0,".repeat(15));
        assert_eq!(longest(&program), 1 + 2);
        assert_eq!(longest("-A FORWARD -m u32 --u32 \"6&0xFF=17\""), 1);
    }

    #[test]
    fn a_table_is_exceeded_where_a_packet_may_walk_too_far() {
        let mut text = "*filter\n:FORWARD ACCEPT\n".to_owned();
        (0..23).for_each(|level| text.push_str(&format!(":d{level} -\n")));
        (0..22).for_each(|level| {
            text.push_str(&format!("-A d{level} -j d{0}\n-A d{level} -j d{0}\n", level + 1));
        });
        let exceeded = |rules: &str| {
            let text = format!("{text}{rules}COMMIT\n");
            exceeded(&load(&text, &LoadOptions::default()).unwrap().ruleset.tables[0])
        };
        assert_eq!(exceeded(""), None);
        assert_eq!(exceeded("-A FORWARD -j d2\n"), None);
        assert_eq!(exceeded("-A FORWARD -j d0\n"), Some(0));
    }
}
