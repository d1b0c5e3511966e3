//! `-m tos`: the whole type of service byte, or IPv6 traffic class, under a mask.
//!
//! Source: iptables-extensions(8); kernel `tos_mt` in `net/netfilter/xt_dscp.c`; RFC 1349 for the names.

use packet::Read;

use crate::error::What;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "tos",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("tos").invertible()],
    support: Support::Evaluated,
    parse,
};

/// What `--tos` and `--set-tos` want.
pub(crate) const WANTED: &str = "value or value/mask of 8 bits, or the name of a type of service";

/// Mask of a type of service given by its name.
const NAME_MASK: u8 = 0x3f;

const NAMES: [(&str, u8); 5] = [
    ("Minimize-Delay", 0x10),
    ("Maximize-Throughput", 0x08),
    ("Maximize-Reliability", 0x04),
    ("Minimize-Cost", 0x02),
    ("Normal-Service", 0x00),
];

/// `value[/mask]` or a name, as value and mask.
pub(crate) fn parse_tos(text: &str) -> Option<(u8, u8)> {
    if let Some((_, tos)) = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        return Some((*tos, NAME_MASK));
    }
    match text.split_once('/') {
        Some((tos, mask)) => Some((value::u8(tos)?, value::u8(mask)?)),
        None => Some((value::u8(text)?, u8::MAX)),
    }
}

/// Value and mask as they are printed.
pub(crate) fn tos_text(tos: u8, mask: u8) -> String {
    format!("{tos:#04x}/{mask:#04x}")
}

#[derive(Debug)]
struct Tos {
    tos: u8,
    mask: u8,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("tos")?;
    let (tos, mask) = parse_tos(given.text()).ok_or_else(|| given.expected(WANTED))?;
    Ok(Box::new(Tos { tos, mask, invert: given.invert }))
}

impl Match for Tos {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "tos", tos_text(self.tos, self.mask));
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.tos() {
            Read::Known(tos) => Outcome::from_bool((tos & self.mask == self.tos) != self.invert),
            Read::Unknown | Read::Absent => Outcome::MAYBE,
        }
    }

    fn predicate(&self) -> Option<Predicate> {
        Some(Predicate::byte(Field::Tos, self.tos, self.mask).inverted(self.invert))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6};

    #[test]
    fn names_numbers_and_masks() {
        assert_eq!(parse_tos("minimize-cost"), Some((2, 0x3f)));
        assert_eq!(parse_tos("0x0f/15"), Some((15, 15)));
        assert_eq!(parse_tos("010"), Some((8, 255)));
        for bad in ["wrong", "256", "1/256", "1/", "/1", "1/2/3"] {
            assert_eq!(parse_tos(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_value_outside_the_mask_never_matches() {
        let (mut v4, mut v6) = (ipv4(6, &[]), ipv6(6, &[]));
        v4[1] = 0xb9;
        v6[0] = 0x6b;
        v6[1] = 0x9f;
        for frame in [Frame::ip(&v4), Frame::ip(&v6)] {
            assert_eq!(frame.evaluate("-m tos --tos 0xb9"), Outcome::YES);
            assert_eq!(frame.evaluate("-m tos --tos 0xb0/0xf0"), Outcome::YES);
            assert_eq!(frame.evaluate("-m tos --tos 0xb9/0xf0"), Outcome::NO);
            assert_eq!(frame.evaluate("-m tos ! --tos 0xb9/0xf0"), Outcome::YES);
        }
    }
}
