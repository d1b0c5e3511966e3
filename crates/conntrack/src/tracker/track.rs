//! [`Tracker::track`]: a packet's way from lookup to what it is; and [`Tracker::prefetch`].

use std::ops::ControlFlow;

use packet::{Checksums, Headers, Packet, Read, Snap};

use super::flows::Tracker;
use super::proxied::is_unseen;
use super::stepped::{Met, Stepped};
use super::unseen;
use super::visit::{EntryHook, Proxy, Visit};
use crate::config::Mode;
use crate::dissect::{Layer, Unparsable};
use crate::flow::{Doubt, Flow, Unseen};
use crate::helpers::Helpers;
use crate::icmp::Message;
use crate::index::Handle;
use crate::key::{Direction, Tuple, Zone};
use crate::protocol::Upper;
use crate::status::Status;
use crate::step::{Arrival, Step};
use crate::view::{Certainty, CtState, CtView, Space, States};
use crate::{dissect, icmp, protocol, tcp};

/// Whether all of a packet was captured.
fn is_captured(packet: &Packet<'_>) -> bool {
    matches!(packet.read_slice(packet.network_offset(), packet.len()), Read::Known(_))
}

/// What a packet of DCCP is where the kernel has a tracker for it: dropped if it lacks some of its header.
#[cold]
fn unmodelled(packet: &Packet<'_>, layer: &Layer) -> CtView {
    /// Most bytes that the tracker reads: long sequence numbers, an acknowledgement, and a reset's code or a service.
    const MOST_READ: usize = 28;
    let space = match packet.read_slice(layer.offset, MOST_READ) {
        Read::Known(_) => Space::Enough,
        _ => Space::Unmodelled,
    };
    CtView { space, ..CtView::UNKNOWN }
}

/// Packets that are prefetched together.
const BURST: usize = 32;

impl Tracker {
    /// Finds or creates a packet's flow and brings it up to date.
    pub fn track(&mut self, packet: &Packet<'_>, visit: &Visit) -> CtView {
        self.tie_up();
        self.crowded = None;
        self.overlooked = None;
        if self.config.mode == Mode::Off {
            return CtView::UNKNOWN;
        }
        self.begin(visit.began.unwrap_or(visit.now));
        self.latest = visit.now;
        self.resolve(packet, visit)
    }

    /// Prefetches for packets that are about to be tracked in this zone: memory is waited for once for
    /// all of a burst, not once for each. Changes nothing.
    pub fn prefetch<'a, 'b>(
        &self,
        packets: impl IntoIterator<Item = (Snap<'b>, &'a Headers)>,
        zone: Zone,
    ) {
        let id = zone.id_in(Direction::Original);
        let mut hashes = [0; BURST];
        let mut count = 0;
        for (bytes, headers) in packets {
            let Ok(layer) = dissect::layer_of(headers) else { continue };
            let Ok(tuple) = dissect::tuple(&bytes.trim(headers.end), &layer) else { continue };
            if let Some(place) = hashes.get_mut(count) {
                *place = self.table.hash(&tuple.in_zone(id));
                count += 1;
            }
            if count == BURST {
                self.table.prefetch(&hashes);
                count = 0;
            }
        }
        self.table.prefetch(hashes.get(..count).unwrap_or_default());
    }

    #[inline]
    fn resolve(&mut self, packet: &Packet<'_>, visit: &Visit) -> CtView {
        let layer = match dissect::layer(packet) {
            Ok(layer) => layer,
            Err(why) => return self.unread(packet, why),
        };
        if self.is_unmodelled(layer.protocol) {
            return unmodelled(packet, &layer);
        }
        let verify = visit.hook == EntryHook::Prerouting
            && match self.config.checksums {
                Checksums::Ignore => false,
                Checksums::Arrivals => visit.came_in && is_captured(packet),
                Checksums::Verify => packet.described().is_none(),
            };
        if protocol::is_icmp(layer.protocol)
            && let Some(view) = self.icmp(packet, &layer, verify, visit)
        {
            return view;
        }
        // What was read stays where it is.
        let tuple = dissect::tuple_here(packet, &layer);
        let tuple = match &tuple {
            Ok(tuple) => tuple,
            Err(why) => return self.unread(packet, *why),
        };
        match &Upper::read(packet, &layer, verify) {
            Ok(upper) => self.normal(packet, &layer, tuple, upper, visit),
            Err(Unparsable::Invalid) => {
                self.waste(tuple, visit);
                CtView::INVALID
            }
            Err(Unparsable::Unknown) => self.half_known(tuple, visit),
        }
    }

    /// A packet whose tuple is not known, or that has none.
    #[cold]
    fn unread(&mut self, packet: &Packet<'_>, why: Unparsable) -> CtView {
        if why == Unparsable::Unknown {
            self.overlook(packet);
        }
        why.into()
    }

    /// Whether the kernel has a tracker for a protocol that is not modelled.
    fn is_unmodelled(&self, protocol: u8) -> bool {
        protocol == packet::dccp::PROTOCOL && !self.config.dccp_is_generic
    }

    /// What an ICMP message is that no flow is looked up for by its own tuple.
    fn icmp(
        &mut self,
        packet: &Packet<'_>,
        layer: &Layer,
        verify: bool,
        visit: &Visit,
    ) -> Option<CtView> {
        match icmp::read(packet, layer, verify) {
            Ok(Message::Query) => None,
            Ok(Message::Discovery) if !self.config.discovery_is_exempt => Some(CtView::UNKNOWN),
            Ok(Message::Exempt | Message::Discovery) => Some(CtView::UNTRACKED),
            Ok(Message::Error { about, destination }) => {
                Some(self.error(&about, destination, visit))
            }
            Err(why) => Some(why.into()),
        }
    }

    /// An ICMP error about a flow.
    fn error(&mut self, about: &Tuple, destination: std::net::IpAddr, visit: &Visit) -> CtView {
        if self.is_unmodelled(about.protocol()) {
            return CtView::UNKNOWN;
        }
        let Some((handle, direction)) = self.lookup(about, visit.template.zone, visit.now) else {
            let may_be_untraceable = self.untraceable.may_include(about);
            return match may_be_untraceable {
                true => CtView::UNKNOWN,
                false => self.error_about_unseen(visit),
            };
        };
        let Some(flow) = self.table.flow(handle) else { return CtView::INVALID };
        if flow.tuple(direction).destination() != destination {
            return CtView::INVALID;
        }
        let related = States::of(CtState::Related);
        let states = match flow.doubt {
            Doubt::None => related,
            Doubt::Existence | Doubt::History => related.or(CtState::Invalid.into()),
        };
        let assumed = flow.assumed;
        CtView { flow: Some(handle), direction, assumed, ..CtView::without_flow(states) }
    }

    /// The tuple is known, but not whether the packet is well formed: it changes its flow or not, and
    /// begins one or not.
    pub(super) fn half_known(&mut self, tuple: &Tuple, visit: &Visit) -> CtView {
        let found = self.lookup(tuple, visit.template.zone, visit.now);
        let (handle, direction, is_first, space) = match found {
            Some((handle, direction)) => (handle, direction, false, Space::Enough),
            None => match self.create(tuple, visit) {
                Ok((Some(handle), space)) => (handle, Direction::Original, true, space),
                // The packet begins a flow only if it is well formed, and none is there.
                Ok((None, _)) => return CtView { space: Space::MayBeFull, ..CtView::UNKNOWN },
                Err(why) => return why.into(),
            },
        };
        // Nor is it known where the flow was evicted here, and may be there.
        let space = if self.may_have_evicted(tuple, visit.template.zone, visit.now) {
            space.or_tight()
        } else {
            space
        };
        if is_first {
            self.loose_end = Some(handle);
        }
        self.raise_doubt(handle, Doubt::History, visit.now);
        CtView { flow: Some(handle), direction, is_first, space, ..CtView::UNKNOWN }
    }

    #[inline]
    fn normal(
        &mut self,
        packet: &Packet<'_>,
        layer: &Layer,
        tuple: &Tuple,
        upper: &Upper<'_>,
        visit: &Visit,
    ) -> CtView {
        // A packet that reopens a flow is looked up once more. Each flow that it reopens has then ended, so this ends.
        loop {
            let met = match self.lookup_here(tuple, visit.template.zone, visit.now) {
                // The untraceable one may be the later of two flows with this tuple.
                Some(_) if self.table.has_twins() && self.untraceable.may_include(tuple) => {
                    return self.half_known(tuple, visit);
                }
                Some((handle, direction)) => {
                    let space = self.doubt_evicted(handle, visit.now);
                    Met { handle, direction, is_first: false, space }
                }
                None => match self.first(tuple, upper, visit) {
                    ControlFlow::Continue(met) => met,
                    ControlFlow::Break(view) => return view,
                },
            };
            if visit.proxy == Proxy::Seen
                && let Upper::Tcp(segment) = upper
                && let Some(view) = self.proxied(met.handle, met.direction, segment, visit)
            {
                return view;
            }
            if let Some(view) = self.update(met, packet.len(), layer, tuple, upper, visit) {
                return view;
            }
        }
    }

    /// A packet without a flow: one begins with it, or what it is without any.
    fn first(
        &mut self,
        tuple: &Tuple,
        upper: &Upper<'_>,
        visit: &Visit,
    ) -> ControlFlow<CtView, Met> {
        if is_unseen(upper, visit) || self.is_out_of_sight(tuple, visit) {
            return ControlFlow::Break(self.half_known(tuple, visit));
        }
        match self.create(tuple, visit) {
            Ok((Some(handle), space)) => {
                self.pick_up(handle, upper, visit.now);
                let direction = Direction::Original;
                ControlFlow::Continue(Met { handle, direction, is_first: true, space })
            }
            Ok((None, Space::Full)) => {
                ControlFlow::Break(CtView { space: Space::Full, ..CtView::INVALID })
            }
            Ok((None, space)) => ControlFlow::Break(CtView { space, ..CtView::UNKNOWN }),
            Err(why) => ControlFlow::Break(why.into()),
        }
    }

    /// Brings a flow up to date; `None` where the packet ends it, and begins another one.
    #[inline]
    fn update(
        &mut self,
        met: Met,
        bytes: usize,
        layer: &Layer,
        tuple: &Tuple,
        upper: &Upper<'_>,
        visit: &Visit,
    ) -> Option<CtView> {
        let Self { table, helpers, config, .. } = self;
        let Met { handle, direction, is_first, space } = met;
        let Some(flow) = table.flow_mut(handle) else { return Some(CtView::INVALID) };
        let ahead = match upper {
            Upper::Tcp(segment) if flow.status.contains(Status::SEQ_ADJUST) => {
                ahead(helpers, handle, direction, segment, visit.hook)
            }
            _ => 0,
        };
        let arrival = Arrival { now: visit.now, direction, bytes, ahead };
        let (doubt, before) = (flow.doubt, state(flow, direction));
        let may_be_unseen = config.mode == Mode::Midstream;
        if may_be_unseen && !is_first && doubt == Doubt::None {
            unseen::pick_up(flow, direction, upper);
        }
        let step = protocol::track(flow, layer.protocol, upper, &arrival, config);
        let is_seen = !may_be_unseen || flow.unseen == Unseen::Nothing && !visit.unheard;
        let is_plain = matches!(step, Step::Accept | Step::Ignore) && doubt == Doubt::None;
        if !(is_plain && is_seen && !is_first && visit.certainty == Certainty::Certain) {
            let stepped = Stepped { met, before, doubt, step };
            return self.stepped(&stepped, tuple, layer, upper, visit);
        }
        // Nothing is open: most packets end here.
        if direction == Direction::Reply || flow.assumed {
            flow.status.set(Status::SEEN_REPLY);
        }
        let (assumed, is_closing) = (flow.assumed, tcp::is_closing(flow));
        if is_closing {
            table.closes();
        }
        let state = if assumed { CtState::Established } else { before };
        let view = CtView::without_flow(state.into());
        Some(CtView { flow: Some(handle), direction, assumed, space, ..view })
    }

    /// The flow of a tuple in a zone: first among tuples of the zone's original number, and where its
    /// reply number differs, then among replies of that.
    pub(super) fn lookup(
        &mut self,
        tuple: &Tuple,
        zone: Zone,
        now: u64,
    ) -> Option<(Handle, Direction)> {
        let zones = [zone.id_in(Direction::Original), zone.id_in(Direction::Reply)];
        let [original, reply] = zones;
        let found = self.table.find_in(&tuple.in_zone(original), zones, now);
        if found.is_some() || original == reply {
            return found;
        }
        self.table.find_in(&tuple.in_zone(reply), zones, now)
    }

    /// [`Self::lookup`] for a tuple in zone 0, inlined where the zone is 0 too.
    #[inline(always)]
    fn lookup_here(&mut self, tuple: &Tuple, zone: Zone, now: u64) -> Option<(Handle, Direction)> {
        match zone.id {
            0 => self.table.find_here(tuple, now),
            _ => self.lookup(tuple, zone, now),
        }
    }
}

/// What is known of a packet of which no flow can be looked up.
impl From<Unparsable> for CtView {
    fn from(why: Unparsable) -> Self {
        match why {
            Unparsable::Invalid => Self::INVALID,
            Unparsable::Unknown => Self::UNKNOWN,
        }
    }
}

/// How far a segment's acknowledgement number is ahead of what the other side sent, in a flow whose numbers are moved.
#[cold]
fn ahead(
    helpers: &Helpers,
    handle: Handle,
    direction: Direction,
    segment: &tcp::Segment<'_>,
    hook: EntryHook,
) -> u32 {
    // The host says in the client's name what the server said.
    if hook == EntryHook::Output && helpers.is_promised(handle) {
        return 0;
    }
    let shift = helpers.shifts(handle).of(direction.opposite());
    shift.of(segment.acknowledgement.wrapping_sub(1))
}

/// A packet's state by its flow.
fn state(flow: &Flow, direction: Direction) -> CtState {
    let is_answered = flow.status.contains(Status::SEEN_REPLY) || flow.picked_up;
    if direction == Direction::Reply || is_answered {
        CtState::Established
    } else if flow.status.contains(Status::EXPECTED) {
        CtState::Related
    } else {
        CtState::New
    }
}
