//! Layouts: one table's chains as they may lie in memory, and what it costs to walk, to hold and to change them.
//!
//! | layout | a jump holds | a change of one rule costs |
//! |---|---|---|
//! | [`TableBlob`] | the offset of the chain in the blob | the table, twice: bytes moved, jumps changed |
//! | [`IndexedBlob`] | the chain's index in a table of offsets | the table's bytes and its chains |
//! | [`Linked`] | the chain's index; rules and tests are small allocations | the rules before it |
//! | [`Scattered`] | likewise; ten small allocations a rule, each found by way of another | the rules before it |
//! | [`Whole`] | likewise; a rule is one allocation, as in ipfw and pf | the rules before it |
//! | [`Pooled`] | likewise; rules and addresses come from a pool for each type | the rules before it |
//! | [`PackedChains`] | the chain's index; each chain is a blob of its own | the chain, at most a segment |
//!
//! All of them hold rules as [`rules::layout::code`] writes them and are read by the walk of [`rules::eval`], so they differ
//! in where rules lie and in nothing else. The last one is what tamis walks.
//!
//! Source: "Xtables2: Love for blobs" (Engelhardt, NFWS 2010), which measured the first five but [`Whole`], which it names.

mod indexed_blob;
mod layout;
mod linked;
mod pooled;
mod table_blob;
mod turns;

use std::sync::Arc;

pub use indexed_blob::IndexedBlob;
pub use layout::Layout;
pub use linked::{Linked, Scattered, Whole};
pub use pooled::Pooled;
use rules::layout::Indexed;
pub use rules::layout::{Corrupt, Footprint, PackedChains};
pub use table_blob::TableBlob;
pub use turns::{Layouts, name_of};

use rules::Transit;
use rules::eval::{Alive, Memories, Observer, Verdicts, run};
use rules::layout::has_wide_addresses;
use rules::model::{Family, Rule, Table};

/// Which layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// [`TableBlob`].
    TableBlob,
    /// [`IndexedBlob`].
    IndexedBlob,
    /// [`Linked`].
    Linked,
    /// [`Scattered`].
    Scattered,
    /// [`Whole`].
    Whole,
    /// [`Pooled`].
    Pooled,
    /// [`PackedChains`].
    #[default]
    PackedChain,
}

impl Kind {
    /// Every layout, in the order of the table above.
    pub const ALL: [Self; 7] = [
        Self::TableBlob,
        Self::IndexedBlob,
        Self::Linked,
        Self::Scattered,
        Self::Whole,
        Self::Pooled,
        Self::PackedChain,
    ];

    /// Returns the layout's name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TableBlob => "table_blob",
            Self::IndexedBlob => "indexed_blob",
            Self::Linked => "linked",
            Self::Scattered => "scattered",
            Self::Whole => "whole",
            Self::Pooled => "pooled",
            Self::PackedChain => "packed_chain",
        }
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
    /// Many small allocations.
    Scattered(Scattered),
    /// An allocation a rule.
    Whole(Whole),
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
            Laid::Scattered($layout) => $call,
            Laid::Whole($layout) => $call,
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
            Kind::Scattered => Self::Scattered(Scattered::encode(table, is_v6)),
            Kind::Whole => Self::Whole(Whole::encode(table, is_v6)),
            Kind::Pooled => Self::Pooled(Pooled::encode(table, is_v6)),
            Kind::PackedChain => Self::PackedChain(PackedChains::encode(table, is_v6)),
        }
    }

    /// Has long chains looked up from the first walk on, where the layout has indexes.
    #[must_use]
    pub fn indexed(mut self) -> Self {
        if let Self::PackedChain(chains) = &mut self {
            chains.index(Indexed::Always);
        }
        self
    }

    /// Walks the built-in chain at the packet's hook, as [`rules::eval::walk`] does; `number` is the table's index in
    /// what observers see. Each layout's walk is compiled for the observer, so that layouts can be compared.
    pub fn walk(
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
