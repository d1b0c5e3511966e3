//! `-j AUDIT`: writes an audit record and goes on.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_AUDIT.c`.

use crate::error::What;
use crate::ext::{Args, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::transit::Transit;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "AUDIT",
    families: IP,
    options: &[Opt::value("type")],
    support: Support::Evaluated,
    parse,
};

const TYPES: [&str; 3] = ["accept", "drop", "reject"];

#[derive(Debug)]
struct Audit {
    kind: &'static str,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    let given = args.required("type")?;
    let kind = TYPES
        .into_iter()
        .find(|name| name.eq_ignore_ascii_case(given.text()))
        .ok_or_else(|| given.expected("accept, drop or reject"))?;
    Ok(Box::new(Audit { kind }))
}

impl Target for Audit {
    fn print(&self, to: &mut Printer) {
        to.option(false, "type", self.kind);
    }

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Continue
    }

    fn only_watches(&self) -> bool {
        true
    }
}
