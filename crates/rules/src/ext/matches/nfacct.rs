//! `-m nfacct`: counts the packet in a named accounting object.
//!
//! Whether the object exists is not known here. Source: iptables-extensions(8); kernel
//! `net/netfilter/xt_nfacct.c`.

use crate::error::What;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};

const MAX_BYTES: usize = 31;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "nfacct",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("nfacct-name")],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Nfacct {
    name: Box<str>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("nfacct-name")?;
    let name = given.text();
    if name.is_empty() || name.len() > MAX_BYTES || name.contains('\n') {
        return Err(given.expected(format!("1-{MAX_BYTES} bytes without a line end")));
    }
    Ok(Box::new(Nfacct { name: name.into() }))
}

impl Match for Nfacct {
    fn asks_for(&self) -> Option<&'static str> {
        Some("whether its object has a quota, and has passed it, is not in the rules")
    }

    fn print(&self, to: &mut Printer) {
        to.string(false, "nfacct-name", &self.name);
    }
}
