//! `-j SECMARK`: sets the packet's security mark and goes on. No match reads the security mark.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_SECMARK.c`.

use crate::error::What;
use crate::ext::{Args, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::TableKind;
use crate::transit::Transit;
use crate::value;

const MAX_CONTEXT: usize = 255;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "SECMARK",
    families: IP,
    options: &[Opt::value("selctx")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Secmark {
    context: Box<str>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::MANGLE, TableKind::SECURITY])?;
    let given = args.required("selctx")?;
    if given.text().is_empty() {
        return Err(given.expected("a security context"));
    }
    Ok(Box::new(Secmark { context: value::cut(given.text(), MAX_CONTEXT).into() }))
}

impl Target for Secmark {
    fn print(&self, to: &mut Printer) {
        to.name("selctx", &self.context);
    }

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Continue
    }

    fn only_watches(&self) -> bool {
        true
    }
}
