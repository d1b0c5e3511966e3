//! `-m iprange`: inclusive ranges of addresses.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_iprange.c`.

use packet::Read;

use crate::error::What;
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Family;
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate, number};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "iprange",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("src-range").invertible(), Opt::value("dst-range").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Iprange {
    source: Option<Range>,
    destination: Option<Range>,
}

/// Both ends included, in network byte order, which compares as the addresses do.
#[derive(Debug)]
struct Range {
    low: [u8; 16],
    high: [u8; 16],
    addr_len: usize,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&["src-range", "dst-range"])?;
    let range = |name| args.get(name).map(|given| parse_range(given, args.family)).transpose();
    Ok(Box::new(Iprange { source: range("src-range")?, destination: range("dst-range")? }))
}

fn parse_range(given: &Given<'_>, family: Family) -> Result<Range, What> {
    let addr_len = family.addr_len();
    let (low, high) = given.text().split_once('-').unwrap_or((given.text(), given.text()));
    let ends = value::address(low, addr_len).zip(value::address(high, addr_len));
    let (low, high) = ends
        .filter(|(low, high)| low <= high)
        .ok_or_else(|| given.expected("an address range low-high"))?;
    Ok(Range { low, high, addr_len, invert: given.invert })
}

impl Range {
    fn print(&self, name: &str, to: &mut Printer) {
        let low = value::address_text(&self.low, self.addr_len);
        let high = value::address_text(&self.high, self.addr_len);
        to.option(self.invert, name, format!("{low}-{high}"));
    }

    fn predicate(&self, field: Field) -> Predicate {
        let [low, high] = [&self.low, &self.high].map(|end| number(&end[..self.addr_len]));
        Predicate::Range { field, low, high }.inverted(self.invert)
    }

    fn evaluate(&self, transit: &Transit<'_, '_>, offset_v4: usize, offset_v6: usize) -> Outcome {
        let holds = |addr: &[u8]| {
            let len = addr.len();
            (&self.low[..len] <= addr && addr <= &self.high[..len]) != self.invert
        };
        let outcome = match transit.family {
            Family::Ipv6 => transit.net::<16>(offset_v6).map(|addr| holds(&addr)),
            _ => transit.net::<4>(offset_v4).map(|addr| holds(&addr)),
        };
        match outcome {
            Read::Known(matches) => Outcome::from_bool(matches),
            Read::Unknown | Read::Absent => Outcome::MAYBE,
        }
    }
}

impl Match for Iprange {
    fn print(&self, to: &mut Printer) {
        if let Some(range) = &self.source {
            range.print("src-range", to);
        }
        if let Some(range) = &self.destination {
            range.print("dst-range", to);
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let evaluate = |range: &Option<Range>, v4, v6| {
            range.as_ref().map_or(Outcome::YES, |range| range.evaluate(transit, v4, v6))
        };
        evaluate(&self.source, 12, 8).and_then(|| evaluate(&self.destination, 16, 24))
    }

    fn predicate(&self) -> Option<Predicate> {
        let of = |range: &Option<Range>, field| range.as_ref().map(|range| range.predicate(field));
        let source = of(&self.source, Field::Source);
        let destination = of(&self.destination, Field::Destination);
        Some(Predicate::All(source.into_iter().chain(destination).collect()))
    }
}
