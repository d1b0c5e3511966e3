//! Which frames show one packet.

use std::net::IpAddr;

use packet::icmpv6;

use super::print::Print;
use super::{
    Chain, Entry, JITTER, LONGEST, Left, NONE, Ports, Reassembly, Sighting, Sightings, Way, one_way,
};

/// Most entries of equal content that are looked at.
const MOST: usize = 64;
/// Bytes of a segment that leaves in one piece by a link of the usual size.
const UNCUT: u32 = 1460;

impl Sightings {
    /// A frame came in: what an earlier one showed below it, or later than the one that left.
    pub(super) fn came(&mut self, index: u64) {
        let Some((print, time, device)) = self.print_of(index) else { return };
        if self.came_below_or_above(index, device) {
            return;
        }
        if print.datagram.is_none() {
            self.put_together(index, &print, device);
        }
        if let Some(datagram) = print.datagram.filter(|_| self.reassembles(&print)) {
            let fragments = self.datagrams.entry(datagram).or_default();
            fragments.members.push(index);
            let left = fragments.left;
            if let Some(entry) = self.entry_mut(index) {
                entry.left = left;
            }
        }
        if let Some(segment) = print.segment.filter(|segment| segment.len > UNCUT) {
            self.segments.insert(segment.key(print.ends.source.is_ipv6()), index);
        }
        self.settled(print.content, true, |entry| {
            entry.sighting != Sighting::Unknown || time.saturating_sub(entry.time) > JITTER
        });
        let early = self.alike(&print, true).take(MOST).filter_map(|(at, entry)| {
            let out = entry.print.filter(|out| is_onward(&print, out))?;
            let score = ends_alike(&print, &out);
            (entry.sighting == Sighting::Unknown && score > 0).then_some((at, score))
        });
        // The first of those that have most alike.
        let early = early.reduce(|best, one| if one.1 > best.1 { one } else { best });
        if let Some((early, _)) = early {
            self.join(index, early, true);
        }
    }

    /// Whether the fragments that came of a datagram go on as one packet.
    fn reassembles(&self, print: &Print) -> bool {
        let Reassembly { v4, v6 } = self.reassembly;
        if print.ends.source.is_ipv6() { v6 } else { v4 }
    }

    /// An earlier frame with the same bytes showed the packet below this device, or, where their times are one, above
    /// it; true if this one is no arrival.
    fn came_below_or_above(&mut self, index: u64, device: u32) -> bool {
        let Some(twin) = self.twin(index, false) else { return false };
        let (Some(this), Some(other)) = (self.entry(index), self.entry(twin)) else { return false };
        if other.sighting != Sighting::Unknown {
            return false;
        }
        let (lower, upper) = if self.devices.may_feed(other.device, other.upper, device) {
            (twin, index)
        } else if !other.paired && self.devices.is_below(device, this.upper, other.device) {
            (index, twin)
        } else {
            return false;
        };
        let Some((number, way)) = self.entry(upper).map(|upper| (upper.number, upper.way)) else {
            return false;
        };
        // A bridge that listens to everything shows what it passes on between its ports, too.
        if way == Way::OtherHost {
            if let Some(upper) = self.entry_mut(upper) {
                upper.sighting = Sighting::OtherHost;
            }
            return upper == index;
        }
        let mut below = (0, Ports::default());
        if let Some(lower) = self.entry_mut(lower) {
            lower.sighting = Sighting::Lower { of: Some(number) };
            below = (lower.port, lower.ports);
        }
        if let Some(upper) = self.entry_mut(upper) {
            (upper.port, upper.ports) = below;
        }
        lower == index
    }

    /// The same of frames that went out: the one above shows it first, but where their times are one.
    fn went_below_or_above(&mut self, index: u64, device: u32) -> bool {
        let Some(twin) = self.twin(index, true) else { return false };
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

    /// A bridge puts fragments together where connections are tracked: what it shows stands for them.
    fn put_together(&mut self, index: u64, whole: &Print, device: u32) {
        let mut fragments = self.alike(whole, false).take(MOST).filter_map(|(_, entry)| {
            let first = entry.print?;
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
    pub(super) fn went(&mut self, index: u64) {
        let Some((print, _, device)) = self.print_of(index) else { return };
        if self.went_below_or_above(index, device) {
            return;
        }
        if print.is_later_fragment {
            return self.went_in_part(index, &print);
        }
        if let Some((arrival, teaches)) = self.arrival_of(index, &print) {
            return self.join(arrival, index, teaches);
        }
        // A packet of a flow that goes through, whose content a helper changed.
        if self.flows.contains_key(&self.keys.ends(&print.ends)) {
            self.settle(index, Sighting::Second { of: None });
        }
    }

    /// A later fragment is what the first one is, unless it came as it left.
    fn went_in_part(&mut self, index: u64, print: &Print) {
        if !self.reassembles(print)
            && let Some((arrival, teaches)) = self.arrival_of(index, print)
        {
            return self.join(arrival, index, teaches);
        }
        let first = print.datagram.and_then(|datagram| self.datagrams.get(&!datagram));
        if let Some(first) = first {
            let sighting = first.sighting;
            self.settle(index, sighting);
        } else if let Some((arrival, _)) = self.arrival_of(index, print) {
            self.join(arrival, index, false);
        }
    }

    fn settle(&mut self, index: u64, sighting: Sighting) {
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

    /// Takes entries of which nothing more is to be learned from the front of a chain.
    fn settled(&mut self, content: u64, is_out: bool, is_done: impl Fn(&Entry) -> bool) {
        let content = one_way(content, is_out);
        while let Some(Chain { first, .. }) = self.by_content.get(&content).copied() {
            let Some(entry) = self.entry(first).filter(|entry| is_done(entry)) else { return };
            let next = entry.next;
            self.unchain(content, first, next);
        }
    }

    /// Entries of the same content that went out, or the others, the oldest first.
    fn alike(&self, print: &Print, is_out: bool) -> impl Iterator<Item = (u64, &Entry)> {
        let chain = self.by_content.get(&one_way(print.content, is_out));
        let mut at = chain.map_or(NONE, |chain| chain.first);
        std::iter::from_fn(move || {
            let entry = self.entry(at)?;
            let found = (at, entry);
            at = entry.next;
            Some(found)
        })
    }

    /// The arrival that this frame shows leaving, and whether no other one may be meant.
    fn arrival_of(&mut self, index: u64, print: &Print) -> Option<(u64, bool)> {
        let Entry { time, upper, .. } = *self.entry(index)?;
        self.settled(print.content, false, |entry| {
            entry.paired || !is_arrival(entry) || time.saturating_sub(entry.time) > LONGEST
        });
        let wanted = self.flows.get(&self.keys.ends(&print.ends)).copied();
        let mut best: Option<(u64, &Print, usize)> = None;
        let mut is_tie = false;
        let mut looked_at = 0;
        let open = self.alike(print, false).take(MOST).inspect(|_| looked_at += 1);
        for (at, entry) in open.filter(|(_, entry)| !entry.paired && is_arrival(entry)) {
            let Some(came) = entry.print.as_ref().filter(|came| is_onward(came, print)) else {
                continue;
            };
            let as_before = wanted == Some(self.keys.ends(&came.ends));
            // Between two ports of a bridge a packet is passed on, to the bridge itself it is given.
            let is_bridged = entry.upper.is_some() && entry.upper == upper;
            let score = ends_alike(came, print)
                + 8 * usize::from(as_before)
                + 4 * usize::from(is_bridged && came.ttl == print.ttl);
            // Numbers of TCP are enough where both ends are translated, ports and all; forged ones are often 0.
            if score == 0 && print.segment.is_none_or(|segment| segment.sequence == 0) {
                continue;
            }
            match best {
                Some((_, other, most)) if most == score => is_tie |= other.ends != came.ends,
                Some((.., most)) if most > score => {}
                _ => {
                    is_tie = false;
                    best = Some((at, came, score));
                }
            }
        }
        // Where there are more than are looked at, the one with the same ends may be among the others.
        if looked_at == MOST && best.is_none_or(|(_, came, _)| came.ends != print.ends) {
            is_tie = true;
            let same = self.by_ends.get(&self.keys.packet(print)).copied();
            if let Some(same) = same.filter(|at| self.is_open(*at, time)) {
                return Some((same, true));
            }
        }
        best.map(|(at, ..)| (at, !is_tie))
            .or_else(|| Some((self.superframe_of(print, time)?, true)))
    }

    /// Whether an arrival may still be seen leaving.
    fn is_open(&self, index: u64, time: u64) -> bool {
        self.entry(index).is_some_and(|entry| {
            is_arrival(entry) && !entry.paired && time.saturating_sub(entry.time) <= LONGEST
        })
    }

    /// The arrived segment of which this one is a part.
    fn superframe_of(&self, print: &Print, time: u64) -> Option<u64> {
        let part = print.segment.filter(|part| part.len > 0)?;
        let is_v6 = print.ends.source.is_ipv6();
        let upto = part.key(is_v6);
        let from = (is_v6, part.acknowledgement, 0);
        let (_, at) = self.segments.range(from..=upto).next_back()?;
        let entry = self.entry(*at)?;
        let came = entry.print.as_ref()?;
        let fits = came.segment.is_some_and(|whole| whole.holds(part.sequence))
            && is_arrival(entry)
            && is_onward(came, print)
            && (ends_alike(came, print) > 0 || self.goes_as(came, print))
            && time.saturating_sub(entry.time) <= LONGEST;
        fits.then_some(*at)
    }

    /// Whether packets of the flow that came are known to leave as that one.
    fn goes_as(&self, came: &Print, left: &Print) -> bool {
        let flow = self.flows.get(&self.keys.ends(&left.ends));
        flow == Some(&self.keys.ends(&came.ends))
    }

    /// An arrival left as this frame.
    fn join(&mut self, arrival: u64, out: u64, teaches: bool) {
        let Some((came, ..)) = self.print_of(arrival) else { return };
        let Some((left, time, device)) = self.print_of(out) else { return };
        let number = |index| self.entry(index).map_or(0, |entry| entry.number);
        let (of, number) = (number(arrival), number(out));
        self.settle(out, Sighting::Second { of: Some(of) });
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

/// Whether an entry is a packet as it came in.
fn is_arrival(entry: &Entry) -> bool {
    matches!(entry.way, Way::In | Way::OtherHost)
        && matches!(entry.sighting, Sighting::Unknown | Sighting::Arrival)
}

/// Whether what left goes on where what came wanted to go: an answer to it goes back.
fn is_onward(came: &Print, left: &Print) -> bool {
    let is_answer = came.ends.source == left.ends.destination
        && came.ends.destination == left.ends.source
        && came.ends.source != came.ends.destination;
    let stays = is_of_link(came) || is_of_link(left);
    let is_cut = came.stays_whole && came.datagram.is_none() && left.datagram.is_some();
    !is_answer
        && !is_cut
        && came.ends.protocol == left.ends.protocol
        && (!stays || came.ends == left.ends)
}

/// Whether no router passes a packet on, though a bridge may: neighbour discovery, link-local addresses and groups.
fn is_of_link(print: &Print) -> bool {
    let is_local = |addr| match addr {
        IpAddr::V4(v4) => matches!(v4.octets(), [224, 0, 0, _]),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.segments()[0] & 0xff0f == 0xff02,
    };
    let is_v6 = print.ends.source.is_ipv6();
    is_v6 && print.ttl == u8::MAX && print.ends.protocol == icmpv6::PROTOCOL
        || is_local(print.ends.source)
        || is_local(print.ends.destination)
}

/// How many of addresses and ports are alike.
fn ends_alike(came: &Print, left: &Print) -> usize {
    let (came, left) = (&came.ends, &left.ends);
    let ports = came.ports.unwrap_or_default().into_iter().zip(left.ports.unwrap_or_default());
    usize::from(came.source == left.source)
        + usize::from(came.destination == left.destination)
        + ports.filter(|(one, other)| one == other).count()
}
