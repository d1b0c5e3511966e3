//! `-m rt`: the IPv6 routing header, and the addresses of type 0.
//!
//! `--rt-0-addrs` wants exactly the listed addresses; with `--rt-0-not-strict` they may stand among
//! others, in order. A header that claims more bytes than the packet has is dropped on the spot (measured on
//! Linux 6.18). Source: iptables-extensions(8); kernel `net/ipv6/netfilter/ip6t_rt.c`; RFC 8200.

use packet::{Read, ipv6_ext};

use crate::error::What;
use crate::ext::kit::ipv6_chain;
use crate::ext::kit::ports::header_start;
use crate::ext::kit::span::Span;
use crate::ext::{Args, Given, Match, MatchKind, Opt, Printer, Support, V6};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

/// Most addresses in a list (`IP6T_RT_HOPS`).
const MAX_ADDRESSES: usize = 16;
/// Bytes of a type 0 header before its addresses; the last four are reserved.
const FIXED: usize = 8;
const RESERVED: usize = 4;
const ADDRESS: usize = 16;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "rt",
    aliases: &[],
    families: V6,
    protocol: None,
    options: &[
        Opt::value("rt-type").invertible(),
        Opt::value("rt-segsleft").invertible(),
        Opt::value("rt-len").invertible(),
        Opt::flag("rt-0-res"),
        Opt::value("rt-0-addrs"),
        Opt::flag("rt-0-not-strict"),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Rt {
    /// Type, and whether it is inverted.
    kind: Option<(u32, bool)>,
    segments_left: Span,
    /// Length in bytes, and whether it is inverted.
    len: Option<(u32, bool)>,
    reserved: bool,
    addresses: Option<Box<[[u8; ADDRESS]]>>,
    strict: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let kind = number(args, "rt-type")?;
    for name in ["rt-0-res", "rt-0-addrs"] {
        if args.has(name) && (kind != Some((0, false)) || !precedes(args, "rt-type", name)) {
            return Err(args.expected(format!("--rt-type 0 before --{name}")));
        }
    }
    if args.has("rt-0-not-strict") && !precedes(args, "rt-0-addrs", "rt-0-not-strict") {
        return Err(args.expected("--rt-0-addrs before --rt-0-not-strict"));
    }
    Ok(Box::new(Rt {
        kind,
        segments_left: Span::parse(args, "rt-segsleft", u32::MAX)?,
        len: number(args, "rt-len")?,
        reserved: args.has("rt-0-res"),
        addresses: args.get("rt-0-addrs").map(parse_addresses).transpose()?,
        strict: !args.has("rt-0-not-strict"),
    }))
}

/// The number of an option, and whether it is inverted.
fn number(args: &Args<'_>, name: &str) -> Result<Option<(u32, bool)>, What> {
    let Some(given) = args.get(name) else { return Ok(None) };
    let number = value::u32(given.text()).ok_or_else(|| given.expected("a number of 32 bits"))?;
    Ok(Some((number, given.invert)))
}

fn precedes(args: &Args<'_>, first: &str, second: &str) -> bool {
    let place = |name| args.given.iter().position(|given| given.name == name);
    place(first).is_some_and(|first| Some(first) < place(second))
}

fn parse_addresses(given: &Given<'_>) -> Result<Box<[[u8; ADDRESS]]>, What> {
    let addresses: Option<Box<[_]>> =
        given.text().split(',').map(|text| value::address(text, ADDRESS)).collect();
    addresses
        .filter(|list| list.len() <= MAX_ADDRESSES)
        .ok_or_else(|| given.expected(format!("a comma list of at most {MAX_ADDRESSES} addresses")))
}

impl Rt {
    /// The tests of the fixed part: next header, length, type, segments left.
    fn evaluate_fixed(&self, [_, _, kind, left]: [u8; 4], len: usize) -> Outcome {
        let passes = |test: Option<(u32, bool)>, number: usize| {
            test.is_none_or(|(wanted, invert)| (wanted as usize == number) != invert)
        };
        Outcome::from_bool(
            self.segments_left.accepts(left.into())
                && passes(self.len, len)
                && passes(self.kind, kind.into()),
        )
    }

    fn evaluate_reserved(&self, transit: &Transit<'_, '_>, at: usize) -> Outcome {
        if !self.reserved {
            return Outcome::YES;
        }
        match transit.packet.read::<4>(at + RESERVED) {
            Read::Known(reserved) => Outcome::from_bool(reserved == [0; 4]),
            Read::Unknown => Outcome::MAYBE,
            Read::Absent => Outcome::HOT_DROP,
        }
    }

    /// The addresses of a header of `len` bytes at `at`, all of which lie inside the packet.
    fn evaluate_addresses(&self, transit: &Transit<'_, '_>, at: usize, len: usize) -> Outcome {
        let Some(wanted) = &self.addresses else { return Outcome::YES };
        let count = (len - FIXED) / ADDRESS;
        if wanted.len() > count || (self.strict && wanted.len() != count) {
            return Outcome::NO;
        }
        let mut next = 0;
        for index in 0..count {
            let address = transit.packet.read::<ADDRESS>(at + FIXED + index * ADDRESS);
            let Read::Known(address) = address else { return Outcome::MAYBE };
            if wanted.get(next) == Some(&address) {
                next += 1;
            } else if self.strict {
                return Outcome::NO;
            }
            if next == wanted.len() {
                return Outcome::YES;
            }
        }
        Outcome::NO
    }
}

impl Match for Rt {
    fn print(&self, to: &mut Printer) {
        if let Some((kind, invert)) = self.kind {
            to.option(invert, "rt-type", kind);
        }
        self.segments_left.print("rt-segsleft", to);
        if let Some((len, invert)) = self.len {
            to.option(invert, "rt-len", len);
        }
        if self.reserved {
            to.flag(false, "rt-0-res");
        }
        if let Some(addresses) = &self.addresses {
            let list: Vec<String> =
                addresses.iter().map(|addr| value::address_text(addr, ADDRESS)).collect();
            to.option(false, "rt-0-addrs", list.join(","));
        }
        if !self.strict {
            to.flag(false, "rt-0-not-strict");
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let header = ipv6_chain::find(transit, ipv6_ext::ROUTING)
            .and_then(|at| Ok((at, header_start::<4>(transit, at, 4)?)));
        let (at, fixed) = match header {
            Ok(header) => header,
            Err(outcome) => return outcome,
        };
        let len = ipv6_chain::len_of(fixed[1]);
        if transit.packet.headers().end.saturating_sub(at) < len {
            return Outcome::HOT_DROP;
        }
        self.evaluate_fixed(fixed, len)
            .and_then(|| self.evaluate_reserved(transit, at))
            .and_then(|| self.evaluate_addresses(transit, at, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv6, print};
    use crate::family::Family;

    #[test]
    fn type_zero_options_need_type_zero_before_them() {
        let rule = "-m rt --rt-type 0 --rt-0-addrs ::1,2001:db8::1 --rt-0-not-strict";
        assert_eq!(print(Family::Ipv6, rule).unwrap(), rule);
        for bad in [
            "--rt-0-res",
            "--rt-0-res --rt-type 0",
            "--rt-type 1 --rt-0-res",
            "! --rt-type 0 --rt-0-res",
            "--rt-type 0 --rt-0-not-strict",
            "--rt-type 0 --rt-0-not-strict --rt-0-addrs ::1",
            "--rt-type 0 --rt-0-addrs ::1,",
            "--rt-segsleft 4:3",
        ] {
            assert!(print(Family::Ipv6, &format!("-m rt {bad}")).is_err(), "{bad}");
        }
    }

    fn routing(kind: u8, left: u8, reserved: u8, last_bytes: &[u8]) -> Vec<u8> {
        let mut header = vec![59, last_bytes.len() as u8 * 2, kind, left, reserved, 0, 0, 0];
        for last in last_bytes {
            header.extend_from_slice(&[0; 15]);
            header.push(*last);
        }
        ipv6(43, &header)
    }

    #[test]
    fn the_fixed_part_is_tested() {
        let packet = routing(0, 2, 1, &[1, 2]);
        for (rule, matches) in [
            ("", true),
            ("--rt-type 0 --rt-segsleft 1:2 --rt-len 40", true),
            ("! --rt-type 0", false),
            ("! --rt-segsleft 2", false),
            ("! --rt-len 40", false),
            ("--rt-type 256", false),
            ("--rt-type 0 --rt-0-res", false),
        ] {
            let rule = format!("-m rt {rule}");
            assert_eq!(Frame::ip(&packet).evaluate(&rule), Outcome::from_bool(matches), "{rule}");
        }
    }

    #[test]
    fn addresses_are_all_or_among_others() {
        let packet = routing(0, 2, 0, &[1, 2, 3]);
        for (list, strict, loose) in [
            ("::1,::2,::3", true, true),
            ("::1,::2", false, true),
            ("::1,::3", false, true),
            ("::3,::1", false, false),
            ("::1,::2,::4", false, false),
            ("::1,::2,::3,::4", false, false),
        ] {
            let rule = format!("-m rt --rt-type 0 --rt-0-res --rt-0-addrs {list}");
            assert_eq!(Frame::ip(&packet).evaluate(&rule), Outcome::from_bool(strict), "{rule}");
            let rule = format!("{rule} --rt-0-not-strict");
            assert_eq!(Frame::ip(&packet).evaluate(&rule), Outcome::from_bool(loose), "{rule}");
        }
        let cut = Frame::ip(&packet).cut(50);
        assert_eq!(cut.evaluate("-m rt --rt-type 0 --rt-0-addrs ::1"), Outcome::NO);
        assert_eq!(cut.evaluate("-m rt --rt-type 0 --rt-0-addrs ::1,::2,::3"), Outcome::MAYBE);
    }

    #[test]
    fn short_headers() {
        assert_eq!(Frame::ip(&ipv6(43, &[59, 0, 0])).evaluate("-m rt"), Outcome::HOT_DROP);
        let long = ipv6(43, &[59, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Frame::ip(&long).evaluate("-m rt"), Outcome::HOT_DROP);
        assert_eq!(Frame::ip(&ipv6(59, &[])).evaluate("-m rt"), Outcome::NO);
    }
}
