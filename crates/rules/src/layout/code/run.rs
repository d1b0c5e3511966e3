//! Encoded rules, read one after the other.

use std::sync::Arc;

use super::edit::last;
use super::head::{
    LEN, MATCHES, MORE, STEP_ACCEPT, STEP_DROP, STEP_GOTO, STEP_JUMP, STEP_RETURN, STEP_TARGET,
    only_counts, slot, step_bits,
};
use super::test::test;
use crate::eval::{HeaderTest, Key, Step, Stored};
use crate::model::Rule;

/// Rules that follow each other, with the rules they came from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Run<'r> {
    /// The words of the rules that are left.
    words: &'r [u64],
    /// All of them, and how many have been read.
    rules: &'r [Arc<Rule>],
    read: usize,
}

impl<'r> Run<'r> {
    /// Rules as words, and as they were read.
    #[must_use]
    pub fn new(words: &'r [u64], rules: &'r [Arc<Rule>]) -> Self {
        Self { words, rules, read: 0 }
    }

    /// Rules from one on, of which this is the first word and the number among them.
    #[inline]
    pub(crate) fn starting(
        words: &'r [u64],
        rules: &'r [Arc<Rule>],
        (word, read): (usize, usize),
    ) -> Self {
        Self { words: words.get(word..).unwrap_or_default(), rules, read }
    }

    /// How many rules have been read.
    #[inline]
    pub(crate) fn read(&self) -> usize {
        self.read
    }

    /// The next rule.
    #[inline]
    pub fn next_rule(&mut self) -> Option<Coded<'r>> {
        let (words, after) = first_rule(self.words)?;
        let rule = Coded { words, rule: &self.rules[self.read] };
        self.words = after;
        self.read += 1;
        Some(rule)
    }

    /// See [`crate::eval::Source::sweep`].
    #[inline]
    pub fn sweep(
        &mut self,
        key: &Key<'_>,
        mut count: impl FnMut(u32),
    ) -> (u32, Option<(Coded<'r>, HeaderTest)>) {
        let before = self.read;
        let found = match key.addresses_known() {
            true => self.seek(key, &mut count),
            false => self.ask_each(key, &mut count),
        };
        ((self.read - before) as u32, found)
    }

    /// The next rule that does more than not to match, or to count.
    #[inline]
    fn seek(
        &mut self,
        key: &Key<'_>,
        count: &mut impl FnMut(u32),
    ) -> Option<(Coded<'r>, HeaderTest)> {
        loop {
            let (words, rules) = key.skip(self.words, count);
            self.skip(words, rules);
            let stored = self.next_rule()?;
            match key.rest(stored.words[0], stored.words) {
                HeaderTest::No => {}
                HeaderTest::Yes if stored.only_counts() => {
                    count(stored.slot());
                    let passed = key.pass_like(stored.words[0], self.words, count);
                    self.skip(passed * stored.words.len(), passed);
                }
                answer => break Some((stored, answer)),
            }
        }
    }

    /// Skips `words` words, which hold `rules` rules.
    #[inline]
    fn skip(&mut self, words: usize, rules: usize) {
        self.words = self.words.get(words..).unwrap_or_default();
        self.read += rules;
    }

    /// [`Self::seek`] for a packet whose addresses are not known: asks each rule.
    #[cold]
    fn ask_each(
        &mut self,
        key: &Key<'_>,
        count: &mut impl FnMut(u32),
    ) -> Option<(Coded<'r>, HeaderTest)> {
        loop {
            let stored = self.next_rule()?;
            match stored.test(key) {
                HeaderTest::No => {}
                HeaderTest::Yes if stored.only_counts() => count(stored.slot()),
                answer => break Some((stored, answer)),
            }
        }
    }
}

/// The words of the rule that begins with the word of this number.
#[inline]
pub(crate) fn rule_at(words: &[u64], word: u32) -> &[u64] {
    let rest = words.get(word as usize..).unwrap_or_default();
    first_rule(rest).map_or(&[], |(rule, _)| rule)
}

/// The words of the first rule, and those after it.
#[inline]
fn first_rule(words: &[u64]) -> Option<(&[u64], &[u64])> {
    words.split_at_checked((*words.first()? & LEN) as usize)
}

/// One encoded rule.
#[derive(Debug, Clone, Copy)]
pub struct Coded<'r> {
    words: &'r [u64],
    rule: &'r Arc<Rule>,
}

impl Coded<'_> {
    /// Whether its words do not say all that it tests.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.words[0] & (MORE | MATCHES) != 0
    }
}

impl<'r> Stored<'r> for Coded<'r> {
    #[inline]
    fn test(&self, key: &Key<'_>) -> HeaderTest {
        test(self.words, key)
    }

    fn rule(&self) -> &'r Rule {
        self.rule
    }

    #[inline]
    fn step(&self) -> Step<'r> {
        match step_bits(self.words[0]) {
            STEP_ACCEPT => Step::Accept,
            STEP_DROP => Step::Drop,
            STEP_RETURN => Step::Return,
            STEP_JUMP => Step::Jump(last(self.words)),
            STEP_GOTO => Step::Goto(last(self.words)),
            STEP_TARGET => crate::eval::step_of(&self.rule().action),
            _ => Step::Count,
        }
    }

    #[inline]
    fn only_counts(&self) -> bool {
        only_counts(self.words[0])
    }

    #[inline]
    fn slot(&self) -> u32 {
        slot(self.words[0])
    }
}
