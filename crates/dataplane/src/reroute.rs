//! Where a packet goes once its destination is translated: routing comes after PREROUTING, and once more after OUTPUT
//! where that changed the destination.
//!
//! Contract: `--path` stays; without `--local` the path stays as assumed, unless the new destination is an
//! address that `--addr` gives, or a rule redirected the packet to this host.
//!
//! Source: Linux 6.18 `nf_nat_proto.c` (`nf_nat_ipv4_pre_routing`, `nf_nat_ipv4_local_fn`).

use packet::Mark;
use rules::Iface;
use rules::nat::Redirected;

use crate::arrival::Arrival;
use crate::bridge;
use crate::config::Config;
use crate::context::{Before, Context};
use crate::course::{Course, arrived, is_told, sent, tos_of};
use crate::interfaces;
use crate::observer::Observer;
use crate::path::Path;
use crate::walk::Walk;
use crate::way::{Fate, Way, addresses};

/// Sets the way from here on of a packet, as the tables before routing have left it.
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
    // What a bridge passes on is not routed unless its destination is another one now.
    let is_bridged = bridge::passes_on(arrival, &config.host);
    if !is_moved && (is_bridged || !is_marked(walk, before, arrival, config)) {
        return;
    }
    if redirected != Redirected::Certainly && now.is_none() && arrival.given_path(config).is_none()
    {
        let is_open = redirected == Redirected::Maybe || is_told(&config.host);
        if is_open {
            walk.leave_way_open(observer);
        }
    }
    let came_in = matches!(way.path, Path::Forward | Path::Input);
    let course = match (arrival.given_path(config), redirected, now) {
        (Some(path), ..) => Course::sure(path),
        (_, Redirected::Certainly, _) => Course::sure(turned(way.path, true)),
        (_, _, None) => Course::sure(way.path),
        (_, _, Some(now)) if came_in => {
            let translated = before.addresses.is_none_or(|before| before.1 != now.1);
            let course = arrived(walk.packet(), now, arrival, walk.mark(), config, plan.of_rules);
            // What is translated to an address that nobody calls the host's goes on.
            match course.fate {
                Fate::Open(_) if translated => Course { fate: Fate::Sure, ..course },
                _ => course,
            }
        }
        (_, _, Some(now)) => match config.host.is_local(now.1) {
            Some(true) => Course::sure(Path::Loopback),
            Some(false) => sent(walk.packet(), now, arrival, config),
            None => Course::sure(way.path),
        },
    };
    let next = match walk.is_way_indeterminate() {
        true => either_way(walk, course.path, way.input, arrival, config),
        false => course.by(walk.packet(), arrival, config),
    };
    if (next.path, next.input, next.output) != (way.path, way.input, way.output) {
        observer.rerouted(way.path, next.path, next.input, next.output);
    }
    *way = next;
}

/// Whether routes may see a mark or a type of service that the packet did not come with.
fn is_marked(
    walk: &Walk<'_, '_, '_>,
    before: &Before,
    arrival: &Arrival<'_>,
    config: &Config,
) -> bool {
    let came_with = Mark { value: arrival.mark, unknown: 0 };
    config.host.routes.is_some()
        && arrival.given_path(config).is_none()
        && (walk.mark() != came_with || tos_of(walk.packet()) != before.tos)
}

/// The interfaces of a packet that may go to the host or on: those of both ways.
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

/// The path that goes to the host, or on.
fn turned(path: Path, to_host: bool) -> Path {
    match (path, to_host) {
        (Path::Forward | Path::Input, true) => Path::Input,
        (Path::Forward | Path::Input, false) => Path::Forward,
        (Path::Output | Path::Loopback, true) => Path::Loopback,
        (Path::Output | Path::Loopback, false) => Path::Output,
    }
}
