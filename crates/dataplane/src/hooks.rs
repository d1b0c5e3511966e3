//! The hooks that a packet passes on each path, one after the other, and the walk of one that walks once more.
//!
//! Contract: [`crate::handler`] finds the way that a packet takes; what rules make of it on the way is [`crate::routing::reroute`]'s.

use conntrack::{CtView, Tracker};
use host::Host;
use packet::Snapshot;
use rules::eval::{Memories, Nobody};
use rules::ipset::Sets;
use rules::model::Hook;
use rules::{Chance, Connection, Iface};

use crate::answers::Answers;
use crate::context::Context;
use crate::delivery::{Delivered, Delivery};
use crate::disposition::{Early, FinalVerdict};
use crate::egress::{Exit, Leaving, Made};
use crate::hooked;
use crate::observer::Observer;
use crate::routing::bridge;
use crate::routing::path::Path;
use crate::routing::reroute;
use crate::routing::way::{Decision, Way};
use crate::walk::{Doubt, Sizes, Sure, Walk};

/// Its way through the hooks, from the first to the last, which rules may change; whether it came to INPUT.
pub(crate) fn pass<'n: 'a, 'a>(
    walk: &mut Walk<'a, '_, '_>,
    way: &mut Way<'n>,
    context: &Context<'n, '_>,
    answers: &Answers,
    delivery: Option<&mut Delivery>,
    observer: &mut impl Observer,
) -> Delivered {
    let Way { path, input, .. } = *way;
    let Context { arrival, config, found, .. } = *context;
    if let Some(at) = arrival.at {
        hooked::pass(walk, at.hook, way, observer);
        return Delivered::AsItIs;
    }
    match path {
        Path::Forward | Path::Input => {
            walk.brouting(input, Iface::Absent, observer);
            walk.hook(Hook::Prerouting, input, Iface::Absent, observer);
            if !walk.is_unseen_before_routing() {
                reroute::after(walk, way, context.before, context, observer);
            }
            let (host, sizes) = (&config.host, context.sizes(way));
            bridge::passed_on(walk, way, arrival, host, observer);
            came_in(walk, way, &sizes, delivery, host, observer)
        }
        Path::Output | Path::Loopback => {
            walk.answers(found, answers, observer);
            let before = walk.routed_addresses();
            let shown = way.output;
            if path == Path::Output && walk.may_pass() {
                let by_port = bridge::may_pass_rules_by(arrival, &config.host, walk.family());
                walk.comes_either_way(way.output, by_port, observer);
                goes_out(walk, way, observer);
                return Delivered::AsItIs;
            }
            reroute::before_output(walk, way, context, observer);
            let again = walk.hook_output(way.output, observer);
            reroute::after_output(walk, (way, shown), (before, again), context, observer);
            goes_out(walk, way, observer);
            Delivered::AsItIs
        }
    }
}

/// After PREROUTING: to the host, or on.
fn came_in<'a>(
    walk: &mut Walk<'a, '_, '_>,
    way: &Way<'a>,
    sizes: &Sizes,
    delivery: Option<&mut Delivery>,
    host: &Host,
    observer: &mut impl Observer,
) -> Delivered {
    let Way { path, input, output, .. } = *way;
    walk.follow(way);
    match way.fate {
        Decision::Sure => {}
        Decision::Open(why) => walk.fork(why, observer),
        Decision::Refused(why) => walk.refuse(why),
        Decision::Perhaps(refused, why) => walk.may_refuse(refused, why, observer),
    }
    if path == Path::Input && !walk.is_way_indeterminate() {
        let came = delivery.map(|delivery| delivery.take(walk, host, observer));
        match came {
            None | Some(Delivered::AsItIs) => {}
            Some(other) => return other,
        }
    }
    if path == Path::Input || walk.is_way_indeterminate() {
        walk.hook(Hook::Input, input, Iface::Absent, observer);
        walk.other_way();
    }
    if path == Path::Forward || walk.is_way_indeterminate() {
        if !sizes.bridged {
            walk.lower_ttl(observer);
            walk.measure(sizes, input, observer);
            walk.turns_back(input, output);
        }
        walk.below(Hook::Forward, input, output, observer);
        walk.hook(Hook::Forward, input, output, observer);
        walk.below(Hook::Postrouting, input, output, observer);
        walk.hook(Hook::Postrouting, input, output, observer);
        if walk.was_queued() {
            walk.goes_in_segments(sizes, (input, output), observer);
        }
    }
    walk.join();
    walk.confirm(observer);
    Delivered::AsItIs
}

/// After OUTPUT: away, and by `lo` back in.
fn goes_out<'a>(walk: &mut Walk<'a, '_, '_>, way: &Way<'a>, observer: &mut impl Observer) {
    let Way { path, input, output, .. } = *way;
    walk.follow(way);
    walk.hook(Hook::Postrouting, Iface::Absent, output, observer);
    if path == Path::Loopback || walk.is_way_indeterminate() {
        walk.loops_back();
    }
    walk.confirm(observer);
    if path == Path::Loopback || walk.is_way_indeterminate() {
        walk.is_out_of_sight();
        walk.hook(Hook::Prerouting, input, Iface::Absent, observer);
        walk.hook(Hook::Input, input, Iface::Absent, observer);
    } else if let (Path::Output, Iface::Named(name)) = (path, output) {
        walk.comes_back(name, observer);
    }
}

/// Parts of the state of a family that a packet meets and leaves, lent for a second walk.
pub(crate) struct StateParts<'h> {
    pub(crate) memories: &'h mut Memories,
    pub(crate) answers: &'h mut Answers,
    pub(crate) tracker: &'h mut Option<Tracker>,
    pub(crate) sets: &'h mut Option<Sets>,
    pub(crate) chance: Option<&'h Chance>,
}

/// Decides a packet where the states of its connection do not agree on a verdict: as what it is taken for.
#[inline(always)]
pub(crate) fn decided<'n>(
    context: &Context<'n, '_>,
    doubt: Doubt,
    state: StateParts<'_>,
    exit: &mut Option<Exit>,
    left: &mut Option<(Made<'n>, Leaving<'_, 'n>)>,
    observer: &mut impl Observer,
) -> Option<Sure> {
    match doubt {
        Doubt::Decided(sure) => Some(sure),
        Doubt::Open(taken) => again(context, taken?, state, exit, left, observer),
    }
}

/// Walks a packet once more, from before tracking and as what it is taken for, where the states of its connection do not
/// agree on a verdict: what is certain of it then.
#[inline(never)]
fn again<'n>(
    context: &Context<'n, '_>,
    (mut snapshot, view): (Snapshot, CtView),
    state: StateParts<'_>,
    exit: &mut Option<Exit>,
    left: &mut Option<(Made<'n>, Leaving<'_, 'n>)>,
    observer: &mut impl Observer,
) -> Option<Sure> {
    let StateParts { memories, answers, tracker, sets, chance } = state;
    let Context { plan, config, way, .. } = *context;
    let mut packet = snapshot.packet();
    let tracked = tracker.as_mut().filter(|_| plan.is_tracked);
    let ct = Connection { tracker: tracked, again: true, ..Connection::before_tracking() };
    let mut transit = context.transit(&mut packet, sets.as_mut(), chance, ct);
    let mut walk = Walk::again(&mut transit, view, &plan.tables, memories);
    walk.came_apart(context.apart);
    pass(&mut walk, &mut { *way }, context, answers, None, &mut Nobody);
    let (verdict, either) = walk.end();
    if let (Some(exit), Some((made, leaving))) = (exit, left) {
        let frames = &mut exit.frames;
        made.place = leaving.copied().leave(&verdict, config.unknown, walk.packet(), frames);
    }
    if verdict == FinalVerdict::Unknown {
        return None;
    }
    let is_first = tracker.as_mut().is_some_and(|tracker| tracker.take(&view));
    observer.taken(view.states);
    Some((verdict, either, if is_first { Early::First } else { Early::Later }))
}
