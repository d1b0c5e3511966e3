//! `-j SNPT`: translates the prefix of the source address, without state, and goes on.
//!
//! Source: iptables-extensions(8); kernel `net/ipv6/netfilter/ip6t_NPT.c`.

use super::npt::{Npt, OPTIONS};
use super::{Args, Support, Target, TargetKind, V6};
use crate::model::Hook;
use crate::save::What;

/// The kind.
pub(super) static KIND: TargetKind =
    TargetKind { name: "SNPT", families: V6, options: OPTIONS, support: Support::Evaluated, parse };

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_hook(&[Hook::Input, Hook::Postrouting])?;
    Ok(Box::new(Npt::of_source(args)?))
}
