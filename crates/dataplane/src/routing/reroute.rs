//! Routes a packet again once rules have changed its inputs to routing: routing comes after PREROUTING, and before
//! OUTPUT, and once more after OUTPUT where that changed the mark, the type of service or the addresses.
//!
//! Contract: `--path` stays, and routes then decide only the output interface of what the host sends; without `--local`
//! the path stays as assumed, unless the new destination is an address that `--addr` gives, or a rule redirected the
//! packet to this host.
//!
//! Source: Linux 6.18 `nf_nat_proto.c` (`nf_nat_ipv4_pre_routing`, `nf_nat_ipv4_local_fn`).

use std::net::IpAddr;

use packet::Mark;
use rules::Iface;
use rules::nat::Redirected;

use crate::arrival::Arrival;
use crate::config::Config;
use crate::context::Context;
use crate::observer::Observer;
use crate::routing::bridge;
use crate::routing::course::Before;
use crate::routing::course::{Course, arrived, is_told, routed_out, tos_of};
use crate::routing::interfaces;
use crate::routing::path::Path;
use crate::routing::way::{Decision, Way, addresses};
use crate::walk::Walk;

/// Sets the further route of a received packet, as PREROUTING has left it.
pub(crate) fn after<'n: 'a, 'a>(
    walk: &mut Walk<'a, '_, '_>,
    way: &mut Way<'n>,
    before: &Before,
    context: &Context<'n, '_>,
    observer: &mut impl Observer,
) {
    let Context { plan, arrival, config, .. } = *context;
    let now = addresses(walk.packet());
    let redirected = walk.redirected();
    let is_moved = now != before.addresses || redirected != Redirected::No;
    // A packet that a bridge passes on is not routed unless its destination has changed.
    let is_bridged = bridge::passes_on(arrival, &config.host);
    if !is_moved && (is_bridged || !is_marked(walk, before, arrival, config)) {
        return;
    }
    open_way(walk, now, redirected, context, observer);
    let course = match (arrival.given_path(config), redirected, now) {
        (Some(path), ..) => Course::sure(path),
        (_, Redirected::Certainly, _) => Course::sure(Path::Input),
        (_, _, None) => Course::sure(way.path),
        (_, _, Some(now)) => {
            let translated = before.addresses.is_none_or(|before| before.1 != now.1);
            let course = arrived(walk.packet(), now, arrival, walk.mark(), config, plan.of_rules);
            // A packet that is translated to an address which is not known to be the host's is forwarded.
            match course.fate {
                Decision::Open(_) if translated => Course { fate: Decision::Sure, ..course },
                _ => course,
            }
        }
    };
    let next = match walk.is_way_indeterminate() {
        true => either_way(walk, course.path, way.input, arrival, config),
        false => course.by(walk.packet(), arrival, config),
    };
    let next = match now.filter(|now| before.addresses.is_none_or(|before| before.1 != now.1)) {
        Some(now) if arrival.given_path(config).is_none() => {
            bridge::turned_back(next, now, arrival, &config.host, walk.family())
        }
        _ => next,
    };
    goes_on(way, next, observer);
}

/// Sets the output interface of an own packet's first route, which all of OUTPUT sees. A recorded frame shows the
/// interface of its final route, which is the same unless it was routed again.
pub(crate) fn before_output<'n: 'a, 'a>(
    walk: &mut Walk<'a, '_, '_>,
    way: &mut Way<'n>,
    context: &Context<'n, '_>,
    observer: &mut impl Observer,
) {
    let Context { plan, arrival, config, before, .. } = *context;
    let now = walk.routed_addresses();
    let destination = |addresses: Option<(IpAddr, IpAddr)>| addresses.map(|(_, to)| to);
    let is_undone = destination(now) != destination(before.addresses);
    let is_shown = interfaces::shows_output(walk.packet(), arrival, config);
    let may_differ = is_undone || is_shown && plan.tables.may_remark();
    if !may_differ || interfaces::gives_output(arrival, config) || !walk.family().is_ip() {
        return;
    }
    let routed = now
        .filter(|_| config.host.routes.is_some())
        .and_then(|now| routed_out(walk.packet(), now, arrival.came_with(), config).output);
    let routed = routed.map_or(Iface::Unknown, Iface::Named);
    let output = match is_undone || routed == way.output {
        true => routed,
        false => match walk.will_be_remarked() {
            Some(true) => routed,
            Some(false) => way.output,
            None => Iface::Unknown,
        },
    };
    goes_on(way, Way { output, ..*way }, observer);
}

/// Sets the route from OUTPUT on of an own packet that had these addresses before; `again` is the mark with which it is
/// routed again, if it is, and `shown` its output interface if not.
pub(crate) fn after_output<'n: 'a, 'a>(
    walk: &mut Walk<'a, '_, '_>,
    (way, shown): (&mut Way<'n>, Iface<'n>),
    (before, again): (Option<(IpAddr, IpAddr)>, Option<Mark>),
    context: &Context<'n, '_>,
    observer: &mut impl Observer,
) {
    let Context { arrival, config, .. } = *context;
    let now = walk.routed_addresses();
    let redirected = walk.redirected();
    let has_routes = config.host.routes.is_some();
    let is_moved = now != before || redirected != Redirected::No;
    if !is_moved && (again.is_none() || !has_routes) {
        return goes_on(way, Way { output: shown, ..*way }, observer);
    }
    open_way(walk, now, redirected, context, observer);
    let is_shown = interfaces::shows_output(walk.packet(), arrival, config);
    let to_host = now.and_then(|(_, to)| config.host.is_local(to));
    let path = match (arrival.given_path(config), redirected, to_host) {
        (None, Redirected::Certainly, _) | (None, _, Some(true)) => Path::Loopback,
        (None, _, Some(false)) => Path::Output,
        // A packet on `lo` went to an address of the host's.
        (Some(Path::Loopback), Redirected::No, Some(false)) if is_moved => Path::Output,
        _ => way.path,
    };
    let is_routed = path == Path::Output && has_routes && !is_shown;
    let course = match now.filter(|_| is_routed) {
        Some(now) => routed_out(walk.packet(), now, again.unwrap_or(walk.mark()), config),
        None => Course::sure(path),
    };
    let mut next = match walk.is_way_indeterminate() {
        true => either_way(walk, course.path, way.input, arrival, config),
        false => course.by(walk.packet(), arrival, config),
    };
    // The second route decides, even where the first output interface is given.
    if is_routed {
        next.output = course.output.map_or(Iface::Unknown, Iface::Named);
    }
    if let Decision::Refused(why) = next.fate {
        walk.refuse(why);
    }
    goes_on(way, next, observer);
}

/// Leaves the route undecided of a packet whose destination is no longer known, where that decides.
fn open_way(
    walk: &mut Walk<'_, '_, '_>,
    now: Option<(IpAddr, IpAddr)>,
    redirected: Redirected,
    context: &Context<'_, '_>,
    observer: &mut impl Observer,
) {
    let Context { arrival, config, .. } = *context;
    if redirected != Redirected::Certainly && now.is_none() && arrival.given_path(config).is_none()
    {
        let is_open = redirected == Redirected::Maybe || is_told(&config.host);
        if is_open {
            walk.leave_way_open(observer);
        }
    }
}

/// Changes the route from here on, and reports a difference.
fn goes_on<'n>(way: &mut Way<'n>, next: Way<'n>, observer: &mut impl Observer) {
    if (next.path, next.input, next.output) != (way.path, way.input, way.output) {
        observer.rerouted(way.path, next.path, next.input, next.output);
    }
    *way = next;
}

/// Whether routes may see a mark or a type of service other than at arrival.
fn is_marked(
    walk: &Walk<'_, '_, '_>,
    before: &Before,
    arrival: &Arrival<'_>,
    config: &Config,
) -> bool {
    config.host.routes.is_some()
        && arrival.given_path(config).is_none()
        && (walk.mark() != arrival.came_with() || tos_of(walk.packet()) != before.tos)
}

/// The way of a packet that may be delivered locally or forwarded: with the interfaces of both.
fn either_way<'n>(
    walk: &Walk<'_, '_, '_>,
    path: Path,
    input: Iface<'n>,
    arrival: &Arrival<'n>,
    config: &'n Config,
) -> Way<'n> {
    match path {
        Path::Forward | Path::Input => {
            let (_, output) = interfaces::of(walk.packet(), arrival, Path::Forward, None, config);
            Way { path, input, output, ..Course::sure(path).by(walk.packet(), arrival, config) }
        }
        Path::Output | Path::Loopback => Way {
            path,
            input: Iface::Named("lo"),
            output: Iface::Unknown,
            ..Course::sure(path).by(walk.packet(), arrival, config)
        },
    }
}
