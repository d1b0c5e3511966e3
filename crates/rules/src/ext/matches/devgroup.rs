//! `-m devgroup`: the group of the incoming or outgoing interface.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_devgroup.c`.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::matches::mark::masked_text;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Hook;

/// The name that every group file gives to group 0.
const NAMES: &[(&str, u32)] = &[("default", 0)];

pub(crate) static KIND: MatchKind = MatchKind {
    name: "devgroup",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("src-group").invertible(), Opt::value("dst-group").invertible()],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Devgroup {
    source: Option<Group>,
    destination: Option<Group>,
}

#[derive(Debug)]
struct Group {
    value: u32,
    mask: u32,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&["src-group", "dst-group"])?;
    if args.has("src-group") {
        args.needs_hook(&[Hook::Prerouting, Hook::Input, Hook::Forward])?;
    }
    if args.has("dst-group") {
        args.needs_hook(&[Hook::Forward, Hook::Output, Hook::Postrouting])?;
    }
    let source = parse_group(args, "src-group")?;
    Ok(Box::new(Devgroup { source, destination: parse_group(args, "dst-group")? }))
}

fn parse_group(args: &Args<'_>, name: &str) -> Result<Option<Group>, What> {
    let Some(given) = args.get(name) else { return Ok(None) };
    let (value, mask) = number::named_masked(given, NAMES)?;
    Ok(Some(Group { value, mask, invert: given.invert }))
}

impl Match for Devgroup {
    fn print(&self, to: &mut Printer) {
        for (name, group) in [("src-group", &self.source), ("dst-group", &self.destination)] {
            if let Some(Group { value, mask, invert }) = group {
                to.option(*invert, name, masked_text(*value, *mask));
            }
        }
    }
}
