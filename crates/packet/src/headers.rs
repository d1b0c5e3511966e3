//! [`Headers`]: where each header of a frame lies, and what was wrong with them. Found once by
//! [`crate::parse`], read by every room after it.

use crate::link::LinkHeader;
use std::fmt;

/// Offsets and faults of one frame. All offsets are bytes from the first byte of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// What the link header holds.
    pub link: LinkHeader,
    /// Offset of the network header (IPv4, IPv6, ARP, or whatever `link.ethertype` names).
    pub network: usize,
    /// Offset at which the packet ends on the wire, as the kernel trims it: `network` + IPv4 total
    /// length, + IPv6 payload length + 40, + 28 for ARP, else the frame's wire length. May lie beyond the captured bytes.
    pub end: usize,
    /// The network header.
    pub l3: L3,
    /// The upper-layer header.
    pub l4: L4,
    /// IPv4 total length was 0 with a larger frame (segmentation offload on the capturing host): `end`
    /// was taken from the wire length.
    pub offload: bool,
    /// The last IPv6 extension header claims more bytes than there are: `l4` is what a kernel finds there that looks for
    /// the upper layer beyond the end of the packet. Newer ones find none.
    pub overrun: bool,
}

/// The headers of a frame without a byte.
impl Default for Headers {
    #[inline]
    fn default() -> Self {
        Self {
            link: LinkHeader::default(),
            network: 0,
            end: 0,
            l3: L3::Other,
            l4: L4::None,
            offload: false,
            overrun: false,
        }
    }
}

/// The network layer as parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum L3 {
    /// A well-formed IPv4 header of `header_len` bytes (20..=60). Its first 20 bytes were captured.
    Ipv4 {
        /// Header length in bytes, options included.
        header_len: usize,
    },
    /// A well-formed IPv6 fixed header, all 40 bytes captured.
    Ipv6,
    /// An ARP header with its two 6-byte and two 4-byte addresses, all 28 bytes captured.
    Arp,
    /// Neither IP nor ARP: `link.ethertype` says what.
    Other,
    /// A network header that the kernel's stack refuses before any hook.
    Fault(L3Fault),
    /// The capture holds too few bytes of the network header to tell (they were on the wire).
    Unknown,
}

/// Why the kernel's stack refuses a network header before its hooks (`ip_rcv`, `ip6_rcv`, `arp_rcv`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum L3Fault {
    /// Shorter than the fixed header.
    Truncated,
    /// The version nibble is not the one the link header promised.
    Version,
    /// IPv4 header length below 20 bytes or beyond the packet.
    HeaderLength,
    /// IPv4 total length smaller than its header, or larger than the frame; IPv6 payload length larger
    /// than the frame.
    Length,
    /// IPv4 header checksum is wrong (only when checksums are verified).
    Checksum,
    /// An IPv6 source or destination that `ip6_rcv` refuses (::1 from outside, multicast source, ff01::),
    /// or an Ethernet source that a bridge refuses (multicast, all zero).
    Address,
    /// A malformed or refused IPv6 hop-by-hop options header.
    HopByHop,
}

/// The fault's name in reports: lower case, hyphens.
impl fmt::Display for L3Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "truncated",
            Self::Version => "version",
            Self::HeaderLength => "header-length",
            Self::Length => "length",
            Self::Checksum => "checksum",
            Self::Address => "address",
            Self::HopByHop => "hop-by-hop",
        })
    }
}

/// The upper layer as the kernel's `-p` sees it (`ip_hdrlen`, `ipv6_find_hdr(-1)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum L4 {
    /// The upper-layer header starts at `offset` and its protocol is known. It may be short: readers
    /// ask [`crate::Packet::read`].
    Upper(Upper),
    /// A fragment that does not start at 0: there is no upper-layer header in this packet.
    Fragment {
        /// Upper-layer protocol number as the fragment names it.
        protocol: u8,
        /// Fragment offset in the units of the header field: 8-byte units for IPv4 (13 bits), bytes for IPv6.
        offset: u16,
    },
    /// The IPv6 extension header chain is cut off, or its first fragment header is not followed by the
    /// upper layer: `ipv6_find_hdr` fails. `-p` hot-drops unless `fragment` is set.
    Broken {
        /// `ipv6_find_hdr` failed and yet gave a fragment offset other than 0: `-p` then only does not
        /// match. Linux (`net/ipv6/exthdrs_core.c`) leaves it at 0 in every failure, later fragments
        /// included, so [`crate::parse`] never sets this.
        fragment: bool,
    },
    /// The chain runs into bytes that were on the wire but not captured.
    Unknown,
    /// Not an IP packet.
    None,
}

/// An upper-layer header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upper {
    /// Protocol number (IANA).
    pub protocol: u8,
    /// Offset of the header from the first byte of the frame.
    pub offset: usize,
}
