//! `-m owner`: user and group of the socket that sent the packet.
//!
//! A packet that the host only forwards has no socket: it matches where everything that is asked is inverted. Which
//! process sent one of the host's own, or whether the kernel itself did (a reset, an ICMP error), no capture shows.
//! Source: iptables-extensions(8); Linux 6.18 `net/netfilter/xt_owner.c`.

use crate::error::What;
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Hook;
use crate::outcome::Outcome;
use crate::transit::{Iface, Transit};
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
    support: Support::Evaluated,
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

/// Reads numbers, or `root`: other names depend on the host.
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

impl Owner {
    /// Nothing is asked that a packet without a socket would have to have.
    fn suits_none(&self) -> bool {
        self.socket.is_none_or(|inverted| inverted)
            && self.user.is_none_or(|ids| ids.invert)
            && self.group.is_none_or(|ids| ids.invert)
    }
}

/// Whether an interface received the packet, which leaves again.
pub(super) fn is_forwarded(transit: &Transit<'_, '_>) -> bool {
    transit.hook == Hook::Postrouting && transit.input != Iface::Absent
}

impl Match for Owner {
    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match is_forwarded(transit) {
            true => Outcome::from_bool(self.suits_none()),
            false => Outcome::MAYBE,
        }
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some("which process sent the packet is not captured")
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::read_in;
    use crate::ext::kit::testing::{ipv4_udp, with_transit};
    use crate::family::Family;

    #[test]
    fn what_is_forwarded_has_no_owner() {
        let bytes = ipv4_udp(b"");
        for (rule, forwarded) in [
            ("--uid-owner 0", Outcome::NO),
            ("! --uid-owner 0", Outcome::YES),
            ("--socket-exists", Outcome::NO),
            ("! --socket-exists", Outcome::YES),
            ("! --socket-exists ! --uid-owner 5", Outcome::YES),
            ("! --socket-exists --uid-owner 5", Outcome::NO),
            ("! --gid-owner 5 ! --uid-owner 5", Outcome::YES),
        ] {
            let rule = format!("-m owner {rule}");
            let rules = read_in(Family::Ipv4, "mangle", "POSTROUTING", &rule).unwrap();
            let body = &rules.tables[0].chains[0].rules[0].matches[0].body;
            with_transit(&bytes, bytes.len(), |transit| {
                transit.hook = Hook::Postrouting;
                transit.input = Iface::Unknown;
                assert_eq!(body.evaluate(transit), forwarded, "{rule}");
                transit.input = Iface::Absent;
                assert_eq!(body.evaluate(transit), Outcome::MAYBE, "{rule}");
            });
        }
    }
}
