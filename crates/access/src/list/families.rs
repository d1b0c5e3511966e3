//! [`List`]: the lists of both families.

use std::net::IpAddr;

use super::block::Block;
use super::change::{Action, Change};
use super::side::{Denied, Side};

/// The list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    pub(super) v4: Side<u32>,
    pub(super) v6: Side<u128>,
}

impl List {
    /// Whether the source may send to the destination; addresses of two families never meet in a packet.
    ///
    /// # Errors
    /// The source may not, with the reason.
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
