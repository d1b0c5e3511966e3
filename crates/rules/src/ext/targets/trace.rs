//! `-j TRACE`: has the kernel log every rule that the packet matches from here on, and goes on.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_TRACE.c`.

use crate::error::What;
use crate::ext::{Args, Effect, IP, Printer, Support, Target, TargetKind};
use crate::family::TableKind;
use crate::transit::Transit;

pub(crate) static KIND: TargetKind =
    TargetKind { name: "TRACE", families: IP, options: &[], support: Support::Evaluated, parse };

#[derive(Debug)]
struct Trace;

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::RAW])?;
    Ok(Box::new(Trace))
}

impl Target for Trace {
    fn print(&self, _to: &mut Printer) {}

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Continue
    }

    fn only_watches(&self) -> bool {
        true
    }
}
