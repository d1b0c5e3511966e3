//! [`Record`]: what a directory and an authority keep for good. All else it knows is learned again: nodes register each
//! [`limits::REGISTER`](crate::limits::REGISTER).

use tunnel::PublicKey;

use crate::identity::Identity;
use crate::name::Name;
use crate::paths::Pair;

/// A change of what is kept. Each one replaces what was kept of the same name, key or pair, so to write it twice is to write
/// it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A node, by its name.
    Device(Device),
    /// A node's identity, by its name.
    Identity(Box<Identity>),
    /// A one-time key, by the key.
    Invitation(Invitation),
    /// A one-time key has expired: nothing of it is kept.
    Expired(PublicKey),
    /// Two nodes have a path, by this port of the relay: a session that goes that way goes on over a restart.
    Path(Pair, u16),
    /// Two nodes no longer have a path.
    Parted(Pair),
}

/// A node of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The node's name.
    pub name: Name,
    /// The node's key in the tunnel.
    pub key: PublicKey,
    /// The number of its virtual addresses, which stay with the name.
    pub number: u32,
    /// Whether it is no longer of the network.
    pub revoked: bool,
}

/// A one-time key: the holder of the private half may become the node of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The public half.
    pub key: PublicKey,
    /// The node's name.
    pub name: Name,
    /// Seconds after 1970 at which it expires.
    pub expires: u64,
    /// The node's key for which it was used.
    pub used: Option<PublicKey>,
}
