//! One packet's whole path, in order, with its end at the bottom. Read `Handler::take` first; `direct` is what most
//! packets need of it.
//!
//! The rooms: parse, the access list, the rules hook after hook with the bytes rewritten in place, and
//! out. Replay, `why`, tests and live runs all call this, each with its [`Observer`].
//!
//! Source: the order of hooks and tables is that of `nf_hook` calls in the kernel's `net/ipv4/ip_input.c`,
//! `ip_forward.c`, `ip_output.c` and their IPv6 siblings, and of `NF_IP_PRI_*`.

use access::list::{Denied, List};
use conntrack::defrag::{Carried, Defragged};
use conntrack::steer::Shard;
use conntrack::{Listing, Tracker, Zone};
use packet::{Headers, L3, Link, Mark, Packet, Snap};
use rules::eval::{self, Alive, Verdicts};
use rules::model::Family;
use rules::{BridgeNote, Transit};

use crate::answers::Found;
use crate::arrival::{Arrival, Origin};
use crate::bridge;
use crate::context::{Before, Context, Settled};
use crate::course::{Course, course_of, family_of, of_host};
use crate::delivery::{self, Delivered};
use crate::direct::{self, direct_of};
use crate::disposition::{Disposition, DropReason, FinalVerdict, Outcome, Skip, Why};
use crate::egress::{self, Egress, Exit, Parts};
use crate::headers::{checksums_of, find_headers, find_headers_into};
use crate::hooked;
use crate::hooks::{self, StateParts};
use crate::interfaces;
use crate::observer::Observer;
use crate::on_wire::on_wire;
use crate::program::Program;
use crate::shared::Shared;
use crate::state::{FamilyState, Follow, State};
use crate::walk::{Below, Walk};
use crate::way::addresses;

/// Frames that are prefetched together.
pub const BURST: usize = 32;

/// Takes packets through a program, and keeps what they leave.
#[derive(Debug)]
pub struct Handler {
    state: State,
    /// Where packets move that come to be longer or shorter.
    room: Vec<u8>,
    /// Where frames are made that leave, if any are sent.
    exit: Option<Exit>,
}

impl Handler {
    /// Nothing seen yet; every packet is to walk this program.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        Self::of_shard(program, None)
    }

    /// The same for one worker of several that share connections.
    #[must_use]
    pub fn of_shard(program: &Program, shard: Option<Shard>) -> Self {
        Self { state: State::of_shard(program, shard), room: Vec::new(), exit: None }
    }

    /// The same for one worker of several that have one of what the kernel has once, with its part of the connections
    /// where they share those out.
    #[must_use]
    pub fn sharing(program: &Program, shared: &Shared, shard: Option<Shard>) -> Self {
        Self { state: State::sharing(program, shared, shard), room: Vec::new(), exit: None }
    }

    /// One whose packets are sent: it makes the bytes that leave, and the host's replies.
    #[must_use]
    pub fn sending(self) -> Self {
        Self { exit: Some(Exit::default()), ..self }
    }

    /// Goes on under another program; see [`State::follow`].
    pub fn follow(&mut self, new: &Program, how: Follow) {
        self.state.follow(new, how);
    }

    /// What packets left.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The connections that there are: see [`State::connections`].
    pub fn connections(&mut self) -> Listing {
        self.state.connections()
    }

    /// Its tables of connections: see [`State::trackers`].
    pub fn trackers(&mut self) -> impl Iterator<Item = &mut Tracker> {
        self.state.trackers()
    }

    /// Prefetches for frames that are handled next, at best [`BURST`] of them, each with the headers found in it:
    /// their connections are fetched from memory all at once, not one after the other. Changes nothing.
    pub fn prefetch<'b>(
        &self,
        program: &Program,
        frames: impl Iterator<Item = (&'b [u8], &'b Headers)> + Clone,
    ) {
        if !program.tracks() {
            return;
        }
        for (plan, state) in program.plans().iter().zip(&self.state.families) {
            let Some(tracker) = state.tracker.as_ref().filter(|_| plan.is_tracked) else {
                continue;
            };
            let family = Some(plan.family());
            let own = frames.clone().filter(|(_, headers)| family_of(headers) == family);
            let own = own.map(|(bytes, headers)| (Snap::new(bytes, headers.end), headers));
            tracker.prefetch(own, Zone::default());
        }
    }

    /// What one table's chain at the packet's hook says of it, with nothing around it; see [`eval::walk`].
    #[inline]
    pub(crate) fn walk(
        &mut self,
        program: &Program,
        table: usize,
        transit: &mut Transit<'_, '_>,
        entry: Alive,
        observer: &mut impl eval::Observer,
    ) -> Verdicts {
        let mut states = program.plans().iter().zip(&mut self.state.families);
        match states.find(|(plan, _)| plan.family() == transit.family) {
            Some((plan, state)) => {
                plan.tables.walk(table, transit, entry, &mut state.memories, observer)
            }
            None => Verdicts::default(),
        }
    }

    /// What becomes of one frame. Most take the direct path to the same end.
    #[inline]
    pub fn handle<'h, 'a>(
        &'h mut self,
        program: &'a Program,
        bytes: &mut [u8],
        arrival: &Arrival<'a>,
        observer: &mut impl Observer,
    ) -> Egress<'h, 'a> {
        let wires = &program.config().wires;
        let crosses = match arrival.wire {
            None if !wires.all.is_empty() => on_wire(wires, arrival),
            _ => None,
        };
        let arrival = crosses.as_ref().unwrap_or(arrival);
        // Headers, found once: for the burst that it came in, or now.
        let mut packet = Packet::with_headers(bytes, Headers::default());
        packet.find(|headers, bytes| {
            let Arrival { link, wire_len, origin, .. } = *arrival;
            match arrival.headers {
                Some(found) => *headers = *found,
                None => find_headers_into(headers, program, bytes, link, wire_len, origin),
            }
            let found = || find_headers(program, bytes, link, wire_len, origin);
            debug_assert_eq!(*headers, found(), "headers of this frame under this program");
        });
        if let Some(way) = direct_of(program, packet.headers(), arrival)
            && self.state.bans_at(arrival.time).is_none()
            && !way.may_wait(program, &packet)
        {
            let Self { state, room, exit } = self;
            packet.lend(room);
            let packet = &mut packet;
            return direct::forward(way, program, state, exit, packet, arrival, observer);
        }
        self.take(program, packet, arrival, observer)
    }

    /// Takes a frame, whose headers were found, along the full path.
    #[inline(never)]
    pub(crate) fn take<'h, 'a>(
        &'h mut self,
        program: &'a Program,
        came: Packet<'_>,
        arrival: &Arrival<'a>,
        observer: &mut impl Observer,
    ) -> Egress<'h, 'a> {
        let Self { state: State { families, bans, sets, chance, .. }, room, exit } = self;
        debug_assert_eq!(families.len(), program.plans().len(), "it follows this program");
        let config = &**program.config();

        // What a rule recorded says itself where it stands.
        let hooked = hooked::arrival(came.frame(), arrival, config);
        let arrival = hooked.as_ref().unwrap_or(arrival);

        let checksums = checksums_of(config, arrival.origin);
        let mut whole: Vec<u8>;
        let (mut delivered, mut joined): (Vec<u8>, Packet<'_>);
        let (mut fragment, mut parts) = (None, None);
        let came_at = came.frame().as_ptr();
        let mut packet = came;
        let on_wire = arrival.wire.is_some();
        let family = program.family_for(packet.headers(), arrival.link, on_wire);
        let mut end = Disposition::of(family, packet.headers(), packet.len());
        let (mut found, mut below) = (None, None);
        for (plan, state) in program.plans().iter().zip(families) {
            if Some(plan.family()) == end.family {
                found = Some((plan, state));
            } else if plan.family() == Family::Bridge && on_wire && arrival.link.is_ethernet() {
                below = Some(Below::new(&plan.tables, &mut state.memories, arrival.mark));
            }
        }
        let Some((plan, state)) = found else {
            return end.because(FinalVerdict::Skip(Skip::Family));
        };
        let is_bridge = end.family == Some(Family::Bridge);
        let is_others = packet.headers().link.packet_type == Some(interfaces::OTHER_HOST);
        // A bridge's port gets what goes to all of its hosts, and its rules see it as the bridge's.
        if is_others && arrival.origin == Origin::Addresses && !is_bridge {
            return end.because(FinalVerdict::Skip(Skip::OtherHost));
        }

        // The access list: what it denies no connection and no rule ever sees.
        if let Some(bans) = bans {
            match denied(bans.at(arrival.time), &packet) {
                Some(Ok(())) => {}
                Some(Err(why)) => return end.because(FinalVerdict::Drop(DropReason::Denied(why))),
                None => return end.unknown(Why::NotCaptured, observer),
            }
        }

        // The rules of a bridge that see it before anybody looks at what it holds.
        if let Some(below) = &mut below {
            let (sets, chance) = (sets.as_mut(), chance.as_ref());
            let ended = below.comes_in(&mut packet, arrival, config, sets, chance, observer);
            if let Some(verdict) = ended {
                end.family = Some(Family::Bridge);
                return end.because(verdict);
            }
        }

        // What the kernel's stack refuses before any other hook.
        match packet.headers().l3 {
            L3::Fault(fault) => return end.because(FinalVerdict::Drop(DropReason::Stack(fault))),
            L3::Unknown => return end.unknown(Why::NotCaptured, observer),
            _ => {}
        }

        // Fragments are put together where connections are tracked: the last one brings the packet.
        let is_whole = arrival.link == Link::Nflog;
        let defragged = match is_whole {
            true => Defragged::Pass,
            false => {
                let carried = below.as_ref().map_or_else(Carried::default, Below::carried);
                state.defrag(plan, &packet, arrival, carried, config)
            }
        };
        match defragged {
            Defragged::Pass => {}
            Defragged::Held => return end.because(FinalVerdict::Skip(Skip::Fragment)),
            Defragged::Dropped(_) => return end.because(FinalVerdict::Drop(DropReason::Conntrack)),
            Defragged::Unknown => return end.unknown(Why::Fragment, observer),
            Defragged::Whole(mut put_together) => {
                if let Some(below) = &mut below {
                    below.joins(&put_together.carried);
                }
                parts = Some(Parts::of(&mut put_together));
                whole = put_together.frame;
                fragment = Some(put_together.largest);
                let len = whole.len();
                packet = Packet::parse(&mut whole, len, arrival.link, checksums);
                put_together.unknown.into_iter().for_each(|range| packet.forget(range));
                end.bytes = packet.len() as u64;
            }
        }

        // The way through the host.
        let family = plan.family();
        let before = Before::of(&packet, config);
        let found = state.answer_of(&packet, arrival, config);
        let course = match (arrival.given_path(config), family) {
            (Some(path), _) => Some(Course::sure(path)),
            (None, Family::Arp) => {
                let is_own = match arrival.origin {
                    Origin::Host => true,
                    Origin::Wire => false,
                    Origin::Addresses => interfaces::is_outbound(&packet, arrival),
                };
                Some(Course::sure(of_host(is_own)))
            }
            (None, Family::Bridge) => Some(plan.of_rules),
            (None, Family::Ipv4 | Family::Ipv6) => {
                let is_answer = matches!(found, Found::Refused(_));
                let origin = if is_answer { Origin::Host } else { arrival.origin };
                course_of(&packet, before.addresses, arrival, origin, config, plan.of_rules)
            }
        };
        let Some(course) = course else { return end.unknown(Why::NotCaptured, observer) };
        let way = course.by(&packet, arrival, config);
        // What a bridge does not hand over no rule sees.
        if family.is_ip()
            && bridge::crosses(&way, arrival, &config.host)
            && bridge::hands_over(&config.host, family) == Some(false)
        {
            return end.because(FinalVerdict::Skip(Skip::OtherHost));
        }
        end.path = Some(way.path);
        observer.starts(family, way.path, way.input, way.output);

        // The rules, hook after hook. A connection is confirmed where its packet leaves.
        packet.lend(room);
        let FamilyState { memories, answers, tracker, delivery, .. } = state;
        let mark = match &below {
            Some(below) => below.mark(),
            None => Mark { value: arrival.mark, unknown: 0 },
        };
        let note = match plan.asks_for_ports {
            true => bridge::note(&way, arrival, &config.host, family),
            false => BridgeNote::Unknown,
        };
        if let Some(sets) = sets {
            sets.begin(arrival.time);
        }
        let (way, before, note) = (&way, &before, &note);
        let context = Context { plan, config, arrival, way, before, fragment, note, mark, found };
        let ct = context.connection(tracker);
        let mut transit = context.transit(&mut packet, sets.as_mut(), chance.as_ref(), ct);
        let is_tapped = arrival.origin == Origin::Host && arrival.link != Link::Nflog;
        let has_below = below.is_some();
        let mut walk = Walk::new(&mut transit, context.visit(), &plan.tables, memories);
        if let Some(below) = &mut below {
            walk.above(below);
        }
        walk.seen_leaving(arrival.left.as_ref());
        walk.recorded_leaving(is_tapped, arrival.was_let_go);
        // An answer's ends are found by what it answers.
        if is_tapped && matches!(found, Found::Nothing) {
            walk.made_by_host();
        }
        let mut gone = *way;
        let came = hooks::goes(&mut walk, &mut gone, &context, answers, Some(delivery), observer);
        end.path = Some(gone.path).filter(|_| gone.is_sure());
        end.assumed = gone.assumed;
        end.midstream = walk.midstream();
        match came {
            Delivered::AsItIs => end.verdict = walk.verdict(),
            Delivered::Ended(verdict) => end.verdict = verdict,
            Delivered::Whole(put_together) => {
                delivered = put_together.frame;
                let len = delivered.len();
                joined = Packet::parse(&mut delivered, len, arrival.link, checksums);
                put_together.unknown.into_iter().for_each(|range| joined.forget(range));
                end.bytes = joined.len() as u64;
                let carried = put_together.carried;
                walk.becomes(&mut joined, carried.mark);
                end.verdict = delivery::goes(&mut walk, gone.input, carried.is_certain, observer);
            }
        }
        end.either = walk.either();
        if walk.ended_below() {
            end.family = Some(Family::Bridge);
        }

        // How it leaves, and what is sent for it if it does not.
        let lies = (came_at, parts.as_mut());
        let Settled { answer, tuple, len, mut left } =
            context.settle(&mut walk, &end.verdict, &gone, answers, exit, lies);
        // Where the states of its connection do not agree, as what it is taken for.
        if end.verdict == FinalVerdict::Unknown && !has_below {
            let told = if exit.is_none() { walk.as_taken(observer) } else { None };
            let taken = if told.is_none() { walk.taken() } else { None };
            let state = StateParts { memories, answers, tracker, sets, chance: chance.as_ref() };
            let again = |taken| hooks::again(&context, taken, state, exit, &mut left, observer);
            let sure = told.or_else(|| taken.and_then(again));
            if let Some(sure) = sure {
                (end.verdict, end.either, end.early) = sure;
            }
        }
        let (leaves, reply) = egress::lent(left.map(|(made, _)| made), exit);
        let outcome = Outcome { end, input: gone.input, output: gone.output, tuple, len, answer };
        Egress { outcome, leaves, reply }
    }
}

impl Disposition {
    fn because<'h, 'a>(self, verdict: FinalVerdict) -> Egress<'h, 'a> {
        Outcome::from(Self { verdict, ..self }).into()
    }

    fn unknown<'h, 'a>(self, why: Why, observer: &mut impl Observer) -> Egress<'h, 'a> {
        observer.depends_on(why);
        self.because(FinalVerdict::Unknown)
    }
}

/// What the access list says of a packet, if there is one; `None` if its addresses were not captured.
fn denied(list: Option<&List>, packet: &Packet<'_>) -> Option<Result<(), Denied>> {
    let is_ip = matches!(packet.headers().l3, L3::Ipv4 { .. } | L3::Ipv6);
    let Some(list) = list.filter(|_| is_ip) else { return Some(Ok(())) };
    let (source, destination) = addresses(packet)?;
    Some(list.decide(source, destination))
}
