//! Builds packets of conversations with right lengths and checksums.

use packet::checksum;

/// An address of either family, IPv4 in the first 4 bytes.
pub type Addr = [u8; 16];

/// Source and destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// IPv6?
    pub ipv6: bool,
    /// Source address.
    pub source: Addr,
    /// Destination address.
    pub destination: Addr,
}

impl Ends {
    /// The other way round.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source, ..self }
    }

    fn pseudo(&self, protocol: u8, len: usize) -> u16 {
        if self.ipv6 {
            return checksum::pseudo_v6(self.source, self.destination, protocol, len as u32);
        }
        let four = |addr: Addr| [addr[0], addr[1], addr[2], addr[3]];
        checksum::pseudo_v4(four(self.source), four(self.destination), protocol, len as u16)
    }
}

/// A packet of `protocol` around `upper`, whose checksum field stands at `sum_at` and is filled in.
#[must_use]
pub fn packet(ends: Ends, protocol: u8, mut upper: Vec<u8>, sum_at: usize) -> Vec<u8> {
    // ICMP for IPv4 has no pseudo header.
    let pseudo = if protocol == 1 { 0 } else { ends.pseudo(protocol, upper.len()) };
    if let Some(room) = upper.get_mut(sum_at..sum_at + 2) {
        room.fill(0);
    }
    let sum = !checksum::add(pseudo, checksum::sum(&upper));
    if let Some(room) = upper.get_mut(sum_at..sum_at + 2) {
        room.copy_from_slice(&sum.to_be_bytes());
    }
    network(ends, protocol, &upper)
}

fn network(ends: Ends, protocol: u8, upper: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40 + upper.len());
    if ends.ipv6 {
        bytes.extend([0x60, 0, 0, 0]);
        bytes.extend((upper.len() as u16).to_be_bytes());
        bytes.extend([protocol, 64]);
        bytes.extend(ends.source);
        bytes.extend(ends.destination);
    } else {
        bytes.extend([0x45, 0]);
        bytes.extend((20 + upper.len() as u16).to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
        bytes.extend(&ends.source[..4]);
        bytes.extend(&ends.destination[..4]);
        let sum = !checksum::sum(&bytes);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    bytes.extend(upper);
    bytes
}

/// A TCP segment.
#[derive(Debug, Clone, Default)]
pub struct Segment {
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// Window as it stands in the header.
    pub window: u16,
    /// Options, a multiple of 4 bytes.
    pub options: Vec<u8>,
    /// Data.
    pub payload: Vec<u8>,
}

impl Segment {
    /// The segment in an IPv4 or IPv6 packet.
    #[must_use]
    pub fn packet(&self, ends: Ends) -> Vec<u8> {
        let mut tcp = Vec::with_capacity(60 + self.payload.len());
        tcp.extend(self.ports.0.to_be_bytes());
        tcp.extend(self.ports.1.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([(5 + self.options.len() as u8 / 4) << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&self.options);
        tcp.extend(&self.payload);
        packet(ends, 6, tcp, 16)
    }
}

/// The sequence number after the data of a whole packet without extension headers, if it is a segment.
#[must_use]
pub fn end_of_segment(packet: &[u8]) -> Option<u32> {
    let ipv6 = packet.first()? >> 4 == 6;
    let (at, protocol) = if ipv6 { (40, packet.get(6)?) } else { (20, packet.get(9)?) };
    let segment = packet.get(at..).filter(|_| *protocol == 6)?;
    let sequence = u32::from_be_bytes(*segment.get(4..)?.first_chunk()?);
    let header_len = usize::from(segment.get(12)? >> 4) * 4;
    Some(sequence.wrapping_add(segment.len().checked_sub(header_len)? as u32))
}

/// Whether the checksum of a whole packet without extension headers is the sum of its pseudo header, as one is that was
/// left to a network card: of its length, or of none, as for a packet to be cut into segments.
#[must_use]
pub fn looks_unfinished(packet: &[u8]) -> bool {
    let at = |at: usize| packet.get(at).copied().unwrap_or(0);
    let (is_v6, addresses) = (at(0) >> 4 == 6, if at(0) >> 4 == 6 { 8..40 } else { 12..20 });
    let (upper, protocol) = if is_v6 { (40, at(6)) } else { (20, at(9)) };
    let field = upper
        + match protocol {
            6 => 16,
            58 => 2,
            _ => 6,
        };
    let (Some(addresses), Some(stored)) = (packet.get(addresses), packet.get(field..field + 2))
    else {
        return false;
    };
    let pseudo = |len: usize| {
        let words = [u16::from(protocol), (len >> 16) as u16, len as u16];
        words.into_iter().fold(checksum::sum(addresses), checksum::add)
    };
    let stored = u16::from_be_bytes([stored[0], stored[1]]);
    protocol != 1 && [packet.len().saturating_sub(upper), 0].map(pseudo).contains(&stored)
}

/// A UDP datagram.
#[must_use]
pub fn udp(ends: Ends, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut udp = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    udp.extend((8 + payload.len() as u16).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(payload);
    packet(ends, 17, udp, 6)
}

/// An ICMP or ICMPv6 message: type, code, the second word, and what follows.
#[must_use]
pub fn icmp(ends: Ends, kind: u8, code: u8, word: [u8; 4], body: &[u8]) -> Vec<u8> {
    let mut icmp = vec![kind, code, 0, 0];
    icmp.extend(word);
    icmp.extend(body);
    packet(ends, if ends.ipv6 { 58 } else { 1 }, icmp, 2)
}

/// Writes the number that a packet is told by: the IPv4 identification, or the IPv6 flow label.
pub fn number(packet: &mut [u8], number: u16) {
    let [high, low] = number.to_be_bytes();
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            packet[4..6].copy_from_slice(&[high, low]);
            crate::generate::draft::set_checksum(packet);
        }
        _ => packet[2..4].copy_from_slice(&[high, low]),
    }
}

/// What leads an SCTP packet to its place in an association: ports and verification tag.
#[derive(Debug, Clone, Copy)]
pub struct SctpHeader {
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Verification tag.
    pub tag: u32,
}

/// One SCTP chunk: type, flags, and what follows its length.
pub type Chunk = (u8, u8, Vec<u8>);

/// An SCTP packet with its CRC32c.
#[must_use]
pub fn sctp(ends: Ends, header: SctpHeader, chunks: &[Chunk]) -> Vec<u8> {
    let mut sctp = [header.ports.0.to_be_bytes(), header.ports.1.to_be_bytes()].concat();
    sctp.extend(header.tag.to_be_bytes());
    sctp.extend([0; 4]);
    for (kind, flags, body) in chunks {
        sctp.extend([*kind, *flags]);
        sctp.extend((4 + body.len() as u16).to_be_bytes());
        sctp.extend(body);
        sctp.resize(sctp.len().next_multiple_of(4), 0);
    }
    let sum = crc32c(&sctp);
    sctp[8..12].copy_from_slice(&sum.to_le_bytes());
    network(ends, 132, &sctp)
}

/// The Castagnoli CRC, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        let crc = crc ^ u32::from(*byte);
        (0..8).fold(crc, |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}

/// One fragment of a packet: the bytes `from..to` after its network header. `more`: others follow.
#[must_use]
pub fn fragment(packet: &[u8], number: u16, from: usize, to: usize, more: bool) -> Vec<u8> {
    let offset = (from / 8) as u16;
    if packet[0] >> 4 == 4 {
        let mut bytes = packet[..20].to_vec();
        bytes[2..4].copy_from_slice(&(20 + (to - from) as u16).to_be_bytes());
        bytes[6..8].copy_from_slice(&(offset | u16::from(more) << 13).to_be_bytes());
        crate::generate::draft::set_checksum(&mut bytes);
        bytes.extend(&packet[20 + from..20 + to]);
        return bytes;
    }
    let mut bytes = packet[..40].to_vec();
    bytes[4..6].copy_from_slice(&(8 + (to - from) as u16).to_be_bytes());
    bytes[6] = 44;
    bytes.extend([packet[6], 0]);
    bytes.extend((offset << 3 | u16::from(more)).to_be_bytes());
    bytes.extend(u32::from(number).to_be_bytes());
    bytes.extend(&packet[40 + from..40 + to]);
    bytes
}

/// Puts together what the kernel took apart: fragments of one packet, in any order, or one packet. `None`
/// where they are neither.
#[must_use]
pub fn whole(pieces: &[Vec<u8>]) -> Option<Vec<u8>> {
    let [first, rest @ ..] = pieces else { return None };
    if rest.is_empty() && split(first).is_none() {
        return Some(first.clone());
    }
    let mut parts: Vec<_> = pieces.iter().map(|piece| split(piece)).collect::<Option<_>>()?;
    parts.sort_by_key(|(offset, ..)| *offset);
    let (_, _, mut bytes, _) = parts.first()?.clone();
    let header = bytes.len();
    for (offset, _, _, data) in &parts {
        if bytes.len() - header != *offset {
            return None;
        }
        bytes.extend(*data);
    }
    if parts.last().is_none_or(|(_, more, ..)| *more) {
        return None;
    }
    let len = bytes.len() as u16;
    if bytes[0] >> 4 == 4 {
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        bytes[6..8].fill(0);
        crate::generate::draft::set_checksum(&mut bytes);
    } else {
        bytes[4..6].copy_from_slice(&(len - 40).to_be_bytes());
    }
    Some(bytes)
}

/// A fragment's offset, whether more follow, the header of the whole packet, and its data; `None` for a packet
/// that is none.
fn split(piece: &[u8]) -> Option<(usize, bool, Vec<u8>, &[u8])> {
    if piece[0] >> 4 == 4 {
        let field = u16::from_be_bytes([piece[6], piece[7]]);
        let header = usize::from(piece[0] & 15) * 4;
        let (offset, more) = (usize::from(field & 0x1fff) * 8, field & 0x2000 != 0);
        return (offset != 0 || more)
            .then(|| (offset, more, piece[..header].to_vec(), &piece[header..]));
    }
    if piece[6] != 44 {
        return None;
    }
    let mut header = piece[..40].to_vec();
    header[6] = piece[40];
    let field = u16::from_be_bytes([piece[42], piece[43]]);
    Some((usize::from(field & !7), field & 1 == 1, header, &piece[48..]))
}

/// The ports of what a side sends, its own first; given are the client's and the server's.
pub(super) fn turned(ports: (u16, u16), side: usize) -> (u16, u16) {
    if side == 0 { ports } else { (ports.1, ports.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asked of the kernel by a spoiled segment that counted as NEW here, and as INVALID there.
    #[test]
    fn the_sum_of_a_pseudo_header_looks_unfinished() {
        let segment = crate::hex::unhex(
            "600000c80014064020010db800010000000000000000000120010db8000200000000000000000001\
             00500401f4e175cc002f89ce5010ffff5b7d0000",
        );
        let mut segment = segment.unwrap();
        assert!(looks_unfinished(&segment));
        segment[57] ^= 1;
        assert!(!looks_unfinished(&segment));
    }

    #[test]
    fn fragments_make_the_packet_again() {
        for ipv6 in [false, true] {
            let ends = Ends { ipv6, source: [1; 16], destination: [2; 16] };
            let mut packet = udp(ends, (1, 2), &[7; 100]);
            number(&mut packet, 9);
            if !ipv6 {
                packet[6] = 0;
                crate::generate::draft::set_checksum(&mut packet);
            }
            let len = 108;
            let mut pieces = vec![
                fragment(&packet, 9, 64, len, false),
                fragment(&packet, 9, 0, 24, true),
                fragment(&packet, 9, 24, 64, true),
            ];
            assert_eq!(whole(&pieces), Some(packet.clone()));
            assert_eq!(whole(&pieces[1..]), None);
            pieces.truncate(1);
            assert_eq!(whole(&pieces), None);
            assert_eq!(whole(&[packet.clone()]), Some(packet));
        }
    }
}
