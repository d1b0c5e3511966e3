//! `-m ttl` and `-m hl`: the IPv4 time to live and the IPv6 hop limit.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_hl.c`.

use packet::Read;

use crate::error::What;
use crate::ext::{Args, Match, MatchKind, Opt, Printer, Support, V4, V6};
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;
use crate::value;

/// IPv4.
pub(crate) static TTL: MatchKind = MatchKind {
    name: "ttl",
    aliases: &[],
    families: V4,
    protocol: None,
    options: &[
        Opt::value("ttl-eq").alias(&["ttl"]).invertible(),
        Opt::value("ttl-lt"),
        Opt::value("ttl-gt"),
    ],
    support: Support::Evaluated,
    parse,
};

/// IPv6.
pub(crate) static HL: MatchKind = MatchKind {
    name: "hl",
    aliases: &[],
    families: V6,
    protocol: None,
    options: &[
        Opt::value("hl-eq").alias(&["hl"]).invertible(),
        Opt::value("hl-lt"),
        Opt::value("hl-gt"),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Ttl {
    option: &'static str,
    test: Test,
    ttl: u8,
}

#[derive(Debug, Clone, Copy)]
enum Test {
    Equal { invert: bool },
    Less,
    Greater,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let names = match args.family.addr_len() {
        4 => ["ttl-eq", "ttl-lt", "ttl-gt"],
        _ => ["hl-eq", "hl-lt", "hl-gt"],
    };
    args.any_of(&names)?;
    args.one_of(&names)?;
    let given = &args.given[0];
    let test = match &given.name[given.name.len() - 2..] {
        "lt" => Test::Less,
        "gt" => Test::Greater,
        _ => Test::Equal { invert: given.invert },
    };
    let ttl = value::u8(given.text()).ok_or_else(|| given.expected("a number 0-255"))?;
    Ok(Box::new(Ttl { option: given.name, test, ttl }))
}

impl Match for Ttl {
    fn print(&self, to: &mut Printer) {
        let invert = matches!(self.test, Test::Equal { invert: true });
        to.option(invert, self.option, self.ttl);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let Read::Known(ttl) = transit.ttl() else { return Outcome::MAYBE };
        Outcome::from_bool(match self.test {
            Test::Equal { invert } => (ttl == self.ttl) != invert,
            Test::Less => ttl < self.ttl,
            Test::Greater => ttl > self.ttl,
        })
    }

    fn predicate(&self) -> Option<Predicate> {
        let ttl = u128::from(self.ttl);
        let range = |low, high| Predicate::Range { field: Field::Ttl, low, high };
        Some(match self.test {
            Test::Equal { invert } => Predicate::is(Field::Ttl, ttl).inverted(invert),
            Test::Less => range(ttl, u8::MAX.into()).inverted(true),
            Test::Greater => range(0, ttl).inverted(true),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, print};
    use crate::family::Family;

    #[test]
    fn one_test_is_given() {
        assert_eq!(print(Family::Ipv4, "-m ttl --ttl 3").unwrap(), "-m ttl --ttl-eq 3");
        assert_eq!(print(Family::Ipv6, "-m hl ! --hl-eq 3").unwrap(), "-m hl ! --hl-eq 3");
        for bad in ["", "--ttl-eq 256", "--ttl-eq 1 --ttl-lt 3", "! --ttl-lt 3"] {
            assert!(print(Family::Ipv4, &format!("-m ttl {bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_byte_is_compared() {
        let (v4, v6) = (ipv4(6, &[]), ipv6(6, &[]));
        for (rule, matches) in [
            ("--ttl-eq 64", true),
            ("! --ttl-eq 64", false),
            ("--ttl-lt 65", true),
            ("--ttl-lt 64", false),
            ("--ttl-gt 63", true),
            ("--ttl-gt 64", false),
        ] {
            let six = format!("-m hl {}", rule.replace("ttl", "hl"));
            let four = format!("-m ttl {rule}");
            assert_eq!(Frame::ip(&v4).evaluate(&four), Outcome::from_bool(matches), "{four}");
            assert_eq!(Frame::ip(&v6).evaluate(&six), Outcome::from_bool(matches), "{six}");
        }
    }
}
