//! `-m owner`: user and group of the socket that sent the packet.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_owner.c`.

use crate::error::What;
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Hook;
use crate::value;

/// -1 is no user: the last number is one less.
const MAX_ID: u64 = u32::MAX as u64 - 1;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "owner",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("uid-owner").invertible(),
        Opt::value("gid-owner").invertible(),
        Opt::flag("socket-exists").invertible(),
        Opt::flag("suppl-groups"),
    ],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Owner {
    /// `Some(true)` is `! --socket-exists`.
    socket: Option<bool>,
    user: Option<Ids>,
    group: Option<Ids>,
    supplementary: bool,
}

#[derive(Debug, Clone, Copy)]
struct Ids {
    low: u32,
    high: u32,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_hook(&[Hook::Output, Hook::Postrouting])?;
    args.any_of(&["uid-owner", "gid-owner", "socket-exists"])?;
    let place = |name| args.given.iter().position(|given| given.name == name);
    let supplementary = place("suppl-groups");
    if supplementary.is_some_and(|at| place("gid-owner").is_none_or(|group| group > at)) {
        return Err(args.expected("--gid-owner before --suppl-groups"));
    }
    Ok(Box::new(Owner {
        socket: args.get("socket-exists").map(|given| given.invert),
        user: args.get("uid-owner").map(parse_ids).transpose()?,
        group: args.get("gid-owner").map(parse_ids).transpose()?,
        supplementary: supplementary.is_some(),
    }))
}

/// Numbers, or `root`: other names are those of the host.
fn parse_ids(given: &Given<'_>) -> Result<Ids, What> {
    let text = given.text();
    let ends = match text.split_once(['-', ':']) {
        _ if text == "root" => Some((0, 0)),
        Some((low, high)) => value::number(low, MAX_ID).zip(value::number(high, MAX_ID)),
        None => value::number(text, MAX_ID).map(|id| (id, id)),
    };
    let (low, high) = ends
        .filter(|(low, high)| low <= high)
        .ok_or_else(|| given.expected("a number, a range low-high or root"))?;
    Ok(Ids { low: low as u32, high: high as u32, invert: given.invert })
}

impl Match for Owner {
    fn print(&self, to: &mut Printer) {
        if let Some(invert) = self.socket {
            to.flag(invert, "socket-exists");
        }
        for (name, ids) in [("uid-owner", self.user), ("gid-owner", self.group)] {
            match ids {
                None => {}
                Some(Ids { low, high, invert }) if low == high => _ = to.option(invert, name, low),
                Some(Ids { low, high, invert }) => {
                    to.option(invert, name, format_args!("{low}-{high}"));
                }
            }
        }
        if self.supplementary {
            to.flag(false, "suppl-groups");
        }
    }
}
