//! `-j TEE`: sends a copy to another host and goes on with the packet itself.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_TEE.c`.

use std::net::IpAddr;

use crate::error::What;
use crate::ext::{Args, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::transit::Transit;
use crate::value;

const MAX_IFACE: usize = 15;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "TEE",
    families: IP,
    options: &[Opt::value("gateway"), Opt::value("oif")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Tee {
    gateway: [u8; 16],
    addr_len: usize,
    oif: Box<str>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    let addr_len = args.family.addr_len();
    let given = args.required("gateway")?;
    let gateway = value::address(given.text(), addr_len)
        .filter(|addr| *addr != [0; 16])
        .ok_or_else(|| given.expected("an address other than 0"))?;
    let oif = args.get("oif").map_or("", |given| value::cut(given.text(), MAX_IFACE)).into();
    Ok(Box::new(Tee { gateway, addr_len, oif }))
}

impl Target for Tee {
    fn print(&self, to: &mut Printer) {
        to.option(false, "gateway", value::address_text(&self.gateway, self.addr_len));
        if !self.oif.is_empty() {
            to.name("oif", &self.oif);
        }
    }

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Continue
    }

    fn copies_to(&self) -> Option<(IpAddr, &str)> {
        let [a, b, c, d, ..] = self.gateway;
        let gateway = match self.addr_len {
            4 => IpAddr::from([a, b, c, d]),
            _ => IpAddr::from(self.gateway),
        };
        Some((gateway, &self.oif))
    }

    fn only_watches(&self) -> bool {
        true
    }
}
