//! [`Print`]: what two sightings of one packet have alike.
//!
//! `bytes` is the same at every device that shows a packet unchanged; `content` also after routing, translation,
//! segmentation and fragmentation: of TCP sequence, acknowledgement, flags and the first payload, of UDP and ICMP
//! the payload and the IPv4 identification, never that alone, and neither addresses, ports, options nor checksums. `rest` is
//! the content without the payload, which a program changes that rules hand packets to (`-j NFQUEUE`).

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};

use packet::{Headers, L3, L4, Upper, dccp, icmpv4, icmpv6, ipv4, ipv6, ipv6_ext, sctp, tcp, udp};

use super::frame::Ends;

/// Bytes of payload that are compared.
const PAYLOAD: usize = 48;
/// Bytes that are compared where all of them have to be the same.
const BYTES: usize = 128;
/// Flags of a segment that its parts have, too.
const FLAGS: u8 = 0b0001_0110;

const SYN: u8 = 0b0000_0010;
const RESET: u8 = 0b0000_0100;
const ACK: u8 = 0b0001_0000;

/// Of one frame, what another sighting of its packet is compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Print {
    /// Of the bytes from the network header on.
    pub bytes: u64,
    /// Of what translation leaves alone.
    pub content: u64,
    /// Of that what a program leaves alone, too, which gets the packet.
    pub rest: u64,
    /// Addresses and ports.
    pub ends: Ends,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// The bytes of a TCP stream that it holds, if any.
    pub segment: Option<Segment>,
    /// Of what all fragments of a datagram have alike, if it is one.
    pub datagram: Option<u64>,
    /// A fragment that does not start at 0.
    pub is_later_fragment: bool,
    /// Routers pass it on whole or not at all: it says so, or is of IPv6.
    pub stays_whole: bool,
    /// A TCP reset.
    pub is_reset: bool,
    /// A SYN, if it is one: whether it answers one.
    pub opens: Option<bool>,
}

/// Bytes of a TCP stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// Sequence number of the first byte, as the server or the client of the connection chose it.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Bytes.
    pub len: u32,
}

impl Segment {
    /// Its place among the segments of a family.
    #[must_use]
    pub fn key(self, is_v6: bool) -> (bool, u32, u32) {
        (is_v6, self.acknowledgement, self.sequence)
    }

    /// Whether a byte is one of its own.
    #[must_use]
    pub fn holds(self, sequence: u32) -> bool {
        sequence.wrapping_sub(self.sequence) < self.len
    }
}

/// Random keys of the hashes.
#[derive(Debug, Clone, Copy)]
pub struct Keys([u64; 2]);

impl Keys {
    /// New ones.
    #[must_use]
    pub fn random() -> Self {
        let state = RandomState::new();
        Self([state.hash_one(1_u8), state.hash_one(2_u8)])
    }

    fn start(self) -> Hash {
        let [state, key] = self.0;
        Hash { state, key }
    }

    /// A hash of what a packet holds and of its ends.
    #[must_use]
    pub fn packet(self, print: &Print) -> u64 {
        self.ends(&print.ends) ^ print.content
    }

    /// A hash of an address and of the bridge that it was heard at.
    #[must_use]
    pub fn station(self, bridge: u32, addr: IpAddr) -> u64 {
        self.start().address(addr).word(bridge.into()).state
    }

    /// A hash of a link address and of the bridge that it was heard at.
    #[must_use]
    pub fn link_address(self, bridge: u32, mac: [u8; 6]) -> u64 {
        self.start().bytes(&mac).word(bridge.into()).state
    }

    /// A hash of a flow's ends.
    #[must_use]
    pub fn ends(self, ends: &Ends) -> u64 {
        let [source, destination] = ends.ports.unwrap_or_default();
        let ports = u64::from(source) << 24 | u64::from(destination) << 8;
        self.start().addresses(ends).word(ports | u64::from(ends.protocol)).state
    }
}

/// Folded products of keyed words: fast, and nobody who does not know the keys finds two alike.
#[derive(Clone, Copy)]
struct Hash {
    state: u64,
    key: u64,
}

impl Hash {
    fn word(self, word: u64) -> Self {
        let product = u128::from(self.state ^ word) * u128::from(self.key | 1);
        let state = (product as u64) ^ ((product >> 64) as u64).rotate_left(23);
        Self { state: state.wrapping_add(self.key.rotate_left(17)), ..self }
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        let mut words = bytes.chunks_exact(8);
        let hash = words.by_ref().fold(self, |hash, word| {
            hash.word(u64::from_le_bytes(word.try_into().unwrap_or_default()))
        });
        let mut last = [0; 8];
        let rest = words.remainder();
        last[..rest.len()].copy_from_slice(rest);
        hash.word(u64::from_le_bytes(last)).word(bytes.len() as u64)
    }

    fn address(self, addr: IpAddr) -> Self {
        match addr {
            IpAddr::V4(v4) => self.word(u32::from(v4).into()),
            IpAddr::V6(v6) => self.bytes(&v6.octets()),
        }
    }

    fn addresses(self, ends: &Ends) -> Self {
        self.address(ends.source).address(ends.destination)
    }
}

impl Print {
    /// Of a captured frame; none where its network header was not captured. What is no IP packet has its bytes
    /// alone, and no ends.
    #[must_use]
    pub fn of(
        frame: &[u8],
        headers: &Headers,
        keys: &Keys,
        moved: impl Fn(&Ends, Segment) -> Segment,
    ) -> Option<Self> {
        let bytes = frame.get(..headers.end).unwrap_or(frame);
        let network = bytes.get(headers.network..)?;
        let len = headers.end.saturating_sub(headers.network) as u64;
        let whole = keys.start().bytes(prefix(network, 0, BYTES)).word(len).state;
        let Some(fields) = Fields::of(network, headers) else {
            return Some(Self::of_bytes(whole));
        };
        let mut ends = Ends {
            source: fields.source,
            destination: fields.destination,
            protocol: fields.protocol,
            ports: None,
        };
        let upper = match headers.l4 {
            L4::Upper(Upper { protocol, offset }) => {
                ends.protocol = protocol;
                bytes.get(offset..).map(|upper| (upper, headers.end.saturating_sub(offset)))
            }
            _ => None,
        };
        let start = keys.start().word(u64::from(ends.protocol) | fields.class());
        let flags = upper.filter(|_| ends.protocol == tcp::PROTOCOL);
        let flags = flags.and_then(|(upper, _)| upper.get(13)).copied().unwrap_or(0);
        let datagram = fields.fragment.map(|id| start.addresses(&ends).word(id.into()).state);
        let of = match upper {
            Some((upper, len)) => content(start, upper, len, &fields, &mut ends, moved),
            None => {
                let place = u64::from(fields.id) << 16 | u64::from(fields.offset);
                Content::from(start.word(place).bytes(prefix(network, 20, PAYLOAD)))
            }
        };
        Some(Self {
            bytes: whole,
            content: of.hash.state,
            rest: of.rest.state,
            ends,
            ttl: fields.ttl,
            segment: of.segment,
            datagram,
            is_later_fragment: matches!(headers.l4, L4::Fragment { .. }),
            stays_whole: fields.stays_whole,
            is_reset: flags & RESET != 0,
            opens: (flags & (RESET | SYN) == SYN).then_some(flags & ACK != 0),
        })
    }
}

impl Print {
    fn of_bytes(whole: u64) -> Self {
        let none = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Self {
            bytes: whole,
            content: whole,
            rest: whole,
            ends: Ends { source: none, destination: none, protocol: 0, ports: None },
            ttl: 0,
            segment: None,
            datagram: None,
            is_later_fragment: false,
            stays_whole: false,
            is_reset: false,
            opens: None,
        }
    }
}

/// Fields of a network header.
struct Fields {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    ttl: u8,
    /// Identification of IPv4; 0 of IPv6.
    id: u16,
    /// Identification of a fragment.
    fragment: Option<u32>,
    /// Offset of a fragment of IPv4, in units of 8 bytes; that of IPv6 stands in an extension header.
    offset: u16,
    stays_whole: bool,
    is_v6: bool,
}

impl Fields {
    fn of(network: &[u8], headers: &Headers) -> Option<Self> {
        match headers.l3 {
            L3::Ipv4 { .. } => {
                let header = ipv4::Header::new_checked(network)?;
                let is_fragment = header.more_fragments() || header.fragment_offset() != 0;
                Some(Self {
                    source: header.source().into(),
                    destination: header.destination().into(),
                    protocol: header.protocol(),
                    ttl: header.ttl(),
                    id: header.id(),
                    fragment: is_fragment.then(|| header.id().into()),
                    offset: header.fragment_offset(),
                    stays_whole: header.dont_fragment(),
                    is_v6: false,
                })
            }
            L3::Ipv6 => {
                let addr = |range: std::ops::Range<usize>| -> Option<IpAddr> {
                    let bytes: [u8; 16] = network.get(range)?.try_into().ok()?;
                    Some(bytes.into())
                };
                let snap = packet::Snap::new(network, network.len());
                let fragment = match ipv6_ext::find(&snap, 0, Some(ipv6_ext::FRAGMENT)) {
                    ipv6_ext::Find::Found { offset, .. } => network
                        .get(offset + 4..offset + 8)
                        .and_then(|id| Some(u32::from_be_bytes(id.try_into().ok()?))),
                    _ => None,
                };
                let protocol = match headers.l4 {
                    L4::Fragment { protocol, .. } => protocol,
                    _ => 0,
                };
                Some(Self {
                    source: addr(ipv6::SOURCE)?,
                    destination: addr(ipv6::DESTINATION)?,
                    protocol,
                    ttl: *network.get(ipv6::HOP_LIMIT.start)?,
                    id: 0,
                    fragment,
                    offset: 0,
                    stays_whole: true,
                    is_v6: true,
                })
            }
            _ => None,
        }
    }

    fn class(&self) -> u64 {
        u64::from(self.is_v6) << 8
    }
}

struct Content {
    hash: Hash,
    /// Without the payload.
    rest: Hash,
    segment: Option<Segment>,
}

impl Content {
    fn of(rest: Hash, payload: &[u8]) -> Self {
        Self { hash: rest.bytes(payload), rest, segment: None }
    }
}

impl From<Hash> for Content {
    fn from(hash: Hash) -> Self {
        Self { hash, rest: hash, segment: None }
    }
}

/// What translation leaves alone of an upper layer of which `upper` was captured and `len` bytes were sent.
fn content(
    start: Hash,
    upper: &[u8],
    len: usize,
    fields: &Fields,
    ends: &mut Ends,
    moved: impl Fn(&Ends, Segment) -> Segment,
) -> Content {
    let id = u64::from(fields.id);
    let payload = |offset| prefix(upper, offset, PAYLOAD);
    let ports = || {
        let [a, b, c, d] = *upper.first_chunk::<4>()?;
        Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
    };
    match ends.protocol {
        tcp::PROTOCOL => {
            ends.ports = ports();
            let Some(header) = tcp::Header::new_checked(upper) else {
                return start.word(id).into();
            };
            let segment = Segment {
                sequence: header.sequence(),
                acknowledgement: header.acknowledgement(),
                len: len.saturating_sub(header.header_len()) as u32,
            };
            let segment = moved(ends, segment);
            let numbers = u64::from(segment.sequence) << 32 | u64::from(segment.acknowledgement);
            let flags = upper.get(13).map_or(0, |flags| flags & FLAGS);
            let rest = start.word(numbers).word(flags.into());
            let segment = Some(segment);
            Content { segment, ..Content::of(rest, payload(header.header_len())) }
        }
        udp::PROTOCOL | udp::PROTOCOL_LITE => {
            ends.ports = ports();
            let rest = start.word(id);
            let length = prefix(upper, 4, 2);
            Content { hash: rest.bytes(length).bytes(payload(8)), rest, segment: None }
        }
        sctp::PROTOCOL => {
            ends.ports = ports();
            Content::of(start.word(id).bytes(prefix(upper, 4, 4)), payload(12))
        }
        dccp::PROTOCOL => {
            ends.ports = ports();
            Content::of(start.word(id), payload(8))
        }
        icmpv4::PROTOCOL | icmpv6::PROTOCOL => {
            let kind = prefix(upper, 0, 2);
            if is_query(ends.protocol, kind.first().copied()) {
                let id = upper.get(4..6).and_then(|id| id.try_into().ok()).map(u16::from_be_bytes);
                ends.ports = id.map(|id| [id; 2]);
                let start = start.word(u64::from(fields.id)).bytes(kind);
                let rest = start.bytes(prefix(upper, 6, 2));
                return Content { hash: start.bytes(payload(6)), rest, segment: None };
            }
            // Of what an error quotes, addresses and ports are translated, too.
            let quoted =
                if fields.is_v6 { prefix(upper, 8 + 4, 3) } else { prefix(upper, 8 + 2, 6) };
            start.word(id).bytes(kind).bytes(quoted).word(len as u64).into()
        }
        _ => start.word(id).bytes(payload(0)).into(),
    }
}

/// ICMP messages whose identifier is translated.
fn is_query(protocol: u8, kind: Option<u8>) -> bool {
    match (protocol, kind) {
        (icmpv4::PROTOCOL, Some(kind)) => matches!(kind, 0 | 8 | 13..=18),
        (_, Some(kind)) => matches!(kind, 128 | 129),
        _ => false,
    }
}

/// Bytes from an offset, at most that number.
fn prefix(bytes: &[u8], offset: usize, most: usize) -> &[u8] {
    let rest = bytes.get(offset..).unwrap_or_default();
    rest.get(..most).unwrap_or(rest)
}
