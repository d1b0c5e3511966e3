//! `-m icmp` and `-m icmp6`: ICMP type and code.
//!
//! The two differ in their table of names, and in that IPv4's type 255 means any type and code.
//! Source: iptables-extensions(8), ICMP type names of `iptables -p icmp -h`; kernel `xt_tcpudp.c`;
//! RFC 792, RFC 4443.

use crate::error::What;
use crate::ext::kit::ports::upper_header;
use crate::ext::{Args, Given, Match, MatchKind, Opt, Printer, Support, V4, V6};
use crate::family::Family;
use crate::names::{IcmpName, icmp_names};
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;
use crate::value;

/// IPv4.
pub(crate) static ICMP: MatchKind = MatchKind {
    name: "icmp",
    aliases: &[],
    families: V4,
    protocol: Some(1),
    options: &[Opt::value("icmp-type").invertible()],
    support: Support::Evaluated,
    parse,
};

/// IPv6.
pub(crate) static ICMP6: MatchKind = MatchKind {
    name: "icmp6",
    aliases: &["icmpv6", "ipv6-icmp"],
    families: V6,
    protocol: Some(58),
    options: &[Opt::value("icmpv6-type").alias(&["icmp6-type"]).invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Icmp {
    option: &'static str,
    kind: u8,
    low: u8,
    high: u8,
    /// IPv4's type 255: every type, whatever the codes say.
    any: bool,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let v4 = args.family == Family::Ipv4;
    let (protocol, option) = if v4 { (1, "icmp-type") } else { (58, "icmpv6-type") };
    args.needs_protocol(&[protocol])?;
    let given = args.required(option)?;
    let names = icmp_names(args.family);
    let (kind, low, high) = parse_type(given.text(), names).ok_or_else(|| {
        given.expected("a type 0-255, type/code, or an unambiguous ICMP type name")
    })?;
    let any = v4 && kind == 0xff;
    Ok(Box::new(Icmp { option, kind, low, high, any, invert: given.invert }))
}

/// Ranges of types and codes, as matches on frames have them.
#[derive(Debug)]
pub(crate) struct IcmpTest {
    kinds: (u8, u8),
    codes: (u8, u8),
    invert: bool,
}

impl IcmpTest {
    /// Reads a name, or `TYPE[:TYPE][/CODE[:CODE]]`.
    pub(crate) fn parse(given: &Given<'_>, family: Family) -> Result<Self, What> {
        let names = icmp_names(family);
        let exact = names.iter().find(|(name, ..)| name.eq_ignore_ascii_case(given.text()));
        let read = match exact {
            Some((_, kind, low, high)) => Some(((*kind, *kind), (*low, *high))),
            None => Self::ranges(given.text()),
        };
        let (kinds, codes) =
            read.ok_or_else(|| given.expected("a name, or TYPE[:TYPE][/CODE[:CODE]], each 0-255"))?;
        Ok(Self { kinds, codes, invert: given.invert })
    }

    fn ranges(text: &str) -> Option<((u8, u8), (u8, u8))> {
        let range = |text: &str| value::range(text, ':', 0xff).map(|(a, b)| (a as u8, b as u8));
        match text.split_once('/') {
            Some((kinds, codes)) => Some((range(kinds)?, range(codes)?)),
            None => Some((range(text)?, (0, 0xff))),
        }
    }

    /// Whether type and code pass.
    pub(crate) fn accepts(&self, kind: u8, code: u8) -> bool {
        let inside = |(low, high): (u8, u8), value: u8| low <= value && value <= high;
        (inside(self.kinds, kind) && inside(self.codes, code)) != self.invert
    }

    /// Prints the name where there is one.
    pub(crate) fn print(&self, option: &str, family: Family, to: &mut Printer) {
        let names = icmp_names(family);
        let (kind, last) = self.kinds;
        let (low, high) = self.codes;
        let is = |name: &&IcmpName| kind == last && (name.1, name.2, name.3) == (kind, low, high);
        let range = |(low, high): (u8, u8)| match low == high {
            true => low.to_string(),
            false => format!("{low}:{high}"),
        };
        match names.iter().find(is) {
            Some((name, ..)) => to.option(self.invert, option, name),
            None => to.option(
                self.invert,
                option,
                format!("{}/{}", range(self.kinds), range(self.codes)),
            ),
        };
    }
}

fn parse_type(text: &str, names: &[IcmpName]) -> Option<(u8, u8, u8)> {
    if let Some((_, kind, low, high)) = find_name(text, names) {
        return Some((kind, low, high));
    }
    let Some((kind, code)) = text.split_once('/') else {
        return Some((value::u8(text)?, 0, 0xff));
    };
    let (low, high) = value::range(code, ':', 0xff)?;
    Some((value::u8(kind)?, low as u8, high as u8))
}

/// The name in any case, or a prefix of exactly one meaning.
fn find_name(text: &str, names: &[IcmpName]) -> Option<IcmpName> {
    if let Some(exact) = names.iter().find(|(name, ..)| name.eq_ignore_ascii_case(text)) {
        return Some(*exact);
    }
    let starts = |name: &str| name.get(..text.len()).is_some_and(|s| s.eq_ignore_ascii_case(text));
    let mut found = names.iter().filter(|(name, ..)| !text.is_empty() && starts(name));
    match (found.next(), found.next()) {
        (Some(one), None) => Some(*one),
        _ => None,
    }
}

impl Match for Icmp {
    fn print(&self, to: &mut Printer) {
        let text = match (self.any, self.low, self.high) {
            (true, 0, 0xff) => "any".to_owned(),
            (_, 0, 0xff) => self.kind.to_string(),
            (_, low, high) if low == high => format!("{}/{low}", self.kind),
            (_, low, high) => format!("{}/{low}:{high}", self.kind),
        };
        to.option(self.invert, self.option, text);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let evaluate = |kind: u8, code: u8| {
            let same = kind == self.kind && self.low <= code && code <= self.high;
            Outcome::from_bool((self.any || same) != self.invert)
        };
        match upper_header::<8>(transit) {
            Ok((_, header)) => evaluate(header[0], header[1]),
            Err(Outcome::MAYBE) => match upper_header::<2>(transit) {
                Ok((_, header)) => evaluate(header[0], header[1]),
                Err(outcome) => outcome,
            },
            Err(outcome) => outcome,
        }
    }

    fn predicate(&self) -> Option<Predicate> {
        let same = Predicate::All(vec![
            Predicate::byte(Field::IcmpType, self.kind, 0xff),
            Predicate::range(Field::IcmpCode, (self.low.into(), self.high.into()), false),
        ]);
        let test = if self.any { Predicate::ALWAYS } else { same };
        Some(Predicate::of_header([test.inverted(self.invert)]))
    }
}
