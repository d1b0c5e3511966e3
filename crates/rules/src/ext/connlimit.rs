//! `-m connlimit`: the number of connections of a host or network.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_connlimit.c`.

use super::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support, number, value};
use crate::save::What;

/// The kind.
pub(super) static KIND: MatchKind = MatchKind {
    name: "connlimit",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("connlimit-upto").invertible(),
        Opt::value("connlimit-above").invertible(),
        Opt::value("connlimit-mask"),
        Opt::flag("connlimit-saddr"),
        Opt::flag("connlimit-daddr"),
    ],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Connlimit {
    limit: u32,
    /// Matches more than `limit` connections, not up to as many.
    above: bool,
    prefix: u8,
    by_destination: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&["connlimit-upto", "connlimit-above"])?;
    args.one_of(&["connlimit-upto", "connlimit-above"])?;
    args.one_of(&["connlimit-saddr", "connlimit-daddr"])?;
    let given = args.get("connlimit-upto").map_or_else(|| args.required("connlimit-above"), Ok)?;
    let len = args.family.addr_len();
    let prefix = args.get("connlimit-mask").map(|given| parse_prefix(given, len)).transpose()?;
    Ok(Box::new(Connlimit {
        limit: number::u32(given)?,
        above: (given.name == "connlimit-above") != given.invert,
        prefix: prefix.unwrap_or(len as u8 * 8),
        by_destination: args.has("connlimit-daddr"),
    }))
}

/// A prefix length, or a contiguous mask, of addresses of `len` bytes.
fn parse_prefix(given: &Given<'_>, len: usize) -> Result<u8, What> {
    value::mask(given.text(), len)
        .and_then(|mask| value::prefix_len(&mask, len))
        .map(|bits| bits as u8)
        .ok_or_else(|| given.expected(format!("a prefix length 0-{} or a mask", len * 8)))
}

impl Match for Connlimit {
    fn print(&self, to: &mut Printer) {
        let name = if self.above { "connlimit-above" } else { "connlimit-upto" };
        to.option(false, name, self.limit);
        to.option(false, "connlimit-mask", self.prefix);
        to.flag(false, if self.by_destination { "connlimit-daddr" } else { "connlimit-saddr" });
    }
}
