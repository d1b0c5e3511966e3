//! [`Craft`]: a frame to build, and the bytes that it is.

use super::addresses::Addresses;
use super::message::Message;
use crate::{arp, checksum, ethertype, ipv4, ipv6, ipv6_ext, tcp};

/// Ethernet addresses and tag of a frame to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ethernet {
    /// Source address.
    pub source: [u8; 6],
    /// Destination address.
    pub destination: [u8; 6],
    /// 802.1Q tag control information, if the frame is tagged.
    pub vlan: Option<u16>,
}

impl Default for Ethernet {
    /// 02:00:00:00:00:01 to 02:00:00:00:00:02, not tagged.
    fn default() -> Self {
        Self { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2], vlan: None }
    }
}

/// Which piece of a fragmented packet to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Offset in bytes, a multiple of 8 (rounded down). From 8 on, the upper-layer header lies in
    /// another fragment and only payload bytes are built.
    pub offset: u16,
    /// More fragments follow.
    pub more: bool,
}

/// A frame to build: [`Craft::new`] fills in sensible values, and all fields may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Craft {
    /// Ethernet header; without one the frame is bare IP ([`crate::Link::Raw`]).
    pub ethernet: Option<Ethernet>,
    /// Source and destination.
    pub addresses: Addresses,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Type of service or traffic class.
    pub tos: u8,
    /// Identification, of IPv6 in fragments only.
    pub id: u32,
    /// The IPv4 "do not fragment" flag.
    pub dont_fragment: bool,
    /// Builds a fragment.
    pub fragment: Option<Fragment>,
    /// Upper-layer header.
    pub message: Message,
    /// Options after a TCP header, at most 40 bytes; they are padded to whole words.
    pub options: Vec<u8>,
    /// The first bytes of the payload.
    pub payload: Vec<u8>,
    /// Bytes of payload after those, counted up from 0.
    pub payload_len: usize,
}

impl Craft {
    /// A packet with TTL 64, the default Ethernet header and no payload.
    #[must_use]
    pub fn new(addresses: Addresses, message: Message) -> Self {
        Self {
            ethernet: Some(Ethernet::default()),
            addresses,
            ttl: 64,
            tos: 0,
            id: 0,
            dont_fragment: false,
            fragment: None,
            message,
            options: Vec::new(),
            payload: Vec::new(),
            payload_len: 0,
        }
    }

    /// Length in bytes of the IP packet without any payload: its shortest length.
    #[must_use]
    pub fn header_len(&self) -> usize {
        self.network_len() + self.upper().len()
    }

    /// Length in bytes of what stands before the upper-layer header in the IP packet.
    #[must_use]
    pub fn network_len(&self) -> usize {
        self.addresses.ip_header_len() + self.extension().len()
    }

    /// The bytes of the frame.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let mut upper = self.upper();
        upper.extend_from_slice(&self.payload);
        upper.extend((0..self.payload_len).map(|i| i as u8));
        // The checksum of a fragment needs the other fragments: it stays 0, and nothing tests it before
        // reassembly.
        if self.fragment.is_none() {
            self.message.fill_checksum(self.addresses, &mut upper);
        }
        let payload = [self.extension(), upper].concat();
        let (ethertype, header) = match self.addresses {
            Addresses::V4 { source, destination } => {
                (ethertype::IPV4, self.ipv4(source, destination, payload.len()).to_vec())
            }
            Addresses::V6 { source, destination } => {
                (ethertype::IPV6, self.ipv6(source, destination, payload.len()).to_vec())
            }
        };
        let link = self.ethernet.map_or_else(Vec::new, |ethernet| ethernet.header(ethertype));
        [link, header, payload].concat()
    }

    fn ipv4(&self, source: [u8; 4], destination: [u8; 4], payload_len: usize) -> [u8; 20] {
        let mut header = [0; ipv4::MIN_HEADER_LEN];
        let total_len = (ipv4::MIN_HEADER_LEN + payload_len) as u16;
        header[ipv4::VERSION_IHL].fill(0x45);
        header[ipv4::TOS].fill(self.tos);
        header[ipv4::TOTAL_LEN].copy_from_slice(&total_len.to_be_bytes());
        header[ipv4::ID].copy_from_slice(&(self.id as u16).to_be_bytes());
        header[ipv4::FRAGMENT].copy_from_slice(&self.ipv4_fragment().to_be_bytes());
        header[ipv4::TTL].fill(self.ttl);
        header[ipv4::PROTOCOL].fill(self.protocol());
        header[ipv4::SOURCE].copy_from_slice(&source);
        header[ipv4::DESTINATION].copy_from_slice(&destination);
        let checksum = !checksum::sum(&header);
        header[ipv4::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    fn ipv4_fragment(&self) -> u16 {
        let flag = if self.dont_fragment { ipv4::DONT_FRAGMENT } else { 0 };
        self.fragment.map_or(flag, |fragment| {
            let more = if fragment.more { ipv4::MORE_FRAGMENTS } else { 0 };
            flag | more | (fragment.offset / 8)
        })
    }

    fn ipv6(&self, source: [u8; 16], destination: [u8; 16], payload_len: usize) -> [u8; 40] {
        let mut header = [0; ipv6::HEADER_LEN];
        let class = 0x6000_0000 | u32::from(self.tos) << 20;
        let next = if self.fragment.is_some() { ipv6_ext::FRAGMENT } else { self.protocol() };
        header[ipv6::VERSION_CLASS_LABEL].copy_from_slice(&class.to_be_bytes());
        header[ipv6::PAYLOAD_LEN].copy_from_slice(&(payload_len as u16).to_be_bytes());
        header[ipv6::NEXT_HEADER].fill(next);
        header[ipv6::HOP_LIMIT].fill(self.ttl);
        header[ipv6::SOURCE].copy_from_slice(&source);
        header[ipv6::DESTINATION].copy_from_slice(&destination);
        header
    }

    fn protocol(&self) -> u8 {
        self.message.protocol(self.addresses)
    }

    /// The upper-layer header, checksum 0; empty in a later fragment.
    fn upper(&self) -> Vec<u8> {
        let is_later = self.fragment.is_some_and(|fragment| fragment.offset >= 8);
        let payload_len = self.payload.len() + self.payload_len;
        let mut header =
            if is_later { return Vec::new() } else { self.message.header(payload_len) };
        if let Message::Tcp { .. } = self.message {
            header.extend_from_slice(&self.options);
            header.resize(header.len().next_multiple_of(4), 0);
            let words = header.len() as u8 / 4;
            header[tcp::DATA_OFFSET].fill(words << 4);
        }
        header
    }

    /// The IPv6 fragment header, if one is needed.
    fn extension(&self) -> Vec<u8> {
        match (self.addresses, self.fragment) {
            (Addresses::V6 { .. }, Some(fragment)) => {
                let more = if fragment.more { ipv6_ext::MORE_FRAGMENTS } else { 0 };
                let field = (fragment.offset & ipv6_ext::OFFSET_MASK) | more;
                let [a, b] = field.to_be_bytes();
                [&[self.protocol(), 0, a, b], self.id.to_be_bytes().as_slice()].concat()
            }
            _ => Vec::new(),
        }
    }
}

impl Ethernet {
    /// The header of a frame of this type.
    fn header(self, ethertype: u16) -> Vec<u8> {
        let mut header = [self.destination, self.source].concat();
        if let Some(tci) = self.vlan {
            header.extend_from_slice(&ethertype::VLAN.to_be_bytes());
            header.extend_from_slice(&tci.to_be_bytes());
        }
        header.extend_from_slice(&ethertype.to_be_bytes());
        header
    }
}

/// Builds an ARP frame for IPv4 over Ethernet. The hardware addresses in its body equal those in the Ethernet header,
/// except the unknown target of a request, which is zero.
#[must_use]
pub fn arp_frame(ethernet: Ethernet, operation: u16, sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let mut body = [0; arp::HEADER_LEN];
    body[arp::HARDWARE_TYPE].copy_from_slice(&1u16.to_be_bytes());
    body[arp::PROTOCOL_TYPE].copy_from_slice(&ethertype::IPV4.to_be_bytes());
    body[arp::HARDWARE_LEN].fill(6);
    body[arp::PROTOCOL_LEN].fill(4);
    body[arp::OPERATION].copy_from_slice(&operation.to_be_bytes());
    body[arp::SENDER_HARDWARE].copy_from_slice(&ethernet.source);
    body[arp::SENDER_PROTOCOL].copy_from_slice(&sender);
    if operation != arp::REQUEST {
        body[arp::TARGET_HARDWARE].copy_from_slice(&ethernet.destination);
    }
    body[arp::TARGET_PROTOCOL].copy_from_slice(&target);
    [ethernet.header(ethertype::ARP), body.to_vec()].concat()
}
