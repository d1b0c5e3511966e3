//! `-j SYNPROXY`: answers a SYN in the server's place, and lets the connection through once the client
//! has proven itself. The verdict on one packet depends on the connection, which is unknown.
//!
//! Source: iptables-extensions(8); kernel `net/ipv4/netfilter/ipt_SYNPROXY.c`, `ip6t_SYNPROXY.c`.

use crate::error::What;
use crate::ext::{Args, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::Hook;
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "SYNPROXY",
    families: IP,
    options: &[
        Opt::flag("sack-perm"),
        Opt::flag("timestamp"),
        Opt::value("wscale"),
        Opt::value("mss"),
        Opt::flag("ecn"),
    ],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Synproxy {
    sack_perm: bool,
    timestamp: bool,
    wscale: Option<u8>,
    mss: Option<u16>,
    ecn: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_hook(&[Hook::Input, Hook::Forward])?;
    args.needs_protocol(&[6])?;
    let wscale = args
        .get("wscale")
        .map(|given| value::u8(given.text()).ok_or_else(|| given.expected("a window scale 0-255")));
    let mss = args.get("mss").map(|given| {
        value::u16(given.text()).ok_or_else(|| given.expected("a segment size 0-65535"))
    });
    Ok(Box::new(Synproxy {
        sack_perm: args.has("sack-perm"),
        timestamp: args.has("timestamp"),
        wscale: wscale.transpose()?,
        mss: mss.transpose()?,
        ecn: args.has("ecn"),
    }))
}

impl Target for Synproxy {
    fn print(&self, to: &mut Printer) {
        for (name, given) in [("sack-perm", self.sack_perm), ("timestamp", self.timestamp)] {
            if given {
                to.flag(false, name);
            }
        }
        if let Some(wscale) = self.wscale {
            to.option(false, "wscale", wscale);
        }
        if let Some(mss) = self.mss {
            to.option(false, "mss", mss);
        }
        if self.ecn {
            to.flag(false, "ecn");
        }
    }

    fn tracks(&self) -> bool {
        true
    }
}
