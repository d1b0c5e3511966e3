//! One packet's whole path, in order, with its end at the bottom. Read `Handler::take` first; `direct` is what most
//! packets need of it.
//!
//! The stages: admit, reassemble, route, walk (`hooks` says which hooks in which order), settle, leave. Replay, `why`, tests and live runs all call this, each with its [`Observer`].
//!
//! Source: the order of hooks and tables is that of `nf_hook` calls in the kernel's `net/ipv4/ip_input.c`,
//! `ip_forward.c`, `ip_output.c` and their IPv6 siblings, and of `NF_IP_PRI_*`.

use conntrack::defrag::{Carried, Whole};
use conntrack::steer::Shard;
use conntrack::{Listing, Tracker, Zone};
use packet::{Checksums, Headers, Link, Packet, Snap};
use rules::eval::{self, Alive, Verdicts};
use rules::model::Family;
use rules::{BridgeNote, Transit};

use crate::admit::{Global, admit, parsed, reassemble, rooms};
use crate::answers::Found;
use crate::arrival::Arrival;
use crate::config::Config;
use crate::context::{Context, Settled};
use crate::delivery::{self, Delivered};
use crate::direct::{self, direct_of};
use crate::disposition::{Disposition, FinalVerdict, Outcome, Skip, Why};
use crate::egress::{self, Egress, Exit, Parts};
use crate::fragments;
use crate::headers::{checksums_of, find_headers, find_headers_into};
use crate::hooked;
use crate::hooks::{self, StateParts};
use crate::observer::Observer;
use crate::on_wire::on_wire;
use crate::program::{Plan, Program};
use crate::routing::bridge;
use crate::routing::course::Before;
use crate::routing::course::{self, family_of};
use crate::routing::way::Way;
use crate::shared::Shared;
use crate::state::{FamilyState, State};
use crate::unseen;
use crate::walk::{Below, Walk};

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
    pub fn follow(&mut self, new: &Program) {
        self.state.follow(new);
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
                plan.tables.walk_table(table, transit, entry, &mut state.memories, observer)
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
        if arrival.wire.is_none()
            && !wires.all.is_empty()
            && let Some(crosses) = on_wire(wires, arrival)
        {
            return self.handle_crossing(program, bytes, &crosses, observer);
        }
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
        if let Some(gaps) = arrival.gaps {
            packet.describe(gaps);
        }
        if let Some(way) = direct_of(program, packet.headers(), arrival)
            && self.state.bans_at(arrival.time).is_none()
            && !way.may_wait(program, &packet)
        {
            let Self { state, room, exit } = self;
            packet.lend(room);
            let packet = &mut packet;
            return direct::forward(way, program, state, exit, packet, arrival, observer);
        }
        // What a rule recorded says itself where it stands.
        match hooked::arrival(packet.frame(), arrival, program.config()) {
            Some(recorded) => self.take(program, packet, &recorded, observer),
            None => self.take(program, packet, arrival, observer),
        }
    }

    /// What becomes of a frame of a capture that crosses a wire: an arrival of its own, so that others are looked at in one place.
    #[inline(never)]
    fn handle_crossing<'h, 'a>(
        &'h mut self,
        program: &'a Program,
        bytes: &mut [u8],
        crosses: &Arrival<'a>,
        observer: &mut impl Observer,
    ) -> Egress<'h, 'a> {
        self.handle(program, bytes, crosses, observer)
    }

    /// Takes a frame, whose headers were found, along the full path: it is admitted, reassembled, routed and walked, its
    /// connection is settled, and it leaves.
    #[inline(never)]
    pub(crate) fn take<'h, 'a>(
        &'h mut self,
        program: &'a Program,
        came: Packet<'_>,
        arrival: &Arrival<'a>,
        observer: &mut impl Observer,
    ) -> Egress<'h, 'a> {
        if arrival.quotes_unseen {
            self.take_quoted(program, &came, arrival, observer);
        }
        let Self { state: State { families, bans, sets, chance, .. }, room, exit } = self;
        debug_assert_eq!(families.len(), program.plans().len(), "it follows this program");
        let config = &**program.config();
        let mut global = Global { bans: bans.as_mut(), sets, chance: chance.as_ref() };

        let came_at = came.frame().as_ptr();
        let mut whole: Vec<u8>;
        let mut packet = came;

        // Admit.
        let on_wire = arrival.wire.is_some();
        let family = program.family_for(packet.headers(), arrival.link, on_wire);
        let mut end = Disposition::of(family, packet.headers(), packet.len());
        let Some((plan, state, mut below)) = rooms(program, families, arrival, family) else {
            return end.because(FinalVerdict::Skip(Skip::Family));
        };
        let given = (arrival, config);
        let admitted = admit(&mut packet, given, &mut global, below.as_mut(), &mut end, observer);
        if let Err(verdict) = admitted {
            return end.because(verdict);
        }

        // Reassemble.
        let room_of = (plan, &mut *state);
        let assembled =
            assembled(&mut packet, room_of, given, &mut global, below.as_mut(), observer);
        let (together, mut carried, apart) = match assembled {
            Ok(assembled) => assembled,
            Err(verdict) => return end.because(verdict),
        };
        let (mut fragment, mut parts) = (None, None);
        if let Some(mut together) = together {
            carried = together.carried;
            parts = Some(Parts::of(&mut together));
            fragment = Some(together.largest);
            whole = together.frame;
            let checksums = checksums_of(config, arrival.origin);
            packet = parsed(&mut whole, together.unknown, arrival.link, checksums);
            end.bytes = packet.len() as u64;
        }

        // Route.
        let before = Before::of(&packet, config);
        let found = state.answer_of(&packet, arrival, config);
        let (way, may_be_kept) = match routed(&packet, (&before, found), plan, given, observer) {
            Ok(routed) => routed,
            Err(verdict) => return end.because(verdict),
        };

        // Walk, settle, leave.
        end.path = Some(way.path);
        if !apart {
            observer.starts(plan.family(), way.path, way.input, way.output);
        }
        packet.lend(room);
        let mark = match apart {
            true => carried.mark,
            false => below.as_ref().map_or_else(|| arrival.came_with(), Below::mark),
        };
        let is_missing = apart && !carried.is_certain;
        let note = match plan.asks_for_ports {
            true => bridge::note(&way, arrival, &config.host, plan.family()),
            false => BridgeNote::Unknown,
        };
        let (way, before, note) = (&way, &before, &note);
        let context =
            Context { plan, config, arrival, way, before, fragment, apart, note, mark, found };
        let lent = Lent { state, global, below, exit, may_be_kept, is_missing };
        leave(&context, packet, lent, (came_at, parts.as_mut()), end, observer)
    }

    /// Takes the packet of the host's own that an error quotes, as it was made: it passed OUTPUT before.
    #[cold]
    fn take_quoted<'a>(
        &mut self,
        program: &'a Program,
        error: &Packet<'_>,
        arrival: &Arrival<'a>,
        observer: &mut impl Observer,
    ) {
        let Some(mut quoted) = unseen::quoted(error, &program.config().host) else { return };
        let unseen::Quoted { bytes, len, path } = &mut quoted;
        let own = Arrival {
            time: arrival.time,
            began: arrival.began,
            one_sided: arrival.one_sided,
            unrecorded: arrival.unrecorded,
            path: Some(*path),
            ..Arrival::new(arrival.number, Link::Raw, *len)
        };
        let packet = Packet::parse(bytes, *len, Link::Raw, Checksums::Ignore);
        self.take(program, packet, &own, observer);
    }
}

impl Disposition {
    fn because<'h, 'a>(self, verdict: FinalVerdict) -> Egress<'h, 'a> {
        Outcome::from(Self { verdict, ..self }).into()
    }
}

/// What the handler lends a packet for its walk.
struct Lent<'h, 'w> {
    state: &'h mut FamilyState,
    global: Global<'h>,
    below: Option<Below<'w>>,
    exit: &'h mut Option<Exit>,
    /// A bridge may pass the packet on without rules.
    may_be_kept: bool,
    /// Some part of it may have been dropped before it was put together.
    is_missing: bool,
}

/// Takes a packet through the chains that see fragments, and puts it together with others of its datagram; returns what they make,
/// what the packet carries, and whether it was seen as a fragment.
///
/// # Errors
/// The verdict of a fragment that waits, or that was dropped.
#[inline]
fn assembled<'a>(
    packet: &mut Packet<'_>,
    (plan, state): (&'a Plan, &mut FamilyState),
    (arrival, config): (&Arrival<'a>, &'a Config),
    global: &mut Global<'_>,
    below: Option<&mut Below<'_>>,
    observer: &mut impl Observer,
) -> Result<(Option<Whole>, Carried, bool), FinalVerdict> {
    let came = || Carried { mark: arrival.came_with(), ..Carried::default() };
    let carried = below.as_deref().map_or_else(came, Below::carried);
    let (room_of, given) = ((plan, &mut *state), (arrival, config));
    let passed = fragments::pass(packet, room_of, given, global, carried, observer)?;
    let (carried, apart) = (passed.unwrap_or(carried), passed.is_some());
    let together = reassemble(packet, (plan, state), given, (carried, below), observer)?;
    Ok((together, carried, apart))
}

/// Finds a packet's way, and whether a bridge may pass it on without rules.
///
/// # Errors
/// The verdict of a packet that no chain sees, or of which that is not known.
#[inline]
fn routed<'a>(
    packet: &Packet<'_>,
    (before, found): (&Before, Found),
    plan: &'a Plan,
    (arrival, config): (&Arrival<'a>, &'a Config),
    observer: &mut impl Observer,
) -> Result<(Way<'a>, bool), FinalVerdict> {
    let rules = (plan.family(), plan.of_rules);
    let Some(course) = course::route(packet, before, found, arrival, rules, config) else {
        observer.depends_on(Why::NotCaptured);
        return Err(FinalVerdict::Unknown);
    };
    let way = course.by(packet, arrival, config);
    match bridge::keeps(&way, arrival, &config.host, plan.family()) {
        Some(true) => Err(FinalVerdict::Skip(Skip::OtherHost)),
        is_kept => Ok((way, is_kept.is_none())),
    }
}

/// Walks a packet through its hooks, settles what is expected after it, and lets it leave.
#[inline(always)]
fn leave<'h, 'a>(
    context: &Context<'a, '_>,
    packet: Packet<'_>,
    Lent { state, global, mut below, exit, may_be_kept, is_missing }: Lent<'h, '_>,
    lies: (*const u8, Option<&mut Parts>),
    mut end: Disposition,
    observer: &mut impl Observer,
) -> Egress<'h, 'a> {
    let Global { sets, chance, .. } = global;
    let FamilyState { memories, answers, tracker, delivery, .. } = state;
    let Context { config, arrival, way, .. } = *context;
    let (mut delivered, mut joined): (Vec<u8>, Packet<'_>);
    // A packet that takes its place may live for less.
    let mut packet = packet;
    if let Some(sets) = sets {
        sets.begin(arrival.time);
    }
    let has_below = below.is_some();
    let ct = context.connection(tracker);
    let mut transit = context.transit(&mut packet, sets.as_mut(), chance, ct);
    let mut walk = Walk::new(&mut transit, context.visit(), &context.plan.tables, memories);
    if let Some(below) = &mut below {
        walk.above(below);
    }
    context.recorded(&mut walk);
    if may_be_kept {
        walk.may_be_kept(observer);
    }
    if is_missing {
        walk.may_be_missing(observer);
    }

    // The rules, hook after hook. A connection is confirmed where its packet leaves.
    let mut gone = *way;
    let came = hooks::pass(&mut walk, &mut gone, context, answers, Some(delivery), observer);
    end.path = Some(gone.path).filter(|_| gone.is_sure());
    end.assumed = gone.assumed;
    end.midstream = walk.midstream();
    match came {
        Delivered::AsItIs => end.verdict = walk.verdict(),
        Delivered::Ended(verdict) => end.verdict = verdict,
        Delivered::Whole(together) => {
            delivered = together.frame;
            let checksums = checksums_of(config, arrival.origin);
            joined = parsed(&mut delivered, together.unknown, arrival.link, checksums);
            end.bytes = joined.len() as u64;
            walk.becomes(&mut joined, together.carried.mark);
            let is_certain = together.carried.is_certain;
            end.verdict = delivery::deliver(&mut walk, gone.input, is_certain, observer);
        }
    }
    end.either = walk.either();
    if walk.ended_below() {
        end.family = Some(Family::Bridge);
    }

    // How it leaves, and what is sent for it if it does not.
    let Settled { answer, tuple, len, mut left } =
        context.settle(&mut walk, &end.verdict, &gone, answers, exit, lies);
    if end.verdict == FinalVerdict::Unknown && !has_below && !walk.may_pass() {
        let doubt = walk.doubted(exit.is_none(), observer);
        let state = StateParts { memories, answers, tracker, sets, chance };
        if let Some(sure) = hooks::decided(context, doubt, state, exit, &mut left, observer) {
            (end.verdict, end.either, end.early) = sure;
        }
    }
    let (leaves, reply) = egress::lent(left.map(|(made, _)| made), exit);
    let outcome = Outcome { end, input: gone.input, output: gone.output, tuple, len, answer };
    Egress { outcome, leaves, reply }
}
