//! The host and the connection that a sample packet's fields imply: address types as routes of the host, and the
//! connection as a tracker's entry.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use conntrack::{Config, CtState, CtView, Direction, Mode, States, Status, Tracker, Visit};
use host::Host;
use host::routes::Routes;
use packet::craft::{Addresses, Craft, Message};
use packet::{Checksums, Link, Packet};
use rules::Connection;
use rules::model::Family;
use rules::predicate::{ADDRESS_TYPES, Field, Values};

/// Flows that a table of one packet has room for.
const FLOWS: usize = 8;

/// A host to which addresses are what the values say; one of which nothing is known where they say nothing.
pub(crate) fn host_of(family: Family, values: &Values) -> Host {
    let addresses =
        [(Field::Source, Field::SourceType), (Field::Destination, Field::DestinationType)];
    if addresses.iter().all(|(_, kind)| values.number(*kind) == 0) {
        return Host::default();
    }
    let mut text = match family {
        Family::Ipv6 => "local ::1 dev lo table local\ndefault dev any0\n".to_owned(),
        _ => "local 127.0.0.0/8 dev lo table local\nbroadcast 127.255.255.255 dev lo table local\n"
            .to_owned(),
    };
    for (address, kind) in addresses {
        let to = address_of(family, values.number(address));
        let table = match type_name(values.number(kind)) {
            "LOCAL" => "local",
            "BROADCAST" if !to.is_unspecified() => "broadcast",
            "ANYCAST" => "anycast",
            "UNREACHABLE" if family == Family::Ipv6 => "unreachable",
            _ => continue,
        };
        let place = if table == "unreachable" { "dev lo" } else { "dev any0 table local" };
        text.push_str(&format!("{table} {to} {place}\n"));
    }
    Host { routes: Routes::parse(&text).ok(), ..Host::default() }
}

/// The name of a type of address.
pub(crate) fn type_name(number: u128) -> &'static str {
    ADDRESS_TYPES.get(number as usize).copied().unwrap_or_default()
}

pub(crate) fn address_of(family: Family, number: u128) -> IpAddr {
    match family {
        Family::Ipv6 => Ipv6Addr::from(number).into(),
        _ => Ipv4Addr::from(number as u32).into(),
    }
}

/// A table for the connection of one packet, if anything is said of it.
pub(crate) fn tracker_of(values: &Values) -> Option<Tracker> {
    let is_of_one = matches!(values.state, CtState::New | CtState::Established | CtState::Related);
    let config = Config { mode: Mode::Kernel, max: FLOWS, expect_max: FLOWS, ..Config::default() };
    (values.has_flow && is_of_one).then(|| Tracker::new(config))
}

/// Tracks the connection of a packet with these values, which a datagram between its ends begins.
pub(crate) fn connection<'t>(
    tracker: Option<&'t mut Tracker>,
    addresses: Addresses,
    values: &Values,
) -> Connection<'t> {
    let states = States::of(values.state);
    let without = CtView::without_flow(states);
    let Some(tracker) = tracker else {
        return Connection { view: without, ..Connection::default() };
    };
    let visit = Visit { now: 1, frame: 1, ..Visit::default() };
    let mut frame = Craft::new(addresses, Message::udp(1, 2)).frame();
    let len = frame.len();
    let packet = Packet::parse(&mut frame, len, Link::Ethernet, Checksums::Ignore);
    let mut view = tracker.track(&packet, &visit);
    let Some(handle) = view.flow else {
        return Connection { view: without, ..Connection::default() };
    };
    if let Some(flow) = tracker.flow_mut(handle) {
        flow.mark = values.number(Field::ConnMark) as u32;
    }
    let reply = tracker.flow(handle).map(|flow| *flow.tuple(Direction::Reply));
    let mut status = Status::default();
    for (bit, one) in [(1, Status::SRC_NAT), (2, Status::DST_NAT)] {
        if values.number(Field::Translated) & bit != 0 {
            status.set(one);
        }
    }
    if let Some(reply) = reply {
        tracker.translate(handle, reply, status);
    }
    view.states = states;
    Connection { view, tracker: Some(tracker), ..Connection::default() }
}
