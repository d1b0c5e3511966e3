//! The engines of the two studies of access control under change, beside ours: each is one file with its
//! concurrency contract and its linearization argument at the top, held to [`access::model`].
//!
//! Source: the two projects that docs/studies.md names.

pub mod cached;
pub mod catalogue;
pub mod coarse;
pub mod concurrent_map;
mod entry;
pub mod fine;
#[cfg(all(test, loom))]
mod interleavings;
#[cfg(not(loom))]
pub mod linear;
pub mod matrix;
pub mod matrix_unlocked;
pub mod optimistic;
pub mod ours;
mod pause;
mod range_list;
pub mod serial;
pub mod skip_ranges;
pub mod sparse;
pub mod split_ordered;
pub mod striped;
pub mod striped_map;
mod sync;
mod table;

pub use pause::jitter;
