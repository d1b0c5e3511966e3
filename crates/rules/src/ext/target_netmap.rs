//! `-j NETMAP`: translates one network to another of the same size, host by host; the destination before
//! routing, the source after it.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_NETMAP.c`.

use super::nat::{Side, translate};
use super::{Args, Effect, IP, Opt, Printer, Support, Target, TargetKind, value};
use crate::save::What;
use crate::transit::Transit;

/// The kind.
pub(super) static KIND: TargetKind = TargetKind {
    name: "NETMAP",
    families: IP,
    options: &[Opt::value("to")],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Netmap {
    addr: [u8; 16],
    mask: [u8; 16],
    addr_len: usize,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&["nat"])?;
    let addr_len = args.family.addr_len();
    let given = args.required("to")?;
    let (addr, mask) =
        value::network(given.text(), addr_len).ok_or_else(|| given.expected("address[/mask]"))?;
    Ok(Box::new(Netmap { addr, mask, addr_len }))
}

impl Target for Netmap {
    fn print(&self, to: &mut Printer) {
        to.option(false, "to", value::network_text(&self.addr, &self.mask, self.addr_len));
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        translate(Side::at(transit.hook), transit)
    }
}
