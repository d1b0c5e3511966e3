//! `-m eui64`: the source address ends in the EUI-64 of the sender's Ethernet address.
//!
//! Off Ethernet there is nothing to compare, and it does not match (measured on Linux 6.18, fragments
//! included, which kernels of old dropped). Source: iptables-extensions(8); kernel
//! `net/ipv6/netfilter/ip6t_eui64.c`; RFC 4291, appendix A.

use packet::{Read, ethertype};

use crate::error::What;
use crate::ext::{Args, Match, MatchKind, Printer, Support, V6};
use crate::family::Hook;
use crate::outcome::Outcome;
use crate::transit::Transit;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "eui64",
    aliases: &[],
    families: V6,
    protocol: None,
    options: &[],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Eui64;

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_hook(&[Hook::Prerouting, Hook::Input, Hook::Forward])?;
    Ok(Box::new(Eui64))
}

/// The interface identifier of an Ethernet address: `ff:fe` in the middle, universal/local bit flipped.
fn identifier([a, b, c, d, e, f]: [u8; 6]) -> [u8; 8] {
    [a ^ 0x02, b, c, 0xff, 0xfe, d, e, f]
}

impl Match for Eui64 {
    fn print(&self, _to: &mut Printer) {}

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let headers = transit.packet.headers();
        match (transit.packet.source_mac(), transit.net::<8>(16)) {
            (Read::Absent, _) => Outcome::NO,
            _ if headers.link.ethertype != ethertype::IPV6 => Outcome::NO,
            (Read::Known(mac), Read::Known(found)) => Outcome::from_bool(identifier(mac) == found),
            _ => Outcome::MAYBE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv6, read_in};
    use crate::family::Family;
    use packet::Link;

    #[test]
    fn it_stands_where_a_sender_is_known() {
        assert!(read_in(Family::Ipv6, "raw", "PREROUTING", "-m eui64").is_ok());
        assert!(read_in(Family::Ipv6, "filter", "OUTPUT", "-m eui64").is_err());
    }

    #[test]
    fn the_sender_is_compared() {
        let mut packet = ipv6(17, &[0; 8]);
        packet[16..24].copy_from_slice(&[0x50, 0x54, 0, 0xff, 0xfe, 1, 2, 3]);
        let frame = [&[2; 6][..], &[0x52, 0x54, 0, 1, 2, 3], &[0x86, 0xdd], &packet].concat();
        let ethernet = Frame { link: Link::Ethernet, family: Family::Ipv6, ..Frame::ip(&frame) };
        assert_eq!(ethernet.evaluate("-m eui64"), Outcome::YES);
        assert_eq!(Frame::ip(&packet).evaluate("-m eui64"), Outcome::NO);
        let mut other = frame.clone();
        other[11] = 4;
        assert_eq!(Frame { bytes: &other, ..ethernet }.evaluate("-m eui64"), Outcome::NO);
    }
}
