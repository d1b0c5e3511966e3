//! The realistic job: filter by the 5-tuple, rewrite source and port, lower the time to live, correct both checksums.
//!
//! Contract: the same as `dev.tamis.bench.Nat`, line by line. Only whole TCP and UDP over IPv4 is touched; everything
//! else passes as it is. Checksums are updated, not computed anew (RFC 1624, equation 3).

/// What Java is told of a frame: the descriptor of a run, version 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Descriptor {
    /// Address of the first byte.
    pub address: u64,
    /// Nanoseconds since 1970.
    pub time: u64,
    /// Bytes in memory.
    pub length: u32,
    /// Bytes on the wire.
    pub wire_length: u32,
    /// Bytes before the frame that may be used.
    pub headroom: u16,
    /// Bytes after it.
    pub tailroom: u16,
    /// Where the IP header begins, or [`NONE`].
    pub network: u16,
    /// Where the header of TCP, UDP or ICMP begins, or [`NONE`].
    pub transport: u16,
    /// EtherType after tags.
    pub ether_type: u16,
    /// Protocol, 255 if there is none.
    pub protocol: u8,
    /// No flag is ever set here.
    pub flags: u8,
    /// The wire.
    pub wire: u16,
    /// Its end.
    pub from: u8,
    /// The verdict, 0 at first.
    pub verdict: u8,
    /// Which buffer it is.
    pub number: u64,
}

/// No such header.
pub const NONE: u16 = 0xffff;
/// Verdicts.
pub const PASS: u8 = 0;
/// The frame ends here.
pub const DROP: u8 = 1;

/// The source that everything gets: 203.0.113.1.
const SOURCE: u32 = 0xcb00_7101;
/// Nothing goes there: 10.66.0.0/16.
const REFUSED: u32 = 0x0a42;
const TELNET: u16 = 23;
const NETBIOS: std::ops::RangeInclusive<u16> = 135..=139;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// One frame; its verdict.
#[inline(always)]
pub fn handle(descriptor: &Descriptor, frame: &mut [u8]) -> u8 {
    let Descriptor { network, transport, ether_type, protocol, .. } = *descriptor;
    let (ip, l4) = (usize::from(network), usize::from(transport));
    let header = if protocol == TCP { 20 } else { 8 };
    let is_whole = network != NONE && ip + 20 <= frame.len() && l4 + header <= frame.len();
    if ether_type != 0x0800 || !matches!(protocol, TCP | UDP) || transport == NONE || !is_whole {
        return PASS;
    }
    let source = u32_at(frame, ip + 12);
    let destination = u32_at(frame, ip + 16);
    let (source_port, destination_port) = (u16_at(frame, l4), u16_at(frame, l4 + 2));
    let ttl = frame[ip + 8];
    if ttl <= 1 || is_refused(destination, protocol, destination_port) {
        return DROP;
    }
    let port = port_for(source, destination, source_port, destination_port);
    rewrite_network(frame, ip, source);
    rewrite_transport(frame, l4, protocol, source, source_port, port);
    PASS
}

#[inline(always)]
fn is_refused(destination: u32, protocol: u8, port: u16) -> bool {
    destination >> 16 == REFUSED || port == TELNET || protocol == UDP && NETBIOS.contains(&port)
}

/// The port that a flow leaves by: a hash of what it is, from 1024 on.
#[inline(always)]
fn port_for(source: u32, destination: u32, source_port: u16, destination_port: u16) -> u16 {
    let ports = u32::from(source_port) << 16 | u32::from(destination_port);
    let mixed = (source ^ destination.rotate_left(13) ^ ports).wrapping_mul(0x9e37_79b1);
    1024 + (mixed >> 17) as u16
}

/// Source and time to live, and the header's checksum.
#[inline(always)]
fn rewrite_network(frame: &mut [u8], ip: usize, source: u32) {
    let lifetime = u16_at(frame, ip + 8);
    let mut checksum = update(u16_at(frame, ip + 10), lifetime, lifetime - 0x100);
    checksum = update_u32(checksum, source, SOURCE);
    put_u16(frame, ip + 8, lifetime - 0x100);
    put_u16(frame, ip + 10, checksum);
    frame[ip + 12..ip + 16].copy_from_slice(&SOURCE.to_be_bytes());
}

/// The port, and a checksum that covers it and the addresses. A UDP checksum of 0 says that there is none.
#[inline(always)]
fn rewrite_transport(frame: &mut [u8], l4: usize, protocol: u8, source: u32, old: u16, port: u16) {
    let at = l4 + if protocol == TCP { 16 } else { 6 };
    let before = u16_at(frame, at);
    put_u16(frame, l4, port);
    if protocol == UDP && before == 0 {
        return;
    }
    let checksum = update(update_u32(before, source, SOURCE), old, port);
    put_u16(frame, at, if protocol == UDP && checksum == 0 { 0xffff } else { checksum });
}

/// `packet::checksum::update` without a branch: whether the sum carries is a matter of chance, and this is the floor.
#[inline(always)]
fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[inline(always)]
fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    let high = update(checksum, (old >> 16) as u16, (new >> 16) as u16);
    update(high, old as u16, new as u16)
}

#[inline(always)]
fn u16_at(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

#[inline(always)]
fn u32_at(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
}

#[inline(always)]
fn put_u16(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::update;

    #[test]
    fn a_checksum_is_updated_as_by_the_crate_that_parses() {
        let edges = [0, 1, 2, 0x7fff, 0x8000, 0xfffd, 0xfffe, 0xffff];
        for checksum in (0..=u16::MAX).step_by(251).chain(edges) {
            for old in (0..=u16::MAX).step_by(509).chain(edges) {
                for new in edges {
                    let expected = packet::checksum::update(checksum, old, new);
                    assert_eq!(update(checksum, old, new), expected, "{checksum} {old} {new}");
                }
            }
        }
    }
}
