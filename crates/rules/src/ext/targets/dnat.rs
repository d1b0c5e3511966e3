//! `-j DNAT`: translates the destination of the connection.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_nat.c`.

use crate::error::What;
use crate::ext::targets::nat::{Nat, PERSISTENT, RANDOM};
use crate::ext::{Args, IP, Opt, Support, Target, TargetKind};
use crate::family::{Hook, TableKind};
use conntrack::Side;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "DNAT",
    families: IP,
    options: &[Opt::value("to-destination"), RANDOM, PERSISTENT],
    support: Support::Evaluated,
    parse,
};

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::NAT])?;
    args.needs_hook(&[Hook::Prerouting, Hook::Output])?;
    Ok(Box::new(Nat::with_addresses(args, "to-destination", Side::Destination)?))
}
