//! The study's last table, with what stands for each of its rows here.
//!
//! Source: "Xtables2: Love for blobs" (Engelhardt, NFWS 2010), the last two slides; round-trip times of a ping over
//! 100,000 matching rules, in milliseconds. Each round trip walks the rules twice.

use super::count::Counting;
use rules::layout::Kind;

/// One row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Driver {
    /// As the study names it.
    pub(super) name: &'static str,
    /// On its Athlon of 2003.
    pub(super) k7: f64,
    /// On its Core i7 of 2009.
    pub(super) i7: Option<f64>,
    /// What stands for it here; nft is the kernel's own.
    pub(super) here: Option<(Kind, Counting)>,
}

const fn driver(
    name: &'static str,
    k7: f64,
    i7: Option<f64>,
    kind: Kind,
    counting: Counting,
) -> Driver {
    Driver { name, k7, i7, here: Some((kind, counting)) }
}

/// All rows, the first of which the others are compared with.
pub(super) const DRIVERS: [Driver; 8] = [
    driver("xt1 +2s", 40.447, Some(2.83), Kind::TableBlob, Counting::Local),
    driver("xt1 +1Q", 58.882, Some(5.18), Kind::TableBlob, Counting::Locked),
    driver("xt1 +2Q", 77.373, Some(11.50), Kind::TableBlob, Counting::LockedTwice),
    driver("xt2-proto3 +2Q", 113.424, None, Kind::Linked, Counting::LockedTwice),
    driver("xt2-proto4 +2Q", 74.135, None, Kind::PackedChain, Counting::LockedTwice),
    driver("xt2-proto4 +2s", 44.254, None, Kind::PackedChain, Counting::Local),
    driver("the same, +1 allocation", 50.733, None, Kind::PackedChain, Counting::Allocated),
    Driver { name: "nft +2s", k7: 57.8, i7: None, here: None },
];

/// Bytes of the study's blob, and what lists of small allocations made of it.
pub(super) const MEMORY: [(&str, f64); 2] = [("blob, 20 MB", 1.0), ("lists, 53 MB", 2.7)];
