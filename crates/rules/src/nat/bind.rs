//! How a flow's end is decided: by a target's range, or, where no target claimed it, by what it has.
//!
//! Source: Linux 6.18 `nf_nat_core.c` (`nf_nat_setup_info`, `nf_nat_alloc_null_binding`),
//! `nf_nat_masquerade.c`, `nf_nat_redirect.c`.

use super::choose::Choice;
use super::forget::forget;
use super::range::{Ports, Range, address};
use crate::family::{Family, Hook};
use crate::nat::binding::{Binding, Redirected};
use crate::transit::{Iface, Transit};
use conntrack::{Direction, Side};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Gives the packet's flow a mapping of `range` at this end, if it certainly comes to that. `None` stands for
/// a range that is not known.
pub fn bind(transit: &mut Transit<'_, '_>, side: Side, range: Option<&Range>) {
    let certain = transit.certain && transit.ct.binding == Binding::Open;
    if certain && range.and_then(|range| set_up(transit, side, range)).is_some() {
        transit.ct.binding = Binding::Bound;
    } else if !matches!(transit.ct.binding, Binding::Bound) {
        transit.ct.binding = Binding::Indeterminate;
        // What was seen of the packet afterwards is told once all chains have been walked.
        if transit.ct.drawn.is_none() {
            if !certain {
                crowd(transit, range.and_then(|range| range.ports));
            }
            forget(transit, side);
        }
    }
}

/// No target claimed this end: it keeps its address, and its port where no other flow has it.
pub fn bind_null(transit: &mut Transit<'_, '_>, side: Side) {
    let flow = transit.ct.view.flow.and_then(|at| transit.ct.tracker.as_ref()?.flow(at));
    let Some(current) = flow.and_then(|f| f.tuple(Direction::Reply).inverse()) else {
        return;
    };
    let range = Range::address(address(&current, side));
    let known = set_up(transit, side, &range).is_some();
    transit.ct.binding = if known { Binding::Bound } else { Binding::Indeterminate };
}

/// The choice, and what it leaves in the flow; `None` where it is not known.
fn set_up(transit: &mut Transit<'_, '_>, side: Side, range: &Range) -> Option<()> {
    let (tracker, flow) = transit.ct.tracker.as_mut().zip(transit.ct.view.flow)?;
    let now = transit.time.unwrap_or(0);
    let current = tracker.flow(flow)?.tuple(Direction::Reply).inverse()?;
    let mut choice = Choice { tracker, flow, side, range, now };
    let Some(tuple) = choice.tuple(&current) else {
        if choice.may_fail(&current) {
            tracker.crowd(flow);
        }
        return None;
    };
    let mut status = side.decided();
    if tuple != current {
        status.set(side.translated());
    }
    let reply = tuple.inverse()?;
    tracker.translate(flow, reply, status).then_some(())
}

/// `MASQUERADE`: the address of the interface that the packet goes out by. A flow without a source address
/// is left alone.
pub fn masquerade(transit: &mut Transit<'_, '_>, range: &Range) {
    let unspecified = match transit.family {
        Family::Ipv6 => false,
        _ => transit.net::<4>(12).known() == Some([0; 4]),
    };
    if unspecified {
        return;
    }
    let address = of_interface(transit, transit.output);
    if address.is_none() {
        crowd(transit, range.ports);
    }
    let range = address.map(|address| Range { addresses: Some([address; 2]), ..*range });
    bind(transit, Side::Source, range.as_ref());
}

/// `REDIRECT`: the address of the interface that the packet came in by, or loopback for the host's own.
pub fn redirect(transit: &mut Transit<'_, '_>, range: &Range) {
    let address = match (transit.hook, transit.family) {
        (Hook::Output, Family::Ipv6) => Some(Ipv6Addr::LOCALHOST.into()),
        (Hook::Output, _) => Some(Ipv4Addr::LOCALHOST.into()),
        _ => of_interface(transit, transit.input),
    };
    if address.is_none() {
        crowd(transit, range.ports);
    }
    let range = address.map(|address| Range { addresses: Some([address; 2]), ..*range });
    let certain = transit.certain && transit.ct.binding == Binding::Open;
    transit.ct.redirected = match (transit.ct.redirected, certain) {
        (Redirected::Certainly, _) | (_, true) => Redirected::Certainly,
        (_, false) => Redirected::Maybe,
    };
    bind(transit, Side::Destination, range.as_ref());
}

/// Which target claimed this end, if one did, is not known: the walk of the chains was given up.
pub fn bind_unknown(transit: &mut Transit<'_, '_>, side: Side) {
    transit.certain = false;
    if side == Side::Destination && transit.ct.redirected == Redirected::No {
        transit.ct.redirected = Redirected::Maybe;
    }
    if let Some((tracker, flow)) = transit.ct.tracker.as_mut().zip(transit.ct.view.flow) {
        tracker.crowd(flow);
    }
    bind(transit, side, None);
}

/// Where the mapping cannot be looked for, nobody knows whether a range of ports has a free one.
fn crowd(transit: &mut Transit<'_, '_>, ports: Option<Ports>) {
    if ports.is_some()
        && let Some((tracker, flow)) = transit.ct.tracker.as_mut().zip(transit.ct.view.flow)
    {
        tracker.crowd(flow);
    }
}

/// The address of an interface. To a link-local destination IPv6 answers with a link-local address, which
/// nobody gives.
fn of_interface(transit: &Transit<'_, '_>, interface: Iface<'_>) -> Option<IpAddr> {
    let Iface::Named(name) = interface else { return None };
    if transit.family == Family::Ipv6 {
        let destination = Ipv6Addr::from(transit.net::<16>(24).known()?);
        if destination.is_unicast_link_local() || destination.is_multicast() {
            return None;
        }
    }
    transit.host.address_of(name, transit.family == Family::Ipv6)
}
