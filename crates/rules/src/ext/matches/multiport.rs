//! `-m multiport`: up to 15 ports, a range counting as two.
//!
//! It reads the four bytes of both ports and nothing else; a packet that ends before them is a hot drop.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_multiport.c`.

use crate::error::What;
use crate::ext::kit::ports::{ports, range_text};
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;
use crate::value;

/// Protocols with ports in their first four bytes: tcp, udp, dccp, sctp, udplite.
const PROTOCOLS: &[u8] = &[6, 17, 33, 132, 136];
const MAX_PORTS: usize = 15;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "multiport",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("sports").alias(&["source-ports"]).invertible(),
        Opt::value("dports").alias(&["destination-ports"]).invertible(),
        Opt::value("ports").invertible(),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Source,
    Destination,
    Either,
}

#[derive(Debug)]
struct Multiport {
    which: Which,
    ranges: Vec<(u16, u16)>,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_protocol(PROTOCOLS)?;
    args.any_of(&["sports", "dports", "ports"])?;
    args.one_of(&["sports", "dports", "ports"])?;
    let given = &args.given[0];
    let which = match given.name {
        "sports" => Which::Source,
        "dports" => Which::Destination,
        _ => Which::Either,
    };
    Ok(Box::new(Multiport { which, ranges: parse_ranges(given)?, invert: given.invert }))
}

fn parse_ranges(given: &Given<'_>) -> Result<Vec<(u16, u16)>, What> {
    let mut ranges = Vec::new();
    for part in given.text().split(',') {
        let is_range = part.contains(':');
        let range = value::port_range(part).filter(|(low, high)| {
            !part.starts_with(':') && !part.ends_with(':') && (!is_range || low < high)
        });
        ranges.push(
            range.ok_or_else(|| {
                given.expected("a comma list of ports 0-65535 and ranges low:high")
            })?,
        );
    }
    let slots: usize = ranges.iter().map(|(low, high)| if low == high { 1 } else { 2 }).sum();
    if slots > MAX_PORTS {
        return Err(given.expected(format!("at most {MAX_PORTS} ports (a range counts as two)")));
    }
    Ok(ranges)
}

impl Match for Multiport {
    fn print(&self, to: &mut Printer) {
        let name = match self.which {
            Which::Source => "sports",
            Which::Destination => "dports",
            Which::Either => "ports",
        };
        let list: Vec<String> =
            self.ranges.iter().map(|(low, high)| range_text(*low, *high)).collect();
        to.option(self.invert, name, list.join(","));
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let (source, destination) = match ports::<4>(transit) {
            Ok(both) => both,
            Err(outcome) => return outcome,
        };
        let holds = |port: u16| self.ranges.iter().any(|(low, high)| *low <= port && port <= *high);
        let matches = match self.which {
            Which::Source => holds(source),
            Which::Destination => holds(destination),
            Which::Either => holds(source) || holds(destination),
        };
        Outcome::from_bool(matches != self.invert)
    }

    fn predicate(&self) -> Option<Predicate> {
        let fields: &[Field] = match self.which {
            Which::Source => &[Field::SourcePort],
            Which::Destination => &[Field::DestinationPort],
            Which::Either => &[Field::SourcePort, Field::DestinationPort],
        };
        let each = fields.iter().flat_map(|field| {
            self.ranges.iter().map(|range| Predicate::range(*field, *range, false))
        });
        Some(Predicate::of_header([Predicate::Any(each.collect()).inverted(self.invert)]))
    }

    fn destinations(&self) -> Option<Vec<(u16, u16)>> {
        let tests = self.which == Which::Destination && !self.invert;
        tests.then(|| self.ranges.clone())
    }
}
