//! Where a packet goes once its destination is translated: routing comes behind PREROUTING, and once more
//! behind OUTPUT where that changed the destination.
//!
//! Contract: `--path` stays; without `--local` the path stays as assumed, unless the new destination is an
//! address that `--addr` gives, or a rule redirected the packet to this host.
//!
//! Source: Linux 6.18 `nf_nat_proto.c` (`nf_nat_ipv4_pre_routing`, `nf_nat_ipv4_local_fn`).

use std::net::IpAddr;

use rules::Iface;
use rules::nat::Redirected;

use crate::arrival::Arrival;
use crate::config::Config;
use crate::handler::Observer;
use crate::interfaces;
use crate::path::{Path, addresses, is_local};
use crate::walk::Walk;

/// A path, and the interfaces on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way<'a> {
    pub(crate) path: Path,
    pub(crate) input: Iface<'a>,
    pub(crate) output: Iface<'a>,
}

/// The way from here on of a packet that had these addresses before its translation.
pub(crate) fn behind<'a>(
    walk: &mut Walk<'a, '_, '_>,
    way: Way<'a>,
    before: Option<(IpAddr, IpAddr)>,
    (arrival, config): (&Arrival<'a>, &'a Config),
    observer: &mut impl Observer,
) -> Way<'a> {
    let now = addresses(walk.packet());
    let redirected = walk.redirected();
    if now == before && redirected == Redirected::No {
        return way;
    }
    let destination = now.map(|(_, destination)| destination);
    let to_host = match (redirected, destination) {
        (Redirected::Certainly, _) => Some(true),
        (_, Some(destination)) => is_local(destination, &config.host),
        (_, None) => None,
    };
    let is_open = redirected == Redirected::Maybe || config.host.local.is_some();
    if to_host.is_none() && destination.is_none() && is_open && config.path.is_none() {
        walk.lose_way(observer);
    }
    let path = match (config.path, to_host) {
        (Some(path), _) => path,
        (None, Some(to_host)) => turned(way.path, to_host),
        (None, None) => way.path,
    };
    let next = match walk.lost_way() {
        true => either_way(walk, path, way.input, (arrival, config)),
        false => {
            let (input, output) = interfaces::of(walk.packet(), arrival, path, config);
            Way { path, input, output }
        }
    };
    if next != way {
        observer.rerouted(way.path, path, next.input, next.output);
    }
    next
}

/// The interfaces of a packet that may go to the host or on: those of both ways.
fn either_way<'a>(
    walk: &Walk<'a, '_, '_>,
    path: Path,
    input: Iface<'a>,
    (arrival, config): (&Arrival<'a>, &'a Config),
) -> Way<'a> {
    match path {
        Path::Forward | Path::Input => {
            let (_, output) = interfaces::of(walk.packet(), arrival, Path::Forward, config);
            Way { path, input, output }
        }
        Path::Output | Path::Loopback => {
            Way { path, input: Iface::Named("lo"), output: Iface::Unknown }
        }
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
