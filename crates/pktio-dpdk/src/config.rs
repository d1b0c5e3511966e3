//! The settings of a port, and why the EAL does not start.
//!
//! Contract: plain values, the same with DPDK and without.

use std::time::Duration;
use std::{fmt, io};

/// How to open a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DpdkConfig {
    /// The device's name in the EAL: `net_null0`, `0000:03:00.0`; or its number there, from 0.
    pub device: String,
    /// Queues to receive from and send to, at least one, each a port of its own. A device that cannot steer both
    /// directions of a flow to one queue has one.
    pub queues: u16,
    /// Frames received at once, 1 to [`DpdkConfig::MOST_BURST`].
    pub rx_burst: usize,
    /// Frames that are collected before they are sent, 1 to [`DpdkConfig::MOST_BURST`].
    pub tx_burst: usize,
    /// Mbufs that a worker keeps before it frees them for others, up to [`DpdkConfig::MOST_BURST`]. It holds for the
    /// memory that devices of one NUMA node share: the first to be opened decides.
    pub free_burst: usize,
    /// How long frames are collected before they are sent all the same.
    pub drain: Duration,
}

impl DpdkConfig {
    /// The most that any of the bursts can be.
    pub const MOST_BURST: usize = 512;

    /// The usual bursts, and one queue.
    #[must_use]
    pub fn new(device: &str) -> Self {
        Self {
            device: device.to_owned(),
            queues: 1,
            rx_burst: 64,
            tx_burst: 32,
            free_burst: 256,
            drain: Duration::from_micros(50),
        }
    }
}

/// Why there is no EAL.
#[derive(Debug)]
pub enum EalError {
    /// This build has no DPDK.
    NotBuilt,
    /// The EAL was started before: a process does that once.
    Again,
    /// An argument holds a zero byte.
    Argument(String),
    /// The EAL does not start; it has said why on standard error.
    Refused(io::Error),
}

impl fmt::Display for EalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => {
                f.write_str("built without DPDK: apt-get install libdpdk-dev, then build again")
            }
            Self::Again => f.write_str("DPDK's EAL starts once in a process, and has"),
            Self::Argument(argument) => {
                write!(f, "expected an EAL argument without a zero byte, found {argument:?}")
            }
            Self::Refused(error) => write!(f, "DPDK's EAL does not start: {error}"),
        }
    }
}

impl std::error::Error for EalError {}
