//! [`Bridged`]: what a bridge did with a packet that came in by one of its ports.
//!
//! Source: `net/bridge/br_input.c` (`br_handle_frame_finish`), `br_forward.c` (`br_flood`): what is for a group or for
//! an address that no port has spoken for goes out by every port but the one that it came by, and the hooks of
//! FORWARD see a copy for each.

use std::net::IpAddr;

use super::print::Print;
use super::{Entry, Frame, Sightings, Way};

/// So long a bridge remembers the port of an address by default (`ageing_time`), in nanoseconds.
pub(super) const AGEING: u64 = 300_000_000_000;

/// A set of devices. Those that are numbered beyond 64 are counted, and not told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ports {
    /// Bit n: the device of number n + 1.
    named: u64,
    others: u8,
}

impl Ports {
    /// The greatest number of a device that is told apart from others.
    const NAMED: u32 = u64::BITS;

    /// Adds a device.
    pub fn add(&mut self, device: u32) {
        match device.checked_sub(1).filter(|bit| *bit < Self::NAMED) {
            Some(bit) => self.named |= 1 << bit,
            None => self.others = self.others.saturating_add(1),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.named.count_ones() as usize + usize::from(self.others)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Each of them; 0 is one that is not known.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        let named = (0..Self::NAMED).filter(move |bit| self.named >> bit & 1 == 1);
        named.map(|bit| bit + 1).chain((0..self.others).map(|_| 0))
    }
}

/// What the ports of a bridge showed of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bridged {
    /// The port that it came in by; 0 is not known, or it came in by no bridge.
    pub port: u32,
    /// Ports by which it was seen leaving; else the one at which its destination was heard.
    pub ports: Ports,
    /// By how many more the bridge may have passed it on, which nothing shows: a copy may have been dropped, or
    /// frames that left were not recorded. Of what is passed on at all, one copy more than these is sure.
    pub more: u8,
    /// The bridge passed it on between its ports, and did not give it to the host.
    pub is_passed_on: bool,
}

/// Where a station was heard, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard {
    port: u32,
    time: u64,
}

impl Sightings {
    /// What a bridge did with a packet that came in by one of its ports.
    pub(super) fn bridged(&self, entry: &Entry, bridge: u32) -> Bridged {
        let Entry { port, mut ports, upper, way, is_group, to, .. } = *entry;
        if port == 0 && upper.is_none() {
            return Bridged::default();
        }
        let is_passed_on = upper.is_some() && (way == Way::OtherHost || !ports.is_empty());
        // Of what nobody saw leave, a rule dropped it, or frames that left were not recorded.
        if let (true, false, Some(to)) = (is_passed_on && ports.is_empty(), is_group, to) {
            ports.add(to);
        }
        let others = self.devices.ports(bridge).saturating_sub(1);
        let most = match is_group {
            true => others,
            false if is_passed_on && ports.is_empty() => others.saturating_sub(1),
            false => ports.len(),
        };
        let more = u8::try_from(most.saturating_sub(ports.len())).unwrap_or(u8::MAX);
        Bridged { port, ports, more, is_passed_on }
    }

    /// A packet came in by a port of a bridge, which from then on knows where its sender is.
    pub(super) fn hear(&mut self, index: u64, print: &Print) {
        let Some(entry) = self.entry(index).filter(|entry| entry.upper.is_some()) else { return };
        let bridge = self.devices.top(entry.device, None);
        let heard = Heard { port: entry.device, time: entry.time };
        self.heard.insert(self.keys.station(bridge, print.ends.source), heard);
    }

    /// The port at which the bridge above another one heard a station not long before.
    pub(super) fn port_of(&self, frame: &Frame<'_>, station: IpAddr) -> Option<u32> {
        let bridge = self.devices.top(frame.device, None);
        let heard = self.heard.get(&self.keys.station(bridge, station))?;
        (frame.time.saturating_sub(heard.time) < AGEING).then_some(heard.port)
    }

    /// Whether it is a reset that the host sends for a bridged packet which it rejects: straight out of the port, below
    /// all hooks, with the link address of the packet's destination (`nf_send_reset`). That one was heard elsewhere.
    pub(super) fn is_reset_of_host(
        &self,
        print: &Print,
        frame: &Frame<'_>,
        upper: Option<u32>,
    ) -> bool {
        let is_open = !frame.is_told && matches!(frame.way, Way::In | Way::OtherHost);
        is_open
            && print.is_reset
            && upper.is_some()
            && self.port_of(frame, print.ends.source).is_some_and(|port| port != frame.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_beyond_the_named_are_counted() {
        let mut ports = Ports::default();
        assert!(ports.is_empty());
        for device in [3, 64, 3, 65, 0] {
            ports.add(device);
        }
        assert_eq!((ports.len(), ports.is_empty()), (4, false));
        assert_eq!(ports.iter().collect::<Vec<_>>(), [3, 64, 0, 0]);
    }
}
