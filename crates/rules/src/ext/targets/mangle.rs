//! `-j mangle`: other addresses for an ARP packet.
//!
//! Source: arptables-nft(8); kernel `net/ipv4/netfilter/arpt_mangle.c`.

use packet::arp;

use crate::error::What;
use crate::ext::kit::verdict;
use crate::ext::{ARP, Args, Effect, Opt, Printer, Support, Target, TargetKind};
use crate::header::Field;
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "mangle",
    families: ARP,
    options: &[
        Opt::value("mangle-ip-s"),
        Opt::value("mangle-ip-d"),
        Opt::value("mangle-mac-s"),
        Opt::value("mangle-mac-d"),
        Opt::value("mangle-target"),
    ],
    support: Support::Evaluated,
    parse,
};

const ADDRESSES: [(&str, usize); 2] =
    [("mangle-ip-s", arp::SENDER_PROTOCOL.start), ("mangle-ip-d", arp::TARGET_PROTOCOL.start)];
const MACS: [(&str, usize); 2] =
    [("mangle-mac-s", arp::SENDER_HARDWARE.start), ("mangle-mac-d", arp::TARGET_HARDWARE.start)];

#[derive(Debug)]
struct Mangle {
    addresses: [Option<[u8; 4]>; 2],
    macs: [Option<[u8; 6]>; 2],
    verdict: Effect,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    let mut mangle = Mangle {
        addresses: [None; 2],
        macs: [None; 2],
        verdict: verdict::parse(args, "mangle-target", Effect::Accept)?,
    };
    if mangle.verdict == Effect::Return {
        return Err(args.expected("--mangle-target ACCEPT, DROP or CONTINUE"));
    }
    for (slot, (name, _)) in mangle.addresses.iter_mut().zip(ADDRESSES) {
        let Some(given) = args.get(name) else { continue };
        let addr = given.text().parse::<std::net::Ipv4Addr>();
        *slot = Some(addr.map_err(|_| given.expected("an IPv4 address"))?.octets());
    }
    for (slot, (name, _)) in mangle.macs.iter_mut().zip(MACS) {
        let Some(given) = args.get(name) else { continue };
        let mac = value::mac(given.text()).ok_or_else(|| given.expected("an Ethernet address"))?;
        let is_six = args
            .fields
            .iter()
            .any(|test| test.field == Field::HardwareLen && test.value[0] == 6 && !test.invert);
        if !is_six {
            return Err(given.expected("--h-length 6"));
        }
        *slot = Some(mac);
    }
    Ok(Box::new(mangle))
}

impl Target for Mangle {
    fn print(&self, to: &mut Printer) {
        for (addr, (name, _)) in self.addresses.iter().zip(ADDRESSES) {
            if let Some(addr) = addr {
                to.option(false, name, std::net::Ipv4Addr::from(*addr));
            }
        }
        for (mac, (name, _)) in self.macs.iter().zip(MACS) {
            if let Some(mac) = mac {
                to.option(false, name, value::mac_text(*mac));
            }
        }
        if self.verdict != Effect::Accept {
            to.option(false, "mangle-target", verdict::name(self.verdict));
        }
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        for (addr, (_, at)) in self.addresses.iter().zip(ADDRESSES) {
            if let Some(addr) = addr {
                transit.write_net(at, addr);
            }
        }
        for (mac, (_, at)) in self.macs.iter().zip(MACS) {
            if let Some(mac) = mac {
                transit.write_net(at, mac);
            }
        }
        self.verdict
    }
}
