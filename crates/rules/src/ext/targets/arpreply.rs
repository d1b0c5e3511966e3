//! `-j arpreply`: answers an ARP request for IPv4 over Ethernet; other packets go on.
//!
//! Source: ebtables-nft(8); kernel `net/bridge/netfilter/ebt_arpreply.c`.

use packet::{Read, ethertype};

use crate::error::What;
use crate::ext::kit::verdict;
use crate::ext::{Args, BRIDGE, Effect, Opt, Printer, Support, Target, TargetKind};
use crate::family::{Hook, TableKind};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "arpreply",
    families: BRIDGE,
    options: &[Opt::value("arpreply-mac"), Opt::value("arpreply-target")],
    support: Support::Evaluated,
    parse,
};

/// Types, lengths and operation of a request for an IPv4 address on Ethernet, the hardware type apart.
const REQUEST: [u8; 6] = [0x08, 0x00, 6, 4, 0, 1];

#[derive(Debug)]
struct Arpreply {
    mac: [u8; 6],
    verdict: Effect,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_ethertype(&[ethertype::ARP])?;
    args.needs_table(&[TableKind::NAT, TableKind::BROUTE])?;
    args.needs_hook(&[Hook::Prerouting, Hook::Brouting])?;
    let mac = match args.get("arpreply-mac") {
        Some(given) => {
            value::mac(given.text()).ok_or_else(|| given.expected("an Ethernet address"))?
        }
        None => [0; 6],
    };
    Ok(Box::new(Arpreply { mac, verdict: verdict::parse(args, "arpreply-target", Effect::Drop)? }))
}

impl Target for Arpreply {
    fn print(&self, to: &mut Printer) {
        to.option(false, "arpreply-mac", value::mac_text(self.mac));
        if self.verdict != Effect::Drop {
            to.option(false, "arpreply-target", verdict::name(self.verdict));
        }
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        match transit.net::<28>(0) {
            Read::Known(bytes) if bytes[2..8] == REQUEST => self.verdict,
            Read::Known(_) => Effect::Continue,
            // The kernel drops what is too short for an ARP header, and for what follows it.
            Read::Absent => match transit.net::<8>(0) {
                Read::Known(bytes) if bytes[2..8] == REQUEST => Effect::Drop,
                Read::Known(_) => Effect::Continue,
                Read::Absent => Effect::Drop,
                Read::Unknown => Effect::Unknown,
            },
            Read::Unknown => Effect::Unknown,
        }
    }
}
