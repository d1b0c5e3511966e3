//! Linked rules whose pieces come from a pool for each type: the study's second try at small allocations,
//! which "showed no improvement". Links are indices into the pools.

use super::layout::Layout;
use super::linked::Parts;
use rules::eval::{HeaderTest, Key, Source, Step, Stored, step_of};
use rules::layout::{Corrupt, Footprint, Policies, code};
use rules::model::{Action, FallThrough, Hook, Policy, Rule, Table};
use std::sync::Arc;

/// The end of a list.
const NONE: u32 = u32::MAX;

/// Words that an address test may need.
type TestWords = [u64; 4];

/// A table as linked lists whose nodes and tests lie in pools.
#[derive(Debug)]
pub struct Pooled {
    /// The first rule of each chain.
    heads: Vec<u32>,
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    tests: Vec<TestWords>,
    free_tests: Vec<u32>,
    policies: Policies,
    is_v6: bool,
}

#[derive(Debug)]
struct Node {
    head: u64,
    /// Tests by their place in the pool.
    parts: Parts<u32>,
    rule: Arc<Rule>,
    next: u32,
}

/// A rule of a walk.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'r> {
    node: &'r Node,
    tests: &'r [TestWords],
}

impl Pooled {
    /// Lays a table out.
    #[must_use]
    pub fn encode(table: &Table, is_v6: bool) -> Self {
        let mut pooled = Self {
            heads: vec![NONE; table.chains.len()],
            nodes: Vec::new(),
            free_nodes: Vec::new(),
            tests: Vec::new(),
            free_tests: Vec::new(),
            policies: Policies::of(table),
            is_v6,
        };
        for (index, chain) in table.chains.iter().enumerate() {
            pooled.splice(index as u32, 0, 0, &chain.rules);
        }
        pooled
    }

    fn add_test(&mut self, words: &[u64]) -> u32 {
        let mut test = TestWords::default();
        test[..words.len()].copy_from_slice(words);
        put(&mut self.tests, &mut self.free_tests, test)
    }

    fn add_node(&mut self, rule: &Arc<Rule>, next: u32) -> u32 {
        let (head, parts) = Parts::of(rule, self.is_v6, |words| self.add_test(words));
        let node = Node { head, parts, rule: Arc::clone(rule), next };
        put(&mut self.nodes, &mut self.free_nodes, node)
    }

    /// What follows a node, or is first in a chain where there is none before it.
    fn link(&mut self, chain: u32, before: u32) -> &mut u32 {
        match before {
            NONE => &mut self.heads[chain as usize],
            _ => &mut self.nodes[before as usize].next,
        }
    }

    /// Takes out what follows a node, if anything does.
    fn take_next(&mut self, chain: u32, before: u32) {
        let gone = *self.link(chain, before);
        let Some(node) = self.nodes.get(gone as usize) else { return };
        let (next, parts) = (node.next, node.parts);
        let tests = [parts.first, parts.destination, parts.ports];
        self.free_tests.extend(tests.into_iter().flatten());
        self.free_nodes.push(gone);
        *self.link(chain, before) = next;
    }

    fn list(&self, chain: usize) -> impl Iterator<Item = &Node> {
        let first = self.nodes.get(self.heads[chain] as usize);
        std::iter::successors(first, |node| self.nodes.get(node.next as usize))
    }
}

/// Puts a piece into a pool; its place.
fn put<T>(pool: &mut Vec<T>, free: &mut Vec<u32>, piece: T) -> u32 {
    if let Some(at) = free.pop() {
        pool[at as usize] = piece;
        return at;
    }
    pool.push(piece);
    (pool.len() - 1) as u32
}

impl Layout for Pooled {
    fn splice(&mut self, chain: u32, at: usize, delete: usize, insert: &[Arc<Rule>]) {
        let mut before = NONE;
        for _ in 0..at {
            match *self.link(chain, before) {
                NONE => break,
                next => before = next,
            }
        }
        for _ in 0..delete {
            self.take_next(chain, before);
        }
        for rule in insert {
            let next = *self.link(chain, before);
            let node = self.add_node(rule, next);
            *self.link(chain, before) = node;
            before = node;
        }
    }

    fn add_chain(&mut self) -> u32 {
        self.heads.push(NONE);
        (self.heads.len() - 1) as u32
    }

    fn verify(&self) -> Result<(), Corrupt> {
        for chain in 0..self.heads.len() {
            let bad = self.list(chain).position(|node| match node.rule.action {
                Action::Jump(to) | Action::Goto(to) => to as usize >= self.heads.len(),
                _ => false,
            });
            if let Some(rule) = bad {
                return Err(Corrupt { chain: chain as u32, rule });
            }
        }
        Ok(())
    }

    fn footprint(&self) -> Footprint {
        let frees = (self.free_nodes.capacity() + self.free_tests.capacity()) * size_of::<u32>();
        Footprint::default()
            .with(size_of_val(&*self.heads))
            .with(self.nodes.capacity() * size_of::<Node>())
            .with(self.tests.capacity() * size_of::<TestWords>())
            .with(frees)
    }
}

impl<'r> Source<'r> for &'r Pooled {
    type Cursor = u32;
    type Rule = Piece<'r>;

    #[inline]
    fn base(&self, hook: Hook) -> Option<((u32, u32), Policy)> {
        let (chain, policy) = self.policies.base(hook)?;
        Some((self.enter(chain), policy))
    }

    #[inline]
    fn chain_at(&self, index: u32) -> (u32, u32) {
        self.enter(index)
    }

    #[inline]
    fn enter(&self, jump: u32) -> (u32, u32) {
        (jump, self.heads[jump as usize])
    }

    #[inline]
    fn next(&self, at: &mut u32) -> Option<Piece<'r>> {
        let node = self.nodes.get(*at as usize)?;
        *at = node.next;
        Some(Piece { node, tests: &self.tests })
    }

    #[inline]
    fn fall_through(&self, chain: u32) -> FallThrough {
        self.policies.fall_through(chain)
    }
}

impl<'r> Stored<'r> for Piece<'r> {
    #[inline]
    fn test(&self, key: &Key<'_>) -> HeaderTest {
        self.node.parts.test(self.node.head, key, |at| &self.tests[*at as usize])
    }

    fn rule(&self) -> &'r Rule {
        &self.node.rule
    }

    fn step(&self) -> Step<'r> {
        step_of(&self.node.rule.action)
    }

    #[inline]
    fn only_counts(&self) -> bool {
        code::only_counts(self.node.head)
    }

    #[inline]
    fn slot(&self) -> u32 {
        code::slot(self.node.head)
    }
}
