//! `-m helper`: the connection is one that a conntrack helper expected.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_helper.c`.

use super::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::save::What;

const MAX_BYTES: usize = 29;

/// The kind.
pub(super) static KIND: MatchKind = MatchKind {
    name: "helper",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("helper").invertible()],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Helper {
    name: Box<str>,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("helper")?;
    if given.text().len() > MAX_BYTES {
        return Err(given.expected(format!("at most {MAX_BYTES} bytes")));
    }
    Ok(Box::new(Helper { name: given.text().into(), invert: given.invert }))
}

impl Match for Helper {
    fn print(&self, to: &mut Printer) {
        to.string(self.invert, "helper", &self.name);
    }
}
