//! `-m rpfilter`: a reply to the packet would leave by the interface it came in by.
//!
//! Source: iptables-extensions(8); kernel `net/ipv4/netfilter/ipt_rpfilter.c`.

use super::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::model::Hook;
use crate::save::What;

/// Flags in printing order.
const FLAGS: [&str; 4] = ["loose", "validmark", "accept-local", "invert"];

/// The kind.
pub(super) static KIND: MatchKind = MatchKind {
    name: "rpfilter",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::flag("loose"),
        Opt::flag("validmark"),
        Opt::flag("accept-local"),
        Opt::flag("invert"),
    ],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Rpfilter {
    /// Which of [`FLAGS`] are given.
    flags: [bool; FLAGS.len()],
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_table(&["raw", "mangle"])?;
    args.needs_hook(&[Hook::Prerouting])?;
    Ok(Box::new(Rpfilter { flags: FLAGS.map(|name| args.has(name)) }))
}

impl Match for Rpfilter {
    fn print(&self, to: &mut Printer) {
        for (name, given) in FLAGS.into_iter().zip(self.flags) {
            if given {
                to.flag(false, name);
            }
        }
    }
}
