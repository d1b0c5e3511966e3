//! What two frames of equal content may be to each other.

use std::net::IpAddr;

use packet::icmpv6;

use super::frame::{Ends, Sighting, Way};
use super::print::Print;
use super::remembered::Entry;

/// Whether a bridge may show, as `above`, what came by its port as `below`: PREROUTING changes no source.
pub(super) fn is_changed(below: &Print, above: &Print) -> bool {
    let port = |ends: &Ends| ends.ports.map(|[source, _]| source);
    let (came, made) = (&below.ends, &above.ends);
    // Fragments whose ends stay are put together as they came.
    let is_whole = below.datagram == above.datagram || came != made;
    came.source == made.source
        && port(came) == port(made)
        && came.protocol == made.protocol
        && (came == made || below.ttl == above.ttl)
        && is_whole
        && !is_of_link(below)
}

/// Whether an entry is a packet as it came in.
pub(super) fn is_arrival(entry: &Entry) -> bool {
    matches!(entry.way, Way::In | Way::OtherHost)
        && matches!(entry.sighting, Sighting::Unknown | Sighting::Arrival)
}

/// Whether what left goes on where what came wanted to go: an answer to it goes back.
pub(super) fn is_onward(came: &Print, left: &Print) -> bool {
    let is_turned = came.ends.source == left.ends.destination
        && came.ends.destination == left.ends.source
        && came.ends.source != came.ends.destination;
    // Back to the sender goes what keeps a port, and does not swap both.
    let is_answer = is_turned && (came.ends.turned() == left.ends || ends_alike(came, left) == 0);
    let stays = is_of_link(came) || is_of_link(left);
    let is_cut = came.stays_whole && came.datagram.is_none() && left.datagram.is_some();
    !is_answer
        && !is_cut
        && came.ends.protocol == left.ends.protocol
        && (!stays || came.ends == left.ends)
}

/// Whether no router passes a packet on, though a bridge may: neighbour discovery, link-local addresses and groups.
fn is_of_link(print: &Print) -> bool {
    let is_local = |addr| match addr {
        IpAddr::V4(v4) => matches!(v4.octets(), [224, 0, 0, _]),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.segments()[0] & 0xff0f == 0xff02,
    };
    let is_v6 = print.ends.source.is_ipv6();
    is_v6 && print.ttl == u8::MAX && print.ends.protocol == icmpv6::PROTOCOL
        || is_local(print.ends.source)
        || is_local(print.ends.destination)
}

/// How many of addresses and ports are alike.
pub(super) fn ends_alike(came: &Print, left: &Print) -> usize {
    let (came, left) = (&came.ends, &left.ends);
    let ports = came.ports.unwrap_or_default().into_iter().zip(left.ports.unwrap_or_default());
    usize::from(came.source == left.source)
        + usize::from(came.destination == left.destination)
        + ports.filter(|(one, other)| one == other).count()
}
