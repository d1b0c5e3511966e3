//! Decides by address, under change: which sources may not send at all (persona non grata, PNG), and which
//! sources each destination accepts (R). A packet from S to D is permitted iff not `PNG[S]` and S in `R[D]`.
//!
//! The [`list`](mod@list) is what replays use: bans, and accepted sources of destinations, over prefixes of IPv4
//! and IPv6. [`tamis`] is an engine of the exercise of two concurrency studies: config packets change one address at
//! a time while data packets are evaluated, by however many threads. [`model`] is what every [`Engine`] is held to; those
//! of the studies are the lab's.
//!
//! Contract: no I/O, no clock. Ranges are half-open. The default of R is given by whoever builds an engine.
mod address;
pub mod arena;
mod config;
mod engine;
pub mod list;
pub mod model;
mod ranges;
pub mod span;
pub mod sync;
pub mod tamis;

pub use address::{Address, Mix};
pub use config::{Body, Config, Data, Packet, Permits};
pub use engine::{Decide, Engine, TooLarge};
pub use list::List;
pub use ranges::RangeSet;
