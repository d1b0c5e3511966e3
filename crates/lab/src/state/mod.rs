//! Connection tracking as the oracle compares it: conversations of many flows through two devices, under
//! rulesets that look at their state.
//!
//! [`rules`] draws the rulesets, [`talk`] the conversations, [`judge`] is tamis, by way of the whole
//! [`dataplane::Handler`]. Left out: fragments, which need reassembly before the hooks, and nat.

pub mod judge;
pub mod rules;
pub mod talk;
pub mod wire;

/// The network behind the near device; everything else is behind the far one.
pub const INSIDE_V4: &str = "192.0.2.0/24";
/// The same, IPv6.
pub const INSIDE_V6: &str = "2001:db8:1::/64";

/// A packet and the device that it comes in by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// It comes in by the far device.
    pub from_far: bool,
    /// Its bytes from the network header on.
    pub bytes: Vec<u8>,
}
