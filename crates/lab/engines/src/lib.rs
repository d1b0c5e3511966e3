//! The engines of the two studies of access control under change, beside ours: each is one file with its
//! concurrency contract and its linearization argument at the top, held to [`model`].
//!
//! A packet from S to D is permitted iff S is not persona non grata (PNG) and D accepts S (S in `R[D]`). Config packets change
//! one address at a time while data packets are evaluated, by any number of threads. Ranges are half-open. Whoever builds an
//! engine gives the default of R. No I/O, no clock.
//!
//! Source: the two projects that docs/studies.md names.

mod address;
mod arena;
pub mod cached;
pub mod catalogue;
pub mod coarse;
pub mod concurrent_map;
mod config;
mod engine;
mod entry;
pub mod fine;
pub mod hopscotch;
#[cfg(all(test, loom))]
mod interleavings;
#[cfg(not(loom))]
pub mod linear;
pub mod matrix;
pub mod matrix_unlocked;
pub mod model;
pub mod optimistic;
pub mod ours;
mod pause;
#[cfg(all(test, pauses))]
mod progress;
mod range_list;
pub mod serial;
pub mod skip_ranges;
mod span;
pub mod sparse;
pub mod split_ordered;
pub mod striped;
pub mod striped_map;
mod sync;
mod table;
pub mod tamis;

pub use address::{Address, Mix};
pub use config::{Body, Config, Data, Packet, Permits};
pub use engine::{Decide, Engine, TooLarge};
pub use pause::jitter;
