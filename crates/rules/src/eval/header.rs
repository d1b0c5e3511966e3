//! Evaluates the tests that a rule has without an extension.
//!
//! Source: kernel `ip_packet_match` in `net/ipv4/netfilter/ip_tables.c`, `ip6_packet_match` in
//! `net/ipv6/netfilter/ip6_tables.c`, `arp_packet_match` in `net/ipv4/netfilter/arp_tables.c`,
//! `ebt_basic_match` in `net/bridge/netfilter/ebtables.c`.

use packet::{L4, Read, Upper, arp, ethernet, ipv4, ipv6, tcp, udp};

use super::Cause;
use super::iface_word::Port;
use crate::backend::Backend;
use crate::family::Family;
use crate::header::{Field, FieldTest, Header, IfaceTest, MaskedAddr, ProtocolTest};
use crate::outcome::Outcome;
use crate::transit::{Iface, Transit};

/// What most rules test, read once for many of them. A target that rewrites the packet makes it old.
#[derive(Debug, Clone)]
pub struct Key<'p> {
    /// The source, its first byte lowest: IPv4 in the first four. 0 where it is not known.
    pub(crate) source_words: [u64; 2],
    /// The destination, likewise.
    pub(crate) destination_words: [u64; 2],
    /// Which of the two is known.
    known: [bool; 2],
    pub(crate) protocol: Option<u8>,
    /// Source and destination port of a TCP or UDP header that is known in full; of others, and where nobody
    /// asked for them, none.
    pub(crate) ports: Option<[u16; 2]>,
    /// The interface that the packet came in by.
    pub(crate) input: Port<'p>,
    /// The interface that it goes out by.
    pub(crate) output: Port<'p>,
}

impl<'p> Key<'p> {
    #[inline]
    pub(crate) fn of(transit: &Transit<'p, '_>) -> Self {
        Self::new(transit, false)
    }

    /// With the ports, so that rules which test nothing else after the header need not be asked.
    #[inline]
    pub(crate) fn with_ports(transit: &Transit<'p, '_>) -> Self {
        Self::new(transit, true)
    }

    #[inline]
    fn new(transit: &Transit<'p, '_>, wants_ports: bool) -> Self {
        let mut key = Self {
            source_words: [0; 2],
            destination_words: [0; 2],
            known: [false; 2],
            protocol: None,
            ports: None,
            input: Port::of(transit.input),
            output: Port::of(transit.output),
        };
        key.read_addresses(transit);
        let found;
        let upper = match transit.upper_layer_as_parsed() {
            Some(parsed) => parsed,
            None => {
                found = transit.upper_layer();
                &found
            }
        };
        match upper {
            L4::Upper(upper) => {
                key.protocol = Some(upper.protocol);
                if wants_ports {
                    key.ports = ports(upper, transit);
                }
            }
            L4::Fragment { protocol, .. } => key.protocol = Some(*protocol),
            L4::Broken { .. } | L4::Unknown | L4::None => {}
        }
        key
    }

    #[inline]
    fn read_addresses(&mut self, transit: &Transit<'_, '_>) {
        if transit.family == Family::Ipv4
            && let Read::Known(both) = transit.net::<8>(ipv4::SOURCE.start)
        {
            let both = u64::from_le_bytes(both);
            self.source_words = [both & 0xffff_ffff, 0];
            self.destination_words = [both >> 32, 0];
            self.known = [true; 2];
            return;
        }
        let each = each_address(transit);
        self.known = each.map(|addr| addr.is_some());
        [self.source_words, self.destination_words] = each.map(Option::unwrap_or_default);
    }

    /// Whether both addresses are known.
    #[inline]
    #[must_use]
    pub fn addresses_known(&self) -> bool {
        self.known == [true; 2]
    }

    /// IPv4 source and, above it, destination.
    #[inline]
    pub(crate) fn pair(&self) -> u64 {
        self.source_words[0] | self.destination_words[0] << 32
    }

    /// The source in the bytes of a [`MaskedAddr`], if it is known.
    fn source(&self) -> Option<u128> {
        self.known[0].then(|| bytes(self.source_words))
    }

    fn destination(&self) -> Option<u128> {
        self.known[1].then(|| bytes(self.destination_words))
    }
}

/// Source and destination as words, one after the other, where they are known.
fn each_address(transit: &Transit<'_, '_>) -> [Option<[u64; 2]>; 2] {
    let four = |at| transit.net::<4>(at).known().map(|addr| [u32::from_le_bytes(addr).into(), 0]);
    let wide = |at| transit.net::<16>(at).known().map(words);
    let mac = |at| {
        let addr = transit.packet.read::<6>(at).known();
        addr.map(|[a, b, c, d, e, f]| [u64::from_le_bytes([a, b, c, d, e, f, 0, 0]), 0])
    };
    match transit.family {
        Family::Ipv6 => [ipv6::SOURCE.start, ipv6::DESTINATION.start].map(wide),
        Family::Ipv4 => [ipv4::SOURCE.start, ipv4::DESTINATION.start].map(four),
        Family::Arp => [arp::SENDER_PROTOCOL.start, arp::TARGET_PROTOCOL.start].map(four),
        Family::Bridge => [ethernet::SOURCE.start, ethernet::DESTINATION.start].map(mac),
    }
}

/// The ports of a packet whose tcp or udp match can be told from them: nothing is cut off.
#[inline]
fn ports(upper: &Upper, transit: &Transit<'_, '_>) -> Option<[u16; 2]> {
    let len = match upper.protocol {
        tcp::PROTOCOL => tcp::MIN_HEADER_LEN,
        udp::PROTOCOL => udp::HEADER_LEN,
        _ => return None,
    };
    let header = transit.packet.read_slice(upper.offset, len).known()?;
    let [a, b, c, d] = *header.first_chunk()?;
    Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

/// Sixteen bytes as words, the first one lowest.
fn words(addr: [u8; 16]) -> [u64; 2] {
    let addr = u128::from_le_bytes(addr);
    [addr as u64, (addr >> 64) as u64]
}

/// Words as sixteen bytes, as they lie in memory.
fn bytes([low, high]: [u64; 2]) -> u128 {
    u128::from_ne_bytes((u128::from(low) | u128::from(high) << 64).to_le_bytes())
}

#[inline]
fn accepts(test: &MaskedAddr, addr: u128) -> bool {
    let same = addr & u128::from_ne_bytes(test.mask) == u128::from_ne_bytes(test.addr);
    same != test.invert
}

/// What the tests say, and the first one that could not tell.
pub(super) fn evaluate(
    header: &Header,
    key: &Key<'_>,
    transit: &Transit<'_, '_>,
) -> (Outcome, Option<Cause>) {
    let mut all = Outcome::YES;
    let mut cause = None;
    let mut and = |outcome: Outcome, what: Cause| {
        all = all.and_then(|| outcome);
        if !outcome.is_known() && cause.is_none() {
            cause = Some(what);
        }
        all.may_match()
    };
    let address = |test: &MaskedAddr, addr: Option<u128>| {
        addr.map_or(Outcome::MAYBE, |addr| Outcome::from_bool(accepts(test, addr)))
    };
    let go_on = header.source().is_none_or(|test| and(address(&test, key.source()), Cause::Bytes))
        && header
            .destination()
            .is_none_or(|test| and(address(&test, key.destination()), Cause::Bytes))
        && header.input().is_none_or(|test| and(iface(test, transit.input), Cause::Input))
        && header.output().is_none_or(|test| and(iface(test, transit.output), Cause::Output))
        && header
            .logical_input()
            .is_none_or(|test| and(logical(test, transit.input, transit), Cause::Input))
        && header
            .logical_output()
            .is_none_or(|test| and(logical(test, transit.output, transit), Cause::Output))
        && header.fields().iter().all(|test| and(field(test, transit), Cause::Bytes))
        && header.protocol().is_none_or(|test| and(protocol(test, transit), Cause::Bytes));
    if let (true, Some(invert)) = (go_on, header.fragment()) {
        and(fragment(transit).invert(invert), Cause::Bytes);
    }
    (all, if all.is_known() { None } else { cause })
}

fn iface(test: &IfaceTest, iface: Iface<'_>) -> Outcome {
    match iface {
        Iface::Named(name) => Outcome::from_bool(test.accepts(name)),
        Iface::Absent => Outcome::from_bool(test.accepts("")),
        Iface::Unknown => Outcome::MAYBE,
    }
}

/// The bridge that an interface is a port of. A packet that has no such interface has no bridge there.
fn logical(test: &IfaceTest, port: Iface<'_>, transit: &Transit<'_, '_>) -> Outcome {
    match (port, &transit.host.bridge) {
        (Iface::Absent, _) => Outcome::from_bool(test.accepts("")),
        (_, Some(bridge)) => Outcome::from_bool(test.accepts(bridge)),
        (_, None) => Outcome::MAYBE,
    }
}

fn field(test: &FieldTest, transit: &Transit<'_, '_>) -> Outcome {
    let two = |at: usize| transit.net::<2>(at).map(|[a, b]| [a, b, 0, 0, 0, 0]);
    let read = match test.field {
        Field::EtherType => {
            let [high, low] = transit.packet.headers().link.ethertype.to_be_bytes();
            Read::Known([high, low, 0, 0, 0, 0])
        }
        Field::HardwareType => two(arp::HARDWARE_TYPE.start),
        Field::ProtocolType => two(arp::PROTOCOL_TYPE.start),
        Field::Operation => two(arp::OPERATION.start),
        Field::HardwareLen => {
            transit.net::<1>(arp::HARDWARE_LEN.start).map(|[len]| [len, 0, 0, 0, 0, 0])
        }
        Field::SenderHardware => transit.net(arp::SENDER_HARDWARE.start),
        Field::TargetHardware => transit.net(arp::TARGET_HARDWARE.start),
    };
    match read {
        Read::Known(bytes) => Outcome::from_bool(test.accepts(&bytes)),
        Read::Unknown => Outcome::MAYBE,
        Read::Absent => Outcome::NO,
    }
}

/// IPv6 walks the extension headers to find the protocol; a chain that is cut off there is a hot drop
/// under legacy semantics, and under nft no match even with `!`.
fn protocol(test: ProtocolTest, transit: &Transit<'_, '_>) -> Outcome {
    let is = |number: u8| Outcome::from_bool((number == test.number) != test.invert);
    match transit.upper_layer() {
        L4::Upper(upper) => is(upper.protocol),
        L4::Fragment { protocol, .. } => is(protocol),
        L4::Broken { .. } if transit.backend == Backend::Nft => Outcome::NO,
        L4::Broken { fragment: false } => Outcome::HOT_DROP,
        L4::Broken { fragment: true } | L4::None => Outcome::NO,
        L4::Unknown => match transit.family {
            Family::Ipv6 if transit.backend == Backend::Legacy => {
                Outcome::MAYBE.or(Outcome::HOT_DROP)
            }
            _ => Outcome::MAYBE,
        },
    }
}

/// `-f`: a fragment that does not start the packet.
fn fragment(transit: &Transit<'_, '_>) -> Outcome {
    match transit.packet.headers().l4 {
        L4::Fragment { .. } => Outcome::YES,
        L4::Unknown => Outcome::MAYBE,
        L4::Upper(_) | L4::Broken { .. } | L4::None => Outcome::NO,
    }
}
