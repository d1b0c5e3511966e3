//! Decides by address, under change: which sources may not send at all (persona non grata, PNG), and which
//! sources each destination accepts (R). A packet from S to D is permitted iff not `PNG[S]` and S in `R[D]`.
//!
//! Two things are here. The *engines* carry the exercise of two concurrency studies: config packets change
//! one address at a time while data packets are judged, by however many threads; each engine is one file
//! with its concurrency contract and its linearization argument at the top, and [`model`] is what they are
//! all held to. The [`list`](mod@list) is what tamis itself uses: bans, and accepted sources of
//! destinations, over prefixes of IPv4 and IPv6.
//!
//! Contract: no I/O, no clock. Ranges are half-open. The default of R is said by whoever builds an engine.
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
pub mod list;
pub mod matrix;
pub mod matrix_unlocked;
pub mod model;
pub mod optimistic;
mod pause;
mod range_list;
mod ranges;
pub mod serial;
pub mod split_ordered;
pub mod striped;
pub mod striped_map;
mod sync;
mod table;
pub mod tamis;

pub use address::{Address, Mix};
pub use config::{Body, Config, Data, Packet, Permits};
pub use engine::{Decide, Engine, TooLarge};
pub use list::List;
pub use pause::jitter;
pub use ranges::RangeSet;
