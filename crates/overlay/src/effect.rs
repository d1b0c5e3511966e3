//! [`Effect`]: what a directory or an authority wants done, and [`Now`], what time it is.

use std::net::{IpAddr, SocketAddr};

use tunnel::PublicKey;

use crate::paths::Pair;
use crate::record::{Device, Record};

/// What time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Nanoseconds of a monotonic clock.
    pub nanos: u64,
    /// Seconds after 1970.
    pub unix: u64,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// This is kept for good, before anything else is done.
    Keep(Record),
    /// The tunnel has this peer from now on.
    Admit {
        /// The peer's key.
        key: PublicKey,
        /// The addresses that are its own.
        addresses: Vec<IpAddr>,
    },
    /// The tunnel no longer has this peer.
    Dismiss {
        /// The peer's key.
        key: PublicKey,
    },
    /// A message is sent to a peer.
    Send {
        /// The peer's key.
        to: PublicKey,
        /// The peer's address inside the tunnel.
        at: IpAddr,
        /// The message.
        message: Vec<u8>,
    },
    /// The relay forwards between two nodes by this port. That is kept soon, as [`Record::Path`]: a path that a killed directory
    /// has forgotten is made again when a node asks.
    Join {
        /// The nodes.
        pair: Pair,
        /// Their keys, in the same order.
        keys: [PublicKey; 2],
        /// The relay's port.
        port: u16,
    },
    /// The relay no longer forwards between two nodes, which is kept soon as [`Record::Parted`].
    Part {
        /// The nodes.
        pair: Pair,
    },
    /// A byte goes from a port of the relay to a place that has never sent to it.
    Stray {
        /// The relay's port.
        port: u16,
        /// The place.
        to: SocketAddr,
    },
    /// An authority has enrolled or revoked this device: a directory of the same process learns it.
    Tell(Device),
    /// A line for the log.
    Note(String),
}
