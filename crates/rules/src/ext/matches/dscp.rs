//! `-m dscp`: the differentiated services code point, the upper six bits of the type of service byte.
//!
//! Source: iptables-extensions(8); kernel `dscp_mt` in `net/netfilter/xt_dscp.c`; IANA "DSCP" registry
//! for the class names.

use packet::Read;

use crate::error::What;
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "dscp",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("dscp").invertible(), Opt::value("dscp-class").invertible()],
    support: Support::Evaluated,
    parse,
};

/// Largest code point.
const MAX: u64 = 0x3f;

const CLASSES: [(&str, u8); 22] = [
    ("CS0", 0x00),
    ("CS1", 0x08),
    ("CS2", 0x10),
    ("CS3", 0x18),
    ("CS4", 0x20),
    ("CS5", 0x28),
    ("CS6", 0x30),
    ("CS7", 0x38),
    ("BE", 0x00),
    ("AF11", 0x0a),
    ("AF12", 0x0c),
    ("AF13", 0x0e),
    ("AF21", 0x12),
    ("AF22", 0x14),
    ("AF23", 0x16),
    ("AF31", 0x1a),
    ("AF32", 0x1c),
    ("AF33", 0x1e),
    ("AF41", 0x22),
    ("AF42", 0x24),
    ("AF43", 0x26),
    ("EF", 0x2e),
];

/// The code point that exactly one of two options gives, as a number or by its class.
pub(crate) fn parse_dscp<'g, 'a>(
    args: &'g Args<'a>,
    number: &str,
    class: &str,
) -> Result<(u8, &'g Given<'a>), What> {
    args.any_of(&[number, class])?;
    args.one_of(&[number, class])?;
    let given = &args.given[0];
    let dscp = if given.name == number {
        value::number(given.text(), MAX)
            .map(|dscp| dscp as u8)
            .ok_or_else(|| given.expected("a code point 0-0x3f"))?
    } else {
        find_class(given.text()).ok_or_else(|| given.expected("a class CS0-CS7 BE AFxx EF"))?
    };
    Ok((dscp, given))
}

fn find_class(text: &str) -> Option<u8> {
    CLASSES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, dscp)| *dscp)
}

#[derive(Debug)]
struct Dscp {
    dscp: u8,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let (dscp, given) = parse_dscp(args, "dscp", "dscp-class")?;
    Ok(Box::new(Dscp { dscp, invert: given.invert }))
}

impl Match for Dscp {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "dscp", format_args!("{:#04x}", self.dscp));
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.tos() {
            Read::Known(tos) => Outcome::from_bool((tos >> 2 == self.dscp) != self.invert),
            Read::Unknown | Read::Absent => Outcome::MAYBE,
        }
    }

    fn predicate(&self) -> Option<Predicate> {
        Some(Predicate::byte(Field::Tos, self.dscp << 2, 0xfc).inverted(self.invert))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, print};
    use crate::family::Family;

    #[test]
    fn classes_print_as_numbers() {
        let text = print(Family::Ipv6, "-m dscp ! --dscp-class af43").unwrap();
        assert_eq!(text, "-m dscp ! --dscp 0x26");
        for bad in ["--dscp 64", "--dscp-class AF44", "--dscp 1 --dscp-class EF", ""] {
            assert!(print(Family::Ipv4, &format!("-m dscp {bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_lower_two_bits_do_not_count() {
        let mut bytes = ipv4(6, &[]);
        bytes[1] = 0xbb;
        assert_eq!(Frame::ip(&bytes).evaluate("-m dscp --dscp-class EF"), Outcome::YES);
        assert_eq!(Frame::ip(&bytes).evaluate("-m dscp ! --dscp 0x2e"), Outcome::NO);
    }
}
