//! Parts of packets by themselves: the states of their connections, interfaces by name, regions that leave a part open.

use std::net::IpAddr;

use conntrack::CtState;
use rules::model::Family;

use super::{Part, Preferred, Space, place};
use crate::diagram::{Region, TooLarge};

impl Space {
    /// The packets whose connections are in one of these states.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn in_states(&mut self, states: &[CtState]) -> Result<Region, TooLarge> {
        let numbers: Vec<u128> = states.iter().map(|it| place(&CtState::ALL, *it)).collect();
        self.one_of(Part::State, numbers)
    }

    /// The packets of a region, whatever a part of them is.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn with_any(&mut self, region: Region, part: Part) -> Result<Region, TooLarge> {
        let levels = self.levels(part);
        self.diagrams.whatever(region, levels)
    }

    /// A kind of interface is one interface, by its name.
    pub(crate) fn is_one(&self, kind: u128) -> bool {
        self.names.kind(kind).is_some_and(|it| it.words == it.name)
    }

    /// Connections are tracked.
    pub(crate) fn is_tracked(&self) -> bool {
        self.tracks
    }
}

impl Preferred {
    /// The same, with another state.
    pub(crate) fn with_state(self, state: CtState) -> Self {
        self.with(Part::State, place(&CtState::ALL, state))
    }
}

/// A number as an address of a family.
pub(crate) fn ip(family: Family, number: u128) -> IpAddr {
    match family {
        Family::Ipv6 => IpAddr::from(number.to_be_bytes()),
        _ => IpAddr::from((number as u32).to_be_bytes()),
    }
}
