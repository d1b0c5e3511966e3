//! Packets for the tests of extensions.

use crate::ext::Match;
use crate::family::{Family, Hook};
use crate::outcome::Outcome;
use crate::transit::Transit;
use host::Host;
use packet::{Checksums, Link, Mark, Packet};

/// An IPv4 packet with UDP from port 1000 to 53.
pub(crate) fn ipv4_udp(payload: &[u8]) -> Vec<u8> {
    let udp_len = 8 + payload.len() as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend((20 + udp_len).to_be_bytes());
    bytes.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(1000_u16.to_be_bytes());
    bytes.extend(53_u16.to_be_bytes());
    bytes.extend(udp_len.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

/// What a match says about a bare IPv4 packet at FORWARD, captured whole.
pub(crate) fn evaluate(matched: &dyn Match, bytes: &[u8]) -> Outcome {
    evaluate_cut(matched, bytes, bytes.len())
}

/// Evaluates a match on a packet of which `captured` bytes were captured.
pub(crate) fn evaluate_cut(matched: &dyn Match, bytes: &[u8], captured: usize) -> Outcome {
    with_transit(bytes, captured, |transit| matched.evaluate(transit))
}

/// Shows a bare IPv4 packet at FORWARD, with mark 7.
pub(crate) fn with_transit<T>(
    bytes: &[u8],
    captured: usize,
    see: impl FnOnce(&mut Transit<'_, '_>) -> T,
) -> T {
    let mut frame = bytes[..captured].to_vec();
    let mut packet = Packet::parse(&mut frame, bytes.len(), Link::Ipv4, Checksums::Ignore);
    see(&mut Transit {
        mark: Mark { value: 7, unknown: 0 },
        ..Transit::new(&mut packet, Family::Ipv4, Hook::Forward, &Host::default())
    })
}
