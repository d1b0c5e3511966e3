//! Layout: one table's chains as words to walk, each chain in a block of its own ([`PackedChains`]), which a revision holds.
//!
//! What a layout is made of is public, so that others can be built and compared with it: rules as words ([`code`]), the
//! policies of a table, and [`crate::eval::Source`], which the walk reads. The lab has the layouts of the study.
//!
//! What the words of a rule cannot express is asked of the [`Rule`](crate::model::Rule) it came from, which a layout keeps
//! by its side.
//!
//! A long chain that many packets are swept through gets an index where [`PackedChains::index`] allows it.
//!
//! Contract: encoding allocates, walking does not; a layout that is found [`Corrupt`] is never walked.
//!
//! Source: "Xtables2: Love for blobs" (Engelhardt, NFWS 2010).

pub mod code;
mod index;
mod packed_chain;
pub(crate) mod paged;
pub(crate) mod segment;

pub use index::Indexed;
pub use packed_chain::PackedChains;

use crate::family::{Family, Hook};
use crate::model::{FallThrough, Policy, Table};

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
    /// Adds one more allocation of this number of bytes; none if there are none.
    #[must_use]
    pub fn with(self, bytes: usize) -> Self {
        Self { bytes: self.bytes + bytes, allocations: self.allocations + usize::from(bytes > 0) }
    }
}

/// The built-in chains of a table by hook, and the policies of all chains that have one.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    built_in: [Option<(u32, Policy)>; 6],
    /// Policies of user chains, by their index: only bridges have such.
    user: Vec<(u32, Policy)>,
}

impl Policies {
    /// The policies of a table.
    #[must_use]
    pub fn of(table: &Table) -> Self {
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
        let place = &mut self.built_in[hook as usize];
        if place.is_none_or(|(first, _)| first >= chain) {
            *place = Some((chain, policy));
        }
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

    /// The base chain at a hook, the first of several, and its policy.
    #[inline]
    #[must_use]
    pub fn base(&self, hook: Hook) -> Option<(u32, Policy)> {
        self.built_in[hook as usize]
    }

    /// Returns what the end of a user chain does.
    #[inline]
    #[must_use]
    pub fn fall_through(&self, chain: u32) -> FallThrough {
        if self.user.is_empty() {
            return FallThrough::Return;
        }
        let at = self.user.binary_search_by_key(&chain, |(index, _)| *index);
        at.map_or(FallThrough::Return, |at| FallThrough::Policy(self.user[at].1))
    }
}

/// Whether addresses of the family take sixteen bytes in a rule: all that are longer than four.
#[must_use]
pub fn has_wide_addresses(family: Family) -> bool {
    family.addr_len() > 4
}
