//! Every rule an allocation of its own, each address test another: linked lists, as editing wants them.
//!
//! The study's first prototypes were built so, and took 2.7 times the memory and 2.8 times the time. They had ten objects a
//! rule: [`Linked`] has three for a rule of two addresses, [`Scattered`] ten: the node, and an entry, what it holds and its
//! words for each of head, source and destination. [`Whole`] has one, as the rules of ipfw and pf have, which the study names
//! as lists, too.

use super::layout::Layout;
use rules::eval::{HeaderTest, Key, Source, Step, Stored, step_of};
use rules::layout::{Corrupt, Footprint, Policies, code};
use rules::model::{Action, FallThrough, Hook, Policy, Rule, Table};
use std::fmt::Debug;
use std::sync::Arc;

/// A table as linked lists with an allocation for each rule, and one for each of its tests.
pub type Linked = Lists<Box<[u64]>>;

/// A table as linked lists of many small objects, of which each leads to the next.
pub type Scattered = Lists<Far>;

/// A table as linked lists of rules that are one object each, tests within.
pub type Whole = Lists<Within>;

/// A table as linked lists, whose rules are nodes and pieces.
#[derive(Debug)]
pub struct Lists<P: Piece> {
    chains: Vec<List<P>>,
    policies: Policies,
    is_v6: bool,
}

/// The rules of one chain.
#[derive(Debug)]
struct List<P: Piece>(Option<Box<Node<P>>>);

/// A rule.
#[derive(Debug)]
pub struct Node<P: Piece> {
    head: P::Head,
    parts: Parts<P>,
    rule: Arc<Rule>,
    next: Option<Box<Node<P>>>,
}

/// The words of one test of a rule, apart from its node.
pub trait Piece: Debug + Send + Sync + Sized {
    /// Where a rule's head lies.
    type Head: Debug + Send + Sync;

    /// Lays words out.
    fn new(words: &[u64]) -> Self;
    /// Returns the words.
    fn words(&self) -> &[u64];
    /// Lays a head out.
    fn of_head(head: u64) -> Self::Head;
    /// Returns the head.
    fn head(head: &Self::Head) -> u64;
    /// Adds the allocations of a piece, which `None` has none of.
    fn footprint(piece: Option<&Self>, sum: Footprint) -> Footprint;
    /// Adds those of a head.
    fn footprint_of_head(head: &Self::Head, sum: Footprint) -> Footprint;
}

impl Piece for Box<[u64]> {
    /// In the node.
    type Head = u64;

    fn new(words: &[u64]) -> Self {
        words.into()
    }

    #[inline]
    fn words(&self) -> &[u64] {
        self
    }

    fn of_head(head: u64) -> u64 {
        head
    }

    #[inline]
    fn head(head: &u64) -> u64 {
        *head
    }

    fn footprint(piece: Option<&Self>, sum: Footprint) -> Footprint {
        sum.with(piece.map_or(0, |words| size_of_val(&**words)))
    }

    fn footprint_of_head(_: &u64, sum: Footprint) -> Footprint {
        sum
    }
}

/// Words behind an entry and what the entry holds: three allocations.
#[derive(Debug)]
pub struct Far(Box<Held>);

/// What an entry holds.
#[derive(Debug)]
struct Held(Box<Words>);

#[derive(Debug)]
struct Words(Box<[u64]>);

impl Piece for Far {
    type Head = Self;

    fn new(words: &[u64]) -> Self {
        Self(Box::new(Held(Box::new(Words(words.into())))))
    }

    #[inline]
    fn words(&self) -> &[u64] {
        &self.0.0.0
    }

    fn of_head(head: u64) -> Self {
        Self::new(&[head])
    }

    #[inline]
    fn head(head: &Self) -> u64 {
        head.words().first().copied().unwrap_or_default()
    }

    fn footprint(piece: Option<&Self>, sum: Footprint) -> Footprint {
        piece.map_or(sum, |far| {
            sum.with(size_of::<Held>()).with(size_of::<Words>()).with(size_of_val(far.words()))
        })
    }

    fn footprint_of_head(head: &Self, sum: Footprint) -> Footprint {
        Self::footprint(Some(head), sum)
    }
}

/// Words within the node: none has more than an IPv6 address and its mask.
#[derive(Debug)]
pub struct Within {
    words: [u64; 4],
    len: u8,
}

impl Piece for Within {
    /// In the node.
    type Head = u64;

    fn new(words: &[u64]) -> Self {
        let mut within = Self { words: [0; 4], len: words.len().min(4) as u8 };
        within.words.iter_mut().zip(words).for_each(|(to, word)| *to = *word);
        within
    }

    #[inline]
    fn words(&self) -> &[u64] {
        &self.words[..usize::from(self.len)]
    }

    fn of_head(head: u64) -> u64 {
        head
    }

    #[inline]
    fn head(head: &u64) -> u64 {
        *head
    }

    fn footprint(_: Option<&Self>, sum: Footprint) -> Footprint {
        sum
    }

    fn footprint_of_head(_: &u64, sum: Footprint) -> Footprint {
        sum
    }
}

/// The tests of a rule, each for itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<W> {
    /// A pair, or the source.
    pub(super) first: Option<W>,
    pub(super) destination: Option<W>,
    /// One word of ports.
    pub(super) ports: Option<W>,
}

impl<W> Parts<W> {
    /// Takes a rule apart: its head, and its tests, each laid out by `lay`.
    pub(super) fn of(rule: &Rule, is_v6: bool, mut lay: impl FnMut(&[u64]) -> W) -> (u64, Self) {
        let mut words = Vec::new();
        code::encode(rule, is_v6, |chain| chain, &mut words);
        let (head, [first, destination], ports) = code::parts(&words);
        let mut laid = |words: &[u64]| (!words.is_empty()).then(|| lay(words));
        let first = laid(first);
        let destination = laid(destination);
        let ports = laid(ports.as_slice());
        (head, Self { first, destination, ports })
    }
}

impl<W> Parts<W> {
    /// Returns what the tests of a rule of this head say; `words` gives the words of a test.
    #[inline]
    pub(super) fn test<'w>(
        &'w self,
        head: u64,
        key: &Key<'_>,
        words: impl Fn(&'w W) -> &'w [u64],
    ) -> HeaderTest {
        let of = |part: &'w Option<W>| part.as_ref().map_or(&[][..], &words);
        if code::has_addresses(head) {
            if !key.addresses_known() {
                return HeaderTest::Ask;
            }
            let tests = [of(&self.first), of(&self.destination)];
            if code::refuses_addresses(head, tests, key) {
                return HeaderTest::No;
            }
        }
        code::rest(head, of(&self.ports).first().copied(), key)
    }
}

impl<P: Piece> Lists<P> {
    /// Lays a table out.
    #[must_use]
    pub fn encode(table: &Table, is_v6: bool) -> Self {
        let chains = (0..table.chains.len()).map(|_| List(None)).collect();
        let mut linked = Self { chains, policies: Policies::of(table), is_v6 };
        for (index, chain) in table.chains.iter().enumerate() {
            linked.splice(index as u32, 0, 0, &chain.rules);
        }
        linked
    }

    fn nodes(&self, chain: usize) -> impl Iterator<Item = &Node<P>> {
        std::iter::successors(self.chains[chain].0.as_deref(), |node| node.next.as_deref())
    }
}

impl<P: Piece> Drop for List<P> {
    /// One after the other: left to itself, each node would drop the next one on the machine stack.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}

impl<P: Piece> Layout for Lists<P> {
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
            let (head, parts) = Parts::of(rule, self.is_v6, P::new);
            let node = Node { head: P::of_head(head), parts, rule: Arc::clone(rule), next: None };
            place = &mut place.insert(Box::new(node)).next;
        }
        *place = after;
    }

    fn add_chain(&mut self) -> u32 {
        self.chains.push(List(None));
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
            let sum = P::footprint_of_head(&node.head, sum.with(size_of::<Node<P>>()));
            let Parts { first, destination, ports } = &node.parts;
            [first, destination, ports]
                .into_iter()
                .fold(sum, |sum, part| P::footprint(part.as_ref(), sum))
        })
    }
}

impl<'r, P: Piece> Source<'r> for &'r Lists<P> {
    type Cursor = Option<&'r Node<P>>;
    type Rule = &'r Node<P>;

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
    fn next(&self, at: &mut Self::Cursor) -> Option<&'r Node<P>> {
        let node = (*at)?;
        *at = node.next.as_deref();
        Some(node)
    }

    #[inline]
    fn fall_through(&self, chain: u32) -> FallThrough {
        self.policies.fall_through(chain)
    }
}

impl<'r, P: Piece> Stored<'r> for &'r Node<P> {
    #[inline]
    fn test(&self, key: &Key<'_>) -> HeaderTest {
        self.parts.test(P::head(&self.head), key, P::words)
    }

    fn rule(&self) -> &'r Rule {
        &self.rule
    }

    fn step(&self) -> Step<'r> {
        step_of(&self.rule.action)
    }

    #[inline]
    fn only_counts(&self) -> bool {
        code::only_counts(P::head(&self.head))
    }

    #[inline]
    fn slot(&self) -> u32 {
        code::slot(P::head(&self.head))
    }
}
