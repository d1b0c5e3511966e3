//! `-j CHECKSUM`: fills in the checksum that the sending host left to its network card, and goes on.
//!
//! A packet from a wire holds its checksum already, so nothing changes.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_CHECKSUM.c`.

use crate::error::What;
use crate::ext::{Args, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::TableKind;
use crate::transit::Transit;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "CHECKSUM",
    families: IP,
    options: &[Opt::flag("checksum-fill")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Checksum;

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::MANGLE])?;
    args.required("checksum-fill")?;
    Ok(Box::new(Checksum))
}

impl Target for Checksum {
    fn print(&self, to: &mut Printer) {
        to.flag(false, "checksum-fill");
    }

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Continue
    }

    fn only_watches(&self) -> bool {
        true
    }
}
