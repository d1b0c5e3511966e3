//! The whole table as one blob, in which a jump holds the offset of its chain: the kernel's own layout.
//!
//! A chain is a head word (its index, the words of its rules) and its rules. A change moves what lies after
//! it, so the jumps to all of that are changed too.

use super::layout::{Layout, splice_rules};
use rules::eval::{HeaderTest, Key, Source};
use rules::layout::code::{self, Coded, Run};
use rules::layout::{Corrupt, Footprint, Policies};
use rules::model::{FallThrough, Hook, Policy, Rule, Table};
use std::sync::Arc;

/// A table as one blob, in which jumps hold offsets.
#[derive(Debug)]
pub struct TableBlob {
    words: Vec<u64>,
    /// Where the chain of each index starts: for changes; walks do without.
    starts: Vec<u32>,
    rules: Vec<Vec<Arc<Rule>>>,
    policies: Policies,
    is_v6: bool,
}

const LEN: u32 = 32;

fn head(chain: usize, len: usize) -> u64 {
    chain as u64 | (len as u64) << LEN
}

impl TableBlob {
    /// Lays a table out.
    #[must_use]
    pub fn encode(table: &Table, is_v6: bool) -> Self {
        let rules: Vec<_> = table.chains.iter().map(|chain| chain.rules.clone()).collect();
        let mut blob = Self {
            words: Vec::new(),
            starts: Vec::new(),
            rules,
            policies: Policies::of(table),
            is_v6,
        };
        for (index, rules) in blob.rules.iter().enumerate() {
            let start = blob.words.len();
            blob.starts.push(start as u32);
            blob.words.push(0);
            for rule in rules {
                code::encode(rule, is_v6, |chain| chain, &mut blob.words);
            }
            blob.words[start] = head(index, blob.words.len() - start - 1);
        }
        // Chains may be jumped to before they are written: only now is it known where they are.
        let starts = std::mem::take(&mut blob.starts);
        blob.patch(|chain| starts[chain as usize]);
        blob.starts = starts;
        blob.words.shrink_to_fit();
        blob
    }

    /// Changes what every jump holds.
    fn patch(&mut self, change: impl Fn(u32) -> u32) {
        let mut at = 0;
        while let Some(head) = self.words.get(at) {
            let end = at + 1 + (head >> LEN) as usize;
            at += 1;
            while at < end {
                let len = code::len_of(self.words[at]);
                code::patch(&mut self.words[at..at + len], &change);
                at += len;
            }
        }
    }

    fn chain_words(&self, start: u32) -> (u32, &[u64]) {
        let start = start as usize;
        let head = self.words[start];
        let end = start + 1 + (head >> LEN) as usize;
        (head as u32, &self.words[start + 1..end])
    }
}

impl Layout for TableBlob {
    fn splice(&mut self, chain: u32, at: usize, delete: usize, insert: &[Arc<Rule>]) {
        let index = chain as usize;
        let start = self.starts[index] as usize;
        let (at, delete) = splice_rules(&mut self.rules[index], at, delete, insert);
        let (_, words) = self.chain_words(self.starts[index]);
        let from = code::offset_of(words, at);
        let to = from + code::offset_of(&words[from..], delete);
        let (len, from, to) = (words.len(), start + 1 + from, start + 1 + to);
        let mut new = Vec::new();
        for rule in insert {
            code::encode(rule, self.is_v6, |chain| self.starts[chain as usize], &mut new);
        }
        let (gone, come) = (to - from, new.len());
        self.words.splice(from..to, new);
        self.words[start] = head(index, len + come - gone);
        let moved = |at: u32| {
            if at as usize > start { (at as usize + come - gone) as u32 } else { at }
        };
        self.starts.iter_mut().for_each(|at| *at = moved(*at));
        self.patch(moved);
    }

    fn add_chain(&mut self) -> u32 {
        let index = self.rules.len();
        self.rules.push(Vec::new());
        self.starts.push(self.words.len() as u32);
        self.words.push(head(index, 0));
        index as u32
    }

    fn verify(&self) -> Result<(), Corrupt> {
        for (index, rules) in self.rules.iter().enumerate() {
            let (chain, words) = self.chain_words(self.starts[index]);
            let leads = |to| self.starts.binary_search(&to).is_ok();
            let fault = code::fault(words, rules.len(), leads);
            if let Some(rule) = fault.or((chain as usize != index).then_some(0)) {
                return Err(Corrupt { chain: index as u32, rule });
            }
        }
        Ok(())
    }

    fn footprint(&self) -> Footprint {
        Footprint::default().with(self.words.capacity() * 8).with(self.starts.capacity() * 4)
    }
}

impl<'r> Source<'r> for &'r TableBlob {
    type Cursor = Run<'r>;
    type Rule = Coded<'r>;

    fn base(&self, hook: Hook) -> Option<((u32, Run<'r>), Policy)> {
        let (chain, policy) = self.policies.base(hook)?;
        Some((self.enter(self.starts[chain as usize]), policy))
    }

    #[inline]
    fn chain_at(&self, index: u32) -> (u32, Run<'r>) {
        self.enter(self.starts[index as usize])
    }

    #[inline]
    fn enter(&self, jump: u32) -> (u32, Run<'r>) {
        let (chain, words) = self.chain_words(jump);
        (chain, Run::new(words, &self.rules[chain as usize]))
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
