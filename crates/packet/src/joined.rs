//! [`Joined`]: consecutive TCP segments or UDP datagrams of one flow, put together to one frame that stands for all
//! of them, as the kernel does it when it receives (GRO).
//!
//! Contract: pure, and nothing is allocated: the first packet's headers are remembered, and the frame's owner appends
//! the payloads. Packets are joined if [`Superframe`](crate::Superframe) cuts what comes out into the same packets
//! again, byte for byte, but for one thing: the identifications of IPv4 packets that may not be fragmented, if they
//! were all the same, count up afterwards. Wrong checksums are never made right: such a packet stays alone.
//!
//! | | joined |
//! |---|---|
//! | IPv4 | no options, no fragments; TOS, TTL and DF the same; identification counts up, or is fixed where DF is set |
//! | IPv6 | no extension headers; traffic class, flow label and hop limit the same |
//! | TCP | ACK alone, and PSH, which ends it; acknowledgement, window, options the same; the next sequence number |
//! | UDP | with a checksum; 64 at most |
//! | both | payloads as long as the first; a shorter one ends it; 65,535 bytes in all at most |
//!
//! Source: Linux `net/ipv4/af_inet.c` (`inet_gro_receive`), `include/net/gro.h` (`inet_gro_flush`),
//! `net/ipv4/tcp_offload.c` (`tcp_gro_receive`), `net/ipv4/udp_offload.c` (`udp_gro_receive_segment`),
//! `net/ipv6/ip6_offload.c`.

use std::ops::Range;

use crate::field::{array, be16, be32, byte};
use crate::tcp::Flags;
use crate::{checksum, ipv4, ipv6, tcp, udp};

/// An IPv6 header and the longest of TCP.
const HEADERS_MOST: usize = ipv6::HEADER_LEN + 60;
/// Bytes of a packet that is joined, at most.
const BYTES_MOST: usize = 65_535;
/// Datagrams of a joined packet, at most.
const DATAGRAMS_MOST: usize = 64;

/// Packets that were joined, without their bytes.
#[derive(Debug, Clone)]
pub struct Joined {
    /// The headers of the first packet, and zeros.
    headers: [u8; HEADERS_MOST],
    layout: Layout,
    /// Bytes of payload of each packet but the last.
    segment: usize,
    len: usize,
    count: usize,
    /// All identifications are the same.
    has_fixed_id: bool,
    /// The last had PSH.
    is_pushed: bool,
}

/// What is left to do to a frame that stands for several: as a device's offloads have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offload {
    /// Bytes of payload of each packet but the last.
    pub size: u16,
    /// What they are.
    pub kind: JoinedKind,
    /// Byte at which the checksum begins to cover: the transport header.
    pub start: u16,
    /// Bytes from there to its field, which holds the sum of the pseudo header.
    pub offset: u16,
}

/// What was joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinedKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP over either.
    Udp,
}

/// Where a packet's headers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    is_v4: bool,
    is_tcp: bool,
    /// Where the transport header begins.
    upper: usize,
    payload: usize,
}

impl Layout {
    /// Returns the layout of a packet that can be joined, as far as its headers show; `None` for any other.
    fn of(packet: &[u8]) -> Option<Self> {
        let (is_v4, upper, protocol) = match packet.first()? {
            0x45 => (true, ipv4::MIN_HEADER_LEN, ipv4::PROTOCOL),
            first if first >> 4 == 6 => (false, ipv6::HEADER_LEN, ipv6::NEXT_HEADER),
            _ => return None,
        };
        let header = packet.get(upper..)?;
        let is_tcp = match byte(packet, protocol) {
            tcp::PROTOCOL => true,
            udp::PROTOCOL => false,
            _ => return None,
        };
        let header_len = if is_tcp { tcp_header(header)? } else { udp_header(header)? };
        let layout = Self { is_v4, is_tcp, upper, payload: upper + header_len };
        (layout.payload < packet.len() && layout.is_whole(packet)).then_some(layout)
    }

    /// Whether the IP header tells the packet's length, and of no fragment.
    fn is_whole(self, packet: &[u8]) -> bool {
        if self.is_v4 {
            let fragment = be16(packet, ipv4::FRAGMENT) & !ipv4::DONT_FRAGMENT;
            usize::from(be16(packet, ipv4::TOTAL_LEN)) == packet.len() && fragment == 0
        } else {
            usize::from(be16(packet, ipv6::PAYLOAD_LEN)) + ipv6::HEADER_LEN == packet.len()
        }
    }

    /// Whether all of its checksums are there, and right.
    fn is_right(self, packet: &[u8]) -> bool {
        let upper = &packet[self.upper..];
        let sum = checksum::add(checksum::sum(upper), self.pseudo_header(packet, upper.len()));
        let is_header_right =
            !self.is_v4 || checksum::sum(&packet[..ipv4::MIN_HEADER_LEN]) == u16::MAX;
        let is_there = self.is_tcp || be16(upper, udp::CHECKSUM) != 0;
        is_header_right && is_there && sum == u16::MAX
    }

    /// The sum of the pseudo header of `len` bytes, transport header included.
    fn pseudo_header(self, packet: &[u8], len: usize) -> u16 {
        let protocol = if self.is_tcp { tcp::PROTOCOL } else { udp::PROTOCOL };
        if self.is_v4 {
            let [source, destination] =
                [ipv4::SOURCE, ipv4::DESTINATION].map(|at| array(packet, at));
            checksum::pseudo_v4(source, destination, protocol, len as u16)
        } else {
            let [source, destination] =
                [ipv6::SOURCE, ipv6::DESTINATION].map(|at| array(packet, at));
            checksum::pseudo_v6(source, destination, protocol, len as u32)
        }
    }
}

/// Length of a TCP header with ACK, or ACK and PSH, and nothing else that would be said once.
fn tcp_header(header: &[u8]) -> Option<usize> {
    let flags = header.get(tcp::FLAGS)?[0];
    let words = byte(header, tcp::DATA_OFFSET);
    let (len, reserved) = (usize::from(words >> 4) * 4, words & 0xf);
    let is_plain = flags & !Flags::PSH.0 == Flags::ACK.0 && reserved == 0;
    (is_plain && len >= tcp::MIN_HEADER_LEN).then_some(len)
}

/// Length of a UDP header whose length is that of the rest of the packet.
fn udp_header(header: &[u8]) -> Option<usize> {
    let is_all = usize::from(be16(header, udp::LENGTH)) == header.len();
    is_all.then_some(udp::HEADER_LEN)
}

impl Joined {
    /// Begins with a whole IP packet, without a link header; `None` if it can join no other.
    #[must_use]
    pub fn new(first: &[u8]) -> Option<Self> {
        let layout = Layout::of(first).filter(|layout| layout.is_right(first))?;
        let mut headers = [0; HEADERS_MOST];
        headers.get_mut(..layout.payload)?.copy_from_slice(first.get(..layout.payload)?);
        let joined = Self {
            headers,
            layout,
            segment: first.len() - layout.payload,
            len: first.len(),
            count: 1,
            has_fixed_id: false,
            is_pushed: is_pushed(layout, first),
        };
        (first.len() <= BYTES_MOST).then_some(joined)
    }

    /// Takes the packet that follows: where its payload lies in `next`, to be appended. `None` if it does not follow,
    /// or stays alone.
    pub fn take(&mut self, next: &[u8]) -> Option<Range<usize>> {
        let payload = self.layout.payload..next.len();
        let has_room = !self.is_over()
            && payload.len() <= self.segment
            && self.len + payload.len() <= BYTES_MOST;
        if !has_room || Layout::of(next)? != self.layout {
            return None;
        }
        let has_fixed_id = self.goes_on_by(next)?;
        let is_next = self.is_same_network(next) && self.is_next_upper(next);
        if !is_next || !self.layout.is_right(next) {
            return None;
        }
        self.has_fixed_id = has_fixed_id;
        self.is_pushed = is_pushed(self.layout, next);
        self.len += payload.len();
        self.count += 1;
        Some(payload)
    }

    /// Bytes of all that is joined: of the first packet, and of the payloads after it.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "there is always a first packet")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Packets that are joined, at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Makes the first packet and the payloads appended to it one frame: lengths, PSH, the IPv4 header's checksum and
    /// the sum of the pseudo header. `None`, and nothing changes, if it is one packet alone, or of another length.
    #[must_use]
    pub fn finish(self, superframe: &mut [u8]) -> Option<Offload> {
        if self.count == 1 || superframe.len() != self.len {
            return None;
        }
        let Layout { is_v4, is_tcp, upper, .. } = self.layout;
        self.write_network(superframe);
        let upper_len = self.len - upper;
        let pseudo = self.layout.pseudo_header(superframe, upper_len);
        let (header, field) = (&mut superframe[upper..], self.checksum_field());
        header[field.clone()].copy_from_slice(&pseudo.to_be_bytes());
        if !is_tcp {
            header[udp::LENGTH].copy_from_slice(&(upper_len as u16).to_be_bytes());
        } else if self.is_pushed {
            header[tcp::FLAGS.start] |= Flags::PSH.0;
        }
        let kind = match (is_tcp, is_v4) {
            (false, _) => JoinedKind::Udp,
            (true, true) => JoinedKind::TcpV4,
            (true, false) => JoinedKind::TcpV6,
        };
        let (start, offset) = (upper as u16, field.start as u16);
        Some(Offload { size: self.segment as u16, kind, start, offset })
    }

    fn checksum_field(&self) -> Range<usize> {
        if self.layout.is_tcp { tcp::CHECKSUM } else { udp::CHECKSUM }
    }

    /// The IP header of all.
    fn write_network(&self, superframe: &mut [u8]) {
        if !self.layout.is_v4 {
            let len = (self.len - ipv6::HEADER_LEN) as u16;
            superframe[ipv6::PAYLOAD_LEN].copy_from_slice(&len.to_be_bytes());
            return;
        }
        superframe[ipv4::TOTAL_LEN].copy_from_slice(&(self.len as u16).to_be_bytes());
        superframe[ipv4::CHECKSUM].fill(0);
        let checksum = !checksum::sum(&superframe[..ipv4::MIN_HEADER_LEN]);
        superframe[ipv4::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Whether nothing can follow: the last was shorter, or pushed, or there are as many as can be.
    fn is_over(&self) -> bool {
        let carried = self.len - self.layout.payload;
        self.is_pushed
            || carried < self.count * self.segment
            || (!self.layout.is_tcp && self.count >= DATAGRAMS_MOST)
    }

    /// Whether identifications are fixed with this packet; `None` if it has none that follows.
    fn goes_on_by(&self, next: &[u8]) -> Option<bool> {
        if !self.layout.is_v4 {
            return Some(false);
        }
        let passed = be16(next, ipv4::ID).wrapping_sub(be16(&self.headers, ipv4::ID));
        let is_whole = be16(next, ipv4::FRAGMENT) & ipv4::DONT_FRAGMENT != 0;
        let is_fixed = is_whole && (self.has_fixed_id || self.count == 1) && passed == 0;
        let counts = !self.has_fixed_id && passed == self.count as u16;
        (is_fixed || counts).then_some(is_fixed)
    }

    /// Whether all of the IP header is the same but lengths, identification and checksum.
    fn is_same_network(&self, next: &[u8]) -> bool {
        let same = |range: Range<usize>| next.get(range.clone()) == Some(&self.headers[range]);
        if self.layout.is_v4 {
            same(0..ipv4::TOTAL_LEN.start)
                && same(ipv4::FRAGMENT.start..ipv4::CHECKSUM.start)
                && same(ipv4::SOURCE.start..ipv4::DESTINATION.end)
        } else {
            same(ipv6::VERSION_CLASS_LABEL) && same(ipv6::NEXT_HEADER.start..ipv6::HEADER_LEN)
        }
    }

    /// Whether the transport header is that of the packet that follows.
    fn is_next_upper(&self, next: &[u8]) -> bool {
        let Layout { is_tcp, upper, payload, .. } = self.layout;
        let (Some(header), first) = (next.get(upper..payload), &self.headers[upper..payload])
        else {
            return false;
        };
        let same = |range: Range<usize>| header.get(range.clone()) == first.get(range);
        let has_ports = same(0..tcp::DESTINATION_PORT.end);
        if !is_tcp {
            return has_ports;
        }
        let carried = (self.len - payload) as u32;
        has_ports
            && be32(header, tcp::SEQUENCE) == be32(first, tcp::SEQUENCE).wrapping_add(carried)
            && same(tcp::ACKNOWLEDGEMENT.start..tcp::DATA_OFFSET.end)
            && same(tcp::WINDOW)
            && same(tcp::URGENT.start..payload - upper)
    }
}

/// Whether a segment is to be handed on at once.
fn is_pushed(layout: Layout, packet: &[u8]) -> bool {
    layout.is_tcp && byte(&packet[layout.upper..], tcp::FLAGS) & Flags::PSH.0 != 0
}
