//! Fields of the upper-layer header as nf_tables reads them: each on its own, and no match without it.
//!
//! A fragment that does not start its packet is read all the same: IPv4 at the place where the header
//! would be, IPv6 at the IPv6 header itself, because the search for the upper layer leaves its offset at 0.
//! Source: as [`crate::Backend`].

use packet::{L4, Read, ipv4};

use crate::ext::kit::ports::PortTest;
use crate::family::Family;
use crate::outcome::Outcome;
use crate::transit::Transit;

/// Where the two port fields start in a transport header.
const PORTS: [usize; 2] = [0, 2];

/// Bytes `at..at + N` of the transport header.
pub(crate) fn field<const N: usize>(transit: &Transit<'_, '_>, at: usize) -> Read<[u8; N]> {
    let start = match transit.upper_layer() {
        L4::Upper(upper) => Read::Known(upper.offset),
        L4::Fragment { .. } => after_header(transit),
        L4::Unknown => Read::Unknown,
        L4::Broken { .. } | L4::None => Read::Absent,
    };
    match start {
        Read::Known(start) => transit.packet.read(start + at),
        Read::Unknown => Read::Unknown,
        Read::Absent => Read::Absent,
    }
}

/// Where the payload of a later fragment is taken to start.
fn after_header(transit: &Transit<'_, '_>) -> Read<usize> {
    let network = transit.packet.network_offset();
    match transit.family {
        Family::Ipv6 => Read::Known(network),
        _ => transit
            .net::<1>(ipv4::VERSION_IHL.start)
            .map(|[first]| network + usize::from(first & 0x0f) * 4),
    }
}

/// What a field says: nothing without it.
pub(crate) fn test<const N: usize>(
    read: Read<[u8; N]>,
    accepts: impl FnOnce([u8; N]) -> bool,
) -> Outcome {
    match read {
        Read::Known(bytes) => Outcome::from_bool(accepts(bytes)),
        Read::Unknown => Outcome::MAYBE,
        Read::Absent => Outcome::NO,
    }
}

/// Tests of source and destination port. A range of all ports is no test, not even with `!`. Two single
/// ports, both with `!`, iptables-nft 1.8.9 compares in one, so that either being another is a match, and
/// newer ones do not: where that makes a difference, the answer is not known.
pub(crate) fn ports(transit: &Transit<'_, '_>, [source, destination]: [PortTest; 2]) -> Outcome {
    let each = port(transit, source, PORTS[0]).and_then(|| port(transit, destination, PORTS[1]));
    if !(source.is_single_inverted() && destination.is_single_inverted()) {
        return each;
    }
    let together = test(field(transit, PORTS[0]), |[a, b, c, d]: [u8; 4]| {
        source.accepts(u16::from_be_bytes([a, b]))
            || destination.accepts(u16::from_be_bytes([c, d]))
    });
    each.or(together)
}

fn port(transit: &Transit<'_, '_>, wanted: PortTest, at: usize) -> Outcome {
    if wanted.is_every_port() {
        return Outcome::YES;
    }
    test(field(transit, at), |port| wanted.accepts(u16::from_be_bytes(port)))
}
