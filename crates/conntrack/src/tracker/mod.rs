//! [`Tracker`]: one packet's way through tracking, from lookup to confirmation.
//!
//! [`Tracker::track`] when the packet comes to PREROUTING or OUTPUT after the raw table; the answer is
//! good until the next call. [`Tracker::confirm`] when it leaves by POSTROUTING or INPUT, or
//! [`Tracker::discard`] when it does not; a new flow that is not confirmed by the next call is discarded.
//!
//! Contract: one packet at a time; times never run backwards; no clock, no panic, bounded memory.
//!
//! What cannot be known stays open. A flow whose first packet has no certain verdict is kept in doubt
//! ([`Doubt::Existence`]): its packets are what the flow makes of them or what they would be without it.
//! Once another packet of it passed ([`Doubt::History`]), they may be part of an established flow or, in
//! protocols with a state machine, INVALID as well. A flow in doubt lives as long as its protocol's longest
//! timeout. A packet of which not even the ports were captured is unknown and changes no flow.
//!
//! Source: Linux 6.18 `nf_conntrack_core.c` (`nf_conntrack_in`, `resolve_normal_ct`, `init_conntrack`,
//! `__nf_conntrack_confirm`).

mod ask;
mod attach;
mod grace;
mod help;
mod keep;
mod leave;
mod life;
mod proxied;
mod query;
mod start;
mod stepped;
mod tell;
mod translation;
mod unseen;

use crate::chance::Chance;
use crate::config::{Config, Mode};
use crate::dissect::{Layer, Unparsable};
use crate::expect::Expectations;
use crate::flow::{Doubt, Flow, Unseen};
use crate::helper::Helper;
use crate::helpers::Helpers;
use crate::icmp::Message;
use crate::index::Handle;
use crate::key::{Direction, HashKey, Tuple, Zone};
use crate::masters::Masters;
use crate::protocol::Upper;
use crate::sources::Sources;
use crate::status::Status;
use crate::step::{Arrival, Step};
use crate::table::Table;
use crate::told::Told;
use crate::untraceable::Untraceable;
use crate::view::{Certainty, CtState, CtView, Space, States};
use crate::{dissect, icmp, protocol, tcp};
pub use ask::{InStates, Part};
pub use attach::{AnswerKind, Attachment, answerable, answered};
pub use leave::Confirmation;
use packet::{Checksums, Headers, Packet, Read, Snap};
pub use proxied::Proxy;
use proxied::is_unseen;
use std::ops::ControlFlow;
use stepped::Stepped;

/// Where tracking meets a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EntryHook {
    /// It came in: checksums are verified, if at all.
    #[default]
    Prerouting,
    /// It was made on this host.
    Output,
}

/// What `-j CT` in the raw table asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Template {
    /// Where the flow is looked up.
    pub zone: Zone,
    /// The helper of a new flow.
    pub helper: Helper,
}

/// A packet's circumstances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Visit {
    /// Its time in nanoseconds.
    pub now: u64,
    /// Its number: the name of a flow that it creates. Greater than 0.
    pub frame: u64,
    /// Where it is.
    pub hook: EntryHook,
    /// The capture says that it came in by an interface.
    pub came_in: bool,
    /// What the raw table asked for.
    pub template: Template,
    /// Whether it surely got here.
    pub certainty: Certainty,
    /// When the capture began, in nanoseconds; `None`: with the first packet.
    pub began: Option<u64>,
    /// Its way ends at this host, of which no packet was captured: answers are not seen.
    pub unheard: bool,
    /// Whether the host opens connections in the place of clients (`-j SYNPROXY`).
    pub proxy: Proxy,
}

/// Whether all of a packet was captured.
fn is_captured(packet: &Packet<'_>) -> bool {
    matches!(packet.read_slice(packet.network_offset(), packet.len()), Read::Known(_))
}

/// Packets that are prefetched together.
const BURST: usize = 32;

/// The flows, and everything that belongs to them.
#[derive(Debug)]
pub struct Tracker {
    pub(crate) config: Config,
    pub(crate) table: Table,
    expectations: Expectations,
    helpers: Helpers,
    /// A flow of the packet under way that is not, or no longer, in the table.
    loose_end: Option<Handle>,
    /// The flow of the packet under way, if there may be no tuple left for it: then the kernel drops the
    /// packet where it leaves.
    pub(crate) crowded: Option<Handle>,
    /// Replies whose flow could not be found.
    pub(crate) untraceable: Untraceable,
    /// Flows with a helper among them.
    pub(crate) masters: Masters,
    pub(crate) sources: Sources,
    /// Some flow's source has another port than its own, or one that is not known.
    pub(crate) moves_ports: bool,
    /// Its flows and those of other shards may depend on each other.
    pub(crate) crosses: bool,
    /// When the capture began.
    pub(crate) began: Option<u64>,
    /// When its last packet came, in nanoseconds.
    pub(crate) latest: u64,
    /// What ports are drawn from, if they are drawn here.
    pub(crate) chance: Option<Chance>,
    /// What others are told of its flows, if any ask.
    pub(crate) told: Option<Told>,
}

impl Tracker {
    /// Bytes of address space that a table for this number of connections reserves at once. Memory is taken as it fills.
    #[must_use]
    pub fn reserves(max: usize) -> usize {
        Table::reserves(max)
    }

    /// An empty table.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            table: Table::new(config.max, config.decides(), HashKey::new(config.seed)),
            expectations: Expectations::new(config.expect_max),
            helpers: Helpers::default(),
            loose_end: None,
            crowded: None,
            untraceable: Untraceable::default(),
            masters: Masters::default(),
            sources: Sources::default(),
            moves_ports: false,
            crosses: false,
            began: None,
            latest: 0,
            chance: config.entropy.chance(),
            told: None,
            config,
        }
    }

    /// Finds or creates a packet's flow and brings it up to date.
    pub fn track(&mut self, packet: &Packet<'_>, visit: &Visit) -> CtView {
        self.tie_up();
        self.crowded = None;
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
            Err(why) => return why.into(),
        };
        let verify = visit.hook == EntryHook::Prerouting
            && match self.config.checksums {
                Checksums::Ignore => false,
                Checksums::Arrivals => visit.came_in && is_captured(packet),
                Checksums::Verify => true,
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
            Err(why) => return (*why).into(),
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
            Ok(Message::Exempt) => Some(CtView::UNTRACKED),
            Ok(Message::Error { about, destination }) => {
                Some(self.error(&about, destination, visit))
            }
            Err(why) => Some(why.into()),
        }
    }

    /// An ICMP error about a flow.
    fn error(&mut self, about: &Tuple, destination: std::net::IpAddr, visit: &Visit) -> CtView {
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
    fn half_known(&mut self, tuple: &Tuple, visit: &Visit) -> CtView {
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
        // A packet that reopens a flow is looked up once more. Each flow that it reopens is gone, so this ends.
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
    fn lookup(&mut self, tuple: &Tuple, zone: Zone, now: u64) -> Option<(Handle, Direction)> {
        let zones = [zone.id_in(Direction::Original), zone.id_in(Direction::Reply)];
        let [original, reply] = zones;
        let found = self.table.find_in(&tuple.in_zone(original), zones, now);
        if found.is_some() || original == reply {
            return found;
        }
        self.table.find_in(&tuple.in_zone(reply), zones, now)
    }

    /// The same, without a call where there are no zones. The tuple is in zone 0.
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

/// A packet's flow as it was found, or created.
#[derive(Clone, Copy)]
struct Met {
    handle: Handle,
    direction: Direction,
    is_first: bool,
    space: Space,
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
