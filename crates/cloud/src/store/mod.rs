//! [`Store`]: what a cloud keeps over restarts: devices, their identities, one-time keys, the policy, paths, where nodes were last,
//! and a log.
//! [`Redb`] is the store on disk, [`Shared`] that which two directories share.
//!
//! Contract: what [`Store::commit`] took is kept, all of it or nothing. After an error nothing more is acknowledged: the
//! cloud ends, and begins again from what is there; but while [`Store::stand`] says why nothing can be kept now, it waits.

use std::net::SocketAddr;

use anyhow::Result;
use overlay::{Pair, Record, Sources};
use serde::{Deserialize, Serialize};
use tunnel::PublicKey;

pub(crate) use disk::Redb;
pub(crate) use shared::Shared;

mod disk;
mod shared;
mod texts;

/// Lines of the log that are kept.
const LINES: u64 = 10_000;
/// Versions of the policy that are kept.
const VERSIONS: u64 = 64;

/// Where a cloud keeps what it acknowledges.
pub(crate) trait Store {
    /// All that is kept, but for the log.
    fn records(&self) -> Result<Vec<Record>>;

    /// The policy that was put in force last.
    fn policy(&self) -> Result<Option<KeptPolicy>>;

    /// Where nodes were last.
    fn places(&self) -> Result<Vec<Place>>;

    /// Where the nodes of paths send from to the relay.
    fn sources(&self) -> Result<Vec<(Pair, Sources)>>;

    /// Keeps changes.
    fn commit(&mut self, changes: &Changes) -> Result<()>;

    /// Keeps changes that nobody waits for, in their order, some time soon.
    ///
    /// # Errors
    /// These could not be kept, or some of before.
    fn commit_soon(&mut self, changes: Changes) -> Result<()> {
        self.commit(&changes)
    }

    /// Waits until all is kept that was to be kept soon.
    ///
    /// # Errors
    /// Some of it could not be kept.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether changes can be kept: nothing if so, or why that has to wait.
    ///
    /// # Errors
    /// They never will be: another one keeps them.
    fn stand(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// The last lines of the log, `most` at most, the newest at the end.
    fn lines(&self, most: usize) -> Result<Vec<String>>;
}

/// Where a node's session comes from, by its key: a cloud that restarts knows by it whose datagram of a lost session came.
pub(crate) type Place = (PublicKey, SocketAddr);

/// What is kept at once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) records: Vec<Record>,
    pub(crate) policy: Option<KeptPolicy>,
    pub(crate) places: Vec<Place>,
    pub(crate) sources: Vec<(Pair, Sources)>,
    /// Keys of nodes that are no longer.
    pub(crate) displaced: Vec<PublicKey>,
    /// Lines of the log.
    pub(crate) lines: Vec<String>,
}

/// A version of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptPolicy {
    pub(crate) version: u64,
    /// The text, in TOML.
    pub(crate) text: String,
    /// It is what the configuration had, which goes on saying what is allowed.
    pub(crate) configured: bool,
}
