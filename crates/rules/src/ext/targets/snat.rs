//! `-j SNAT`: translates the source of the connection.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_nat.c`.

use crate::error::What;
use crate::ext::targets::nat::{Nat, PERSISTENT, RANDOM, RANDOM_FULLY};
use crate::ext::{Args, IP, Opt, Support, Target, TargetKind};
use crate::family::{Hook, TableKind};
use conntrack::Side;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "SNAT",
    families: IP,
    options: &[Opt::value("to-source"), RANDOM, RANDOM_FULLY, PERSISTENT],
    support: Support::Evaluated,
    parse,
};

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::NAT])?;
    args.needs_hook(&[Hook::Input, Hook::Postrouting])?;
    let nat = Nat::with_addresses(args, "to-source", Side::Source)?;
    Ok(Box::new(nat.without_shift(args)?))
}
