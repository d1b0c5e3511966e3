//! Each chain a blob of its own, found by its index: the layout that tamis walks.
//!
//! A jump holds the chain's index for good, so a change touches the chain, and one page of the array of chains,
//! and nothing else. A copy shares everything with its origin: that is what a revision is made of.
//!
//! Source: "Xtables2: Love for blobs", packed chains; the array in two levels and the segments are ours.

use super::code::{Coded, Run};
use super::index::{Index, Indexed, LONG, Lazy, Place};
use super::paged::Paged;
use super::segment::{Segment, Segments};
use super::{Corrupt, Footprint, Policies, code};
use crate::eval::{HeaderTest, Key, Source, Stored as _};
use crate::family::Hook;
use crate::model::{FallThrough, Policy, Rule, Table};
use std::sync::Arc;

/// A table with each chain in a blob of its own.
#[derive(Debug, Clone, Default)]
pub struct PackedChains {
    pub(crate) chains: Paged<Segments>,
    pub(crate) policies: Policies,
    pub(crate) is_v6: bool,
}

/// A place in a chain: the rest of this segment, and the segments after it.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'r> {
    run: Run<'r>,
    more: &'r [Segment],
    /// The chain, if it may have an index.
    indexed: Option<&'r Segments>,
}

/// How many rules were passed, and the rule that was found.
type Swept<'r> = (u32, Option<(Coded<'r>, HeaderTest)>);

impl<'r> Cursor<'r> {
    /// Goes on with the next segment; whether there is one.
    #[inline]
    fn go_on(&mut self) -> bool {
        let Some((segment, more)) = self.more.split_first() else { return false };
        (self.run, self.more) = (Run::new(&segment.words, &segment.rules), more);
        true
    }

    /// Finds what a sweep finds by the chain's index; `None` where something is not known of the packet. Not inlined, and one for all
    /// observers: the sweep of a short chain needs its registers.
    #[inline(never)]
    fn look_up(
        &mut self,
        (chain, index): (&'r Segments, &Index),
        key: &Key<'_>,
        count: &mut dyn FnMut(u32),
    ) -> Option<Swept<'r>> {
        let packet = index.read(key)?;
        let segment = chain.more().len() - self.more.len();
        let from = index.first_of(segment as u32) + self.run.read() as u32;
        let says = |at: Place| {
            let (segment, _) = chain.from(at.segment)?;
            let words = code::rule_at(&segment.words, at.word);
            let head = *words.first()?;
            let answer = code::says(words, key);
            (answer != HeaderTest::No).then_some((answer, code::slot(head)))
        };
        let found = index.first(&packet, from, |at| says(at).map(|(answer, _)| answer));
        let end = found.map_or(index.len(), |(number, _)| number);
        index.each(&packet, (from, end), |at| {
            says(at).into_iter().for_each(|(_, slot)| count(slot));
        });
        let Some((number, answer)) = found else {
            let last = index.first_of(chain.more().len() as u32);
            self.run = Run::starting(&[], &[], (0, (end - last) as usize));
            self.more = &[];
            return Some((end - from, None));
        };
        let at = index.place(number)?;
        let ((segment, more), first) = (chain.from(at.segment)?, index.first_of(at.segment));
        let read = (at.word as usize, (number - first) as usize);
        self.run = Run::starting(&segment.words, &segment.rules, read);
        self.more = more;
        let rule = self.run.next_rule()?;
        Some((number + 1 - from, Some((rule, answer))))
    }
}

impl PackedChains {
    /// Lays a table out.
    #[must_use]
    pub fn encode(table: &Table, is_v6: bool) -> Self {
        let mut chains = Paged::default();
        for chain in &table.chains {
            chains.push(Segments::of(&chain.rules, is_v6));
        }
        Self { chains, policies: Policies::of(table), is_v6 }
    }

    /// Lets long chains have an index each: the walk that finds that it is time makes it, and other walks of the chain wait.
    pub fn index(&mut self, when: Indexed) {
        for number in 0..self.chains.len() {
            let Some(chain) = self.chains.get(number).filter(|chain| chain.len() >= LONG) else {
                continue;
            };
            let indexed = Segments { index: Some(Arc::new(Lazy::new(when))), ..chain.clone() };
            self.chains.set(number, indexed);
        }
    }

    /// Takes `delete` rules out of a chain from number `at` on, counted from 0, and puts others there: one
    /// reservation however many they are. Numbers past the end of the chain mean its end.
    pub fn splice(&mut self, chain: u32, at: usize, delete: usize, insert: &[Arc<Rule>]) {
        let Some(segments) = self.chains.get(chain as usize) else { return };
        let mut draft = segments.thaw(self.is_v6);
        draft.splice(at, delete, insert);
        self.chains.set(chain as usize, draft.freeze());
    }

    /// Adds an empty chain; its index.
    pub fn add_chain(&mut self) -> u32 {
        self.chains.push(Segments::default());
        (self.chains.len() - 1) as u32
    }

    /// Checks that every rule is whole and every jump leads to a chain.
    ///
    /// # Errors
    /// The first place where that is not so.
    pub fn verify(&self) -> Result<(), Corrupt> {
        for (index, chain) in self.chains.iter().enumerate() {
            let mut before = 0;
            for segment in chain.iter() {
                let leads = |to| (to as usize) < self.chains.len();
                if let Some(rule) = code::fault(&segment.words, segment.rules.len(), leads) {
                    return Err(Corrupt { chain: index as u32, rule: before + rule });
                }
                before += segment.rules.len();
            }
        }
        Ok(())
    }

    /// What it takes to hold the rules in this form, the rules as they were read aside.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        /// What `Arc` keeps before what it holds.
        const COUNTS: usize = 2 * size_of::<usize>();
        let (bytes, allocations) = self.chains.cost();
        let array = Footprint { bytes, allocations };
        self.chains.iter().fold(array, |sum, chain| {
            let more = match chain.more() {
                [] => 0,
                more => COUNTS + size_of_val(more),
            };
            let words = chain.iter().filter(|segment| !segment.words.is_empty());
            words.fold(sum.with(more), |sum, segment| {
                sum.with(COUNTS + size_of_val(&*segment.words))
            })
        })
    }
}

impl<'r> Source<'r> for &'r PackedChains {
    type Cursor = Cursor<'r>;
    type Rule = Coded<'r>;

    #[inline]
    fn base(&self, hook: Hook) -> Option<((u32, Cursor<'r>), Policy)> {
        let (chain, policy) = self.policies.base(hook)?;
        Some((self.enter(chain), policy))
    }

    #[inline]
    fn chain_at(&self, index: u32) -> (u32, Cursor<'r>) {
        self.enter(index)
    }

    #[inline]
    fn enter(&self, jump: u32) -> (u32, Cursor<'r>) {
        let Some(chain) = self.chains.get(jump as usize) else {
            return (jump, Cursor { run: Run::default(), more: &[], indexed: None });
        };
        let run = Run::new(&chain.first.words, &chain.first.rules);
        let indexed = chain.index.is_some().then_some(chain);
        (jump, Cursor { run, more: chain.more(), indexed })
    }

    #[inline]
    fn next(&self, at: &mut Cursor<'r>) -> Option<Coded<'r>> {
        if let Some(rule) = at.run.next_rule() {
            return Some(rule);
        }
        if at.go_on() { at.run.next_rule() } else { None }
    }

    #[inline]
    fn sweep(&self, at: &mut Cursor<'r>, key: &Key<'_>, mut count: impl FnMut(u32)) -> Swept<'r> {
        if let Some(chain) = at.indexed
            && let Some(index) = chain.index.as_ref().and_then(|lazy| lazy.get())
        {
            // Most packets that go on with a connection stop at the next rule.
            let mut ahead = at.run;
            if let Some(rule) = ahead.next_rule()
                && rule.has_more()
                && let answer @ (HeaderTest::Ask | HeaderTest::AskMatches) = rule.test(key)
            {
                at.run = ahead;
                return (1, Some((rule, answer)));
            }
            if let Some(swept) = at.look_up((chain, index), key, &mut count) {
                return swept;
            }
        }
        let mut swept = at.run.sweep(key, &mut count);
        while swept.1.is_none() && at.go_on() {
            let before = swept.0;
            swept = at.run.sweep(key, &mut count);
            swept.0 += before;
        }
        if let Some(chain) = at.indexed
            && let Some(lazy) = &chain.index
        {
            let words = || chain.iter().map(|segment| &*segment.words).collect();
            lazy.count(swept.0, chain.len(), words, self.is_v6);
        }
        swept
    }

    #[inline]
    fn fall_through(&self, chain: u32) -> FallThrough {
        self.policies.fall_through(chain)
    }
}
