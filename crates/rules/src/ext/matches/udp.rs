//! `-m udp`: ports of UDP.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_tcpudp.c`.

use crate::backend::Backend;
use crate::error::What;
use crate::ext::kit::native;
use crate::ext::kit::ports::{DPORT, PortTest, SPORT, ports};
use crate::ext::{Args, IP, Match, MatchKind, PortRanges, Printer, Support};
use crate::outcome::Outcome;
use crate::predicate::Predicate;
use crate::transit::Transit;

const PROTOCOL: u8 = 17;
const HEADER: usize = 8;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "udp",
    aliases: &[],
    families: IP,
    protocol: Some(PROTOCOL),
    options: &[SPORT, DPORT],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Udp {
    source: PortTest,
    destination: PortTest,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_protocol(&[PROTOCOL])?;
    Ok(Box::new(Udp {
        source: PortTest::parse_backwards(args, "sport")?,
        destination: PortTest::parse_backwards(args, "dport")?,
    }))
}

impl Udp {
    /// Without any test it stays an xtables match under nf_tables.
    fn tests_nothing(&self) -> bool {
        self.source == PortTest::ANY && self.destination == PortTest::ANY
    }
}

impl Match for Udp {
    fn print(&self, to: &mut Printer) {
        self.source.print("sport", to);
        self.destination.print("dport", to);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        if transit.backend == Backend::Nft && !self.tests_nothing() {
            return native::ports(transit, [self.source, self.destination]);
        }
        match ports::<HEADER>(transit) {
            Ok((source, destination)) => Outcome::from_bool(
                self.source.accepts(source) && self.destination.accepts(destination),
            ),
            Err(outcome) => outcome,
        }
    }

    fn predicate(&self) -> Option<Predicate> {
        Some(Predicate::of_header([PortTest::predicate(self.source, self.destination)?]))
    }

    fn port_ranges(&self) -> Option<PortRanges> {
        PortRanges::of(PROTOCOL, self.source, self.destination)
    }
}
