//! `-j NETMAP`: translates one network to another of the same size, host by host; the destination before
//! routing, the source after it.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_NETMAP.c`.

use crate::error::What;
use crate::ext::{Args, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::{Family, TableKind};
use crate::nat::{Range, Translation};
use crate::transit::Transit;
use crate::{nat, value};
use conntrack::Side;
use std::net::IpAddr;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "NETMAP",
    families: IP,
    options: &[Opt::value("to")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Netmap {
    addr: [u8; 16],
    mask: [u8; 16],
    addr_len: usize,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::NAT])?;
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

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Translate
    }

    fn translation(&self, transit: &Transit<'_, '_>) -> Option<Translation> {
        let side = nat::side_at(transit.hook);
        Some(match self.mapped(transit, side) {
            Some(address) => Translation::to(side, Range::address(address)),
            None => Translation::somewhere(side, Range::default()),
        })
    }

    fn tracks(&self) -> bool {
        true
    }

    fn translates(&self) -> bool {
        true
    }
}

impl Netmap {
    /// The packet's address at this end, with the network part of the rule's.
    fn mapped(&self, transit: &Transit<'_, '_>, side: Side) -> Option<IpAddr> {
        let mut bytes = [0; 16];
        match (transit.family, side) {
            (Family::Ipv6, Side::Source) => bytes = transit.net::<16>(8).known()?,
            (Family::Ipv6, Side::Destination) => bytes = transit.net::<16>(24).known()?,
            (_, side) => {
                let offset = if side == Side::Source { 12 } else { 16 };
                let address = transit.net::<4>(offset).known()?;
                bytes.iter_mut().zip(address).for_each(|(to, from)| *to = from);
            }
        }
        for ((byte, addr), mask) in bytes.iter_mut().zip(self.addr).zip(self.mask) {
            *byte = *byte & !mask | addr & mask;
        }
        match (transit.family, bytes) {
            (Family::Ipv6, bytes) => Some(bytes.into()),
            (_, [a, b, c, d, ..]) => Some([a, b, c, d].into()),
        }
    }
}
