//! [`Bridged`]: what a bridge did with a packet that came in by one of its ports.
//!
//! Source: `net/bridge/br_input.c` (`br_handle_frame_finish`), `br_forward.c` (`br_flood`): what is for a group or for
//! an address that no port has spoken for goes out by every port but the one that it came by, and the hooks of
//! FORWARD see a copy for each. `br_netfilter_hooks.c` (`br_nf_pre_routing_finish`): what PREROUTING translates so that
//! it leads off the bridge, the bridge itself shows as it was made, with the time at which it came.

use super::alike::{is_arrival, is_changed};
use super::frame::{Frame, JITTER, Sighting, Way};
use super::ports::Bridged;
use super::print::Print;
use super::remembered::{Entry, Heard, Sightings};
use super::table::MOST;
use std::net::IpAddr;

/// So long a bridge remembers the port of an address by default (`ageing_time`), in nanoseconds.
pub(super) const AGEING: u64 = 300_000_000_000;

impl Sightings {
    /// What a bridge did with a packet that came in by one of its ports.
    pub(super) fn bridged(&self, entry: &Entry, bridge: u32) -> Bridged {
        let Entry { port, mut ports, upper, way, is_group, to, .. } = *entry;
        if port == 0 && upper.is_none() {
            return Bridged::default();
        }
        let is_passed_on =
            upper.is_some() && !entry.is_given && (way == Way::OtherHost || !ports.is_empty());
        // Of what nobody saw leave, a rule dropped it, or frames that left were not recorded.
        if let (true, false, Some(to)) = (is_passed_on && ports.is_empty(), is_group, to) {
            ports.add(to);
        }
        let others = || self.devices.ports(bridge).saturating_sub(1);
        let most = match is_group {
            true => others(),
            false if is_passed_on && ports.is_empty() => others().saturating_sub(1),
            false => ports.len(),
        };
        let more = u8::try_from(most.saturating_sub(ports.len())).unwrap_or(u8::MAX);
        Bridged { port, ports, more, is_passed_on }
    }

    /// A bridge shows a packet as PREROUTING left it, which one of its ports shows as it came: translated, it leads off the
    /// bridge. True if this frame is that of the bridge; where their times are one, it may be the first.
    pub(super) fn came_changed(&mut self, index: u64, print: &Print) -> bool {
        let Some(this) = self.entry(index) else { return false };
        let is_bridge = this.way == Way::In && self.devices.is_fed(this.device);
        let is_port = this.upper.is_some()
            && index.checked_sub(1).and_then(|at| self.entry(at)).map(|at| at.time)
                == Some(this.time);
        if !is_bridge && !is_port {
            return false;
        }
        let time = this.time;
        if !self.drop_settled(print, time) {
            return false;
        }
        let Some(this) = self.entry(index) else { return false };
        let found = self.alike(print, false).take(MOST).find_map(|(at, other)| {
            let that = other.print.as_ref()?;
            let is_near = this.time.abs_diff(other.time) <= JITTER;
            let is_open = is_near && is_arrival(other) && !other.paired && !other.is_given;
            let (below, above) = if is_bridge
                && self.devices.is_below(other.device, other.upper, this.device)
                && is_changed(that, print)
            {
                (at, index)
            } else if is_port
                && other.way == Way::In
                && self.devices.is_below(this.device, this.upper, other.device)
                && is_changed(print, that)
            {
                (index, at)
            } else {
                return None;
            };
            is_open.then_some((below, above))
        });
        let Some((below, above)) = found else { return false };
        self.give(below, above);
        above == index
    }

    /// The bridge gives the packet, with all its fragments, to the host: it stands where it came by.
    fn give(&mut self, below: u64, above: u64) {
        let datagram = self.entry(below).and_then(|entry| entry.print?.datagram);
        let members = datagram.and_then(|datagram| self.datagrams.get(&datagram));
        let members = members.map(|of| of.members.clone()).unwrap_or_default();
        let last = members.last().copied().unwrap_or(below);
        let number = self.entry(last).map(|entry| entry.number);
        for at in members.into_iter().chain([below]) {
            if let Some(entry) = self.entry_mut(at) {
                entry.is_given = true;
            }
        }
        if let Some(entry) = self.entry_mut(above) {
            entry.sighting = Sighting::Second { of: number };
        }
    }

    /// A packet came in by a port of a bridge, which from then on knows where its sender is.
    pub(super) fn hear(&mut self, index: u64, print: &Print) {
        let Some(entry) = self.entry(index).filter(|entry| entry.upper.is_some()) else { return };
        let bridge = self.devices.top(entry.device, None);
        let heard = Heard { port: entry.device, time: entry.time };
        self.heard.insert(self.keys.station(bridge, print.ends.source), heard);
    }

    /// Whether a bridge sends it out here: the sender is whom it is for, to whom a port sends back whose hairpin is on, or
    /// a packet like it came just before by the port at which the bridge heard the sender. Between its ports a bridge
    /// leaves the sender's address, even where rules translate what the frame holds. A sender of which nothing like it
    /// came there has moved.
    pub(super) fn is_sent_on(&mut self, print: &Print, frame: &Frame<'_>) -> bool {
        let mac = |at: usize| frame.bytes.get(at..at + 6)?.first_chunk::<6>().copied();
        let at = frame.headers.link.ethernet;
        let Some((to, from)) = at.and_then(|at| mac(at).zip(mac(at + 6))) else { return false };
        let key = self.keys.link_address(self.devices.top(frame.device, None), from);
        let elsewhere = self.heard.get(&key).filter(|heard| {
            heard.port != frame.device && frame.time.saturating_sub(heard.time) < AGEING
        });
        let is_elsewhere = elsewhere.is_some();
        let came_there = elsewhere.is_some_and(|heard| {
            self.alike(print, false).take(MOST).any(|(_, came)| {
                let is_near = frame.time.abs_diff(came.time) <= JITTER;
                came.device == heard.port && is_near && is_arrival(came) && !came.paired
            })
        });
        let is_sent_on = frame.way == Way::OtherHost && (came_there || from == to);
        // The sender of a packet to a group tells nothing new: it may have arrived on another port.
        let is_group = to[0] & 1 == 1;
        if !(is_sent_on || is_group && is_elsewhere) {
            self.heard.insert(key, Heard { port: frame.device, time: frame.time });
        }
        is_sent_on
    }

    /// The port at which the bridge above another one heard a station not long before.
    pub(super) fn port_of(&self, frame: &Frame<'_>, station: IpAddr) -> Option<u32> {
        let bridge = self.devices.top(frame.device, None);
        let heard = self.heard.get(&self.keys.station(bridge, station))?;
        (frame.time.saturating_sub(heard.time) < AGEING).then_some(heard.port)
    }

    /// Whether it is a reset that the host sends for a bridged packet which it rejects: straight out of the port, below
    /// all hooks, with the link address of the packet's destination (`nf_send_reset`). That one was heard elsewhere.
    pub(super) fn is_reset_of_host(&self, print: &Print, frame: &Frame<'_>) -> bool {
        print.is_reset
            && self.port_of(frame, print.ends.source).is_some_and(|port| port != frame.device)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ports::Ports;

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
