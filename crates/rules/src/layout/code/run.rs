//! Encoded rules, read one after the other.

use std::sync::Arc;

use super::edit::{last, len_of};
use super::pass::{SHAPE, pass_addresses};
use super::test::{Whole, test};
use super::{
    LEN, STEP_ACCEPT, STEP_DROP, STEP_GOTO, STEP_JUMP, STEP_RETURN, STEP_TARGET, only_counts, slot,
    step_bits,
};
use crate::eval::{HeaderTest, Key, Step, Stored};
use crate::model::Rule;

/// Rules that follow each other, with the rules they came from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run<'r> {
    /// Those that are left.
    words: &'r [u64],
    /// All of them, and how many have been read.
    rules: &'r [Arc<Rule>],
    read: usize,
}

impl<'r> Run<'r> {
    pub(in crate::layout) fn new(words: &'r [u64], rules: &'r [Arc<Rule>]) -> Self {
        Self { words, rules, read: 0 }
    }

    /// The next rule.
    #[inline]
    pub(in crate::layout) fn next(&mut self) -> Option<Coded<'r>> {
        let (words, after) = first_rule(self.words)?;
        let rule = Coded { words, rule: &self.rules[self.read] };
        self.words = after;
        self.read += 1;
        Some(rule)
    }

    /// See [`crate::eval::Source::sweep`].
    #[inline]
    pub(in crate::layout) fn sweep(
        &mut self,
        key: &Key<'_>,
        mut count: impl FnMut(u32),
    ) -> (u32, Option<(Coded<'r>, HeaderTest)>) {
        let before = self.read;
        let found = match Whole::of(key) {
            Some(whole) => {
                let pass = |words: &[u64], count: &mut _| whole.pass(words, count);
                self.seek(&mut count, pass, |head, rule, words| whole.test(head, rule, words))
            }
            None => {
                let pass = |words: &[u64], count: &mut _| pass_addresses(key, words, count);
                self.seek(&mut count, pass, |_, rule, _| test(rule, key))
            }
        };
        ((self.read - before) as u32, found)
    }

    /// The next rule that does more than not to match, or to count. `test` gets the head of a rule, the
    /// rule, and all words from it on; `pass` tells how many rules, from the first one on, are of one shape and do not
    /// match or only count.
    #[inline]
    fn seek<C: FnMut(u32)>(
        &mut self,
        count: &mut C,
        pass: impl Fn(&[u64], &mut C) -> usize,
        test: impl Fn(u64, &[u64], &[u64]) -> HeaderTest,
    ) -> Option<(Coded<'r>, HeaderTest)> {
        let (mut words, mut read) = (self.words, self.read);
        let mut next = words.first().copied();
        let found = loop {
            let Some((head, (rule, after))) =
                next.and_then(|head| Some((head, words.split_at_checked(len_of(head))?)))
            else {
                break None;
            };
            let answer = test(head, rule, words);
            (words, read) = (after, read + 1);
            match answer {
                HeaderTest::No => {}
                HeaderTest::Yes if only_counts(head) => count(slot(head)),
                _ => {
                    break Some((Coded { words: rule, rule: &self.rules[read - 1] }, answer));
                }
            }
            next = words.first().copied();
            if next.is_some_and(|next| (head ^ next) & SHAPE == 0) {
                let passed = pass(words, count);
                words = words.get(passed * rule.len()..).unwrap_or_default();
                read += passed;
                next = words.first().copied();
            }
        };
        (self.words, self.read) = (words, read);
        found
    }
}

/// The words of the first rule, and those after it.
#[inline]
fn first_rule(words: &[u64]) -> Option<(&[u64], &[u64])> {
    words.split_at_checked((*words.first()? & LEN) as usize)
}

/// One encoded rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coded<'r> {
    words: &'r [u64],
    rule: &'r Arc<Rule>,
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
