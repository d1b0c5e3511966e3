//! `--ip-src` and kin, `--ip6-src` and kin: fields of the IPv4 or IPv6 packet in a frame.
//!
//! Nothing else of the packet is checked: neither version nor length nor checksum. What is cut off does not
//! match. A later IPv4 fragment has no ports; of IPv6 the search for the upper layer stops at the fragment
//! header, whose bytes then stand for ports.
//!
//! Source: ebtables-nft(8); kernel `net/bridge/netfilter/ebt_ip.c`, `ebt_ip6.c`.

use packet::{Read, ethertype, ipv4, ipv6, ipv6_ext};

use crate::error::What;
use crate::ext::kit::ports::PortTest;
use crate::ext::kit::{native, number};
use crate::ext::matches::icmp::IcmpTest;
use crate::ext::{Args, BRIDGE, Given, Match, MatchKind, Opt, Printer, Support};
use crate::family::Family;
use crate::header::{MaskedAddr, ProtocolTest};
use crate::names::protocol_name;
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

/// IPv4.
pub(crate) static V4_KIND: MatchKind = MatchKind {
    name: "ip",
    aliases: &[],
    families: BRIDGE,
    protocol: None,
    options: &[
        Opt::value("ip-src").alias(&["ip-source"]).invertible(),
        Opt::value("ip-dst").alias(&["ip-destination"]).invertible(),
        Opt::value("ip-tos").invertible(),
        Opt::value("ip-proto").alias(&["ip-protocol"]).invertible(),
        Opt::value("ip-sport").alias(&["ip-source-port"]).invertible(),
        Opt::value("ip-dport").alias(&["ip-destination-port"]).invertible(),
        Opt::value("ip-icmp-type").invertible(),
        Opt::value("ip-igmp-type").invertible(),
    ],
    support: Support::Evaluated,
    parse: |args| parse(args, &V4),
};

/// IPv6.
pub(crate) static V6_KIND: MatchKind = MatchKind {
    name: "ip6",
    aliases: &[],
    families: BRIDGE,
    protocol: None,
    options: &[
        Opt::value("ip6-src").alias(&["ip6-source"]).invertible(),
        Opt::value("ip6-dst").alias(&["ip6-destination"]).invertible(),
        Opt::value("ip6-tclass").invertible(),
        Opt::value("ip6-proto").alias(&["ip6-protocol"]).invertible(),
        Opt::value("ip6-sport").alias(&["ip6-source-port"]).invertible(),
        Opt::value("ip6-dport").alias(&["ip6-destination-port"]).invertible(),
        Opt::value("ip6-icmp-type").invertible(),
    ],
    support: Support::Evaluated,
    parse: |args| parse(args, &V6),
};

/// What differs between the two.
#[derive(Debug)]
struct Version {
    family: Family,
    ethertype: u16,
    source: &'static str,
    destination: &'static str,
    class: &'static str,
    protocol: &'static str,
    ports: [&'static str; 2],
    icmp: &'static str,
    icmp_protocol: u8,
    igmp: &'static str,
}

static V4: Version = Version {
    family: Family::Ipv4,
    ethertype: ethertype::IPV4,
    source: "ip-src",
    destination: "ip-dst",
    class: "ip-tos",
    protocol: "ip-proto",
    ports: ["ip-sport", "ip-dport"],
    icmp: "ip-icmp-type",
    icmp_protocol: 1,
    igmp: "ip-igmp-type",
};

static V6: Version = Version {
    family: Family::Ipv6,
    ethertype: ethertype::IPV6,
    source: "ip6-src",
    destination: "ip6-dst",
    class: "ip6-tclass",
    protocol: "ip6-proto",
    ports: ["ip6-sport", "ip6-dport"],
    icmp: "ip6-icmp-type",
    icmp_protocol: 58,
    igmp: "",
};

const IGMP: u8 = 2;
/// Protocols that have ports.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];
const IGMP_NAMES: [(&str, u8); 5] = [
    ("membership-query", 0x11),
    ("membership-report-v1", 0x12),
    ("membership-report-v2", 0x16),
    ("membership-report-v3", 0x22),
    ("leave-group", 0x17),
];

#[derive(Debug)]
struct Ip {
    version: &'static Version,
    source: Option<MaskedAddr>,
    destination: Option<MaskedAddr>,
    class: Option<(u8, bool)>,
    protocol: Option<ProtocolTest>,
    ports: [Option<PortTest>; 2],
    icmp: Option<IcmpTest>,
    /// Lowest and highest type, and `!`.
    igmp: Option<(u8, u8, bool)>,
}

fn parse(args: &Args<'_>, version: &'static Version) -> Result<Box<dyn Match>, What> {
    args.needs_ethertype(&[version.ethertype])?;
    let address = |name| args.get(name).map(|given| address(given, version.family)).transpose();
    let [source_port, destination_port] =
        version.ports.map(|name| PortTest::parse_given(args, name));
    let class = |given: &Given<'_>| {
        let hex = given.text().trim_start_matches("0x");
        let class = u8::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+'));
        class.map(|class| (class, given.invert)).ok_or_else(|| given.expected("00-ff, hexadecimal"))
    };
    let protocol = |given: &Given<'_>| {
        Ok(ProtocolTest { number: number::protocol(given)?, invert: given.invert })
    };
    let ip = Ip {
        version,
        source: address(version.source)?,
        destination: address(version.destination)?,
        class: args.get(version.class).map(class).transpose()?,
        protocol: args.get(version.protocol).map(protocol).transpose()?,
        ports: [source_port?, destination_port?],
        icmp: args.get(version.icmp).map(|g| IcmpTest::parse(g, version.family)).transpose()?,
        igmp: args.get(version.igmp).map(igmp).transpose()?,
    };
    ip.check(args)?;
    Ok(Box::new(ip))
}

fn address(given: &Given<'_>, family: Family) -> Result<MaskedAddr, What> {
    let (addr, mask) = value::network(given.text(), family.addr_len())
        .ok_or_else(|| given.expected("an address or address/mask of its family"))?;
    Ok(MaskedAddr { addr, mask, invert: given.invert })
}

fn igmp(given: &Given<'_>) -> Result<(u8, u8, bool), What> {
    let named = IGMP_NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(given.text()));
    let range = match named {
        Some((_, kind)) => Some((u64::from(*kind), u64::from(*kind))),
        None => value::range(given.text(), ':', 0xff),
    };
    let (low, high) = range.ok_or_else(|| given.expected("a type 0-255, its range or its name"))?;
    Ok((low as u8, high as u8, given.invert))
}

impl Ip {
    /// Ports and types want the protocol that has them, and exclude each other.
    fn check(&self, args: &Args<'_>) -> Result<(), What> {
        let is = |numbers: &[u8]| {
            self.protocol.is_some_and(|test| !test.invert && numbers.contains(&test.number))
        };
        let version = self.version;
        if self.ports.iter().any(Option::is_some) && !is(&WITH_PORTS) {
            return Err(args.expected(format!("--{} with ports, for ports,", version.protocol)));
        }
        let icmp = protocol_name(version.icmp_protocol).unwrap_or_default();
        if self.icmp.is_some() && !is(&[version.icmp_protocol]) {
            return Err(args.expected(format!("--{} {icmp}", version.protocol)));
        }
        if self.igmp.is_some() && !is(&[IGMP]) {
            return Err(args.expected(format!("--{} igmp", version.protocol)));
        }
        Ok(())
    }

    fn evaluate_address(
        &self,
        test: Option<MaskedAddr>,
        at: usize,
        transit: &Transit<'_, '_>,
    ) -> Outcome {
        let Some(test) = test else { return Outcome::YES };
        match self.version.family {
            Family::Ipv6 => native::test(transit.net::<16>(at), |addr| test.accepts(&addr)),
            _ => native::test(transit.net::<4>(at), |addr| test.accepts(&addr)),
        }
    }

    fn evaluate_class(&self, transit: &Transit<'_, '_>) -> Outcome {
        let Some((wanted, invert)) = self.class else { return Outcome::YES };
        native::test(transit.net::<2>(0), |[first, second]| {
            let class = match self.version.family {
                Family::Ipv6 => first << 4 | second >> 4,
                _ => second,
            };
            (class == wanted) != invert
        })
    }

    /// Protocol and offset of the upper layer; no offset where there is none.
    fn upper(&self, transit: &Transit<'_, '_>) -> Read<(u8, Option<usize>)> {
        let network = transit.packet.network_offset();
        if self.version.family == Family::Ipv6 {
            let found = ipv6_ext::skip(&*transit.packet, network);
            return found.map(|found| (found.kind, Some(found.offset)));
        }
        transit.net::<10>(0).map(|header| {
            let later = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
            let offset = network + usize::from(header[0] & 0x0f) * 4;
            (header[ipv4::PROTOCOL.start], (!later).then_some(offset))
        })
    }

    fn evaluate_upper(&self, transit: &Transit<'_, '_>) -> Outcome {
        let Some(test) = self.protocol else { return Outcome::YES };
        let (protocol, offset) = match self.upper(transit) {
            Read::Known(found) => found,
            Read::Unknown => return Outcome::MAYBE,
            Read::Absent => return Outcome::NO,
        };
        if (protocol == test.number) == test.invert {
            return Outcome::NO;
        }
        let [source, destination] = self.ports;
        if source.is_none() && destination.is_none() && self.icmp.is_none() && self.igmp.is_none() {
            return Outcome::YES;
        }
        let Some(offset) = offset else { return Outcome::NO };
        native::test(transit.packet.read::<4>(offset), |[a, b, c, d]| {
            let port = |test: Option<PortTest>, bytes| {
                test.is_none_or(|test| test.accepts(u16::from_be_bytes(bytes)))
            };
            let icmp = self.icmp.as_ref().is_none_or(|test| test.accepts(a, b));
            let igmp = self.igmp.is_none_or(|(low, high, not)| (low..=high).contains(&a) != not);
            port(source, [a, b]) && port(destination, [c, d]) && icmp && igmp
        })
    }
}

impl Match for Ip {
    fn print(&self, to: &mut Printer) {
        let version = self.version;
        let len = version.family.addr_len();
        for (test, name) in [(self.source, version.source), (self.destination, version.destination)]
        {
            if let Some(MaskedAddr { addr, mask, invert }) = test {
                to.option(invert, name, value::short_network_text(&addr, &mask, len));
            }
        }
        if let Some((class, invert)) = self.class {
            to.option(invert, version.class, format_args!("0x{class:02X}"));
        }
        if let Some(ProtocolTest { number, invert }) = self.protocol {
            match protocol_name(number) {
                Some(name) => to.option(invert, version.protocol, name),
                None => to.option(invert, version.protocol, number),
            };
        }
        for (test, name) in self.ports.iter().zip(version.ports) {
            if let Some(test) = test {
                test.print_always(name, to);
            }
        }
        if let Some(icmp) = &self.icmp {
            icmp.print(version.icmp, version.family, to);
        }
        if let Some((low, high, invert)) = self.igmp {
            let named = IGMP_NAMES.iter().find(|(_, kind)| low == high && *kind == low);
            match named {
                Some((name, _)) => to.option(invert, version.igmp, name),
                None if low == high => to.option(invert, version.igmp, low),
                None => to.option(invert, version.igmp, format_args!("{low}:{high}")),
            };
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let (len, source, destination) = match self.version.family {
            Family::Ipv6 => (ipv6::HEADER_LEN, ipv6::SOURCE.start, ipv6::DESTINATION.start),
            _ => (ipv4::MIN_HEADER_LEN, ipv4::SOURCE.start, ipv4::DESTINATION.start),
        };
        let network = transit.packet.network_offset();
        if transit.packet.read_slice(network, len) == Read::Absent {
            return Outcome::NO;
        }
        self.evaluate_class(transit)
            .and_then(|| self.evaluate_address(self.source, source, transit))
            .and_then(|| self.evaluate_address(self.destination, destination, transit))
            .and_then(|| self.evaluate_upper(transit))
    }
}
