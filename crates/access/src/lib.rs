//! Decides by address, under change: which sources may not send at all, and which sources each destination accepts.
//!
//! The [`list`](mod@list) is what `--bans` uses: bans, and accepted sources of destinations, over prefixes of IPv4 and IPv6.
//!
//! Contract: no I/O, no clock.
#![forbid(unsafe_code)]

mod address;
pub mod list;
mod ranges;

pub use address::Address;
pub use list::List;
pub use ranges::RangeSet;
