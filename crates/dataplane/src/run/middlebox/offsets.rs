//! [`Offsets`]: where the headers of a frame begin, as a middlebox is told.
//!
//! Contract: what is told is proven. A whole IP header with its options, or a whole IPv6 header, lies within the frame's
//! bytes; a transport header begins within them or where they end. What cannot be told is none.

use packet::{Checksums, Headers, L3, L4, Link, Packet, parse};
use pktio::FrameMeta;

use super::descriptor::Descriptor;
use crate::delivery::is_fragment;
use crate::link::link_of;

/// Where headers begin. The values are those of the fields of [`Descriptor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// The IP header, or [`Descriptor::NONE`].
    pub network: u16,
    /// The header of TCP, UDP, ICMP or whatever comes after IP, or [`Descriptor::NONE`].
    pub transport: u16,
    /// The EtherType after VLAN tags.
    pub ethertype: u16,
    /// The protocol after extension headers, or [`Descriptor::NO_PROTOCOL`].
    pub protocol: u8,
    /// [`Descriptor::FRAGMENT`] and the others.
    pub flags: u8,
}

impl Offsets {
    /// Of a frame, as it crosses a wire.
    pub(super) fn of(bytes: &mut [u8], meta: &FrameMeta) -> Self {
        let link = match link_of(meta.link_type) {
            Some(Link::Ethernet) => Link::Wire,
            Some(link) => link,
            None => return Self::of_unknown(bytes, meta),
        };
        let headers = parse(link, bytes, meta.wire_length as usize, Checksums::Ignore);
        let packet = Packet::with_headers(bytes, headers);
        let is_fragment = is_fragment(&packet);
        let mut offsets = Self { ethertype: headers.link.ethertype, ..Self::none() };
        offsets.flags = flags(bytes, meta, link);
        let Some(network) = network(&headers, bytes.len()) else { return offsets };
        offsets.network = network;
        match headers.l4 {
            L4::Upper(upper) => {
                offsets.protocol = upper.protocol;
                offsets.transport = within(upper.offset, bytes.len());
                offsets.flags |=
                    if is_fragment { Descriptor::FRAGMENT | Descriptor::FIRST_FRAGMENT } else { 0 };
            }
            L4::Fragment { protocol, .. } => {
                offsets.protocol = protocol;
                offsets.flags |= Descriptor::FRAGMENT;
            }
            L4::Broken { .. } | L4::Unknown | L4::None => {}
        }
        offsets
    }

    /// Whether its link has no Ethernet header.
    pub(super) fn is_bare(&self) -> bool {
        self.flags & Descriptor::NOT_ETHERNET != 0
    }

    fn of_unknown(bytes: &[u8], meta: &FrameMeta) -> Self {
        Self { flags: flags(bytes, meta, Link::Raw), ..Self::none() }
    }

    fn none() -> Self {
        Self {
            network: Descriptor::NONE,
            transport: Descriptor::NONE,
            ethertype: 0,
            protocol: Descriptor::NO_PROTOCOL,
            flags: 0,
        }
    }
}

/// What its length and link say.
fn flags(bytes: &[u8], meta: &FrameMeta, link: Link) -> u8 {
    let is_cut = meta.wire_length as usize > bytes.len();
    let truncated = if is_cut { Descriptor::TRUNCATED } else { 0 };
    truncated | if link.is_ethernet() { 0 } else { Descriptor::NOT_ETHERNET }
}

/// Where its IP header begins that is here as a whole.
fn network(headers: &Headers, len: usize) -> Option<u16> {
    let header_len = match headers.l3 {
        L3::Ipv4 { header_len } => header_len,
        L3::Ipv6 => 40,
        L3::Arp | L3::Other | L3::Fault(_) | L3::Unknown => return None,
    };
    let is_whole = headers.network + header_len <= len;
    u16::try_from(headers.network).ok().filter(|_| is_whole)
}

/// An offset up to which all bytes are here.
fn within(offset: usize, len: usize) -> u16 {
    u16::try_from(offset).ok().filter(|_| offset <= len).unwrap_or(Descriptor::NONE)
}
