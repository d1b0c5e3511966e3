//! `-j REDIRECT`: translates the destination of the connection to this host.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_REDIRECT.c`.

use crate::error::What;
use crate::ext::targets::nat::{From, Nat, RANDOM};
use crate::ext::{Args, IP, Opt, Support, Target, TargetKind};
use crate::family::{Hook, TableKind};

pub(crate) static KIND: TargetKind = TargetKind {
    name: "REDIRECT",
    families: IP,
    options: &[Opt::value("to-ports"), RANDOM],
    support: Support::Evaluated,
    parse,
};

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::NAT])?;
    args.needs_hook(&[Hook::Prerouting, Hook::Output])?;
    Ok(Box::new(Nat::with_ports(args, From::Input)?.without_shift(args)?))
}
