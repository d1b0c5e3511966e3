//! Connection tracking as the oracle compares it: conversations of many flows through two devices, under
//! rulesets that look at their state and translate their addresses.
//!
//! [`stage`] says who lives behind which device, [`rules`] draws rulesets, [`real`] readies those of the wild,
//! [`talk`] draws conversations, [`evaluator`] is tamis by way of the whole [`dataplane::Handler`], [`case`] keeps a
//! conversation with what the kernel made of it, [`summary`] adds a campaign up.

pub mod case;
pub mod evaluator;
pub mod real;
pub mod rules;
pub mod stage;
pub mod summary;
pub mod talk;
pub mod wire;

use std::time::Duration;

/// A packet, the device that it comes in by, and how long after the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// It comes in by the far device.
    pub from_far: bool,
    /// Its bytes from the network header on.
    pub bytes: Vec<u8>,
    /// What passes before it is sent.
    pub pause: Duration,
}

impl Sent {
    /// Without a pause.
    #[must_use]
    pub fn at_once(from_far: bool, bytes: Vec<u8>) -> Self {
        Self { from_far, bytes, pause: Duration::ZERO }
    }
}

/// A packet that came out of the kernel, fragments put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Came {
    /// It came out by the far device.
    pub by_far: bool,
    /// Its bytes from the network header on.
    pub bytes: Vec<u8>,
}
