//! `-m connmark`: the connection's mark under a mask.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_connmark.c`.

use super::mark::masked_text;
use super::{Args, IP, Match, MatchKind, Opt, Printer, Support, number};
use crate::save::What;

/// The kind.
pub(super) static KIND: MatchKind = MatchKind {
    name: "connmark",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("mark").invertible()],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Connmark {
    value: u32,
    mask: u32,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("mark")?;
    let (value, mask) = number::named_masked(given, &[])?;
    Ok(Box::new(Connmark { value, mask, invert: given.invert }))
}

impl Match for Connmark {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "mark", masked_text(self.value, self.mask));
    }
}
