//! `-m socket`: the packet belongs to an open socket of this host.
//!
//! Which sockets there are is not known. What none has does not match: other protocols than TCP and UDP, headers that are
//! cut, and errors of ICMP that quote nothing of either.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_socket.c`.

use crate::error::What;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::{Family, Hook};
use crate::outcome::Outcome;
use crate::transit::Transit;
use packet::{L4, Read, icmpv4, icmpv6, ipv4, ipv6, ipv6_ext, tcp, udp};

/// Flags in printing order.
const FLAGS: [&str; 3] = ["transparent", "nowildcard", "restore-skmark"];

pub(crate) static KIND: MatchKind = MatchKind {
    name: "socket",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::flag("transparent"), Opt::flag("nowildcard"), Opt::flag("restore-skmark")],
    support: Support::Parsed,
    parse,
};

/// Bit of the types of ICMPv6 that are no errors.
const INFORMATIONAL: u8 = 0x80;
/// Both ports of a quoted packet.
const PORTS_LEN: usize = 4;

#[derive(Debug)]
struct Socket {
    /// Which of [`FLAGS`] are given.
    flags: [bool; FLAGS.len()],
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_hook(&[Hook::Prerouting, Hook::Input])?;
    Ok(Box::new(Socket { flags: FLAGS.map(|name| args.has(name)) }))
}

impl Match for Socket {
    fn print(&self, to: &mut Printer) {
        for (name, given) in FLAGS.into_iter().zip(self.flags) {
            if given {
                to.flag(false, name);
            }
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match may_have_socket(transit) {
            Some(false) => Outcome::NO,
            Some(true) | None => Outcome::MAYBE,
        }
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some("the host's sockets are not known")
    }
}

/// Whether there are ports by which the kernel looks for a socket; `None` where that is not known.
fn may_have_socket(transit: &Transit<'_, '_>) -> Option<bool> {
    let upper = match transit.packet.headers().l4 {
        L4::Upper(upper) => upper,
        L4::Broken { .. } => return Some(false),
        L4::Fragment { .. } | L4::None | L4::Unknown => return None,
    };
    let has = |offset, len| transit.packet.read_slice(offset, len) != Read::Absent;
    let icmp = if transit.family == Family::Ipv6 { icmpv6::PROTOCOL } else { icmpv4::PROTOCOL };
    match upper.protocol {
        tcp::PROTOCOL => Some(has(upper.offset, tcp::MIN_HEADER_LEN)),
        udp::PROTOCOL => Some(has(upper.offset, udp::HEADER_LEN)),
        protocol if protocol == icmp => quotes_ports(transit, upper.offset),
        _ => Some(false),
    }
}

/// Whether the ICMP message at an offset is an error that quotes a packet with ports.
fn quotes_ports(transit: &Transit<'_, '_>, at: usize) -> Option<bool> {
    let read = |offset| match transit.packet.read::<1>(offset) {
        Read::Known([byte]) => Some(Some(byte)),
        Read::Absent => Some(None),
        Read::Unknown => None,
    };
    let is_v6 = transit.family == Family::Ipv6;
    let Some(kind) = read(at)? else { return Some(false) };
    let is_error = if is_v6 { kind & INFORMATIONAL == 0 } else { icmpv4::is_error(kind) };
    let quoted = at + icmpv4::HEADER_LEN;
    let len = if is_v6 { ipv6::HEADER_LEN } else { ipv4::MIN_HEADER_LEN };
    if !is_error || transit.packet.read_slice(quoted, len) == Read::Absent {
        return Some(false);
    }
    let (protocol, ports) = if is_v6 {
        match ipv6_ext::skip(&*transit.packet, quoted) {
            Read::Known(end) => (end.kind, end.offset),
            Read::Absent => return Some(false),
            Read::Unknown => return None,
        }
    } else {
        let (Some(first), Some(protocol)) = (read(quoted)?, read(quoted + ipv4::PROTOCOL.start)?)
        else {
            return Some(false);
        };
        (protocol, quoted + usize::from(first & 0xf) * 4)
    };
    let has_ports = transit.packet.read_slice(ports, PORTS_LEN) != Read::Absent;
    Some(matches!(protocol, tcp::PROTOCOL | udp::PROTOCOL) && has_ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, read_in};
    use host::Host;
    use packet::{Checksums, Link, Packet};

    fn ask(bytes: &[u8]) -> Outcome {
        let mut bytes = bytes.to_vec();
        let family = Frame::ip(&bytes).family;
        let ruleset = read_in(family, "mangle", "PREROUTING", "-m socket --transparent").unwrap();
        let (len, host) = (bytes.len(), Host::default());
        let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
        let transit = Transit::new(&mut packet, family, Hook::Prerouting, &host);
        ruleset.tables[0].chains[0].rules[0].matches[0].body.evaluate(&transit)
    }

    #[test]
    fn only_tcp_and_udp_have_sockets() {
        use Outcome as O;
        let error = |kind, quoted: &[u8]| [&[kind, 0, 0, 0, 0, 0, 0, 0][..], quoted].concat();
        for (packet, expected) in [
            (ipv4(6, &[0; 20]), O::MAYBE),
            (ipv4(6, &[0; 19]), O::NO),
            (ipv4(17, &[0; 8]), O::MAYBE),
            (ipv4(17, &[0; 7]), O::NO),
            (ipv4(47, &[0; 20]), O::NO),
            (ipv4(1, &error(8, &ipv4(17, &[0; 8]))), O::NO),
            (ipv4(1, &error(3, &ipv4(17, &[0; 8]))), O::MAYBE),
            (ipv4(1, &error(3, &ipv4(17, &[0; 3]))), O::NO),
            (ipv4(1, &error(3, &ipv4(47, &[0; 8]))), O::NO),
            (ipv4(1, &error(3, &ipv4(17, &[])[..19])), O::NO),
            (ipv6(17, &[0; 8]), O::MAYBE),
            (ipv6(132, &[0; 20]), O::NO),
            (ipv6(58, &error(1, &ipv6(6, &[0; 20]))), O::MAYBE),
            (ipv6(58, &error(128, &ipv6(6, &[0; 20]))), O::NO),
            (ipv6(58, &error(1, &ipv6(59, &[0; 20]))), O::NO),
        ] {
            assert_eq!(ask(&packet), expected, "{packet:02x?}");
        }
    }
}
