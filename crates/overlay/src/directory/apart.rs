//! What a directory knows of servers that are other processes: [`Apart`], an authority, and [`Remote`], a relay.

use std::net::IpAddr;

use tunnel::PublicKey;

use crate::message::Transaction;
use crate::paths::Pair;
use crate::queue::{Followed, Orders};

/// An authority that is another process.
#[derive(Debug)]
pub(super) struct Apart {
    pub(super) key: PublicKey,
    pub(super) followed: Followed,
    /// Words that this directory has said to it.
    pub(super) said: Transaction,
    /// When it was heard last, if it is there.
    pub(super) heard: Option<u64>,
    /// Seconds after 1970 on its clock, and when that was on ours.
    pub(super) clock: Option<(u64, u64)>,
    /// That its clock differs was noted.
    pub(super) is_skewed: bool,
    /// A start of it with another network than this one.
    pub(super) strange: Option<u64>,
}

impl Apart {
    /// The authority of this key, which is not there yet.
    pub(super) fn new(key: PublicKey) -> Self {
        let followed = Followed::default();
        let (said, heard, clock, is_skewed, strange) = (0, None, None, false, None);
        Self { key, followed, said, heard, clock, is_skewed, strange }
    }
}

/// A relay on a host of its own.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) at: IpAddr,
    /// Where nodes of the other family reach it, if they do.
    pub(super) other: Option<IpAddr>,
    pub(super) orders: Orders<Pair>,
    /// How many datagrams it has forwarded and dropped.
    pub(super) counts: (u64, u64),
}

/// A relay on a host of its own, as a directory sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayState {
    /// Where nodes reach it.
    pub at: IpAddr,
    /// Whether it is there.
    pub is_there: bool,
    /// How many datagrams it has forwarded and dropped.
    pub counts: (u64, u64),
}
