//! Which frames show one packet.

use packet::{icmpv4, icmpv6};

use super::alike::{ends_alike, is_arrival, is_onward};
use super::arrival::Shows;
use super::frame::{Copied, JITTER, Left, Sighting, Way};
use super::ports::Ports;
use super::print::Print;
use super::remembered::{Entry, Families, Sightings};
use super::table::MOST;

impl Sightings {
    /// A frame came in: what an earlier one showed below it, or later than the one that left.
    pub(super) fn came(&mut self, index: u64, print: &Print, time: u64, device: u32) {
        if self.is_of_other_macvlan(index, print, device) {
            return self.settle(index, Sighting::OtherHost);
        }
        let is_below = match self.came_below_or_above(index, device) {
            Some(is_below) => is_below,
            None => self.came_changed(index, print),
        };
        if is_below {
            return;
        }
        if print.datagram.is_none() {
            self.put_together(index, print, device);
        }
        if let Some(datagram) = print.datagram.filter(|_| self.reassembles(print)) {
            let fragments = self.datagrams.entry(datagram).or_default();
            fragments.members.push(index);
            let left = fragments.left;
            if let Some(entry) = self.entry_mut(index) {
                entry.left = left;
            }
        }
        if print.is_reset {
            self.resets.insert(self.keys.ends(&print.ends), index);
        }
        let is_any = self.settled(print.content, true, |entry| {
            entry.sighting != Sighting::Unknown || time.saturating_sub(entry.time) > JITTER
        });
        if !is_any {
            return;
        }
        let translates = self.translates(print);
        let early = self.alike(print, true).take(MOST).filter_map(|(at, entry)| {
            let out = entry.print.as_ref().filter(|out| is_onward(print, out))?;
            // On likeness alone, an answer that the host gave before would be taken for it.
            let fits = out.ends == print.ends
                || translates
                    && (out.ttl.checked_add(1) == Some(print.ttl) || entry.upper.is_some());
            if !fits {
                return None;
            }
            let score = ends_alike(print, out);
            (entry.sighting == Sighting::Unknown && score > 0).then_some((at, score))
        });
        // The first of those that have most alike.
        let early = early.reduce(|best, one| if one.1 > best.1 { one } else { best });
        if let Some((early, _)) = early {
            self.join(index, early, true);
        }
    }

    /// Whether the host's rules may change addresses and ports of packets of its family.
    fn translates(&self, print: &Print) -> bool {
        let Families { v4, v6 } = self.translation;
        if print.ends.source.is_ipv6() { v6 } else { v4 }
    }

    /// Whether the fragments that came of a datagram go on as one packet.
    fn reassembles(&self, print: &Print) -> bool {
        let Families { v4, v6 } = self.reassembly;
        if print.ends.source.is_ipv6() { v6 } else { v4 }
    }

    /// Whether the parent of macvlans shows what one in another namespace sends to a group: that of this one, which gets it
    /// straight, shows it before, perhaps with a checksum that was not finished.
    fn is_of_other_macvlan(&self, index: u64, print: &Print, device: u32) -> bool {
        if !self.devices.is_parent(device) {
            return false;
        }
        let Some(entry) = self.entry(index).filter(|entry| entry.is_group) else { return false };
        self.alike(print, false).take(MOST).any(|(_, child)| {
            child.time < entry.time
                && entry.time - child.time <= JITTER
                && self.devices.is_below(device, entry.upper, child.device)
                && child
                    .print
                    .is_some_and(|child| (child.ends, child.ttl) == (print.ends, print.ttl))
        })
    }

    /// An earlier frame with the same bytes showed the packet below this device, or, where their times are one, above
    /// it, and whether this one is no arrival; none if no frame did.
    fn came_below_or_above(&mut self, index: u64, device: u32) -> Option<bool> {
        let twin = self.twin(index, false)?;
        let (this, other) = (self.entry(index)?, self.entry(twin)?);
        if other.sighting != Sighting::Unknown {
            return None;
        }
        let (lower, upper) = if self.devices.may_feed(other.device, other.upper, device) {
            (twin, index)
        } else if !other.paired
            && this.time.abs_diff(other.time) <= JITTER
            && self.devices.is_below(device, this.upper, other.device)
        {
            (index, twin)
        } else {
            return None;
        };
        // The parent of a macvlan hands it what goes to a group, and takes it in itself.
        let is_kept = |lower: &Entry| lower.is_group && self.devices.is_parent(lower.device);
        if self.entry(lower).is_some_and(is_kept) {
            return None;
        }
        let (number, way) = self.entry(upper).map(|upper| (upper.number, upper.way))?;
        // A bridge that listens to everything shows what it passes on between its ports, too.
        if way == Way::OtherHost {
            if let Some(upper) = self.entry_mut(upper) {
                upper.sighting = Sighting::OtherHost;
            }
            return Some(upper == index);
        }
        let mut below = (0, Ports::default());
        if let Some(lower) = self.entry_mut(lower) {
            lower.sighting = Sighting::Lower { of: Some(number) };
            below = (lower.port, lower.ports);
        }
        if let Some(upper) = self.entry_mut(upper) {
            (upper.port, upper.ports) = below;
        }
        Some(lower == index)
    }

    /// The same of frames that went out: the one above shows it first, but where their times are one.
    fn went_below_or_above(&mut self, index: u64, device: u32) -> bool {
        let twin = self.twin(index, true).or_else(|| self.unfinished_above(index, device));
        let Some(twin) = twin else { return false };
        let (Some(this), Some(other)) = (self.entry(index), self.entry(twin)) else { return false };
        let (number, sighting, of) = (other.number, other.sighting, other.of);
        let is_flooded =
            other.device != device && this.upper.is_some() && this.upper == other.upper;
        if is_flooded {
            if let Some(entry) = self.entry_mut(index) {
                (entry.sighting, entry.of) = (sighting, of);
            }
            if let Some(arrival) = self.entry_mut(of) {
                arrival.ports.add(device);
            }
            return true;
        }
        let is_below = self.devices.may_feed(device, this.upper, other.device);
        let is_above = self.devices.is_below(other.device, other.upper, device);
        let own = this.number;
        if is_above && sighting == Sighting::Unknown {
            if let Some(entry) = self.entry_mut(twin) {
                entry.sighting = Sighting::Lower { of: Some(own) };
            }
            return false;
        }
        if let Some(entry) = self.entry_mut(index).filter(|_| is_below || is_above) {
            (entry.sighting, entry.of) = (Sighting::Lower { of: Some(number) }, of);
        }
        is_below || is_above
    }

    /// The last frame that a device above this one showed of the same packet, whose checksum was finished in between.
    fn unfinished_above(&self, index: u64, device: u32) -> Option<u64> {
        let this = self.entry(index).filter(|_| self.devices.is_parent(device))?;
        let print = this.print?;
        let above = self.alike(&print, true).take(MOST).filter(|(_, other)| {
            self.devices.is_below(device, this.upper, other.device)
                && this.time.abs_diff(other.time) <= JITTER
                && other
                    .print
                    .as_ref()
                    .is_some_and(|that| that.ends == print.ends && that.ttl == print.ttl)
        });
        above.last().map(|(at, _)| at)
    }

    /// A bridge puts fragments together where connections are tracked: what it shows stands for them.
    fn put_together(&mut self, index: u64, whole: &Print, device: u32) {
        if !self.devices.is_fed(device) {
            return;
        }
        let mut fragments = self.alike(whole, false).take(MOST).filter_map(|(_, entry)| {
            let first = entry.print.as_ref()?;
            let is_below = entry.upper == Some(device) && is_arrival(entry);
            let is_part = is_below && !entry.paired && first.ends == whole.ends;
            is_part.then_some((first.datagram?, entry.device))
        });
        let Some((datagram, port)) = fragments.next() else { return };
        drop(fragments);
        if let Some(entry) = self.entry_mut(index) {
            entry.port = port;
        }
        let number = self.entry(index).map_or(0, |entry| entry.number);
        let members = self.datagrams.get_mut(&datagram).map(|of| std::mem::take(&mut of.members));
        for member in members.into_iter().flatten() {
            if let Some(entry) = self.entry_mut(member) {
                entry.sighting = Sighting::Lower { of: Some(number) };
            }
        }
    }

    /// A frame went out: one below the device that showed it before, a packet that came, or the host's own.
    pub(super) fn went(&mut self, index: u64, print: &Print, device: u32, copied: Copied) {
        if self.went_below_or_above(index, device) {
            return;
        }
        if copied != Copied::No {
            return self.went_with_copies(index, print, copied);
        }
        if print.is_later_fragment {
            return self.went_in_part(index, print);
        }
        match self.arrival_of(index, print) {
            Shows::Arrival(arrival, teaches) => self.join(arrival, index, teaches),
            _ if self.was_rewritten(index, print) => {
                self.settle(index, Sighting::Second { of: None });
            }
            Shows::More => self.doubt(index),
            Shows::None => {}
        }
    }

    /// It may as well be a packet that came: which one is not known.
    pub(super) fn doubt(&mut self, index: u64) {
        if let Some(entry) = self.entry_mut(index) {
            entry.may_have_come = true;
        }
    }

    /// Whether it is a packet of a flow that goes through, whose payload or numbers a helper changed. Helpers leave ICMP
    /// alone: such an error, and a reset where none came, are what the host itself answers.
    fn was_rewritten(&self, index: u64, print: &Print) -> bool {
        let Some(came) = self.flows.get(&self.keys.ends(&print.ends)) else { return false };
        let time = self.entry(index).map_or(0, |entry| entry.time);
        let is_icmp = matches!(print.ends.protocol, icmpv4::PROTOCOL | icmpv6::PROTOCOL);
        let reset = self.resets.get(came).filter(|_| print.is_reset);
        !is_icmp && (!print.is_reset || reset.is_some_and(|at| self.is_open(*at, time)))
    }

    /// A later fragment is what the first one is, unless it came as it left.
    fn went_in_part(&mut self, index: u64, print: &Print) {
        if !self.reassembles(print)
            && let Shows::Arrival(arrival, teaches) = self.arrival_of(index, print)
        {
            return self.join(arrival, index, teaches);
        }
        let first = print.datagram.and_then(|datagram| self.datagrams.get(&!datagram));
        if let Some(first) = first {
            let sighting = first.sighting;
            return self.settle(index, sighting);
        }
        match self.arrival_of(index, print) {
            Shows::Arrival(arrival, _) => self.join(arrival, index, false),
            Shows::More => self.doubt(index),
            Shows::None => {}
        }
    }

    pub(super) fn settle(&mut self, index: u64, sighting: Sighting) {
        let Some(entry) = self.entry_mut(index) else { return };
        entry.sighting = sighting;
        if let Some(datagram) = entry.print.and_then(|print| print.datagram) {
            self.datagrams.entry(!datagram).or_default().sighting = sighting;
        }
    }

    fn print_of(&self, index: u64) -> Option<(Print, u64, u32)> {
        let entry = self.entry(index)?;
        Some((entry.print?, entry.time, entry.device))
    }

    /// An arrival left as this frame.
    pub(super) fn join(&mut self, arrival: u64, out: u64, teaches: bool) {
        let Some((came, ..)) = self.print_of(arrival) else { return };
        let Some((left, time, device)) = self.print_of(out) else { return };
        let number = |index| self.entry(index).map_or(0, |entry| entry.number);
        let (of, number) = (number(arrival), number(out));
        self.settle(out, Sighting::Second { of: Some(of) });
        // It left shorter than it came: its other parts follow.
        let (whole, part) = (came.segment.unwrap_or_default(), left.segment.unwrap_or_default());
        if part.len < whole.len {
            self.segments.insert(whole.key(came.ends.source.is_ipv6()), arrival);
        }
        let upper = self.entry(out).and_then(|entry| entry.upper);
        let is_guessed = self.entry(out).is_some_and(|entry| entry.is_guessed);
        // A bridge that is given the packet passes it on as well, by one port after the other.
        let is_bridge = self
            .entry(arrival)
            .is_some_and(|of| of.way == Way::In && upper.is_some_and(|upper| upper == of.device));
        if is_bridge && left.ttl == came.ttl {
            if let Some(entry) = self.entry_mut(out) {
                entry.of = arrival;
            }
            if let Some(entry) = self.entry_mut(arrival) {
                entry.ports.add(device);
            }
            return;
        }
        let port = device;
        let device = self.devices.top(device, upper);
        let passes_on = upper.is_some() && self.entry(arrival).is_some_and(|of| of.upper == upper);
        let told = teaches.then_some(Left {
            number,
            device,
            ends: left.ends,
            bridged: left.ttl == came.ttl,
        });
        if teaches && came.ends != left.ends {
            self.flows.insert(self.keys.ends(&left.ends), self.keys.ends(&came.ends));
        }
        if let Some(entry) = self.entry_mut(out) {
            entry.of = arrival;
        }
        if let Some(entry) = self.entry_mut(arrival) {
            entry.paired = true;
            entry.left = entry.left.or(told);
            // Of two ports that show it at one time either may be the first.
            let is_sure = !is_guessed || entry.time < time;
            if passes_on {
                entry.ports.add(if is_sure { port } else { 0 });
                entry.port = if is_sure { entry.port } else { 0 };
            }
        }
        // Fragments are put together where connections are tracked: the last one stands for the packet.
        if let Some(fragments) = came.datagram.and_then(|key| self.datagrams.get_mut(&key)) {
            fragments.left = told;
            for member in std::mem::take(&mut fragments.members) {
                if let Some(entry) = self.entry_mut(member) {
                    entry.left = told;
                }
            }
        }
    }
}
