//! Which tuple a flow is given: unique among all replies that the table waits for.
//!
//! Contract: `None` where the kernel draws at random, or where the answer depends on something unknown.
//! Source: Linux 6.18 `nf_nat_core.c` (`get_unique_tuple`, `find_best_ips_proto`,
//! `nf_nat_l4proto_unique_tuple`); the order of its attempts.

use super::draw::{candidates, usual};
use super::jhash::jhash2;
use super::range::{Ports, Range, address, part, with_end};
use conntrack::{Direction, Doubt, Flow, Handle, Side, Tracker, Tuple, has_ports};
use packet::tcp;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ports that the kernel tries one after the other before it draws another first one.
const ATTEMPTS: u32 = 128;

/// How often another first port is drawn where those after the last one are taken. The kernel tries fewer from each.
const ROUNDS: u32 = 4;

/// Flows of the same source that are looked at for one whose mapping will do: past them, it is not known.
const MOST_EARLIER: usize = 256;

/// A flow that is given a mapping.
pub(super) struct Choice<'t> {
    pub(super) tracker: &'t mut Tracker,
    pub(super) flow: Handle,
    pub(super) side: Side,
    pub(super) range: &'t Range,
    /// The time in nanoseconds.
    pub(super) now: u64,
}

impl Choice<'_> {
    /// What packets of the original direction, which look like `current`, are made to look like.
    pub(super) fn tuple(&mut self, current: &Tuple) -> Option<Tuple> {
        let (side, range) = (self.side, self.range);
        if side == Side::Source && !range.random {
            if range.holds_source(current) {
                if self.keeps(current)? {
                    return Some(*current);
                }
            } else if !(range.is_one_address() && self.tracker.keeps_ports())
                && let Some(earlier) = self.as_earlier(current)?
                && self.is_free(&earlier)?
            {
                return Some(earlier);
            }
        }
        let tuple = self.with_address(current);
        if part(&tuple, side).is_none() {
            // There is nothing else to choose: where it is taken, the flow is not confirmed.
            return Some(tuple);
        }
        if !range.random {
            match range.ports {
                Some(ports)
                    if ports.base.is_none()
                        && ports.hold(&tuple, side)
                        && (ports.len() == 1 || self.is_free(&tuple)?) =>
                {
                    return Some(tuple);
                }
                Some(_) => {}
                None if self.stays(&tuple)? => return Some(tuple),
                None => {}
            }
        }
        self.with_port(&tuple)
    }

    /// Whether a source that already is what it may be stays so.
    pub(super) fn keeps(&mut self, current: &Tuple) -> Option<bool> {
        let (own, now) = (self.flow, self.now);
        let reply = current.inverse();
        let is_reverse = reply.is_some_and(|reply| self.tracker.is_reverse(&reply, own, now));
        if is_reverse { Some(true) } else { self.is_free(current) }
    }

    /// Where the choice is not known: whether the kernel may have found none, so that the packet ends where
    /// its flow would be confirmed. Ranges that it searches in full offer one as long as one is free.
    pub(super) fn may_fail(&mut self, current: &Tuple) -> bool {
        const DRAWN_FROM: u32 = 0xffff - 1024 + 1;
        let (side, ports) = (self.side, self.range.ports);
        if part(current, side).is_none() {
            return true;
        }
        let len = ports.map_or(DRAWN_FROM, Ports::len);
        let Some(ports) = ports.filter(|_| len <= ATTEMPTS) else {
            let waiting = current.inverse().map_or(0, |reply| self.tracker.waiting_for(&reply));
            return waiting >= len / 2;
        };
        let tuple = self.with_address(current);
        let port = |port| with_end(&tuple, side, address(&tuple, side), Some(port));
        !(ports.first..=ports.last).any(|number| self.is_free(&port(number)) == Some(true))
    }

    /// Whether no other flow waits for replies to this tuple. While the other end is indeterminate that cannot be
    /// told, and is taken to be so.
    fn is_free(&mut self, tuple: &Tuple) -> Option<bool> {
        let flow = self.tracker.flow(self.flow);
        if flow.is_some_and(|flow| flow.is_indeterminate(self.side.opposite())) {
            return Some(true);
        }
        let Some(reply) = tuple.inverse() else { return Some(true) };
        self.tracker.is_taken(&reply, self.flow, self.now).map(|taken| !taken)
    }

    /// The mapping that an earlier flow of the same source was given, if the range allows it: `Some(None)`
    /// where there is none. Where the range is one address, and no flow ever left from another port than its own, that is
    /// what comes without it.
    fn as_earlier(&mut self, current: &Tuple) -> Option<Option<Tuple>> {
        let range = self.range;
        for (nth, earlier) in self.tracker.of_same_source(self.flow, self.now).enumerate() {
            if nth == MOST_EARLIER {
                return None;
            }
            if earlier.is_indeterminate(Side::Source) || earlier.doubt() != Doubt::None {
                return None;
            }
            let Some(sent) = earlier.tuple(Direction::Reply).inverse() else { continue };
            let tuple = current.with_source(sent.source(), sent.source_part());
            if range.holds_source(&tuple) {
                return Some(Some(tuple));
            }
        }
        Some(None)
    }

    /// The tuple with the address of the range that its ends give.
    fn with_address(&self, tuple: &Tuple) -> Tuple {
        let (side, range) = (self.side, self.range);
        let address = match range.addresses {
            None => return *tuple,
            Some([first, last]) if first == last => first,
            Some(bounds) => {
                let zone = self.tracker.flow(self.flow).map_or(0, Flow::zone);
                spread(tuple, zone, bounds, side, range.persistent)
            }
        };
        with_end(tuple, side, address, None)
    }

    /// Whether an end without ports to choose from stays as it is: a source that is free, a destination that has a port, taken
    /// or not, and a query's identifier unless it is surely taken. Where that is not known its address is known all the same.
    fn stays(&mut self, tuple: &Tuple) -> Option<bool> {
        match self.side {
            Side::Source => self.is_free(tuple),
            Side::Destination if has_ports(tuple.protocol()) => Some(true),
            Side::Destination => Some(self.is_free(tuple) != Some(false)),
        }
    }

    /// The first free port of the range.
    fn with_port(&mut self, tuple: &Tuple) -> Option<Tuple> {
        let (side, range) = (self.side, self.range);
        let Some(port) = part(tuple, side) else { return Some(*tuple) };
        let ports = match range.ports {
            Some(ports) => ports,
            None if side == Side::Destination && has_ports(tuple.protocol()) => {
                return Some(*tuple);
            }
            // Identifiers are tried from the first one on.
            None if side == Side::Destination => usual(tuple, port),
            None => return self.draw(tuple, usual(tuple, port)),
        };
        let at = |offset: u16| {
            let port = u32::from(ports.first) + u32::from(offset) % ports.len();
            with_end(tuple, side, address(tuple, side), Some(port as u16))
        };
        if ports.len() == 1 {
            return Some(at(0));
        }
        let is_drawn = range.random || !self.tracker.config().destination_ports_in_order;
        let Some(start) = first_offset(ports, port, side, is_drawn) else {
            return self.draw(tuple, ports);
        };
        for step in 0..ports.len().min(ATTEMPTS) {
            let candidate = at(start.wrapping_add(step as u16));
            if self.is_free(&candidate)? {
                return Some(candidate);
            }
            if tuple.protocol() == tcp::PROTOCOL && self.tracker.chance().is_none() {
                // The kernel may evict a flow that is closing.
                return None;
            }
        }
        // All are taken: of a range that is searched in full the last is kept.
        let last = start.wrapping_add((ports.len() - 1) as u16);
        (ports.len() <= ATTEMPTS).then(|| at(last))
    }

    /// Draws a port; what the kernel drew nobody knows. If no drawn port is free, the flow gets a taken one, and
    /// clashes when it is confirmed.
    fn draw(&mut self, tuple: &Tuple, ports: Ports) -> Option<Tuple> {
        let mut last = None;
        for _ in 0..ROUNDS {
            let first = self.tracker.chance()?.draw();
            let shard = self.tracker.config().shard.clone();
            for candidate in candidates(tuple, self.side, ports, shard.as_ref(), first) {
                if self.is_free(&candidate) == Some(true) {
                    return Some(candidate);
                }
                last = Some(candidate);
            }
        }
        last
    }
}

/// One address of several, the same each time for the same two ends, or with `persistent` the same source.
/// The words are hashed as a little-endian host holds them.
fn spread(
    tuple: &Tuple,
    zone: u16,
    [first, last]: [IpAddr; 2],
    side: Side,
    persistent: bool,
) -> IpAddr {
    let (source, destination) = (words(tuple.source()), words(tuple.destination()));
    let (first, last) = (words(first), words(last));
    let used = if tuple.is_ipv6() { 4 } else { 1 };
    let low = destination.get(used - 1).copied().unwrap_or(0).swap_bytes();
    let seed = if persistent { 0 } else { low ^ u32::from(zone) };
    let mut hash = jhash2(&source.map(u32::swap_bytes), seed);
    let mut chosen = [0; 4];
    let mut below = false;
    let bounds = first.into_iter().zip(last).zip(destination);
    for (place, ((low, high), end)) in chosen.iter_mut().zip(bounds).take(used) {
        let (base, size) =
            if below { (0, u32::MAX) } else { (low, high.wrapping_sub(low).wrapping_add(1)) };
        *place = base.wrapping_add(((u64::from(hash) * u64::from(size)) >> 32) as u32);
        below |= *place != high;
        if !persistent {
            // The destination is written over word by word.
            let end = if side == Side::Destination { *place } else { end };
            hash ^= end.swap_bytes();
        }
    }
    let [v4, ..] = chosen;
    match tuple.is_ipv6() {
        false => Ipv4Addr::from(v4).into(),
        true => {
            let bits = chosen.into_iter().fold(0, |bits, word| bits << 32 | u128::from(word));
            Ipv6Addr::from(bits).into()
        }
    }
}

/// Four words of an address in host order; an IPv4 address fills one, the others are 0.
fn words(address: IpAddr) -> [u32; 4] {
    match address {
        IpAddr::V4(v4) => [v4.into(), 0, 0, 0],
        IpAddr::V6(v6) => {
            let bits = u128::from(v6);
            [96, 64, 32, 0].map(|shift| (bits >> shift) as u32)
        }
    }
}

/// Where the search begins; `None` where that is drawn at random.
fn first_offset(ports: Ports, port: u16, side: Side, random: bool) -> Option<u16> {
    match ports.base {
        Some(base) => Some(port.wrapping_sub(base)),
        None if random || side == Side::Source => None,
        None => Some(0),
    }
}
