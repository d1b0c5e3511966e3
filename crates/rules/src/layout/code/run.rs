//! Encoded rules, read one after the other.

use std::sync::Arc;

use super::edit::{last, len_of};
use super::test::{Whole, test};
use super::{
    LEN, ONLY_PAIR, ONLY_V6, STEP_ACCEPT, STEP_DROP, STEP_GOTO, STEP_JUMP, STEP_RETURN,
    STEP_TARGET, TESTS, only_counts, slot, step_bits,
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
        let rule = Coded { words, rules: self.rules, number: self.read };
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
                let pass = |head, words: &[u64]| whole.pass(head, words);
                self.seek(key, &mut count, pass, |head, rule| whole.test(head, rule))
            }
            None => self.seek(key, &mut count, |_, _| 0, |_, rule| test(rule, key)),
        };
        ((self.read - before) as u32, found)
    }

    /// The next rule that does more than not to match, or to count. The two shapes of which large rulesets are made
    /// have loops of their own; of others, `pass` tells how many rules after one that does not match are of its shape,
    /// and do not match, either.
    #[inline]
    fn seek(
        &mut self,
        key: &Key<'_>,
        count: &mut impl FnMut(u32),
        pass: impl Fn(u64, &[u64]) -> usize,
        test: impl Fn(u64, &[u64]) -> HeaderTest,
    ) -> Option<(Coded<'r>, HeaderTest)> {
        const PAIR_RULE: u64 = ONLY_PAIR | 2;
        const V6_RULE: u64 = ONLY_V6 | 5;
        let (pair, source, destination) = (key.pair, key.source_words, key.destination_words);
        let (mut words, mut read) = (self.words, self.read);
        let found = loop {
            let shape = words.first().map_or(0, |head| head & (TESTS | LEN));
            let passed = match shape {
                PAIR_RULE if key.addresses_known => {
                    pass_shape(words, shape, |[_, is]: &[u64; 2]| *is == pair, count)
                }
                V6_RULE if key.addresses_known => pass_shape(
                    words,
                    shape,
                    |[_, a, b, c, d]: &[u64; 5]| [*a, *b] == source && [*c, *d] == destination,
                    count,
                ),
                _ => 0,
            };
            if passed > 0 {
                words = &words[passed * len_of(shape)..];
                read += passed;
                continue;
            }
            let Some((rule, after)) = first_rule(words) else { break None };
            words = after;
            read += 1;
            match test(rule[0], rule) {
                HeaderTest::No => {
                    let passed = pass(rule[0], words);
                    words = words.get(passed * rule.len()..).unwrap_or_default();
                    read += passed;
                }
                HeaderTest::Yes if only_counts(rule[0]) => count(slot(rule[0])),
                answer => {
                    let number = read - 1;
                    break Some((Coded { words: rule, rules: self.rules, number }, answer));
                }
            }
        };
        (self.words, self.read) = (words, read);
        found
    }
}

/// How many of the first rules are of this shape, of `N` words each, and do not match or only count. What is compared is
/// held in registers: counting writes to memory, and a key there would be read again for each rule.
#[inline]
fn pass_shape<const N: usize>(
    words: &[u64],
    shape: u64,
    is_hit: impl Fn(&[u64; N]) -> bool,
    count: &mut impl FnMut(u32),
) -> usize {
    let mut passed = 0;
    for rule in words.as_chunks().0 {
        let head = rule[0];
        if head & (TESTS | LEN) != shape {
            break;
        }
        if is_hit(rule) {
            if !only_counts(head) {
                break;
            }
            count(slot(head));
        }
        passed += 1;
    }
    passed
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
    rules: &'r [Arc<Rule>],
    number: usize,
}

impl<'r> Stored<'r> for Coded<'r> {
    #[inline]
    fn test(&self, key: &Key<'_>) -> HeaderTest {
        test(self.words, key)
    }

    fn rule(&self) -> &'r Rule {
        &self.rules[self.number]
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
