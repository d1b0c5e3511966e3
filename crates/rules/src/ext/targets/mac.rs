//! `-j snat`, `-j dnat`, `-j redirect`: other Ethernet addresses for a frame.
//!
//! With `--snat-arp`, `snat` writes the sender of an ARP packet too, and drops a packet that is too short for it;
//! `redirect` writes the bridge's own address, which is not known here.
//!
//! Source: ebtables-nft(8); kernel `net/bridge/netfilter/ebt_snat.c`, `ebt_dnat.c`, `ebt_redirect.c`.

use packet::{Read, arp, ethernet, ethertype};

use crate::error::What;
use crate::ext::kit::verdict;
use crate::ext::{Args, BRIDGE, Effect, Opt, Printer, Support, Target, TargetKind};
use crate::family::{Hook, TableKind};
use crate::transit::Transit;
use crate::value;

/// Another source.
pub(crate) static SNAT: TargetKind = TargetKind {
    name: "snat",
    families: BRIDGE,
    options: &[
        Opt::value("to-src").alias(&["to-source"]),
        Opt::flag("snat-arp"),
        Opt::value("snat-target"),
    ],
    support: Support::Evaluated,
    parse: parse_snat,
};

/// Another destination.
pub(crate) static DNAT: TargetKind = TargetKind {
    name: "dnat",
    families: BRIDGE,
    options: &[Opt::value("to-dst").alias(&["to-destination"]), Opt::value("dnat-target")],
    support: Support::Evaluated,
    parse: parse_dnat,
};

/// The bridge as destination.
pub(crate) static REDIRECT: TargetKind = TargetKind {
    name: "redirect",
    families: BRIDGE,
    options: &[Opt::value("redirect-target")],
    support: Support::Evaluated,
    parse: parse_redirect,
};

#[derive(Debug)]
struct Snat {
    mac: [u8; 6],
    /// ARP packets get it as their sender too.
    arp: bool,
    verdict: Effect,
}

#[derive(Debug)]
struct Dnat {
    mac: [u8; 6],
    verdict: Effect,
}

#[derive(Debug)]
struct Redirect {
    verdict: Effect,
}

fn mac(args: &Args<'_>, name: &str) -> Result<[u8; 6], What> {
    let given = args.required(name)?;
    value::mac(given.text()).ok_or_else(|| given.expected("an Ethernet address"))
}

fn parse_snat(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::NAT])?;
    args.needs_hook(&[Hook::Postrouting])?;
    Ok(Box::new(Snat {
        mac: mac(args, "to-src")?,
        arp: args.has("snat-arp"),
        verdict: verdict::parse(args, "snat-target", Effect::Accept)?,
    }))
}

fn parse_dnat(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::NAT, TableKind::BROUTE])?;
    args.needs_hook(&[Hook::Prerouting, Hook::Output, Hook::Brouting])?;
    let verdict = verdict::parse(args, "dnat-target", Effect::Accept)?;
    Ok(Box::new(Dnat { mac: mac(args, "to-dst")?, verdict }))
}

fn parse_redirect(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::NAT, TableKind::BROUTE])?;
    args.needs_hook(&[Hook::Prerouting, Hook::Brouting])?;
    let verdict = verdict::parse(args, "redirect-target", Effect::Accept)?;
    Ok(Box::new(Redirect { verdict }))
}

impl Target for Snat {
    fn print(&self, to: &mut Printer) {
        to.option(false, "to-src", value::mac_text(self.mac));
        if self.arp {
            to.flag(false, "snat-arp");
        }
        to.option(false, "snat-target", verdict::name(self.verdict));
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        transit.write_link(ethernet::SOURCE.start, &self.mac);
        if self.arp && self.write_sender(transit).is_none() {
            return Effect::Drop;
        }
        self.verdict
    }
}

impl Snat {
    /// Writes the sender of an ARP packet, after a tag or not; `None` where the packet ends before it.
    fn write_sender(&self, transit: &mut Transit<'_, '_>) -> Option<()> {
        let before = transit.packet.network_offset().saturating_sub(2);
        if transit.packet.read(before) != Read::Known(ethertype::ARP.to_be_bytes()) {
            return Some(());
        }
        let sender = arp::SENDER_HARDWARE;
        if transit.packet.read_slice(transit.packet.network_offset(), sender.end) == Read::Absent {
            return None;
        }
        match transit.net::<1>(arp::HARDWARE_LEN.start) {
            Read::Known([6]) => transit.write_net(sender.start, &self.mac),
            Read::Known(_) | Read::Absent => {}
            Read::Unknown => transit.forget_net(sender),
        }
        Some(())
    }
}

impl Target for Dnat {
    fn print(&self, to: &mut Printer) {
        to.option(false, "to-dst", value::mac_text(self.mac));
        to.option(false, "dnat-target", verdict::name(self.verdict));
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        transit.write_link(ethernet::DESTINATION.start, &self.mac);
        self.verdict
    }
}

impl Target for Redirect {
    fn print(&self, to: &mut Printer) {
        if self.verdict != Effect::Accept {
            to.option(false, "redirect-target", verdict::name(self.verdict));
        }
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        transit.packet.forget(ethernet::DESTINATION);
        self.verdict
    }
}
