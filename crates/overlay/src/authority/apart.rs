//! [`Apart`]: what an authority knows of a directory that is another process.

use std::net::SocketAddr;

use tunnel::PublicKey;

use crate::message::Transaction;
use crate::name::Name;
use crate::queue::Orders;

/// A directory that is another process.
#[derive(Debug)]
pub(super) struct Apart {
    pub(super) orders: Orders<Name>,
    /// Where it is outside the tunnel.
    pub(super) at: SocketAddr,
    /// Words that this authority has said of itself.
    pub(super) said: Transaction,
    pub(super) say_at: u64,
    /// When the directory was heard last, or another session was made.
    pub(super) heard: u64,
}

impl Apart {
    /// The directory of this key, which is reached there, and was not heard yet.
    pub(super) fn new(at: SocketAddr, key: PublicKey) -> Self {
        Self { orders: Orders::new(key), at, said: 0, say_at: 0, heard: 0 }
    }

    /// Where it is, and its key.
    pub(super) fn place(&self) -> (SocketAddr, PublicKey) {
        (self.at, self.orders.key)
    }
}
