//! [`Superframe`]: one frame that stands for many TCP segments or UDP datagrams, cut into them as the kernel cuts it.
//!
//! Contract: pure. A frame is looked at once ([`Superframe::new`]); after that every piece of it can be written, in any
//! order, into room that the caller gives, with all lengths and checksums computed afresh, so it does not matter
//! whether the superframe's own were finished. Pieces together carry its payload once, in order. Nothing is allocated.
//!
//! What differs from piece to piece: lengths; the IPv4 identification, which counts up; of TCP the sequence number,
//! FIN and PSH on the last one only, CWR on the first one only. Everything else, options included, is the same in
//! all.
//!
//! Source: Linux `net/ipv4/af_inet.c` (`inet_gso_segment`), `net/ipv4/tcp_offload.c` (`tcp_gso_segment`),
//! `net/ipv4/udp_offload.c` (`__udp_gso_segment`), `net/ipv6/ip6_offload.c`.

use std::fmt;
use std::ops::Range;

use crate::bytes::Snap;
use crate::field::{array, be16, be32};
use crate::headers::{Headers, L3, L4, Upper};
use crate::tcp::Flags;
use crate::{checksum, ipv4, ipv6, ipv6_ext, tcp, udp};

/// A frame to be cut.
#[derive(Debug, Clone, Copy)]
pub struct Superframe<'a> {
    /// Up to the end of the packet: padding is left out.
    frame: &'a [u8],
    network: Network,
    /// Where the IP header begins.
    start: usize,
    upper: Upper,
    /// Where the payload begins.
    payload: usize,
    /// Bytes of payload that each piece carries, but the last.
    size: usize,
}

#[derive(Debug, Clone, Copy)]
enum Network {
    V4 { header_len: usize },
    V6,
}

/// Why a frame cannot be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Uncut {
    /// Neither TCP nor UDP over IPv4 or IPv6.
    Protocol,
    /// A fragment.
    Fragment,
    /// An IPv6 routing header: the destination that the checksum covers is not the header's.
    Routed,
    /// The frame ends before its packet or its headers do.
    Short,
    /// Pieces without payload.
    Size,
}

impl fmt::Display for Uncut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Protocol => "neither TCP nor UDP over IP",
            Self::Fragment => "a fragment",
            Self::Routed => "an IPv6 routing header",
            Self::Short => "ends before its packet or its headers do",
            Self::Size => "pieces without payload",
        })
    }
}

impl std::error::Error for Uncut {}

impl<'a> Superframe<'a> {
    /// Looks at a frame, of which `headers` were found, that stands for pieces of `size` bytes of payload each.
    ///
    /// # Errors
    /// When it cannot be cut.
    pub fn new(frame: &'a [u8], headers: &Headers, size: u16) -> Result<Self, Uncut> {
        let frame = frame.get(..headers.end).ok_or(Uncut::Short)?;
        let start = headers.network;
        let network = match headers.l3 {
            L3::Ipv4 { header_len } => Network::V4 { header_len },
            L3::Ipv6 => Network::V6,
            _ => return Err(Uncut::Protocol),
        };
        let upper = match headers.l4 {
            L4::Upper(upper) => upper,
            L4::Fragment { .. } => return Err(Uncut::Fragment),
            _ => return Err(Uncut::Protocol),
        };
        check_whole(frame, start, network)?;
        let payload = upper.offset + upper_len(frame, upper)?;
        match (payload <= frame.len(), size) {
            (false, _) => Err(Uncut::Short),
            (_, 0) => Err(Uncut::Size),
            _ => Ok(Self { frame, network, start, upper, payload, size: size.into() }),
        }
    }

    /// Number of pieces, at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        (self.frame.len() - self.payload).div_ceil(self.size).max(1)
    }

    /// Length of its longest piece in bytes, counted from the IP header: what a link's MTU has to hold.
    #[must_use]
    pub fn longest(&self) -> usize {
        (self.payload + self.size).min(self.frame.len()) - self.start
    }

    /// Bytes of the headers of each piece, counted from the IP header.
    #[must_use]
    pub fn piece_headers(&self) -> usize {
        self.payload - self.start
    }

    /// Length of piece `index` in bytes, link header included.
    #[must_use]
    pub fn piece_len(&self, index: usize) -> Option<usize> {
        Some(self.payload + self.payload_of(index)?.len())
    }

    /// Writes piece `index`, counting from 0, to the beginning of `room`, link header included; its length in bytes.
    /// `None` if there is no such piece, or the room is too short.
    pub fn write(&self, index: usize, room: &mut [u8]) -> Option<usize> {
        let payload = self.payload_of(index)?;
        let piece = room.get_mut(..self.payload + payload.len())?;
        let (headers, carried) = piece.split_at_mut(self.payload);
        headers.copy_from_slice(&self.frame[..self.payload]);
        carried.copy_from_slice(&self.frame[payload]);
        self.number(index, piece);
        self.write_network(index, piece);
        self.write_checksum(piece);
        Some(piece.len())
    }

    /// Which bytes of the frame piece `index` carries.
    fn payload_of(&self, index: usize) -> Option<Range<usize>> {
        let start = self.payload + index.checked_mul(self.size)?;
        (index < self.count()).then(|| start..(start + self.size).min(self.frame.len()))
    }

    /// What the transport header says of this piece alone.
    fn number(&self, index: usize, piece: &mut [u8]) {
        let header = &mut piece[self.upper.offset..];
        if self.upper.protocol == udp::PROTOCOL {
            let len = header.len() as u16;
            header[udp::LENGTH].copy_from_slice(&len.to_be_bytes());
            return;
        }
        let passed = (index * self.size) as u32;
        let sequence = be32(header, tcp::SEQUENCE).wrapping_add(passed);
        header[tcp::SEQUENCE].copy_from_slice(&sequence.to_be_bytes());
        let mut cleared = Flags::default();
        if index > 0 {
            cleared = cleared.union(Flags::CWR);
        }
        if index + 1 < self.count() {
            cleared = cleared.union(Flags::FIN).union(Flags::PSH);
        }
        header[tcp::FLAGS.start] &= !cleared.0;
    }

    /// The lengths of the IP header, its identification and its checksum.
    fn write_network(&self, index: usize, piece: &mut [u8]) {
        let header = &mut piece[self.start..];
        let len = header.len();
        match self.network {
            Network::V6 => {
                let len = (len - ipv6::HEADER_LEN) as u16;
                header[ipv6::PAYLOAD_LEN].copy_from_slice(&len.to_be_bytes());
            }
            Network::V4 { header_len } => {
                let id = be16(header, ipv4::ID).wrapping_add(index as u16);
                header[ipv4::ID].copy_from_slice(&id.to_be_bytes());
                header[ipv4::TOTAL_LEN].copy_from_slice(&(len as u16).to_be_bytes());
                header[ipv4::CHECKSUM].fill(0);
                let checksum = !checksum::sum(&header[..header_len]);
                header[ipv4::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
            }
        }
    }

    /// The checksum of the transport header. One of UDP is never 0, which would say that there is none.
    fn write_checksum(&self, piece: &mut [u8]) {
        let Upper { protocol, offset } = self.upper;
        let is_udp = protocol == udp::PROTOCOL;
        let field = if is_udp { udp::CHECKSUM } else { tcp::CHECKSUM };
        piece[offset..][field.clone()].fill(0);
        let pseudo = self.pseudo_header(&piece[self.start..], piece.len() - offset);
        let checksum = match !checksum::add(pseudo, checksum::sum(&piece[offset..])) {
            0 if is_udp => u16::MAX,
            checksum => checksum,
        };
        piece[offset..][field].copy_from_slice(&checksum.to_be_bytes());
    }

    /// The sum of the pseudo header of `len` bytes, transport header included.
    fn pseudo_header(&self, header: &[u8], len: usize) -> u16 {
        let protocol = self.upper.protocol;
        match self.network {
            Network::V4 { .. } => checksum::pseudo_v4(
                array(header, ipv4::SOURCE),
                array(header, ipv4::DESTINATION),
                protocol,
                len as u16,
            ),
            Network::V6 => checksum::pseudo_v6(
                array(header, ipv6::SOURCE),
                array(header, ipv6::DESTINATION),
                protocol,
                len as u32,
            ),
        }
    }
}

/// Whether the packet at `start` is no part of another, and goes where its header says.
fn check_whole(frame: &[u8], start: usize, network: Network) -> Result<(), Uncut> {
    let Network::V4 { .. } = network else {
        let packet = Snap::new(frame, frame.len());
        let refused = |kind| match kind {
            ipv6_ext::FRAGMENT => Some(Uncut::Fragment),
            ipv6_ext::ROUTING => Some(Uncut::Routed),
            _ => None,
        };
        let mut kinds = ipv6_ext::headers(&packet, start).flatten().map(|header| header.kind);
        return kinds.find_map(refused).map_or(Ok(()), Err);
    };
    let fragment = be16(&frame[start..], ipv4::FRAGMENT);
    match fragment & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET_MASK) {
        0 => Ok(()),
        _ => Err(Uncut::Fragment),
    }
}

/// Length of the transport header in bytes.
fn upper_len(frame: &[u8], upper: Upper) -> Result<usize, Uncut> {
    let header = frame.get(upper.offset..).ok_or(Uncut::Short)?;
    match upper.protocol {
        udp::PROTOCOL => Ok(udp::HEADER_LEN),
        tcp::PROTOCOL => {
            let len = tcp::Header::new_checked(header).map_or(0, |header| header.header_len());
            if len < tcp::MIN_HEADER_LEN { Err(Uncut::Short) } else { Ok(len) }
        }
        _ => Err(Uncut::Protocol),
    }
}
