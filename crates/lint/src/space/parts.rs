//! Parts of packets by themselves: the states of their connections, interfaces by name, regions that leave a part open.

use std::net::IpAddr;

use conntrack::CtState;
use rules::model::Family;
use rules::predicate::Field;

use super::part::{Part, place};
use super::predicates::Space;
use super::sample::Preferred;
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

    /// The least number of a part, as its bits are here, of those in a region that is of this part alone.
    pub(crate) fn number_in(&self, part: Part, region: Region) -> u128 {
        let (mut number, mut at) = (0, region);
        for level in self.levels(part) {
            let branch = self.diagrams.branch(at).filter(|(of, ..)| *of == level);
            let is_set = branch.is_some_and(|(_, low, _)| low.is_empty());
            at = branch.map_or(at, |(_, low, high)| if is_set { high } else { low });
            number = number << 1 | u128::from(is_set);
        }
        match part {
            Part::Field(Field::Mark | Field::ConnMark) => self.marks.unpacked(number),
            _ => number,
        }
    }

    /// A kind of interface is one interface, by its name.
    pub(crate) fn is_one(&self, kind: u128) -> bool {
        self.names.kind(kind).is_some_and(|it| it.words == it.name)
    }

    /// The kinds that are one interface each, by its name.
    pub(crate) fn named_interfaces(&self) -> Vec<u128> {
        (1..self.names.count()).filter(|kind| self.is_one(*kind)).collect()
    }

    /// Whether nothing names an interface, so that all are of one kind.
    pub(crate) fn names_none(&self) -> bool {
        const NONE_AND_OTHERS: u128 = 2;
        self.names.count() == NONE_AND_OTHERS
    }

    /// Connections are tracked.
    pub(crate) fn is_tracked(&self) -> bool {
        self.tracks
    }
}

impl Preferred {
    /// Prefers another state.
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
