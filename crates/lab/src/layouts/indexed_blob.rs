//! The whole table as one blob, in which a jump holds a chain's index in a table of offsets.
//!
//! A change moves the bytes after it and the offsets of the chains after it; jumps stay as they are. A chain
//! that is emptied leaves its place in the table of offsets, so that taking one away moves no index: the next
//! chain that is added takes it over.

use super::layout::{Layout, splice_rules};
use rules::eval::{HeaderTest, Key, Source};
use rules::layout::code::{self, Coded, Run};
use rules::layout::{Corrupt, Footprint, Policies};
use rules::model::{FallThrough, Hook, Policy, Rule, Table};
use std::sync::Arc;

/// A table as one blob, in which jumps hold indices.
#[derive(Debug)]
pub struct IndexedBlob {
    words: Vec<u64>,
    /// Where the chain of each index starts, and, after the last one, where the blob ends.
    starts: Vec<u32>,
    rules: Vec<Vec<Arc<Rule>>>,
    policies: Policies,
    is_v6: bool,
}

impl IndexedBlob {
    /// Lays a table out.
    #[must_use]
    pub fn encode(table: &Table, is_v6: bool) -> Self {
        let rules: Vec<_> = table.chains.iter().map(|chain| chain.rules.clone()).collect();
        let (mut words, mut starts) = (Vec::new(), Vec::with_capacity(rules.len() + 1));
        for rules in &rules {
            starts.push(words.len() as u32);
            for rule in rules {
                code::encode(rule, is_v6, |chain| chain, &mut words);
            }
        }
        starts.push(words.len() as u32);
        words.shrink_to_fit();
        Self { words, starts, rules, policies: Policies::of(table), is_v6 }
    }

    fn chain_words(&self, chain: usize) -> &[u64] {
        &self.words[self.starts[chain] as usize..self.starts[chain + 1] as usize]
    }
}

impl Layout for IndexedBlob {
    fn splice(&mut self, chain: u32, at: usize, delete: usize, insert: &[Arc<Rule>]) {
        let chain = chain as usize;
        let (at, delete) = splice_rules(&mut self.rules[chain], at, delete, insert);
        let words = self.chain_words(chain);
        let from = code::offset_of(words, at);
        let to = from + code::offset_of(&words[from..], delete);
        let start = self.starts[chain] as usize;
        let mut new = Vec::new();
        for rule in insert {
            code::encode(rule, self.is_v6, |chain| chain, &mut new);
        }
        let (gone, come) = (to - from, new.len());
        self.words.splice(start + from..start + to, new);
        for start in &mut self.starts[chain + 1..] {
            *start = (*start as usize + come - gone) as u32;
        }
    }

    fn add_chain(&mut self) -> u32 {
        let index = self.rules.len();
        self.rules.push(Vec::new());
        self.starts.push(self.words.len() as u32);
        index as u32
    }

    fn verify(&self) -> Result<(), Corrupt> {
        for (index, rules) in self.rules.iter().enumerate() {
            let leads = |to| (to as usize) < self.rules.len();
            if let Some(rule) = code::fault(self.chain_words(index), rules.len(), leads) {
                return Err(Corrupt { chain: index as u32, rule });
            }
        }
        Ok(())
    }

    fn footprint(&self) -> Footprint {
        Footprint::default().with(self.words.capacity() * 8).with(self.starts.capacity() * 4)
    }
}

impl<'r> Source<'r> for &'r IndexedBlob {
    type Cursor = Run<'r>;
    type Rule = Coded<'r>;

    #[inline]
    fn base(&self, hook: Hook) -> Option<((u32, Run<'r>), Policy)> {
        let (chain, policy) = self.policies.base(hook)?;
        Some((self.enter(chain), policy))
    }

    #[inline]
    fn chain_at(&self, index: u32) -> (u32, Run<'r>) {
        self.enter(index)
    }

    #[inline]
    fn enter(&self, jump: u32) -> (u32, Run<'r>) {
        let chain = jump as usize;
        (jump, Run::new(self.chain_words(chain), &self.rules[chain]))
    }

    #[inline]
    fn next(&self, at: &mut Run<'r>) -> Option<Coded<'r>> {
        at.next_rule()
    }

    #[inline]
    fn sweep(
        &self,
        at: &mut Run<'r>,
        key: &Key<'_>,
        count: impl FnMut(u32),
    ) -> (u32, Option<(Coded<'r>, HeaderTest)>) {
        at.sweep(key, count)
    }

    #[inline]
    fn fall_through(&self, chain: u32) -> FallThrough {
        self.policies.fall_through(chain)
    }
}
