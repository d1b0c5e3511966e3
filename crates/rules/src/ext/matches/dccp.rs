//! `-m dccp`: ports, packet types and an option of DCCP.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_dccp.c`, `linux/dccp.h`; RFC 4340.

use packet::Read;

use crate::error::What;
use crate::ext::kit::option_walk::has_option;
use crate::ext::kit::ports::{DPORT, PortTest, SPORT, header_start, upper_start};
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

const PROTOCOL: u8 = 33;
/// Length of the generic header without the extended sequence number.
const HEADER: usize = 12;
/// The byte that counts the 32-bit words before the payload.
const WORDS: usize = 4;
/// The byte with the type (4 bits) and, lowest, whether the sequence number is extended.
const TYPE: usize = 8;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "dccp",
    aliases: &[],
    families: IP,
    protocol: Some(PROTOCOL),
    options: &[
        SPORT,
        DPORT,
        Opt::value("dccp-types").invertible(),
        Opt::value("dccp-option").invertible(),
    ],
    support: Support::Evaluated,
    parse,
};

/// Packet types by number; the last name stands for its number and all above.
const TYPES: [&str; 11] = [
    "REQUEST", "RESPONSE", "DATA", "ACK", "DATAACK", "CLOSEREQ", "CLOSE", "RESET", "SYNC",
    "SYNCACK", "INVALID",
];
const INVALID: usize = 10;
const INVALID_TYPES: u16 = 0xfc00;

#[derive(Debug)]
struct Dccp {
    source: Option<PortTest>,
    destination: Option<PortTest>,
    /// Types as bits, and whether they are inverted.
    types: Option<(u16, bool)>,
    /// Option kind, and whether it is inverted.
    option: Option<(u8, bool)>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_protocol(&[PROTOCOL])?;
    let option = match args.get("dccp-option") {
        Some(given) => {
            let kind = value::u8(given.text()).filter(|kind| *kind > 0);
            Some((kind.ok_or_else(|| given.expected("an option kind 1-255"))?, given.invert))
        }
        None => None,
    };
    Ok(Box::new(Dccp {
        source: PortTest::parse_given(args, "sport")?,
        destination: PortTest::parse_given(args, "dport")?,
        types: args.get("dccp-types").map(parse_types).transpose()?,
        option,
    }))
}

fn parse_types(given: &Given<'_>) -> Result<(u16, bool), What> {
    let bits = |name: &str| {
        let place = TYPES.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        Some(if place == INVALID { INVALID_TYPES } else { 1 << place })
    };
    value::list(given.text())
        .try_fold(0, |types, name| Some(types | bits(name)?))
        .filter(|types| *types != 0)
        .map(|types| (types, given.invert))
        .ok_or_else(|| given.expected(format!("a comma list of {}", TYPES.join(" "))))
}

/// Length of the header before its options.
fn base_len(kind: u8) -> usize {
    let extended = if kind & 1 != 0 { 4 } else { 0 };
    let by_type = match kind >> 1 & 0x0f {
        0 => 4,
        2 => 0,
        3..=6 | 8 | 9 => 8,
        _ => 12,
    };
    HEADER + extended + by_type
}

/// Whether the header at `offset` holds the option. One whose data offset makes no sense is dropped,
/// before `!` is applied: `! --dccp-option` matches what it drops (measured).
fn find_option(transit: &Transit<'_, '_>, offset: usize, kind: u8, wanted: u8) -> Outcome {
    let base = base_len(kind);
    let words = match header_start::<1>(transit, offset + WORDS, HEADER - WORDS) {
        Ok([words]) => words,
        Err(Outcome::MAYBE) => return Outcome::MAYBE.or(Outcome::HOT_DROP),
        Err(outcome) => return outcome,
    };
    let Some(len) = (usize::from(words) * 4).checked_sub(base) else {
        return Outcome::HOT_DROP;
    };
    match transit.packet.read_slice(offset + base, len) {
        _ if len == 0 => Outcome::NO,
        Read::Known(options) => Outcome::from_bool(has_option(options, wanted)),
        Read::Unknown => Outcome::MAYBE,
        Read::Absent => Outcome::HOT_DROP,
    }
}

/// Outcomes that a test of an option may have where the header is not known.
fn anything(invert: bool) -> Outcome {
    let any = Outcome::MAYBE.or(Outcome::HOT_DROP);
    any.or(any.invert_drop(invert))
}

impl Dccp {
    fn evaluate_ports(&self, [s0, s1, d0, d1]: [u8; 4]) -> Outcome {
        let passes = |test: Option<PortTest>, port| {
            test.is_none_or(|test| test.accepts(u16::from_be_bytes(port)))
        };
        Outcome::from_bool(passes(self.source, [s0, s1]) && passes(self.destination, [d0, d1]))
    }

    /// The tests of type and option, for the header at `offset`.
    fn evaluate_rest(&self, transit: &Transit<'_, '_>, offset: usize) -> Outcome {
        if self.types.is_none() && self.option.is_none() {
            return Outcome::YES;
        }
        let [byte] = match header_start::<1>(transit, offset + TYPE, HEADER - TYPE) {
            Ok(byte) => byte,
            Err(_) if let Some((_, invert)) = self.option => return anything(invert),
            Err(outcome) => return outcome,
        };
        let kind = byte >> 1 & 0x0f;
        let types = self.types.is_none_or(|(types, invert)| (types >> kind & 1 != 0) != invert);
        Outcome::from_bool(types).and_then(|| self.evaluate_option(transit, offset, byte))
    }

    fn evaluate_option(&self, transit: &Transit<'_, '_>, offset: usize, kind: u8) -> Outcome {
        let Some((wanted, invert)) = self.option else { return Outcome::YES };
        find_option(transit, offset, kind, wanted).invert_drop(invert)
    }
}

impl Match for Dccp {
    fn print(&self, to: &mut Printer) {
        if let Some(source) = self.source {
            source.print_always("sport", to);
        }
        if let Some(destination) = self.destination {
            destination.print_always("dport", to);
        }
        if let Some((types, invert)) = self.types {
            let names: Vec<&str> = TYPES
                .iter()
                .enumerate()
                .filter(|(place, _)| types >> place & 1 != 0)
                .map(|(_, name)| *name)
                .collect();
            to.option(invert, "dccp-types", names.join(","));
        }
        if let Some((kind, invert)) = self.option {
            to.option(invert, "dccp-option", kind);
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match upper_start(transit, HEADER) {
            Ok((offset, ports)) => {
                self.evaluate_ports(ports).and_then(|| self.evaluate_rest(transit, offset))
            }
            Err(Outcome::MAYBE) if let Some((_, invert)) = self.option => anything(invert),
            Err(outcome) => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, print};
    use crate::family::Family;

    #[test]
    fn types_print_by_number() {
        let text = |rule: &str| print(Family::Ipv6, &format!("-p dccp -m dccp {rule}"));
        assert_eq!(
            text("! --dccp-types invalid,Ack,,REQUEST --sport :").unwrap(),
            "-p dccp -m dccp --sport 0:65535 ! --dccp-types REQUEST,ACK,INVALID"
        );
        for bad in ["--dccp-types FOO", "--dccp-types ,", "--dccp-option 0", "--dccp-option 256"] {
            assert!(text(bad).is_err(), "{bad}");
        }
        assert!(print(Family::Ipv4, "-m dccp --sport 1").is_err());
    }

    /// A header of `words` words and this type byte, then `rest`.
    fn dccp(words: u8, kind: u8, rest: &[u8]) -> Vec<u8> {
        ipv4(33, &[&[0, 1, 0, 2, words, 0, 0, 0, kind, 0, 0, 0][..], rest].concat())
    }

    #[test]
    fn types_above_the_known_ones_are_invalid() {
        for (kind, name) in [(0, "REQUEST"), (9, "SYNCACK"), (10, "INVALID"), (15, "INVALID")] {
            let packet = dccp(3, kind << 1, &[]);
            let rule = format!("-p dccp --dccp-types {name}");
            assert_eq!(Frame::ip(&packet).evaluate(&rule), Outcome::YES, "{kind}");
            assert_eq!(Frame::ip(&packet).evaluate("-p dccp --dccp-types ACK"), Outcome::NO);
        }
    }

    #[test]
    fn options_lie_after_the_header_of_the_type() {
        // DATA has no header of its own, ACK has 8 bytes, RESET 12; an extended number adds 4.
        for (kind, skipped) in [(2 << 1, 0), (3 << 1, 8), (7 << 1, 12), (2 << 1 | 1, 4)] {
            let mut rest = vec![0; skipped];
            rest.extend_from_slice(&[32, 3, 9, 41]);
            let packet = dccp(4 + skipped as u8 / 4, kind, &rest);
            let frame = Frame::ip(&packet);
            assert_eq!(frame.evaluate("-p dccp --dccp-option 41"), Outcome::YES, "{kind}");
            assert_eq!(frame.evaluate("-p dccp --dccp-option 9"), Outcome::NO, "{kind}");
            assert_eq!(frame.evaluate("-p dccp ! --dccp-option 9"), Outcome::YES, "{kind}");
        }
    }

    #[test]
    fn malformed_headers_are_dropped() {
        let option = "-p dccp --dccp-option 9";
        assert_eq!(Frame::ip(&dccp(2, 2 << 1, &[])).evaluate(option), Outcome::HOT_DROP);
        assert_eq!(Frame::ip(&dccp(4, 2 << 1, &[])).evaluate(option), Outcome::HOT_DROP);
        let inverted = Frame::ip(&dccp(4, 2 << 1, &[])).evaluate("-p dccp ! --dccp-option 32");
        assert_eq!(inverted, Outcome::HIT_DROP);
        assert_eq!(Frame::ip(&dccp(3, 2 << 1, &[])).evaluate(option), Outcome::NO);
        let short = ipv4(33, &[0; 11]);
        assert_eq!(Frame::ip(&short).evaluate("-p dccp -m dccp"), Outcome::HOT_DROP);
    }
}
