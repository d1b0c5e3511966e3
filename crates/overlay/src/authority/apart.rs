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
    /// Where it may be outside the tunnel.
    pub(super) at: Vec<SocketAddr>,
    /// Words that this authority has said of itself.
    pub(super) said: Transaction,
    pub(super) say_at: u64,
    /// When the directory was heard last, or another session was made.
    pub(super) heard: u64,
}

impl Apart {
    /// The directory of this key, which may be reached there, and was not heard yet.
    pub(super) fn new(at: Vec<SocketAddr>, key: PublicKey) -> Self {
        Self { orders: Orders::new(key), at, said: 0, say_at: 0, heard: 0 }
    }

    /// Where it may be, and its key.
    pub(super) fn places(&self) -> (Vec<SocketAddr>, PublicKey) {
        (self.at.clone(), self.orders.key)
    }
}
