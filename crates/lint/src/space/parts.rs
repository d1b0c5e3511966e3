//! Parts of packets by themselves: what one of them may be, regions that leave one open, and the tests that a region asks.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;

use conntrack::CtState;
use rules::model::{Family, Hook};

use super::{Part, Preferred, Space, place};
use crate::diagram::{Region, TooLarge};

impl Space {
    /// The packets that have these numbers of a part, with both ends.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn between(
        &mut self,
        part: Part,
        [low, high]: [u128; 2],
    ) -> Result<Region, TooLarge> {
        self.range(part, low, high)
    }

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
        let dimension = self.dimension(part);
        self.diagrams.whatever(region, dimension.start..dimension.end())
    }

    /// The number of the kind that an interface is of: the same for all that no rule tells apart.
    pub(crate) fn kind_of(&self, interface: &str) -> u128 {
        self.names.number(interface)
    }

    /// A kind is one interface, by its name.
    pub(crate) fn is_one(&self, kind: u128) -> bool {
        self.names.kind(kind).is_some_and(|it| it.words == it.name)
    }

    /// Connections are tracked.
    pub(crate) fn is_tracked(&self) -> bool {
        self.tracks
    }

    /// Whether packets have an output interface at a hook.
    pub(crate) fn has_output(hook: Hook) -> bool {
        matches!(hook, Hook::Forward | Hook::Output | Hook::Postrouting)
    }

    /// The tests that can only be asked which a region depends on, by name.
    pub(crate) fn asks(&self, region: Region) -> BTreeSet<String> {
        let (mut names, mut seen, mut left) = (BTreeSet::new(), HashSet::new(), vec![region]);
        while let Some(at) = left.pop() {
            if !seen.insert(at) {
                continue;
            }
            let Some((level, low, high)) = self.diagrams.branch(at) else { continue };
            if let Some(number) = level.checked_sub(self.first_asked()) {
                names.extend(self.asked_names.get(number as usize).cloned());
            }
            left.extend([low, high]);
        }
        names
    }
}

/// A number as an address of a family.
pub(crate) fn ip(family: Family, number: u128) -> IpAddr {
    match family {
        Family::Ipv6 => IpAddr::from(number.to_be_bytes()),
        _ => IpAddr::from((number as u32).to_be_bytes()),
    }
}

impl Preferred {
    /// The same, with another state.
    pub(crate) fn with_state(self, state: CtState) -> Self {
        self.with(Part::State, place(&CtState::ALL, state))
    }
}
