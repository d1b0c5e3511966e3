//! `-m connlabel`: a label bit of the connection, tested and maybe set.
//!
//! Labels are numbers here: their names stand in a file of the host. Source: iptables-extensions(8);
//! kernel `net/netfilter/xt_connlabel.c`, which has 128 labels.

use super::{Args, IP, Match, MatchKind, Opt, Printer, Support, number};
use crate::save::What;

const MAX_LABEL: u64 = 127;

/// The kind.
pub(super) static KIND: MatchKind = MatchKind {
    name: "connlabel",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("label").invertible(), Opt::flag("set")],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Connlabel {
    label: u8,
    invert: bool,
    set: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("label")?;
    let label = number::between(given, 0, MAX_LABEL)? as u8;
    Ok(Box::new(Connlabel { label, invert: given.invert, set: args.has("set") }))
}

impl Match for Connlabel {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "label", format_args!("\"{}\"", self.label));
        if self.set {
            to.flag(false, "set");
        }
    }
}
