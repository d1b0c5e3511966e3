//! [`parse()`]: finds every header of a frame once.
//!
//! Contract: no allocation, no panic, and no verdict. What the kernel's stack would refuse before any
//! hook is recorded as [`L3Fault`](crate::L3Fault); what the capture does not hold is `Unknown`, never a fault. All
//! offsets of the result lie in `0..=end`.
//!
//! Source: the receive functions of Linux, named in each of the modules below.

mod checks;
mod frame;
mod ip4;
mod ip6;
mod link_layer;
mod plain;

pub use checks::Checksums;
pub use frame::{parse, parse_frame, parse_into};
pub use link_layer::plain_ethertype;
