//! `-m socket`: the packet belongs to an open socket of this host.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_socket.c`.

use crate::error::What;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Hook;

/// Flags in printing order.
const FLAGS: [&str; 3] = ["transparent", "nowildcard", "restore-skmark"];

pub(crate) static KIND: MatchKind = MatchKind {
    name: "socket",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::flag("transparent"), Opt::flag("nowildcard"), Opt::flag("restore-skmark")],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Socket {
    /// Which of [`FLAGS`] are given.
    flags: [bool; FLAGS.len()],
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_hook(&[Hook::Prerouting, Hook::Input])?;
    Ok(Box::new(Socket { flags: FLAGS.map(|name| args.has(name)) }))
}

impl Match for Socket {
    fn print(&self, to: &mut Printer) {
        for (name, given) in FLAGS.into_iter().zip(self.flags) {
            if given {
                to.flag(false, name);
            }
        }
    }
}
