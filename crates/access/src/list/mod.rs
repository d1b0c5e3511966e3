//! tamis's access list: bans, and the sources that destinations accept, over prefixes of IPv4 and IPv6.
//!
//! Bans are a set of addresses, the last writer wins for each. R is kept by disjoint ranges of destinations,
//! which a change splits; by default every destination accepts every source. A list is a value:
//! [`Published`] gives threads the latest one, [`Live`] also carries out timed changes for them.

mod block;
mod listed;
mod live;
mod published;
mod schedule;
mod side;

use std::net::IpAddr;

pub use block::Block;
pub use live::{Live, LiveReader};
pub use published::{Published, Reader};
pub use schedule::{Schedule, When};
use side::Side;

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The sources may not send to anybody.
    Ban,
    /// They may again.
    Unban,
    /// The destinations accept the sources.
    Accept,
    /// They do not.
    Deny,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ban, Self::Unban, Self::Accept, Self::Deny];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ban => "ban",
            Self::Unban => "unban",
            Self::Accept => "accept",
            Self::Deny => "deny",
        }
    }
}

/// One change of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// What is done.
    pub action: Action,
    /// To which sources.
    pub source: Block,
    /// For which destinations, of the source's family; `None`: all. A ban is always for all.
    pub destination: Option<Block>,
}

/// Why a packet is not permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Denied {
    /// Its source is banned (persona non grata).
    Banned,
    /// Its destination does not accept its source.
    NotAccepted,
}

impl Denied {
    /// As reports print it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Banned => "banned source",
            Self::NotAccepted => "source not accepted",
        }
    }
}

/// The list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    v4: Side<u32>,
    v6: Side<u128>,
}

impl List {
    /// Whether the source may send to the destination; addresses of two families never meet in a packet.
    ///
    /// # Errors
    /// It may not, and why.
    #[inline]
    pub fn decide(&self, source: IpAddr, destination: IpAddr) -> Result<(), Denied> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.v4.decide(source.to_bits(), destination.to_bits())
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.v6.decide(source.to_bits(), destination.to_bits())
            }
            _ => Ok(()),
        }
    }

    /// Whether it permits every packet.
    #[must_use]
    pub fn permits_all(&self) -> bool {
        self.v4.permits_all() && self.v6.permits_all()
    }

    /// How many ranges of sources are banned.
    #[must_use]
    pub fn banned(&self) -> usize {
        self.v4.banned() + self.v6.banned()
    }

    /// Applies a change.
    pub fn update(&mut self, change: &Change) {
        self.update_all(std::slice::from_ref(change));
    }

    /// Applies changes one after the other; bans that follow each other take the time of a sort.
    pub fn update_all(&mut self, changes: &[Change]) {
        let is_ban = |change: &Change| matches!(change.action, Action::Ban | Action::Unban);
        for run in changes.chunk_by(|one, other| is_ban(one) && is_ban(other)) {
            match run[0].action {
                Action::Ban | Action::Unban => self.ban(run),
                action @ (Action::Accept | Action::Deny) => {
                    self.accept(&run[0], action == Action::Accept);
                }
            }
        }
    }

    fn ban(&mut self, changes: &[Change]) {
        let of = |change: &Change| (change.source, change.action == Action::Ban);
        self.v4.ban(changes.iter().map(of).filter_map(|(block, ban)| Some((block.v4()?, ban))));
        self.v6.ban(changes.iter().map(of).filter_map(|(block, ban)| Some((block.v6()?, ban))));
    }

    fn accept(&mut self, change: &Change, accept: bool) {
        match (change.source, change.destination) {
            (Block::V4(source), None) => self.v4.accept(source, None, accept),
            (Block::V6(source), None) => self.v6.accept(source, None, accept),
            (Block::V4(source), Some(Block::V4(to))) => self.v4.accept(source, Some(to), accept),
            (Block::V6(source), Some(Block::V6(to))) => self.v6.accept(source, Some(to), accept),
            // No packet has addresses of two families.
            _ => {}
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
