//! [`reply`]: whether a refused packet is answered, by whom, and with which bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use crate::{
    L3, L4, Packet, Read, Upper, ah, checksum, dccp, esp, gre, icmpv4, icmpv6, ipv4, ipv6, sctp,
    tcp, udp,
};

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// A TCP reset.
    Reset,
    /// An ICMP or ICMPv6 error.
    Error {
        /// The error's type.
        kind: u8,
        /// The error's code.
        code: u8,
        /// The second word of its header: an MTU, or 0.
        rest: u32,
    },
}

/// The sender of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replier {
    /// A bridge, in the name of the packet's destination.
    Bridge,
    /// A host, whose errors come from this address: the packet's destination if that is its own, else that of the
    /// device by which the error leaves, and for IPv6 that of the device by which the packet came. A reset comes
    /// from the packet's destination all the same.
    Host(IpAddr),
}

/// How replies are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// In whose name.
    pub replier: Replier,
    /// Time to live or hop limit (`net.ipv4.ip_default_ttl`).
    pub hop_limit: u8,
    /// Identification of an IPv4 error of a host; resets, and what a bridge sends, have 0.
    pub id: u16,
    /// The packet's own checksum has to be right, or it is not answered. Not so where its sender left it to
    /// hardware.
    pub verify: bool,
}

/// Why nothing is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoReply {
    /// Bytes that decide it, or would be quoted, are not known.
    Unknown,
    /// A fragment that is not the first. Of IPv6 it is refused only by who verifies checksums.
    Fragment,
    /// A reset for what is no TCP segment.
    NotTcp,
    /// The packet is a reset, or an ICMP error, or may be one.
    IsReply,
    /// The checksum of the refused packet is wrong.
    Checksum,
    /// The refused packet comes from, or goes to, more than one host.
    Address,
}

/// Most bytes of the refused packet that an error holds: a bridge's, and a host's for 576 bytes in all.
const QUOTE_V4: (usize, usize) = (536, 548);

/// The bytes that [`QUOTE_V4`] limits, for the least MTU of IPv6.
const QUOTE_V6: (usize, usize) = (1220, 1232);

/// `IPTOS_TOS_MASK`, `IPTOS_PREC_INTERNETCONTROL`.
const TOS_MASK: u8 = 0x1e;

const INTERNET_CONTROL: u8 = 0xc0;

/// `NR_ICMP_TYPES`: a host takes what is above it for no query.
const HIGHEST_TYPE: u8 = 18;

/// Header of an ICMP error.
const ERROR_HEADER: usize = 8;

/// Writes the reply to a packet into `to`, from its network header on; what was there goes.
///
/// # Errors
/// Where none is sent; `to` is then as it was.
pub fn reply(
    packet: &Packet<'_>,
    reply: Reply,
    terms: &Terms,
    to: &mut Vec<u8>,
) -> Result<(), NoReply> {
    let refused = Refused::read(packet)?;
    match reply {
        Reply::Reset => reset(&refused, terms, to),
        Reply::Error { kind, code, rest } => error(&refused, [kind, code], rest, terms, to),
    }
}

/// What a reply is made of.
pub(super) struct Refused<'p> {
    packet: &'p Packet<'p>,
    source: IpAddr,
    destination: IpAddr,
    /// The upper-layer header; later fragments of IPv6 have none.
    upper: Option<Upper>,
}

impl<'p> Refused<'p> {
    pub(super) fn read(packet: &'p Packet<'p>) -> Result<Self, NoReply> {
        let (source, destination): (IpAddr, IpAddr) = match packet.headers().l3 {
            L3::Ipv4 { .. } => (
                Ipv4Addr::from(field(packet.net::<4>(ipv4::SOURCE.start))?).into(),
                Ipv4Addr::from(field(packet.net::<4>(ipv4::DESTINATION.start))?).into(),
            ),
            L3::Ipv6 => (
                Ipv6Addr::from(field(packet.net::<16>(ipv6::SOURCE.start))?).into(),
                Ipv6Addr::from(field(packet.net::<16>(ipv6::DESTINATION.start))?).into(),
            ),
            _ => return Err(NoReply::Unknown),
        };
        let upper = match packet.headers().l4 {
            L4::Upper(upper) => Some(upper),
            L4::Fragment { .. } | L4::Broken { .. } if source.is_ipv6() => None,
            L4::Fragment { .. } => return Err(NoReply::Fragment),
            _ => return Err(NoReply::Unknown),
        };
        if !is_one_host(source) || !is_one_host(destination) {
            return Err(NoReply::Address);
        }
        Ok(Self { packet, source, destination, upper })
    }

    /// Length of an upper-layer header and what it carries.
    fn len_of(&self, upper: &Upper) -> usize {
        self.packet.headers().end.saturating_sub(upper.offset)
    }

    /// The packet's upper layer has a right checksum, or none of this kind.
    pub(super) fn verify(&self) -> Result<(), NoReply> {
        let upper = self.upper.ok_or(NoReply::Fragment)?;
        let protocol = upper.protocol;
        let has_sum = match protocol {
            udp::PROTOCOL => field(self.packet.upper::<2>(&upper, udp::CHECKSUM.start))? != [0, 0],
            gre::PROTOCOL
            | ah::PROTOCOL
            | esp::PROTOCOL
            | sctp::PROTOCOL
            | udp::PROTOCOL_LITE
            | dccp::PROTOCOL => false,
            _ => true,
        };
        if !has_sum {
            return Ok(());
        }
        let bytes = match self.packet.read_slice(upper.offset, self.len_of(&upper)) {
            Read::Known(bytes) => bytes,
            Read::Unknown | Read::Absent => return Err(NoReply::Unknown),
        };
        let pseudo = match (self.source, self.destination) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => checksum::pseudo_v6(
                source.octets(),
                destination.octets(),
                protocol,
                bytes.len() as u32,
            ),
            (IpAddr::V4(source), IpAddr::V4(destination))
                if matches!(protocol, tcp::PROTOCOL | udp::PROTOCOL) =>
            {
                checksum::pseudo_v4(
                    source.octets(),
                    destination.octets(),
                    protocol,
                    bytes.len() as u16,
                )
            }
            // The kernel's sum takes in the IP header, whose own is this: a message of zeros alone is right.
            _ => 0xffff,
        };
        match checksum::add(pseudo, checksum::sum(bytes)) {
            0xffff => Ok(()),
            _ => Err(NoReply::Checksum),
        }
    }
}

fn field<const N: usize>(read: Read<[u8; N]>) -> Result<[u8; N], NoReply> {
    read.known().ok_or(NoReply::Unknown)
}

/// Neither everybody, nor a group, nor nobody.
fn is_one_host(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !address.is_unspecified() && !address.is_multicast() && !is_broadcast
}

/// RFC 9293: a segment with an acknowledgement is answered at that number, another one is acknowledged.
fn reset(refused: &Refused<'_>, terms: &Terms, to: &mut Vec<u8>) -> Result<(), NoReply> {
    let packet = refused.packet;
    let upper = refused.upper.ok_or(NoReply::Fragment)?;
    if upper.protocol != tcp::PROTOCOL {
        return Err(NoReply::NotTcp);
    }
    let bytes: [u8; tcp::MIN_HEADER_LEN] = field(packet.upper(&upper, 0))?;
    let flags = tcp::Flags(bytes[tcp::FLAGS.start]);
    if flags.contains(tcp::Flags::RST) {
        return Err(NoReply::IsReply);
    }
    if terms.verify {
        refused.verify()?;
    }
    let word =
        |field: Range<usize>| u32::from_be_bytes(bytes[field].try_into().unwrap_or_default());
    let header_len = usize::from(bytes[tcp::DATA_OFFSET.start] >> 4) * 4;
    let data = refused.len_of(&upper).saturating_sub(header_len) as u32;
    let counted = |flag| u32::from(flags.contains(flag));
    let (sequence, acknowledgement, sent) = match flags.contains(tcp::Flags::ACK) {
        true => (word(tcp::ACKNOWLEDGEMENT), 0, tcp::Flags::RST),
        false => {
            let length = data + counted(tcp::Flags::SYN) + counted(tcp::Flags::FIN);
            (0, word(tcp::SEQUENCE).wrapping_add(length), tcp::Flags::RST.union(tcp::Flags::ACK))
        }
    };
    let mut header = [0; tcp::MIN_HEADER_LEN];
    header[tcp::SOURCE_PORT].copy_from_slice(&bytes[tcp::DESTINATION_PORT]);
    header[tcp::DESTINATION_PORT].copy_from_slice(&bytes[tcp::SOURCE_PORT]);
    header[tcp::SEQUENCE].copy_from_slice(&sequence.to_be_bytes());
    header[tcp::ACKNOWLEDGEMENT].copy_from_slice(&acknowledgement.to_be_bytes());
    header[tcp::DATA_OFFSET.start] = 5 << 4;
    header[tcp::FLAGS.start] = sent.0;
    let network = Network {
        source: refused.destination,
        destination: refused.source,
        protocol: tcp::PROTOCOL,
        hop_limit: terms.hop_limit,
        tos: 0,
        id: None,
    };
    to.clear();
    network.write(header.len(), to);
    let at = to.len();
    to.extend_from_slice(&header);
    network.fill_checksum(at, tcp::CHECKSUM, to);
    Ok(())
}

fn error(
    refused: &Refused<'_>,
    [kind, code]: [u8; 2],
    rest: u32,
    terms: &Terms,
    to: &mut Vec<u8>,
) -> Result<(), NoReply> {
    let Refused { packet, source, destination, upper, .. } = *refused;
    let is_v6 = source.is_ipv6();
    let (protocol, is_error): (u8, fn(u8) -> bool) = match is_v6 {
        true => (icmpv6::PROTOCOL, icmpv6::is_error),
        false => (icmpv4::PROTOCOL, icmpv4::is_error),
    };
    if let Some(upper) = upper.filter(|upper| upper.protocol == protocol) {
        let [kind] = field(packet.upper::<1>(&upper, 0))?;
        let is_nothing = !is_v6 && kind > HIGHEST_TYPE && terms.replier != Replier::Bridge;
        if is_error(kind) || is_nothing {
            return Err(NoReply::IsReply);
        }
    }
    if terms.verify {
        refused.verify()?;
    }
    let quotes = if is_v6 { QUOTE_V6 } else { QUOTE_V4 };
    let (own, tos, id, most) = match terms.replier {
        Replier::Bridge => (destination, 0, None, quotes.0),
        Replier::Host(own) if is_v6 => (own, 0, None, quotes.1),
        Replier::Host(own) => {
            let tos = field(packet.net::<1>(ipv4::TOS.start))?[0];
            (own, tos & TOS_MASK | INTERNET_CONTROL, Some(terms.id), quotes.1)
        }
    };
    if own.is_ipv6() != is_v6 {
        return Err(NoReply::Address);
    }
    let quoted = match packet.read_slice(packet.network_offset(), packet.len().min(most)) {
        Read::Known(bytes) => bytes,
        Read::Unknown | Read::Absent => return Err(NoReply::Unknown),
    };
    let network =
        Network { source: own, destination: source, protocol, hop_limit: terms.hop_limit, tos, id };
    to.clear();
    network.write(ERROR_HEADER + quoted.len(), to);
    let at = to.len();
    to.extend_from_slice(&[kind, code, 0, 0]);
    to.extend_from_slice(&rest.to_be_bytes());
    to.extend_from_slice(quoted);
    network.fill_checksum(at, 2..4, to);
    Ok(())
}

/// The network header of a reply.
struct Network {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    hop_limit: u8,
    tos: u8,
    /// The identification; without one the reply must not be fragmented and has 0.
    id: Option<u16>,
}

impl Network {
    fn write(&self, upper_len: usize, to: &mut Vec<u8>) {
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let len = (ipv4::MIN_HEADER_LEN + upper_len) as u16;
                let mut header = [0; ipv4::MIN_HEADER_LEN];
                header[0] = 0x45;
                header[ipv4::TOS.start] = self.tos;
                header[ipv4::TOTAL_LEN].copy_from_slice(&len.to_be_bytes());
                header[ipv4::ID].copy_from_slice(&self.id.unwrap_or(0).to_be_bytes());
                let fragment = if self.id.is_none() { ipv4::DONT_FRAGMENT } else { 0 };
                header[ipv4::FRAGMENT].copy_from_slice(&fragment.to_be_bytes());
                header[ipv4::TTL.start] = self.hop_limit;
                header[ipv4::PROTOCOL.start] = self.protocol;
                header[ipv4::SOURCE].copy_from_slice(&source.octets());
                header[ipv4::DESTINATION].copy_from_slice(&destination.octets());
                let sum = !checksum::sum(&header);
                header[ipv4::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
                to.extend_from_slice(&header);
            }
            (source, destination) => {
                let octets = |address| match address {
                    IpAddr::V6(v6) => v6.octets(),
                    IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                };
                let mut header = [0; ipv6::HEADER_LEN];
                header[0] = 0x60;
                header[ipv6::PAYLOAD_LEN].copy_from_slice(&(upper_len as u16).to_be_bytes());
                header[ipv6::NEXT_HEADER.start] = self.protocol;
                header[ipv6::HOP_LIMIT.start] = self.hop_limit;
                header[ipv6::SOURCE].copy_from_slice(&octets(source));
                header[ipv6::DESTINATION].copy_from_slice(&octets(destination));
                to.extend_from_slice(&header);
            }
        }
    }

    /// Fills the checksum at `field` of the upper-layer header at `at`.
    fn fill_checksum(&self, at: usize, field: Range<usize>, to: &mut [u8]) {
        let Some(upper) = to.get_mut(at..) else { return };
        let len = upper.len();
        let pseudo = match (self.source, self.destination) {
            (IpAddr::V4(_), IpAddr::V4(_)) if self.protocol == icmpv4::PROTOCOL => 0,
            (IpAddr::V4(source), IpAddr::V4(destination)) => checksum::pseudo_v4(
                source.octets(),
                destination.octets(),
                self.protocol,
                len as u16,
            ),
            (IpAddr::V6(source), IpAddr::V6(destination)) => checksum::pseudo_v6(
                source.octets(),
                destination.octets(),
                self.protocol,
                len as u32,
            ),
            _ => return,
        };
        let sum = !checksum::add(pseudo, checksum::sum(upper));
        if let Some(field) = upper.get_mut(field) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }
}
