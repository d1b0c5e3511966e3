//! `-m mac`: the Ethernet source address.
//!
//! Off Ethernet it never matches, and neither does `! --mac-source`. Source: iptables-extensions(8);
//! kernel `net/netfilter/xt_mac.c`.

use packet::Read;

use crate::error::What;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Hook;
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate, number};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "mac",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("mac-source").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Mac {
    source: [u8; 6],
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_hook(&[Hook::Prerouting, Hook::Input, Hook::Forward])?;
    let given = args.required("mac-source")?;
    let source = value::mac(given.text())
        .ok_or_else(|| given.expected("a MAC address of six hex bytes xx:xx:xx:xx:xx:xx"))?;
    Ok(Box::new(Mac { source, invert: given.invert }))
}

impl Match for Mac {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "mac-source", value::mac_text(self.source));
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.packet.source_mac() {
            Read::Known(mac) => Outcome::from_bool((mac == self.source) != self.invert),
            Read::Unknown => Outcome::MAYBE,
            Read::Absent => Outcome::NO,
        }
    }

    fn predicate(&self) -> Option<Predicate> {
        let value = number(&self.source);
        let same = Predicate::Range { field: Field::SourceMac, low: value, high: value };
        Some(Predicate::All(vec![Predicate::HasMac, same.inverted(self.invert)]))
    }
}
