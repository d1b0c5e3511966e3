//! Upper-layer checksums, where tracking is to verify them.
//!
//! Source: Linux `net/netfilter/utils.c` (`nf_checksum`); RFC 9260 appendix A (CRC32c of SCTP).

use crate::dissect::{Layer, layer_of, rest};
use packet::{
    Checksums, L4, Link, Packet, Read, checksum, icmpv4, icmpv6, ipv4, ipv6, parse, tcp, udp,
};

/// Whether the Internet checksum over the first `covered` bytes of the layer holds. Addresses, protocol
/// and whole length are summed with them, except in ICMP. Unknown where bytes were not captured. One that was left
/// to a network card holds the sum of the pseudo header alone: it is not wrong (`CHECKSUM_PARTIAL`). That of UDP-Lite is never
/// left to one (`udplite_csum`).
pub(crate) fn internet(packet: &Packet<'_>, layer: &Layer, covered: usize) -> Read<bool> {
    let sum = match rest(packet, layer.offset) {
        Read::Known(bytes) => checksum::sum(bytes.get(..covered).unwrap_or(bytes)),
        Read::Unknown => return Read::Unknown,
        Read::Absent => return Read::Absent,
    };
    if layer.protocol == icmpv4::PROTOCOL {
        // The kernel sums the IPv4 header, too, which gives 0xffff: a message of zeros alone is right.
        return Read::Known(matches!(sum, 0 | 0xffff));
    }
    let len = packet.headers().end.saturating_sub(layer.offset);
    let stored = match packet.read::<2>(layer.offset + place_of(layer.protocol)) {
        Read::Known(stored) => Some(u16::from_be_bytes(stored)),
        Read::Unknown | Read::Absent => None,
    };
    let is_pseudo =
        |len| matches!(pseudo(packet, layer, len), Read::Known(pseudo) if stored == Some(pseudo));
    let is_unfinished = layer.protocol != udp::PROTOCOL_LITE && [len, 0].into_iter().any(is_pseudo);
    pseudo(packet, layer, len).map(|pseudo| {
        checksum::add(sum, pseudo) == 0xffff
            || is_unfinished
            || layer.protocol == udp::PROTOCOL && holds_once_finished(packet, layer, pseudo)
    })
}

/// Whether the sum of a datagram that carries a frame (VXLAN, GENEVE) holds once a network card has finished the checksum
/// within: the sender's kernel reckons with that one (`lco_csum`).
#[cold]
fn holds_once_finished(packet: &Packet<'_>, layer: &Layer, pseudo: u16) -> bool {
    let Read::Known(bytes) = rest(packet, layer.offset) else { return false };
    let Some(at) = carried_at(bytes) else { return false };
    let headers = parse(Link::Ethernet, &bytes[at..], bytes.len() - at, Checksums::Ignore);
    let (L4::Upper(upper), Ok(inner)) = (headers.l4, layer_of(&headers)) else { return false };
    let within = |from: usize, len: usize| bytes.get(at + from..)?.get(..len);
    let addresses = match inner.is_v6 {
        true => within(inner.network + ipv6::SOURCE.start, 32),
        false => within(inner.network + ipv4::SOURCE.start, 8),
    };
    let has_sum = matches!(upper.protocol, tcp::PROTOCOL | udp::PROTOCOL | icmpv6::PROTOCOL);
    let stored = within(upper.offset + place_of(upper.protocol), 2).filter(|_| has_sum);
    let (Some(addresses), Some(stored)) = (addresses, stored) else { return false };
    let len = headers.end.saturating_sub(upper.offset) as u16;
    let words = [u16::from(upper.protocol), len];
    let unfinished = words.into_iter().fold(checksum::sum(addresses), checksum::add);
    let stored = checksum::sum(stored);
    let before = bytes.get(..at + upper.offset).map_or(0, checksum::sum);
    // What lies within then sums up to the complement of its pseudo header's sum.
    let sum = [before, pseudo].into_iter().fold(!stored, checksum::add);
    stored == unfinished && sum == 0xffff
}

/// Where a datagram has the Ethernet frame that it carries.
fn carried_at(datagram: &[u8]) -> Option<usize> {
    const HEADERS: usize = 8 + 8;
    match datagram.get(8..HEADERS)? {
        [0x08, 0, 0, 0, ..] => Some(HEADERS),
        // Version 0 with options, whose length stands in the low bits.
        [first @ 0..=0x3f, _, 0x65, 0x58, ..] => Some(HEADERS + 4 * usize::from(*first)),
        _ => None,
    }
    .filter(|at| *at <= datagram.len())
}

/// Where the checksum of a layer stands.
fn place_of(protocol: u8) -> usize {
    match protocol {
        tcp::PROTOCOL => 16,
        icmpv6::PROTOCOL => 2,
        _ => 6,
    }
}

/// Whether the Internet checksum over the whole layer holds.
pub(crate) fn whole(packet: &Packet<'_>, layer: &Layer) -> Read<bool> {
    internet(packet, layer, usize::MAX)
}

/// Sum of the pseudo header of a layer of `len` bytes.
pub fn pseudo(packet: &Packet<'_>, layer: &Layer, len: usize) -> Read<u16> {
    // UDP-Lite is summed as UDP by tracking.
    let protocol =
        if layer.protocol == udp::PROTOCOL_LITE { udp::PROTOCOL } else { layer.protocol };
    let addresses = if layer.is_v6 {
        packet.read::<32>(layer.network + ipv6::SOURCE.start).map(|bytes| checksum::sum(&bytes))
    } else {
        packet.read::<8>(layer.network + ipv4::SOURCE.start).map(|bytes| checksum::sum(&bytes))
    };
    let len = [(len >> 16) as u16, len as u16];
    addresses.map(|sum| {
        let words = [u16::from(protocol), len[0], len[1]];
        words.into_iter().fold(sum, checksum::add)
    })
}

/// Where the CRC32c of an SCTP packet stands, from its header on.
pub const SCTP_CHECKSUM: std::ops::Range<usize> = 8..12;

/// Whether the CRC32c of an SCTP packet holds.
pub(crate) fn sctp(packet: &Packet<'_>, offset: usize) -> Read<bool> {
    rest(packet, offset).map(|bytes| {
        let stored = bytes.get(SCTP_CHECKSUM).and_then(|field| field.first_chunk());
        let stored = stored.map(|stored| u32::from_le_bytes(*stored));
        // Left to the network card it is 0.
        stored.is_some_and(|stored| stored == 0 || stored == sctp_sum(bytes))
    })
}

/// The CRC32c that an SCTP packet should have.
pub fn sctp_sum(bytes: &[u8]) -> u32 {
    let byte = |(at, byte): (usize, &u8)| if SCTP_CHECKSUM.contains(&at) { 0 } else { *byte };
    crc32c(bytes.iter().enumerate().map(byte))
}

/// The Castagnoli CRC, reflected.
fn crc32c(bytes: impl Iterator<Item = u8>) -> u32 {
    let crc = bytes.fold(u32::MAX, |crc, byte| {
        let index = (crc ^ u32::from(byte)) & 0xff;
        CRC_TABLE.get(index as usize).copied().unwrap_or(0) ^ crc >> 8
    });
    !crc
}

const CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the CRC catalogue.
    #[test]
    fn crc32c_of_the_digits() {
        assert_eq!(crc32c(b"123456789".iter().copied()), 0xe306_9283);
    }
}
