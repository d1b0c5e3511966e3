//! `-m quota`: matches until a number of bytes has passed.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_quota.c`.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};

pub(crate) static KIND: MatchKind = MatchKind {
    name: "quota",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("quota").invertible()],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Quota {
    bytes: u64,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("quota")?;
    Ok(Box::new(Quota { bytes: number::between(given, 0, u64::MAX)?, invert: given.invert }))
}

impl Match for Quota {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "quota", self.bytes);
    }
}
