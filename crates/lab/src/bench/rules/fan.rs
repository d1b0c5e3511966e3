//! The study's two rulesets from a provider, as fanned trees: a chain fans out by source prefix into further chains,
//! until a chain of few rules is about one customer.
//!
//! The study gives rules, chains, the distribution of rules per chain, and rules run per packet. Its mean is that
//! of the chains that have rules (67,892 / 3.745 = 18,129 of 18,329), so the others are empty here. What is not
//! given is drawn once and for all: which chains fan out, and where the long ones are.

use std::fmt::Write;

use rules::model::{Family, Ruleset};

use super::workload::{ipv4, loaded};

/// What is known of a ruleset.
#[derive(Debug, Clone, Copy)]
pub struct Fan {
    /// As in the name of its benchmark.
    pub name: &'static str,
    /// Rules.
    pub rules: usize,
    /// Chains, the three built-in ones included.
    pub chains: usize,
    /// Chains without a rule.
    pub empty: usize,
    /// Rules that a packet runs.
    pub run: usize,
    /// Bytes of the study's packed form.
    pub packed: usize,
    /// How many chains have one, two, three and four rules, of a hundred.
    few: [usize; 4],
    /// Rules of the chains that fan out, from and to.
    fan: (usize, usize),
    /// Most rules of a chain.
    longest: usize,
}

/// 67,892 rules in 18,329 chains.
pub const SMALL: Fan = Fan {
    name: "68k",
    rules: 67_892,
    chains: 18_329,
    empty: 200,
    run: 53,
    packed: 16_866_200,
    few: [33, 25, 11, 11],
    fan: (8, 17),
    longest: 119,
};

/// 662,160 rules in 151,426 chains.
pub const LARGE: Fan = Fan {
    name: "662k",
    rules: 662_160,
    chains: 151_426,
    empty: 3_523,
    run: 77,
    packed: 156_258_112,
    few: [30, 8, 8, 34],
    fan: (12, 20),
    longest: 144,
};

/// Bits of the source that a chain which fans out tells apart.
const BITS: u32 = 5;

/// A ruleset as a tree.
#[derive(Debug)]
pub struct Tree {
    /// Of each chain; the first `inner` of them fan out, and the first of all is FORWARD.
    chains: Vec<TreeChain>,
    inner: usize,
}

/// A chain in the tree.
#[derive(Debug, Clone, Copy)]
struct TreeChain {
    /// Rules.
    size: usize,
    /// The source prefix that leads here, and its bits.
    prefix: u32,
    bits: u32,
    /// Rules that run for a packet that gets here and falls through.
    run: usize,
}

impl Fan {
    /// Rules of each chain that has some: those that fan out first.
    fn sizes(&self, random: &mut fastrand::Rng) -> (Vec<usize>, usize) {
        let filled = self.chains - self.empty;
        // INPUT and OUTPUT are empty, and every other chain but the root has one jump to it.
        let edges = self.chains - 3;
        let (low, high) = self.fan;
        let mut sizes = Vec::with_capacity(filled);
        let mut left = edges;
        while left > 0 {
            let size = random.usize(low..=high).min(left);
            sizes.push(size);
            left -= size;
        }
        let inner = sizes.len();
        for (index, share) in self.few.into_iter().enumerate() {
            sizes.extend(std::iter::repeat_n(index + 1, filled * share / 100));
        }
        let rules = self.rules - sizes.iter().sum::<usize>();
        sizes.extend(long(filled - sizes.len(), rules, self.longest));
        random.shuffle(&mut sizes[inner..]);
        (sizes, inner)
    }

    /// The tree, level by level.
    #[must_use]
    pub fn tree(&self) -> Tree {
        let mut random = fastrand::Rng::with_seed(67_892);
        let (mut sizes, inner) = self.sizes(&mut random);
        // Empty chains among the leaves.
        sizes.extend(std::iter::repeat_n(0, self.empty - 2));
        random.shuffle(&mut sizes[inner..]);
        let mut chains = vec![TreeChain { size: sizes[0], prefix: 0, bits: 0, run: sizes[0] }];
        for parent in 0..inner {
            let TreeChain { size, prefix, bits, run } = chains[parent];
            let bits = bits + BITS;
            for child in 0..size {
                let prefix = prefix | (child as u32) << (32 - bits);
                let size = sizes[chains.len()];
                chains.push(TreeChain { size, prefix, bits, run: run + size });
            }
        }
        Tree { chains, inner }
    }
}

/// `chains` long chains with `rules` rules together, a few of them very long: falling as one over the rank does.
fn long(chains: usize, rules: usize, longest: usize) -> Vec<usize> {
    const LEAST: usize = 5;
    let spare = rules - LEAST * chains;
    let weights: f64 = (0..chains).map(|rank| 1.0 / (rank as f64 + 9.0)).sum();
    let mut sizes: Vec<usize> = (0..chains)
        .map(|rank| LEAST + (spare as f64 / weights / (rank as f64 + 9.0)) as usize)
        .map(|size| size.min(longest))
        .collect();
    sizes[0] = longest;
    let mut left = rules - sizes.iter().sum::<usize>();
    while left > 0 {
        for size in sizes.iter_mut().filter(|size| **size < longest) {
            let more = left.min(1);
            *size += more;
            left -= more;
        }
    }
    sizes
}

impl Tree {
    /// As the save tool prints it: rules that fan out jump, the others count a host.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from(
            "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n",
        );
        // Writing to a string does not fail.
        for chain in 1..self.chains.len() {
            let _ = writeln!(text, ":c{chain} - [0:0]");
        }
        let mut child = 1;
        for (index, place) in self.chains.iter().enumerate() {
            let name = if index == 0 { "FORWARD".to_owned() } else { format!("c{index}") };
            for rule in 0..place.size {
                let to = (index < self.inner).then_some(child);
                child += usize::from(to.is_some());
                self.rule(&mut text, &name, place, rule as u32, to);
            }
        }
        text.push_str("COMMIT\n");
        text
    }

    fn rule(&self, text: &mut String, name: &str, place: &TreeChain, rule: u32, to: Option<usize>) {
        let [a, b, c, d] = match to {
            Some(to) => self.chains[to].prefix,
            None => place.prefix | (rule & (u32::MAX >> place.bits)),
        }
        .to_be_bytes();
        let _ = match to {
            Some(to) => {
                let bits = self.chains[to].bits;
                writeln!(text, "-A {name} -s {a}.{b}.{c}.{d}/{bits} -j c{to}")
            }
            None => writeln!(text, "-A {name} -s {a}.{b}.{c}.{d}/32"),
        };
    }

    /// The rules, loaded.
    #[must_use]
    pub fn ruleset(&self) -> Ruleset {
        loaded(&self.text(), Family::Ipv4)
    }

    /// A packet for each leaf that makes it run this number of rules, in no order.
    #[must_use]
    pub fn packets(&self, run: usize) -> Vec<Vec<u8>> {
        let leaves = self.chains[self.inner..].iter().filter(|place| place.run == run);
        let mut packets: Vec<Vec<u8>> =
            leaves.map(|place| ipv4(place.prefix.to_be_bytes(), [198, 51, 100, 1])).collect();
        fastrand::Rng::with_seed(53).shuffle(&mut packets);
        packets
    }

    /// Rules that a packet runs, on average over all customers.
    #[must_use]
    pub fn mean_run(&self) -> f64 {
        let leaves = &self.chains[self.inner..];
        leaves.iter().map(|place| place.run as f64).sum::<f64>() / leaves.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rules::workload::at_hook;
    use rules::eval::{Alive, Memories, Observer, RuleRef, walk};
    use rules::model::Hook;

    /// R's `summary`: least, quartiles between neighbours, mean.
    fn summary(sizes: &mut [usize]) -> [f64; 6] {
        sizes.sort_unstable();
        let at = |share: f64| {
            let place = (sizes.len() - 1) as f64 * share;
            let (low, part) = (place as usize, place.fract());
            let high = (low + 1).min(sizes.len() - 1);
            sizes[low] as f64 * (1.0 - part) + sizes[high] as f64 * part
        };
        let mean = sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
        [at(0.0), at(0.25), at(0.5), (mean * 1000.0).round() / 1000.0, at(0.75), at(1.0)]
    }

    struct Runs(usize);

    impl Observer for Runs {
        fn rule(&mut self, _: RuleRef, _: rules::Outcome, _: Alive, _: &rules::Transit<'_, '_>) {
            self.0 += 1;
        }
    }

    fn check(fan: &Fan, expected: [f64; 6]) {
        let tree = fan.tree();
        let ruleset = tree.ruleset();
        let chains = &ruleset.tables[0].chains;
        let mut sizes: Vec<usize> = chains.iter().map(|chain| chain.rules.len()).collect();
        assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (fan.chains, fan.rules));
        sizes.retain(|size| *size > 0);
        assert_eq!(sizes.len(), fan.chains - fan.empty);
        assert_eq!(summary(&mut sizes), expected);
        let apart = (tree.mean_run() / fan.run as f64 - 1.0).abs();
        assert!(apart < 0.05, "{}", tree.mean_run());
        let packets = tree.packets(fan.run);
        assert!(packets.len() > 100, "{}", packets.len());
        for packet in &packets {
            let mut runs = Runs(0);
            at_hook(packet, Family::Ipv4, Hook::Forward, |transit| {
                let mut memories = Memories::default();
                walk(&ruleset, 0, transit, Alive::Certain, &mut memories, &mut runs)
            });
            assert_eq!(runs.0, fan.run);
        }
    }

    #[test]
    fn the_smaller_tree_is_as_the_study_describes_it() {
        check(&SMALL, [1.0, 1.0, 2.0, 3.745, 4.0, 119.0]);
    }

    #[test]
    fn the_larger_tree_is_as_the_study_describes_it() {
        check(&LARGE, [1.0, 1.0, 4.0, 4.477, 4.0, 144.0]);
    }
}
