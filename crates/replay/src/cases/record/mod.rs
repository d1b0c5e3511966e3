//! Writes a cases file from a capture, to start from: one case for each kind of packet, in the order of
//! first appearance.
//!
//! Packets are of one kind if they agree in protocol, addresses, the lower port and its side, flags or
//! type, interfaces, verdict and what decided. Each case is evaluated before it is written: alone, then with more
//! detail, then after the packets that opened its flow. What no SPEC reproduces (payload, options, time) is left
//! out and counted. So the file passes as written.
//!
//! Contract: constant memory in the length of the captures.

mod kinds;
#[cfg(test)]
mod tests;
mod toml;

pub use kinds::{Recording, record};
pub use toml::{Written, written};
