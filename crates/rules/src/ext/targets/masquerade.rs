//! `-j MASQUERADE`: translates the source of the connection to the address of the outgoing interface.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_MASQUERADE.c`.

use crate::error::What;
use crate::ext::targets::nat::{From, Nat, RANDOM, RANDOM_FULLY};
use crate::ext::{Args, IP, Opt, Support, Target, TargetKind};
use crate::family::{Hook, TableKind};

pub(crate) static KIND: TargetKind = TargetKind {
    name: "MASQUERADE",
    families: IP,
    options: &[Opt::value("to-ports"), RANDOM, RANDOM_FULLY],
    support: Support::Evaluated,
    parse,
};

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::NAT])?;
    args.needs_hook(&[Hook::Postrouting])?;
    Ok(Box::new(Nat::with_ports(args, From::Output)?.without_shift(args)?))
}
