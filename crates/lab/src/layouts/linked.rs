//! Every rule an allocation of its own, each address test another: linked lists, as editing wants them.
//!
//! The study's first prototypes were built so, and took 2.7 times the memory and 2.8 times the time.

use super::layout::Layout;
use rules::eval::{HeaderTest, Key, Source, Step, Stored, step_of};
use rules::layout::{Corrupt, Footprint, Policies, code};
use rules::model::{Action, FallThrough, Hook, Policy, Rule, Table};
use std::sync::Arc;

/// A table as linked lists with an allocation for each rule.
#[derive(Debug)]
pub struct Linked {
    chains: Vec<List>,
    policies: Policies,
    is_v6: bool,
}

/// The rules of one chain.
#[derive(Debug, Default)]
struct List(Option<Box<Node>>);

/// A rule.
#[derive(Debug)]
pub struct Node {
    parts: Parts<Box<[u64]>>,
    rule: Arc<Rule>,
    next: Option<Box<Node>>,
}

/// A rule taken apart: its head, and its address tests each for itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<W> {
    pub(super) head: u64,
    /// A pair, or the source.
    pub(super) first: Option<W>,
    pub(super) destination: Option<W>,
    /// One word of ports.
    pub(super) ports: Option<W>,
}

impl Parts<Box<[u64]>> {
    pub(super) fn of(rule: &Rule, is_v6: bool) -> Self {
        let mut words = Vec::new();
        code::encode(rule, is_v6, |chain| chain, &mut words);
        let (head, [first, destination], ports) = code::parts(&words);
        let boxed = |words: &[u64]| (!words.is_empty()).then(|| words.into());
        Self {
            head,
            first: boxed(first),
            destination: boxed(destination),
            ports: boxed(ports.as_slice()),
        }
    }
}

impl<W> Parts<W> {
    /// Returns what the tests say; `words` gives the words of a test.
    #[inline]
    pub(super) fn test<'w>(
        &'w self,
        key: &Key<'_>,
        words: impl Fn(&'w W) -> &'w [u64],
    ) -> HeaderTest {
        let of = |part: &'w Option<W>| part.as_ref().map_or(&[][..], &words);
        if code::has_addresses(self.head) {
            if !key.addresses_known() {
                return HeaderTest::Ask;
            }
            let tests = [of(&self.first), of(&self.destination)];
            if code::refuses_addresses(self.head, tests, key) {
                return HeaderTest::No;
            }
        }
        code::rest(self.head, of(&self.ports).first().copied(), key)
    }
}

impl Linked {
    /// Lays a table out.
    #[must_use]
    pub fn encode(table: &Table, is_v6: bool) -> Self {
        let chains = (0..table.chains.len()).map(|_| List::default()).collect();
        let mut linked = Self { chains, policies: Policies::of(table), is_v6 };
        for (index, chain) in table.chains.iter().enumerate() {
            linked.splice(index as u32, 0, 0, &chain.rules);
        }
        linked
    }

    fn nodes(&self, chain: usize) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.chains[chain].0.as_deref(), |node| node.next.as_deref())
    }
}

impl Drop for List {
    /// One after the other: left to itself, each node would drop the next one on the machine stack.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}

impl Layout for Linked {
    fn splice(&mut self, chain: u32, at: usize, delete: usize, insert: &[Arc<Rule>]) {
        let mut place = &mut self.chains[chain as usize].0;
        for _ in 0..at {
            match place {
                Some(node) => place = &mut node.next,
                None => break,
            }
        }
        for _ in 0..delete {
            if let Some(node) = place.take() {
                *place = node.next;
            }
        }
        let after = place.take();
        for rule in insert {
            let parts = Parts::of(rule, self.is_v6);
            let node = Node { parts, rule: Arc::clone(rule), next: None };
            place = &mut place.insert(Box::new(node)).next;
        }
        *place = after;
    }

    fn add_chain(&mut self) -> u32 {
        self.chains.push(List::default());
        (self.chains.len() - 1) as u32
    }

    fn verify(&self) -> Result<(), Corrupt> {
        for chain in 0..self.chains.len() {
            let bad = self.nodes(chain).position(|node| match node.rule.action {
                Action::Jump(to) | Action::Goto(to) => to as usize >= self.chains.len(),
                _ => false,
            });
            if let Some(rule) = bad {
                return Err(Corrupt { chain: chain as u32, rule });
            }
        }
        Ok(())
    }

    fn footprint(&self) -> Footprint {
        let heads = Footprint::default().with(size_of_val(&*self.chains));
        (0..self.chains.len()).flat_map(|chain| self.nodes(chain)).fold(heads, |sum, node| {
            let bytes = |part: &Option<Box<[u64]>>| part.as_deref().map_or(0, size_of_val);
            sum.with(size_of::<Node>())
                .with(bytes(&node.parts.first))
                .with(bytes(&node.parts.destination))
                .with(bytes(&node.parts.ports))
        })
    }
}

impl<'r> Source<'r> for &'r Linked {
    type Cursor = Option<&'r Node>;
    type Rule = &'r Node;

    #[inline]
    fn base(&self, hook: Hook) -> Option<((u32, Self::Cursor), Policy)> {
        let (chain, policy) = self.policies.base(hook)?;
        Some((self.enter(chain), policy))
    }

    #[inline]
    fn chain_at(&self, index: u32) -> (u32, Self::Cursor) {
        self.enter(index)
    }

    #[inline]
    fn enter(&self, jump: u32) -> (u32, Self::Cursor) {
        (jump, self.chains[jump as usize].0.as_deref())
    }

    #[inline]
    fn next(&self, at: &mut Self::Cursor) -> Option<&'r Node> {
        let node = (*at)?;
        *at = node.next.as_deref();
        Some(node)
    }

    #[inline]
    fn fall_through(&self, chain: u32) -> FallThrough {
        self.policies.fall_through(chain)
    }
}

impl<'r> Stored<'r> for &'r Node {
    #[inline]
    fn test(&self, key: &Key<'_>) -> HeaderTest {
        self.parts.test(key, |words| words)
    }

    fn rule(&self) -> &'r Rule {
        &self.rule
    }

    fn step(&self) -> Step<'r> {
        step_of(&self.rule.action)
    }

    #[inline]
    fn only_counts(&self) -> bool {
        code::only_counts(self.parts.head)
    }

    #[inline]
    fn slot(&self) -> u32 {
        code::slot(self.parts.head)
    }
}
