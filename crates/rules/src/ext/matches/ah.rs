//! `-m ah`: the SPI of an authentication header.
//!
//! IPv4 takes it as the upper layer and wants `-p ah`; IPv6 looks for it among the extension headers and
//! can test its length and reserved field as well; there a header that claims more bytes than the packet has
//! is dropped on the spot (measured on Linux 6.18). Source: iptables-extensions(8); kernel
//! `net/ipv4/netfilter/ipt_ah.c`, `net/ipv6/netfilter/ip6t_ah.c`; RFC 4302.

use packet::ipv6_ext;

use crate::error::What;
use crate::ext::kit::ipv6_chain;
use crate::ext::kit::ports::{header_start, upper_start};
use crate::ext::kit::span::Span;
use crate::ext::{Args, Match, MatchKind, Opt, Printer, Support, V4, V6};
use crate::family::Family;
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

const PROTOCOL: u8 = ipv6_ext::AUTH;
/// Next header, length, reserved (2), SPI (4), sequence number (4).
const HEADER: usize = 12;

/// IPv4.
pub(crate) static V4_KIND: MatchKind = MatchKind {
    name: "ah",
    aliases: &[],
    families: V4,
    protocol: Some(PROTOCOL),
    options: &[Opt::value("ahspi").invertible()],
    support: Support::Evaluated,
    parse,
};

/// IPv6.
pub(crate) static V6_KIND: MatchKind = MatchKind {
    families: V6,
    options: &[
        Opt::value("ahspi").invertible(),
        Opt::value("ahlen").invertible(),
        Opt::flag("ahres"),
    ],
    ..V4_KIND
};

#[derive(Debug)]
struct Ah {
    spi: Span,
    /// Header length in bytes; 0 is no test, whatever `invert_len` says.
    len: u32,
    invert_len: bool,
    reserved: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    if args.family == Family::Ipv4 {
        args.needs_protocol(&[PROTOCOL])?;
    }
    let (len, invert_len) = match args.get("ahlen") {
        Some(given) => {
            let len = value::u32(given.text());
            (len.ok_or_else(|| given.expected("a length of 32 bits"))?, given.invert)
        }
        None => (0, false),
    };
    let spi = Span::parse(args, "ahspi", u32::MAX)?;
    Ok(Box::new(Ah { spi, len, invert_len, reserved: args.has("ahres") }))
}

impl Ah {
    fn evaluate_header(&self, header: Result<[u8; 8], Outcome>) -> Outcome {
        let spi = |b: [u8; 8]| u32::from_be_bytes([b[4], b[5], b[6], b[7]]);
        self.spi.evaluate(header.map(spi)).and_then(|| self.evaluate_rest(header))
    }

    fn evaluate_rest(&self, header: Result<[u8; 8], Outcome>) -> Outcome {
        if self.len == 0 && !self.reserved {
            return Outcome::YES;
        }
        let header = match header {
            Ok(header) => header,
            Err(outcome) => return outcome,
        };
        let len_is = self.len as usize == len_of(header[1]);
        let len_passes = self.len == 0 || len_is != self.invert_len;
        Outcome::from_bool(len_passes && !(self.reserved && header[2..4] != [0, 0]))
    }
}

/// A hot drop where the packet ends before the IPv6 header at `at` does.
fn is_whole(transit: &Transit<'_, '_>, at: usize) -> Outcome {
    match header_start::<2>(transit, at, HEADER) {
        Ok([_, field]) => {
            let left = transit.packet.headers().end.saturating_sub(at);
            if left < len_of(field) { Outcome::HOT_DROP } else { Outcome::YES }
        }
        Err(outcome) => outcome,
    }
}

/// Length in bytes that the length field stands for.
fn len_of(field: u8) -> usize {
    (usize::from(field) + 2) * 4
}

impl Match for Ah {
    fn print(&self, to: &mut Printer) {
        self.spi.print("ahspi", to);
        if self.len != 0 || self.invert_len {
            to.option(self.invert_len, "ahlen", self.len);
        }
        if self.reserved {
            to.flag(false, "ahres");
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.family {
            Family::Ipv6 => match ipv6_chain::find(transit, PROTOCOL) {
                Ok(at) => is_whole(transit, at)
                    .and_then(|| self.evaluate_header(header_start(transit, at, HEADER))),
                Err(outcome) => outcome,
            },
            _ => self.evaluate_header(upper_start(transit, HEADER).map(|(_, header)| header)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, print};

    const AH: [u8; 16] = [17, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 9, 9, 9, 9];

    #[test]
    fn the_families_differ_in_their_options() {
        assert!(print(Family::Ipv4, "-m ah --ahspi 1").is_err());
        assert!(print(Family::Ipv4, "-p ah -m ah --ahlen 1").is_err());
        let text = print(Family::Ipv6, "-m ah --ahres ! --ahlen 0 --ahspi 1:2").unwrap();
        assert_eq!(text, "-m ah --ahspi 1:2 ! --ahlen 0 --ahres");
    }

    #[test]
    fn ipv4_reads_the_upper_layer() {
        let packet = ipv4(51, &AH);
        assert_eq!(Frame::ip(&packet).evaluate("-p ah --ahspi 256"), Outcome::YES);
        assert_eq!(Frame::ip(&packet).evaluate("-p ah ! --ahspi 200:300"), Outcome::NO);
        let short = ipv4(51, &AH[..11]);
        assert_eq!(Frame::ip(&short).evaluate("-p ah -m ah"), Outcome::HOT_DROP);
    }

    #[test]
    fn ipv6_finds_the_header_and_tests_all_of_it() {
        let mut chain = [&[51, 0, 1, 4, 0, 0, 0, 0][..], &AH, &[0; 8]].concat();
        let packet = ipv6(60, &chain);
        for (rule, matches) in [
            ("--ahspi 256", true),
            ("--ahspi 256 --ahlen 16", true),
            ("--ahlen 20", false),
            ("! --ahlen 16", false),
            ("! --ahlen 0", true),
            ("--ahres", true),
        ] {
            let rule = format!("-m ah {rule}");
            assert_eq!(Frame::ip(&packet).evaluate(&rule), Outcome::from_bool(matches), "{rule}");
        }
        chain[10] = 1;
        assert_eq!(Frame::ip(&ipv6(60, &chain)).evaluate("-m ah --ahres"), Outcome::NO);
        assert_eq!(Frame::ip(&ipv6(17, &[0; 8])).evaluate("-m ah"), Outcome::NO);
        assert_eq!(Frame::ip(&ipv6(51, &AH[..8])).evaluate("-m ah"), Outcome::HOT_DROP);
        assert_eq!(Frame::ip(&ipv6(51, &AH[..12])).evaluate("-m ah"), Outcome::HOT_DROP);
        let cut = Frame::ip(&packet).cut(50);
        assert_eq!(cut.evaluate("-m ah"), Outcome::YES);
        let open = Frame::ip(&packet).cut(48).evaluate("-m ah");
        assert_eq!(open, Outcome::MAYBE.or(Outcome::HOT_DROP));
        assert_eq!(cut.evaluate("-m ah --ahres"), Outcome::MAYBE);
    }
}
