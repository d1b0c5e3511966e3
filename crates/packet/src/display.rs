//! One line about a packet, in the words of the packet SPEC: `tcp 10.0.0.1:1 > 10.0.0.2:2 syn`.
//!
//! What is not all there is named, not guessed: `header-truncated` where the packet ends inside its
//! upper-layer header, `header-unknown` where the capture does (or a target may have rewritten it), `?`
//! for an address that is not known. A fragment ends with `frag=OFFSET` in bytes, and `+` where more
//! follow.

use crate::bytes::{Packet, Read};
use crate::field::{array, be16};
use crate::headers::{L3, L4, Upper};
use crate::ipv6_ext::{self, Find};
use crate::{
    LinkHeader, ah, arp, dccp, esp, ethertype, gre, icmpv4, icmpv6, ipcomp, ipv4, ipv6, sctp, tcp,
    udp,
};
use std::fmt::{self, Display, Formatter};
use std::net::{Ipv4Addr, Ipv6Addr};

impl Display for Packet<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.headers().l3 {
            L3::Ipv4 { .. } | L3::Ipv6 => ip(self, f),
            L3::Arp => arp(self, f),
            L3::Other => layer_name(self, f),
            L3::Fault(fault) => {
                layer_name(self, f)?;
                write!(f, " fault {fault}")
            }
            L3::Unknown => {
                layer_name(self, f)?;
                f.write_str(" header-unknown")
            }
        }
    }
}

/// Name of the network layer that the link header promises.
fn layer_name(packet: &Packet<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    match packet.headers().link.ethertype {
        ethertype::IPV4 => f.write_str("ipv4"),
        ethertype::IPV6 => f.write_str("ipv6"),
        ethertype::ARP => f.write_str("arp"),
        LinkHeader::LLC => f.write_str("llc"),
        0 => f.write_str("frame"),
        other => write!(f, "ethertype {other:#06x}"),
    }
}

fn arp(packet: &Packet<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    let read = packet.read_slice(packet.network_offset(), arp::HEADER_LEN);
    let Some(header) = read.known().and_then(arp::Header::new_checked) else {
        return f.write_str("arp header-unknown");
    };
    let (sender, target) = (header.sender(), header.target());
    match header.operation() {
        arp::REQUEST => write!(f, "arp who-has {target} tell {sender}"),
        arp::REPLY => {
            write!(f, "arp {sender} is-at ")?;
            mac(header.sender_hardware(), f)
        }
        operation => write!(f, "arp operation {operation} {sender} > {target}"),
    }
}

fn mac(address: [u8; 6], f: &mut Formatter<'_>) -> fmt::Result {
    let [a, b, c, d, e, last] = address;
    write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{last:02x}")
}

fn ip(packet: &Packet<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    let (protocol, upper) = match packet.headers().l4 {
        L4::Upper(upper) => (Some(upper.protocol), Some(upper)),
        L4::Fragment { protocol, .. } => (Some(protocol), None),
        L4::Broken { .. } | L4::Unknown | L4::None => (None, None),
    };
    protocol_name(protocol, f)?;
    let [source_port, destination_port] = upper.map_or([None; 2], |upper| ports(packet, &upper));
    f.write_str(" ")?;
    endpoint(packet, [ipv4::SOURCE.start, ipv6::SOURCE.start], source_port, f)?;
    f.write_str(" > ")?;
    endpoint(packet, [ipv4::DESTINATION.start, ipv6::DESTINATION.start], destination_port, f)?;
    match packet.headers().l4 {
        L4::Upper(upper) => message(packet, &upper, f)?,
        L4::Broken { .. } => f.write_str(" extension-headers-broken")?,
        L4::Unknown => f.write_str(" extension-headers-unknown")?,
        L4::Fragment { .. } | L4::None => {}
    }
    fragment(packet, f)
}

fn protocol_name(protocol: Option<u8>, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(match protocol {
        Some(tcp::PROTOCOL) => "tcp",
        Some(udp::PROTOCOL) => "udp",
        Some(udp::PROTOCOL_LITE) => "udplite",
        Some(icmpv4::PROTOCOL) => "icmp",
        Some(icmpv6::PROTOCOL) => "icmpv6",
        Some(sctp::PROTOCOL) => "sctp",
        Some(dccp::PROTOCOL) => "dccp",
        Some(esp::PROTOCOL) => "esp",
        Some(ah::PROTOCOL) => "ah",
        Some(ipcomp::PROTOCOL) => "ipcomp",
        Some(gre::PROTOCOL) => "gre",
        Some(other) => return write!(f, "proto {other}"),
        None => "ipv6",
    })
}

/// Source and destination port of a protocol that has them, where they are known.
fn ports(packet: &Packet<'_>, upper: &Upper) -> [Option<u16>; 2] {
    match upper.protocol {
        tcp::PROTOCOL | udp::PROTOCOL | udp::PROTOCOL_LITE | sctp::PROTOCOL | dccp::PROTOCOL => {
            let port = |at| packet.upper::<2>(upper, at).known().map(u16::from_be_bytes);
            [port(0), port(2)]
        }
        _ => [None; 2],
    }
}

/// An address, whose offset in the IPv4 and in the IPv6 header is given, and its port.
fn endpoint(
    packet: &Packet<'_>,
    [v4, v6]: [usize; 2],
    port: Option<u16>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    let is_v6 = packet.headers().l3 == L3::Ipv6;
    let bracket = is_v6 && port.is_some();
    if bracket {
        f.write_str("[")?;
    }
    let v4 = packet.net::<4>(v4).known().filter(|_| !is_v6).map(Ipv4Addr::from);
    let v6 = packet.net::<16>(v6).known().filter(|_| is_v6).map(Ipv6Addr::from);
    match (v4, v6) {
        (Some(address), _) => write!(f, "{address}")?,
        (_, Some(address)) => write!(f, "{address}")?,
        _ => f.write_str("?")?,
    }
    if bracket {
        f.write_str("]")?;
    }
    port.map_or(Ok(()), |port| write!(f, ":{port}"))
}

/// Prints what the upper-layer header says besides its ports.
fn message(packet: &Packet<'_>, upper: &Upper, f: &mut Formatter<'_>) -> fmt::Result {
    let header_len = match upper.protocol {
        tcp::PROTOCOL => tcp::MIN_HEADER_LEN,
        udp::PROTOCOL | udp::PROTOCOL_LITE => udp::HEADER_LEN,
        icmpv4::PROTOCOL | icmpv6::PROTOCOL => icmpv4::HEADER_LEN,
        sctp::PROTOCOL => sctp::HEADER_LEN,
        dccp::PROTOCOL => dccp::MIN_HEADER_LEN,
        esp::PROTOCOL => esp::HEADER_LEN,
        ah::PROTOCOL => ah::HEADER_LEN,
        _ => 0,
    };
    match packet.read_slice(upper.offset, header_len) {
        Read::Known(header) => known_message(upper.protocol, header, f),
        Read::Unknown => f.write_str(" header-unknown"),
        Read::Absent => f.write_str(" header-truncated"),
    }
}

fn known_message(protocol: u8, header: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    match protocol {
        tcp::PROTOCOL => match tcp::Header::new_checked(header) {
            Some(tcp) => write!(f, " {}", tcp.flags()),
            None => Ok(()),
        },
        icmpv4::PROTOCOL => icmp(header, icmpv4::type_name, f),
        icmpv6::PROTOCOL => icmp(header, icmpv6::type_name, f),
        esp::PROTOCOL => match esp::Header::new_checked(header) {
            Some(esp) => write!(f, " spi={:#x}", esp.spi()),
            None => Ok(()),
        },
        ah::PROTOCOL => match ah::Header::new_checked(header) {
            Some(ah) => write!(f, " spi={:#x}", ah.spi()),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Type by its name, and the code unless it is 0. Both ICMP headers have them in the same places.
fn icmp(
    header: &[u8],
    type_name: fn(u8) -> Option<&'static str>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    let [kind, code] = array(header, icmpv4::TYPE.start..icmpv4::CODE.end);
    match type_name(kind) {
        Some(name) => write!(f, " {name}")?,
        None => write!(f, " type {kind}")?,
    }
    if code == 0 { Ok(()) } else { write!(f, "/{code}") }
}

fn fragment(packet: &Packet<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    let field = match packet.headers().l3 {
        L3::Ipv6 => ipv6_fragment(packet),
        _ => packet.net::<2>(ipv4::FRAGMENT.start).known().and_then(ipv4_fragment),
    };
    let Some((offset, more)) = field else { return Ok(()) };
    write!(f, " frag={offset}{}", if more { "+" } else { "" })
}

/// Offset in bytes, and whether more follow; None for a whole packet.
fn ipv4_fragment(field: [u8; 2]) -> Option<(u32, bool)> {
    let field = be16(&field, 0..2);
    let (offset, more) = (field & ipv4::OFFSET_MASK, field & ipv4::MORE_FRAGMENTS != 0);
    (offset != 0 || more).then_some((u32::from(offset) * 8, more))
}

fn ipv6_fragment(packet: &Packet<'_>) -> Option<(u32, bool)> {
    let found = ipv6_ext::find(packet, packet.network_offset(), Some(ipv6_ext::FRAGMENT));
    let Find::Found { offset, .. } = found else { return None };
    let field = packet.read::<2>(offset.saturating_add(ipv6_ext::FRAGMENT_OFFSET.start)).known()?;
    let field = u16::from_be_bytes(field);
    let offset = u32::from(field & ipv6_ext::OFFSET_MASK);
    Some((offset, field & ipv6_ext::MORE_FRAGMENTS != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::{Addresses, Craft, Ethernet, Fragment, Message, arp_frame};
    use crate::tcp::Flags;
    use crate::{Checksums, Link};

    fn shown(frame: &[u8], wire_len: usize) -> String {
        let mut bytes = frame.to_vec();
        Packet::parse(&mut bytes, wire_len, Link::Ethernet, Checksums::Verify).to_string()
    }

    fn between(source: &str, destination: &str, message: Message) -> Craft {
        let address = |text: &str| text.parse().unwrap();
        Craft::new(Addresses::new(address(source), address(destination)).unwrap(), message)
    }

    fn crafted(craft: &Craft) -> String {
        let frame = craft.frame();
        shown(&frame, frame.len())
    }

    #[test]
    fn the_examples_of_the_command_line() {
        let syn = Message::tcp(51200, 5432, Flags::SYN);
        let tcp = between("198.51.100.7", "10.0.0.9", syn);
        assert_eq!(crafted(&tcp), "tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn");
        let udp = between("2001:db8::1", "2001:db8::2", Message::udp(53, 4000));
        assert_eq!(crafted(&udp), "udp [2001:db8::1]:53 > [2001:db8::2]:4000");
        let echo = Message::Icmp { kind: 8, code: 0, id: 1, sequence: 1 };
        let icmp = between("10.0.0.1", "10.0.0.2", echo);
        assert_eq!(crafted(&icmp), "icmp 10.0.0.1 > 10.0.0.2 echo-request");
        let arp = arp_frame(Ethernet::default(), arp::REQUEST, [10, 0, 0, 2], [10, 0, 0, 1]);
        assert_eq!(shown(&arp, arp.len()), "arp who-has 10.0.0.1 tell 10.0.0.2");
    }

    #[test]
    fn other_protocols_and_messages() {
        let unreachable = Message::Icmp { kind: 1, code: 4, id: 0, sequence: 0 };
        let icmp = between("2001:db8::1", "2001:db8::2", unreachable);
        assert_eq!(crafted(&icmp), "icmpv6 2001:db8::1 > 2001:db8::2 destination-unreachable/4");
        let unnamed = Message::Icmp { kind: 77, code: 0, id: 0, sequence: 0 };
        assert_eq!(
            crafted(&between("10.0.0.1", "10.0.0.2", unnamed)),
            "icmp 10.0.0.1 > 10.0.0.2 type 77"
        );
        let esp = Message::Other { protocol: 50, header: vec![0, 0, 1, 0, 0, 0, 0, 1] };
        assert_eq!(
            crafted(&between("10.0.0.1", "10.0.0.2", esp)),
            "esp 10.0.0.1 > 10.0.0.2 spi=0x100"
        );
        let unknown = Message::Other { protocol: 99, header: vec![] };
        assert_eq!(
            crafted(&between("10.0.0.1", "10.0.0.2", unknown)),
            "proto 99 10.0.0.1 > 10.0.0.2"
        );
        let reply = arp_frame(Ethernet::default(), arp::REPLY, [10, 0, 0, 2], [10, 0, 0, 1]);
        assert_eq!(shown(&reply, reply.len()), "arp 10.0.0.2 is-at 02:00:00:00:00:01");
    }

    #[test]
    fn fragments_say_where_they_lie() {
        let piece = |offset, more, v6| {
            let (source, destination) =
                if v6 { ("2001:db8::1", "2001:db8::2") } else { ("10.0.0.1", "10.0.0.2") };
            let mut craft = between(source, destination, Message::udp(1, 2));
            craft.fragment = Some(Fragment { offset, more });
            craft.payload_len = 16;
            crafted(&craft)
        };
        assert_eq!(piece(0, true, false), "udp 10.0.0.1:1 > 10.0.0.2:2 frag=0+");
        assert_eq!(piece(1480, false, false), "udp 10.0.0.1 > 10.0.0.2 frag=1480");
        assert_eq!(piece(0, true, true), "udp [2001:db8::1]:1 > [2001:db8::2]:2 frag=0+");
        assert_eq!(piece(1448, true, true), "udp 2001:db8::1 > 2001:db8::2 frag=1448+");
    }

    #[test]
    fn what_is_not_there_is_said() {
        let syn = Message::tcp(1, 2, Flags::SYN);
        let frame = between("10.0.0.1", "10.0.0.2", syn).frame();
        assert_eq!(shown(&frame[..40], 54), "tcp 10.0.0.1:1 > 10.0.0.2:2 header-unknown");
        assert_eq!(shown(&frame[..35], 54), "tcp 10.0.0.1 > 10.0.0.2 header-unknown");
        assert_eq!(shown(&frame[..33], 54), "ipv4 header-unknown");
        assert_eq!(shown(&frame[..33], 33), "ipv4 fault truncated");
        assert_eq!(shown(&frame[..9], 54), "frame header-unknown");
        let short = Message::Other { protocol: 6, header: vec![0, 1, 0, 2, 0] };
        let short = between("10.0.0.1", "10.0.0.2", short);
        assert_eq!(crafted(&short), "tcp 10.0.0.1:1 > 10.0.0.2:2 header-truncated");
        let chain = Message::Other { protocol: 60, header: vec![6] };
        let chain = between("2001:db8::1", "2001:db8::2", chain);
        assert_eq!(crafted(&chain), "ipv6 2001:db8::1 > 2001:db8::2 extension-headers-broken");
    }

    #[test]
    fn forgotten_addresses_are_not_shown() {
        let mut frame = between("10.0.0.1", "10.0.0.2", Message::udp(1, 2)).frame();
        let wire_len = frame.len();
        let mut packet = Packet::parse(&mut frame, wire_len, Link::Ethernet, Checksums::Verify);
        packet.forget(30..34);
        packet.forget(36..38);
        assert_eq!(packet.to_string(), "udp 10.0.0.1:1 > ? header-unknown");
    }

    #[test]
    fn other_layers_are_named_by_their_type() {
        let mut frame = [2; 60];
        frame[12..14].copy_from_slice(&[0x88, 0xcc]);
        assert_eq!(shown(&frame, 60), "ethertype 0x88cc");
        frame[12..14].copy_from_slice(&[0, 40]);
        assert_eq!(shown(&frame, 60), "llc");
    }
}
