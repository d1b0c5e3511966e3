//! Builds frames with correct lengths and checksums: the packet of a SPEC, tests, generators.
//!
//! Contract: the one module of this crate that allocates. A [`Craft`] always builds a frame that the
//! kernel's stack accepts, unless its sizes do not fit the length fields, which then are cut to 16 bits.

mod addresses;
mod frame;
mod message;

pub use addresses::Addresses;
pub use frame::{Craft, Ethernet, Fragment, arp_frame};
pub use message::Message;
