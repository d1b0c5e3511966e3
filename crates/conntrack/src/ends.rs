//! The two addresses that a packet's connection has: what is evaluated apart must not share them.

use std::net::IpAddr;

use crate::dissect;
use crate::icmp::{self, Message};
use crate::protocol;
use packet::Packet;

/// The addresses of the connection that a packet is part of, or that it is about if it is an ICMP error;
/// the smaller one first. `None` where tracking finds no connection for it.
#[must_use]
pub fn ends(packet: &Packet<'_>) -> Option<[IpAddr; 2]> {
    let layer = dissect::layer(packet).ok()?;
    if protocol::is_icmp(layer.protocol)
        && let Ok(Message::Error { about, .. }) = icmp::read(packet, &layer, false)
    {
        return Some(ordered(about.source(), about.destination()));
    }
    let tuple = dissect::tuple(packet, &layer).ok()?;
    Some(ordered(tuple.source(), tuple.destination()))
}

fn ordered(one: IpAddr, other: IpAddr) -> [IpAddr; 2] {
    if one <= other { [one, other] } else { [other, one] }
}
