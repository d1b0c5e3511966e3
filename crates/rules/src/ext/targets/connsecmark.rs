//! `-j CONNSECMARK`: copies the security mark between the packet and its connection, and goes on. No
//! match reads the security mark.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_CONNSECMARK.c`.

use crate::error::What;
use crate::ext::{Args, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::TableKind;
use crate::transit::Transit;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "CONNSECMARK",
    families: IP,
    options: &[Opt::flag("save"), Opt::flag("restore")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Connsecmark {
    operation: &'static str,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::MANGLE, TableKind::SECURITY])?;
    args.any_of(&["save", "restore"])?;
    args.one_of(&["save", "restore"])?;
    Ok(Box::new(Connsecmark { operation: if args.has("save") { "save" } else { "restore" } }))
}

impl Target for Connsecmark {
    fn print(&self, to: &mut Printer) {
        to.flag(false, self.operation);
    }

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Continue
    }

    fn only_watches(&self) -> bool {
        true
    }

    fn tracks(&self) -> bool {
        true
    }
}
