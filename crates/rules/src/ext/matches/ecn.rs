//! `-m ecn`: the ECN bits of the IP header and of TCP.
//!
//! The TCP bits are read wherever the upper-layer header would be: also in a later fragment, where they
//! are payload (IPv4) or bytes of the IPv6 header. A packet that ends before them does not match, be it
//! inverted. Source: iptables-extensions(8); kernel `net/netfilter/xt_ecn.c`; RFC 3168.

use crate::error::What;
use crate::ext::kit::tcp_header;
use crate::ext::kit::tcp_header::{CWR, ECE};
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;
use packet::Read;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "ecn",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::flag("ecn-tcp-cwr").invertible(),
        Opt::flag("ecn-tcp-ece").invertible(),
        Opt::value("ecn-ip-ect").invertible(),
    ],
    support: Support::Evaluated,
    parse,
};

/// Each test is the wanted value and whether it is inverted.
#[derive(Debug)]
struct Ecn {
    ece: Option<bool>,
    cwr: Option<bool>,
    ect: Option<(u8, bool)>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&["ecn-tcp-cwr", "ecn-tcp-ece", "ecn-ip-ect"])?;
    let flag = |name| args.get(name).map(|given| given.invert);
    let (ece, cwr) = (flag("ecn-tcp-ece"), flag("ecn-tcp-cwr"));
    if ece.is_some() || cwr.is_some() {
        args.needs_protocol(&[tcp_header::PROTOCOL])?;
    }
    let ect = match args.get("ecn-ip-ect") {
        Some(given) => {
            let ect =
                value::number(given.text(), 3).ok_or_else(|| given.expected("a code point 0-3"))?;
            Some((ect as u8, given.invert))
        }
        None => None,
    };
    Ok(Box::new(Ecn { ece, cwr, ect }))
}

impl Ecn {
    fn evaluate_ip(&self, transit: &Transit<'_, '_>) -> Outcome {
        let Some((ect, invert)) = self.ect else { return Outcome::YES };
        match transit.tos() {
            Read::Known(tos) => Outcome::from_bool((tos & 3 == ect) != invert),
            Read::Unknown | Read::Absent => Outcome::MAYBE,
        }
    }

    fn evaluate_tcp(&self, transit: &Transit<'_, '_>) -> Outcome {
        if self.ece.is_none() && self.cwr.is_none() {
            return Outcome::YES;
        }
        let Some(tcp) = tcp_header::offset(transit) else { return Outcome::MAYBE };
        if transit.packet.read_slice(tcp, tcp_header::MIN_LEN) == Read::Absent {
            return Outcome::NO;
        }
        let Read::Known([flags]) = transit.packet.read(tcp + tcp_header::FLAGS) else {
            return Outcome::MAYBE;
        };
        let passes =
            |test: Option<bool>, bit: u8| test.is_none_or(|invert| (flags & bit != 0) != invert);
        Outcome::from_bool(passes(self.ece, ECE) && passes(self.cwr, CWR))
    }
}

impl Match for Ecn {
    fn print(&self, to: &mut Printer) {
        if let Some(invert) = self.ece {
            to.flag(invert, "ecn-tcp-ece");
        }
        if let Some(invert) = self.cwr {
            to.flag(invert, "ecn-tcp-cwr");
        }
        if let Some((ect, invert)) = self.ect {
            to.option(invert, "ecn-ip-ect", ect);
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        self.evaluate_ip(transit).and_then(|| self.evaluate_tcp(transit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, print};
    use crate::family::Family;

    fn tcp(flags: u8) -> [u8; 20] {
        let mut tcp = [0; 20];
        tcp[12] = 0x50;
        tcp[13] = flags;
        tcp
    }

    #[test]
    fn the_tcp_bits_need_tcp() {
        assert!(print(Family::Ipv4, "-m ecn --ecn-tcp-ece").is_err());
        assert!(print(Family::Ipv4, "! -p tcp -m ecn --ecn-tcp-ece").is_err());
        assert!(print(Family::Ipv4, "-m ecn --ecn-ip-ect 4").is_err());
        assert!(print(Family::Ipv4, "-m ecn --ecn-ip-ect 3").is_ok());
    }

    #[test]
    fn every_given_bit_must_be_as_wanted() {
        for packet in [ipv4(6, &tcp(ECE)), ipv6(6, &tcp(ECE))] {
            let frame = Frame::ip(&packet);
            let evaluate = |rule: &str| frame.evaluate(&format!("-p tcp -m ecn {rule}"));
            assert_eq!(evaluate("--ecn-tcp-ece"), Outcome::YES);
            assert_eq!(evaluate("--ecn-tcp-ece --ecn-tcp-cwr"), Outcome::NO);
            assert_eq!(evaluate("--ecn-tcp-ece ! --ecn-tcp-cwr"), Outcome::YES);
            assert_eq!(evaluate("--ecn-tcp-ece --ecn-ip-ect 1"), Outcome::NO);
            assert_eq!(evaluate("! --ecn-tcp-ece --ecn-ip-ect 0"), Outcome::NO);
        }
    }

    #[test]
    fn a_short_header_does_not_match_and_a_cut_one_may() {
        let short = ipv4(6, &tcp(ECE)[..16]);
        assert_eq!(Frame::ip(&short).evaluate("-p tcp -m ecn ! --ecn-tcp-ece"), Outcome::NO);
        let whole = ipv4(6, &tcp(ECE));
        let cut = Frame::ip(&whole).cut(30);
        assert_eq!(cut.evaluate("-p tcp -m ecn ! --ecn-tcp-ece"), Outcome::MAYBE);
        assert_eq!(Frame::ip(&whole).cut(34).evaluate("-p tcp -m ecn --ecn-tcp-ece"), Outcome::YES);
    }

    #[test]
    fn a_later_fragment_is_read_as_if_it_held_the_header() {
        let mut later = ipv4(6, &tcp(ECE));
        later[7] = 4;
        assert_eq!(Frame::ip(&later).evaluate("-p tcp -m ecn --ecn-tcp-ece"), Outcome::YES);
    }
}
