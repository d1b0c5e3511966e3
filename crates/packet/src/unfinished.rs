//! Checksums that a sender left to its device, in frames without metadata that says so: frames received from AF_XDP.
//!
//! Contract: pure. A TCP or UDP checksum field that holds the sum of the pseudo header alone is unfinished, and is
//! completed. A right checksum that happens to be that sum stays as it is: it is what completing gives. A wrong one
//! that does (one of 65,536) is made right. Left alone are fragments, whose senders finish them, packets with a
//! routing header, whose checksum covers another destination, and what is in tunnels.
//!
//! Source: Linux `include/net/ip6_checksum.h`, `net/ipv4/tcp_ipv4.c` (`__tcp_v4_send_check`), `net/ipv4/udp.c`.

use std::ops::Range;

use crate::bytes::Snap;
use crate::field::{array, be16};
use crate::headers::{Headers, L3, L4};
use crate::{checksum, ipv4, ipv6, ipv6_ext, tcp, udp};

/// Completes the checksum of a frame, of which `headers` were found, if it is unfinished; whether it was.
pub fn complete(frame: &mut [u8], headers: &Headers) -> bool {
    let Some((start, offset)) = find(frame, headers) else { return false };
    frame.get_mut(..headers.end).is_some_and(|packet| checksum::complete(packet, start, offset))
}

/// Leaves the checksum of a frame, of which `headers` were found, to a device: its field holds the sum of the pseudo
/// header. False, and nothing changes, where there is none.
pub fn begin(frame: &mut [u8], headers: &Headers) -> bool {
    let begun = sums(frame, headers).and_then(|Sums { start, field, pseudo, .. }| {
        let field = frame.get_mut(start + field.start..start + field.end)?;
        field.copy_from_slice(&pseudo.to_be_bytes());
        Some(())
    });
    begun.is_some()
}

/// Where the transport header begins whose checksum is unfinished, and the field in it.
fn find(frame: &[u8], headers: &Headers) -> Option<(usize, usize)> {
    let Sums { start, field, pseudo, found } = sums(frame, headers)?;
    let is_unfinished = found == pseudo && is_whole(frame.get(..headers.end)?, headers);
    is_unfinished.then_some((start, field.start))
}

/// What there is of a transport checksum.
struct Sums {
    /// Byte of the frame at which the transport header begins.
    start: usize,
    /// Where its field is, from there.
    field: Range<usize>,
    /// The sum of the pseudo header.
    pseudo: u16,
    /// What the field holds.
    found: u16,
}

fn sums(frame: &[u8], headers: &Headers) -> Option<Sums> {
    let L4::Upper(upper) = headers.l4 else { return None };
    let field = match upper.protocol {
        tcp::PROTOCOL => tcp::CHECKSUM,
        udp::PROTOCOL => udp::CHECKSUM,
        _ => return None,
    };
    let packet = frame.get(..headers.end)?;
    let (network, transport) = (packet.get(headers.network..)?, packet.get(upper.offset..)?);
    let found = be16(transport.get(..field.end)?, field.clone());
    let len = transport.len();
    let pseudo = match headers.l3 {
        L3::Ipv4 { .. } => checksum::pseudo_v4(
            array(network, ipv4::SOURCE),
            array(network, ipv4::DESTINATION),
            upper.protocol,
            u16::try_from(len).ok()?,
        ),
        L3::Ipv6 => checksum::pseudo_v6(
            array(network, ipv6::SOURCE),
            array(network, ipv6::DESTINATION),
            upper.protocol,
            len as u32,
        ),
        _ => return None,
    };
    Some(Sums { start: upper.offset, field, pseudo, found })
}

/// Whether the packet is no part of another, and goes where its header says.
fn is_whole(packet: &[u8], headers: &Headers) -> bool {
    let network = &packet[headers.network..];
    if let L3::Ipv4 { .. } = headers.l3 {
        return be16(network, ipv4::FRAGMENT) & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET_MASK) == 0;
    }
    let packet = Snap::new(packet, packet.len());
    let mut kinds = ipv6_ext::headers(&packet, headers.network).flatten().map(|header| header.kind);
    !kinds.any(|kind| matches!(kind, ipv6_ext::FRAGMENT | ipv6_ext::ROUTING))
}
