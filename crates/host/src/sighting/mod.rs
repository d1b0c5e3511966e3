//! What each captured frame is: the one place that decides it.
//!
//! A capture on all interfaces, or one on each, shows a forwarded packet several times: as it came, as it left, and
//! at the devices below either ([`Sighting`]). [`Sightings`] reads frames ahead of their evaluation and pairs
//! what belongs together, so that a packet is evaluated once, and with what the frame that left tells of it ([`Left`]):
//! which address and port translation drew, and that it was let go.
//!
//! The capture's own words come first (packet type, direction flag, interface), then the addresses of own links.
//! What pairs is what translation leaves alone ([`print`](mod@print)); among equal packets the one with more ends
//! alike, then the first; where several with other ends remain, the pair teaches nothing.
//!
//! Contract: frames come in order of time and leave in the same order; memory is bounded ([`KEPT`] frames besides those
//! that wait). Hashes are keyed at random and what is answered does not depend on the key. No clock.
//!
//! Source: `semantics.md`'s rules were measured on Linux 6.18: taps of packet sockets (`net/core/dev.c`,
//! `net/packet/af_packet.c`), bridges (`net/bridge/br_input.c`, `br_netfilter_hooks.c`).

mod ahead;
mod alike;
mod arrival;
mod bridged;
mod copied;
mod devices;
mod frame;
mod pair;
mod ports;
pub mod print;
mod proxied;
mod queued;
pub mod quoted;
mod remembered;
mod table;
#[cfg(test)]
mod tests;

pub use devices::{Device, Devices, Link};
pub use frame::{Copied, Ends, Frame, Left, Seen, Sighting, Way};
pub use ports::{Bridged, Ports};
pub use remembered::{Families, Sightings};
pub use table::KEPT;
