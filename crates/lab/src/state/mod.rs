//! Connection tracking as the oracle compares it: conversations of many flows through two devices, under
//! rulesets that look at their state and translate their addresses.
//!
//! [`stage`] says who lives behind which device, [`rules`] draws rulesets, [`real`] readies those of the wild,
//! [`talk`] draws conversations, [`judge`] is tamis by way of the whole [`dataplane::Handler`], [`case`] keeps a
//! conversation with what the kernel made of it, [`summary`] adds a campaign up.

pub mod case;
pub mod judge;
pub mod real;
pub mod rules;
pub mod stage;
pub mod summary;
pub mod talk;
pub mod wire;

/// A packet and the device that it comes in by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// It comes in by the far device.
    pub from_far: bool,
    /// Its bytes from the network header on.
    pub bytes: Vec<u8>,
}

/// A packet that came out of the kernel, fragments put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Came {
    /// It came out by the far device.
    pub by_far: bool,
    /// Its bytes from the network header on.
    pub bytes: Vec<u8>,
}
