//! `-m connlimit`: the number of connections of a host or network.
//!
//! What is masked is the address in the packet, where the rule sees it: answers count for the server, and behind a
//! translation another address counts. Each rule counts the connections that it saw itself ([`lists`]). A packet
//! without a connection counts as the connection that its ports imply, a packet without ports is dropped.
//!
//! Where connections may have begun before the capture ([`Mode::Midstream`]), there may be any number more than were
//! seen: more than the limit is known, less is not.
//!
//! Where workers share the count, connections lie with any of them. Whether a connection still exists is known from its
//! own worker's table, and for other workers from a word that the entry carries ([`Life`]).
//!
//! Source: iptables-extensions(8); Linux 6.18.44 `net/netfilter/xt_connlimit.c`.

mod lists;

use std::sync::Arc;

use self::lists::{Counted, Fate, Flows, Key, Lists, Standing, Visit};
use crate::connection::{KnownFlow, Request};
use crate::error::What;
use crate::ext::kit::number;
use crate::ext::{Args, Given, IP, Match, MatchKind, Memory, NamedLists, Opt, Printer, Support};
use crate::family::Family;
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;
use conntrack::dissect::Unparsable;
use conntrack::tcp::State;
use conntrack::{
    CtState, Direction, Doubt, Flow, Life, Mode, Proto, Status, Tracker, Tuple, Zone, dissect,
};
use packet::Read;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "connlimit",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("connlimit-upto").invertible(),
        Opt::value("connlimit-above").invertible(),
        Opt::value("connlimit-mask"),
        Opt::flag("connlimit-saddr"),
        Opt::flag("connlimit-daddr"),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug, Clone, Copy)]
struct Connlimit {
    limit: u32,
    /// Whether it matches more than `limit` connections, rather than up to `limit`.
    above: bool,
    prefix: u8,
    by_destination: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&["connlimit-upto", "connlimit-above"])?;
    args.one_of(&["connlimit-upto", "connlimit-above"])?;
    args.one_of(&["connlimit-saddr", "connlimit-daddr"])?;
    let given = args.get("connlimit-upto").map_or_else(|| args.required("connlimit-above"), Ok)?;
    let len = args.family.addr_len();
    let prefix = args.get("connlimit-mask").map(|given| parse_prefix(given, len)).transpose()?;
    Ok(Box::new(Connlimit {
        limit: number::u32(given)?,
        above: (given.name == "connlimit-above") != given.invert,
        prefix: prefix.unwrap_or(len as u8 * 8),
        by_destination: args.has("connlimit-daddr"),
    }))
}

/// A prefix length, or a contiguous mask, of addresses of `len` bytes.
fn parse_prefix(given: &Given<'_>, len: usize) -> Result<u8, What> {
    value::mask(given.text(), len)
        .and_then(|mask| value::prefix_len(&mask, len))
        .map(|bits| bits as u8)
        .ok_or_else(|| given.expected(format!("a prefix length 0-{} or a mask", len * 8)))
}

impl Match for Connlimit {
    fn print(&self, to: &mut Printer) {
        let name = if self.above { "connlimit-above" } else { "connlimit-upto" };
        to.option(false, name, self.limit);
        to.option(false, "connlimit-mask", self.prefix);
        to.flag(false, if self.by_destination { "connlimit-daddr" } else { "connlimit-saddr" });
    }
    fn memory(&self) -> Option<Box<dyn Memory>> {
        let lists = Lists::default();
        Some(Box::new(Counting { rule: *self, of_all: false, lists, last: None }))
    }

    fn tracks(&self) -> bool {
        true
    }
}

impl Connlimit {
    /// Compares a count, as far as it is known, with the bound.
    fn compare(&self, counted: Counted) -> Outcome {
        let Counted { least, most } = counted;
        let above = most.is_none_or(|most| most > self.limit);
        let up_to = least.max(1) <= self.limit && most != Some(0);
        let (yes, no) = if self.above { (above, up_to) } else { (up_to, above) };
        let possible = [
            (yes, Outcome::YES),
            (no, Outcome::NO),
            // None at all is what the kernel takes for a lack of memory.
            (least == 0, Outcome::HOT_DROP),
        ];
        let possible = possible.into_iter().filter(|(is_possible, _)| *is_possible);
        possible.map(|(_, outcome)| outcome).reduce(Outcome::or).unwrap_or(Outcome::MAYBE)
    }

    /// Compares the count of a list that may be empty.
    fn compare_all(&self, Counted { least, most }: Counted) -> Outcome {
        let (above, up_to) = (most.is_none_or(|most| most > self.limit), least <= self.limit);
        match (above, up_to) {
            (true, false) => Outcome::YES.invert(!self.above),
            (false, _) => Outcome::NO.invert(!self.above),
            (true, true) => Outcome::MAYBE,
        }
    }

    /// The part of the packet's address that counts.
    fn address(&self, transit: &Transit<'_, '_>) -> Option<[u8; 16]> {
        let mut address = [0; 16];
        let offset = |v4, v6| if transit.family == Family::Ipv6 { v6 } else { v4 };
        let at = if self.by_destination { offset(16, 24) } else { offset(12, 8) };
        match transit.family {
            Family::Ipv6 => address = known(transit.net::<16>(at))?,
            _ => address[..4].copy_from_slice(&known(transit.net::<4>(at))?),
        }
        for (byte, at) in address.iter_mut().zip(0u8..) {
            let kept = self.prefix.saturating_sub(at * 8).min(8);
            *byte &= (0xff00u16 >> kept) as u8;
        }
        Some(address)
    }
}

fn known<T>(read: Read<T>) -> Option<T> {
    match read {
        Read::Known(bytes) => Some(bytes),
        Read::Unknown | Read::Absent => None,
    }
}

/// Makes the count of a rule of nft (`ct count`): of all connections that it sees, whatever their zone, in one list that is there
/// from the start. Source: Linux 6.18.44 `net/netfilter/nft_connlimit.c`.
#[must_use]
pub fn count_all(limit: u32, above: bool) -> Box<dyn Memory> {
    let rule = Connlimit { limit, above, prefix: 0, by_destination: false };
    Box::new(Counting { rule, of_all: true, lists: Lists::of_one(ALL), last: None })
}

/// The one list of a rule of nft.
const ALL: Key = Key { address: [0; 16], zone: 0 };

/// A rule's count.
#[derive(Debug)]
struct Counting {
    rule: Connlimit,
    /// All connections are in one list.
    of_all: bool,
    lists: Lists,
    /// The last count.
    last: Option<Counted>,
}

/// What a packet counts as.
enum Who {
    /// This connection.
    One(Visit),
    /// None: it has no ports.
    Nobody,
    /// Nothing says which.
    Unknown,
}

impl Memory for Counting {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, _lists: &mut NamedLists) -> Outcome {
        self.last = None;
        let Some((now, address)) = transit.time.zip(self.rule.address(transit)) else {
            self.lists.make_indeterminate();
            return Outcome::MAYBE.or(Outcome::HOT_DROP);
        };
        let zone = zone(transit);
        let (who, certain) = (who(transit, zone, now), transit.certain);
        let Some((tracker, zone)) = transit.ct.tracker.as_deref_mut().zip(zone) else {
            self.lists.make_indeterminate();
            return Outcome::MAYBE.or(Outcome::HOT_DROP);
        };
        self.lists.starts_midway(tracker.config().mode != Mode::Kernel);
        let key = if self.of_all { ALL } else { Key { address, zone: zone.id } };
        let counted = match who {
            Who::One(visit) => self.lists.count(key, &Visit { certain, ..visit }, tracker),
            Who::Nobody => {
                if !self.of_all {
                    self.lists.stirred(now);
                }
                return Outcome::HOT_DROP;
            }
            Who::Unknown => {
                // Without a connection, if it is INVALID, it counts in no zone.
                self.lists.blur(Key { zone: 0, ..key }, now);
                self.lists.blur(key, now)
            }
        };
        self.last = Some(counted);
        if self.of_all { self.rule.compare_all(counted) } else { self.rule.compare(counted) }
    }

    fn remark(&self) -> Option<String> {
        let Counted { least, most } = self.last?;
        let count = match most {
            Some(most) if most == least => format!("{least}"),
            Some(most) => format!("{least} to {most}"),
            None => format!("at least {least}"),
        };
        Some(match self.of_all {
            true => format!("counts {count}"),
            false => format!("counts {count} of /{}", self.rule.prefix),
        })
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}

/// The zone that the packet's connection is in, or that a rule before tracking asked for.
fn zone(transit: &Transit<'_, '_>) -> Option<Zone> {
    let ct = &transit.ct;
    if let Some(flow) = ct.tracker.as_ref().zip(ct.view.flow).and_then(|(t, at)| t.flow(at)) {
        return Some(zone_of(flow));
    }
    match (ct.request, ct.view.state()) {
        // Tracking takes the template's place, also where it comes to nothing.
        (Request::Template(template), Some(CtState::New)) => Some(template.zone),
        (_, Some(CtState::Invalid | CtState::Untracked)) => Some(Zone::default()),
        _ => None,
    }
}

fn zone_of(flow: &Flow) -> Zone {
    let [original, reply] =
        [Direction::Original, Direction::Reply].map(|way| flow.tuple(way).zone());
    match original.max(reply) {
        0 => Zone::default(),
        id => Zone { id, original: original != 0, reply: reply != 0 },
    }
}

fn who(transit: &mut Transit<'_, '_>, zone: Option<Zone>, now: u64) -> Who {
    let is_template =
        transit.ct.view.flow.is_none() && matches!(transit.ct.request, Request::Template(_));
    match (transit.ct.flow(), zone) {
        (KnownFlow::Flow(flow), _) => {
            let tuple = *flow.tuple(Direction::Original);
            Who::One(visit(tuple, zone_of(flow), flow, now))
        }
        (KnownFlow::None, Some(zone)) => without_flow(transit, zone, now),
        (KnownFlow::Unknown, Some(zone)) if is_template => without_flow(transit, zone, now),
        _ => Who::Unknown,
    }
}

fn visit(tuple: Tuple, zone: Zone, flow: &Flow, now: u64) -> Visit {
    let status = flow.status();
    Visit {
        now,
        certain: true,
        tuple,
        zone,
        born: flow.born(),
        is_flow: true,
        standing: match (flow.is_confirmed(), status.contains(Status::ASSURED)) {
            (true, true) if flow.is_assumed() => Standing::Unknown,
            (true, true) => Standing::Assured,
            (true, false) => Standing::Confirmed,
            (false, _) => Standing::Begins,
        },
    }
}

/// Finds what a packet without a connection would be part of, by its own tuple. An answer is entered next to the
/// connection that it answers, and stays there as long as that is found.
fn without_flow(transit: &mut Transit<'_, '_>, zone: Zone, now: u64) -> Who {
    let layer = dissect::layer(transit.packet);
    let tuple = match layer.and_then(|layer| dissect::tuple(transit.packet, &layer)) {
        Ok(tuple) => tuple.in_zone(zone.id_in(Direction::Original)),
        Err(Unparsable::Invalid) => return Who::Nobody,
        Err(Unparsable::Unknown) => return Who::Unknown,
    };
    let Some(tracker) = &mut transit.ct.tracker else { return Who::Unknown };
    let found = tracker.find(&tuple, zone, now).and_then(|(handle, _)| tracker.flow(handle));
    match found {
        Some(flow) if flow.doubt() != Doubt::None => Who::Unknown,
        Some(flow) => Who::One(visit(tuple, zone, flow, now)),
        None => {
            let (is_flow, standing) = (false, Standing::Begins);
            Who::One(Visit { now, certain: true, tuple, zone, born: 0, is_flow, standing })
        }
    }
}

impl Flows for Tracker {
    fn fate(&mut self, tuple: &Tuple, zone: Zone, now: u64) -> Fate {
        let Some(flow) = self.find(tuple, zone, now).and_then(|(handle, _)| self.flow(handle))
        else {
            let may_be = self.may_have_evicted(tuple, zone, now);
            return if may_be { Fate::Open } else { Fate::Gone };
        };
        let zone = flow.tuple(Direction::Original).zone();
        match flow.proto() {
            _ if flow.doubt() != Doubt::None => Fate::Open,
            Proto::Tcp(tcp) if matches!(tcp.state, State::TimeWait | State::Close) => {
                Fate::Closed(zone)
            }
            _ => Fate::Living(flow.born(), zone),
        }
    }

    fn life(&mut self, tuple: &Tuple) -> Option<Arc<Life>> {
        Self::life(self, tuple)
    }

    fn has(&self, tuple: &Tuple, life: &Arc<Life>) -> bool {
        self.has_life(tuple, life)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_nft_compares_with_what_may_be_there() {
        for (least, most, over) in [
            (3, None, Outcome::YES),
            (0, Some(0), Outcome::NO),
            (2, Some(2), Outcome::NO),
            (2, Some(3), Outcome::MAYBE),
            (0, None, Outcome::MAYBE),
        ] {
            for above in [true, false] {
                let rule = Connlimit { limit: 2, above, prefix: 0, by_destination: false };
                let says = rule.compare_all(Counted { least, most });
                assert_eq!(says, over.invert(!above), "{least} {most:?} {above}");
            }
        }
    }
}
