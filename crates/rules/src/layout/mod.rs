//! Layouts: one table's chains as bytes to walk, and what it costs to walk, to hold and to change them.
//!
//! | layout | a jump holds | a change of one rule costs |
//! |---|---|---|
//! | [`TableBlob`] | the offset of the chain in the blob | the table, twice: bytes moved, jumps changed |
//! | [`IndexedBlob`] | the chain's index in a table of offsets | the table's bytes and its chains |
//! | [`Linked`] | the chain's index; rules and tests are small allocations | the rules before it |
//! | [`Pooled`] | likewise; rules and addresses come from a pool for each type | the rules before it |
//! | [`PackedChains`] | the chain's index; each chain is a blob of its own | the chain, at most a segment |
//!
//! All of them hold rules as `code.rs` writes them and are read by the walk of [`crate::eval`], so they differ
//! in where rules lie and in nothing else. What the words of a rule cannot express is asked of the [`Rule`] it came
//! from, which every layout keeps by its side.
//!
//! Contract: encoding allocates, walking does not; a layout that does not [`Layout::verify`] is never walked.
//!
//! Source: "Xtables2: Love for blobs" (Engelhardt, NFWS 2010), which measured the first four.

pub(crate) mod code;
mod indexed_blob;
mod linked;
mod packed_chain;
pub(crate) mod paged;
mod pooled;
pub(crate) mod segment;
mod table_blob;

use std::fmt;
use std::sync::Arc;

pub use indexed_blob::IndexedBlob;
pub use linked::Linked;
pub use packed_chain::PackedChains;
pub use pooled::Pooled;
pub use table_blob::TableBlob;

use crate::eval::{Alive, Memories, Observer, Tell, Verdicts, run, told};
use crate::family::{Family, Hook};
use crate::model::{FallThrough, Policy, Rule, Table};
use crate::transit::Transit;

/// Which layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// [`TableBlob`].
    TableBlob,
    /// [`IndexedBlob`].
    IndexedBlob,
    /// [`Linked`].
    Linked,
    /// [`Pooled`].
    Pooled,
    /// [`PackedChains`].
    #[default]
    PackedChain,
}

impl Kind {
    /// Every layout, in the order of the table above.
    pub const ALL: [Self; 5] =
        [Self::TableBlob, Self::IndexedBlob, Self::Linked, Self::Pooled, Self::PackedChain];

    /// Its name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TableBlob => "table_blob",
            Self::IndexedBlob => "indexed_blob",
            Self::Linked => "linked",
            Self::Pooled => "pooled",
            Self::PackedChain => "packed_chain",
        }
    }
}

/// What one table is laid out as.
pub trait Layout: fmt::Debug + Send + Sync {
    /// Takes `delete` rules out of a chain from number `at` on, counted from 0, and puts others there: one
    /// reservation however many they are. Numbers past the end of the chain mean its end.
    fn splice(&mut self, chain: u32, at: usize, delete: usize, insert: &[Arc<Rule>]);

    /// Adds an empty chain; its index.
    fn add_chain(&mut self) -> u32;

    /// Checks that every rule is whole and every jump leads to a chain.
    ///
    /// # Errors
    /// The first place where that is not so.
    fn verify(&self) -> Result<(), Corrupt>;

    /// What it takes to hold the rules in this form, the rules as they were read aside.
    fn footprint(&self) -> Footprint;
}

/// A layout that cannot be walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrupt {
    /// Index of the chain.
    pub chain: u32,
    /// Number of the rule, from 0; the number of rules when something lies after them.
    pub rule: usize,
}

/// Memory of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Bytes asked for.
    pub bytes: usize,
    /// Allocations.
    pub allocations: usize,
}

impl Footprint {
    /// With one more allocation of this number of bytes; none when there are none.
    #[must_use]
    fn with(self, bytes: usize) -> Self {
        Self { bytes: self.bytes + bytes, allocations: self.allocations + usize::from(bytes > 0) }
    }
}

/// A table in one of the layouts.
#[derive(Debug)]
#[non_exhaustive]
pub enum Laid {
    /// One blob, absolute jumps.
    TableBlob(TableBlob),
    /// One blob, jumps by index.
    IndexedBlob(IndexedBlob),
    /// Small allocations.
    Linked(Linked),
    /// Small pieces from pools.
    Pooled(Pooled),
    /// A blob for each chain.
    PackedChain(PackedChains),
}

/// Calls the same on whichever layout it is.
macro_rules! each {
    ($laid:expr, $layout:ident => $call:expr) => {
        match $laid {
            Laid::TableBlob($layout) => $call,
            Laid::IndexedBlob($layout) => $call,
            Laid::Linked($layout) => $call,
            Laid::Pooled($layout) => $call,
            Laid::PackedChain($layout) => $call,
        }
    };
}

impl Laid {
    /// Lays a table out.
    #[must_use]
    pub fn encode(kind: Kind, table: &Table, family: Family) -> Self {
        let is_v6 = has_wide_addresses(family);
        match kind {
            Kind::TableBlob => Self::TableBlob(TableBlob::encode(table, is_v6)),
            Kind::IndexedBlob => Self::IndexedBlob(IndexedBlob::encode(table, is_v6)),
            Kind::Linked => Self::Linked(Linked::encode(table, is_v6)),
            Kind::Pooled => Self::Pooled(Pooled::encode(table, is_v6)),
            Kind::PackedChain => Self::PackedChain(PackedChains::encode(table, is_v6)),
        }
    }

    /// Walks the built-in chain at the packet's hook, as [`crate::eval::walk`] does; `number` is the table's
    /// index in what observers see. The layout that nobody has to ask for is walked by code of the observer's own.
    #[inline]
    pub fn walk<O: Observer>(
        &self,
        number: usize,
        transit: &mut Transit<'_, '_>,
        entry: Alive,
        memories: &mut Memories,
        observer: &mut O,
    ) -> Verdicts {
        match self {
            Self::PackedChain(layout) => {
                run(Some(&layout), number as u32, transit, entry, memories, observer)
            }
            other => other.told(number as u32, transit, entry, memories, O::SEES_RULES, observer),
        }
    }

    /// As [`Laid::walk`], each layout by code of the observer's own: so layouts are compared with each other.
    pub fn walk_each(
        &self,
        number: usize,
        transit: &mut Transit<'_, '_>,
        entry: Alive,
        memories: &mut Memories,
        observer: &mut impl Observer,
    ) -> Verdicts {
        let number = number as u32;
        each!(self, layout => run(Some(&layout), number, transit, entry, memories, observer))
    }

    #[inline(never)]
    fn told(
        &self,
        number: u32,
        transit: &mut Transit<'_, '_>,
        entry: Alive,
        memories: &mut Memories,
        sees_rules: bool,
        observer: &mut dyn Tell,
    ) -> Verdicts {
        each!(self, layout => {
            told(Some(&layout), number, transit, entry, memories, sees_rules, observer)
        })
    }
}

impl Layout for Laid {
    fn splice(&mut self, chain: u32, at: usize, delete: usize, insert: &[Arc<Rule>]) {
        each!(self, layout => layout.splice(chain, at, delete, insert));
    }

    fn add_chain(&mut self) -> u32 {
        each!(self, layout => layout.add_chain())
    }

    fn verify(&self) -> Result<(), Corrupt> {
        each!(self, layout => layout.verify())
    }

    fn footprint(&self) -> Footprint {
        each!(self, layout => layout.footprint())
    }
}

/// The built-in chains of a table by hook, and the policies of all chains that have one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policies {
    built_in: [Option<(u32, Policy)>; 6],
    /// Of user chains, by their index: only bridges have such.
    user: Vec<(u32, Policy)>,
}

impl Policies {
    pub(crate) fn of(table: &Table) -> Self {
        let mut policies = Self::default();
        for (index, chain) in (0..).zip(&table.chains) {
            match chain.base {
                Some(base) => policies.set(base.hook, index, base.policy),
                None => policies.set_fall_through(index, chain.fall_through),
            }
        }
        policies
    }

    pub(crate) fn set(&mut self, hook: Hook, chain: u32, policy: Policy) {
        self.built_in[hook as usize] = Some((chain, policy));
    }

    /// Sets what the end of a user chain does.
    pub(crate) fn set_fall_through(&mut self, chain: u32, fall_through: FallThrough) {
        let at = self.user.partition_point(|(index, _)| *index < chain);
        let is_there = self.user.get(at).is_some_and(|(index, _)| *index == chain);
        let policy = match fall_through {
            FallThrough::Return => None,
            FallThrough::Policy(policy) => Some((chain, policy)),
        };
        self.user.splice(at..at + usize::from(is_there), policy);
    }

    /// The built-in chain at a hook, and its policy.
    #[inline]
    pub(crate) fn base(&self, hook: Hook) -> Option<(u32, Policy)> {
        self.built_in[hook as usize]
    }

    /// Of a user chain.
    #[inline]
    fn fall_through(&self, chain: u32) -> FallThrough {
        if self.user.is_empty() {
            return FallThrough::Return;
        }
        let at = self.user.binary_search_by_key(&chain, |(index, _)| *index);
        at.map_or(FallThrough::Return, |at| FallThrough::Policy(self.user[at].1))
    }
}

/// Whether addresses of the family take sixteen bytes in a rule: all that are longer than four.
pub(crate) fn has_wide_addresses(family: Family) -> bool {
    family.addr_len() > 4
}

/// Puts rules into a list in place of others, within its bounds; what was asked for, within them.
fn splice_rules(
    rules: &mut Vec<Arc<Rule>>,
    at: usize,
    delete: usize,
    insert: &[Arc<Rule>],
) -> (usize, usize) {
    let at = at.min(rules.len());
    let delete = delete.min(rules.len() - at);
    rules.splice(at..at + delete, insert.iter().cloned());
    (at, delete)
}
