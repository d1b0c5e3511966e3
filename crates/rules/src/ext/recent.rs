//! `-m recent`: a list of addresses that packets are entered in and looked up in.
//!
//! Lists are empty at the start. One that no rule enters anything in stays so, and looking there finds nothing;
//! what is found in the others is not followed. Entering always matches.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_recent.c`.

use std::collections::BTreeSet;

use super::{Args, Given, IP, Match, MatchKind, Memory, Opt, Printer, Support, number, value};
use crate::ipset::Sets;
use crate::outcome::Outcome;
use crate::save::What;
use crate::transit::Transit;

const MAX_NAME: usize = 199;
const MAX_HITS: u64 = 65_535;

/// The kind.
pub(super) static KIND: MatchKind = MatchKind {
    name: "recent",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::flag("set").invertible(),
        Opt::flag("rcheck").invertible(),
        Opt::flag("update").invertible(),
        Opt::flag("remove").invertible(),
        Opt::value("seconds"),
        Opt::flag("reap"),
        Opt::value("hitcount"),
        Opt::flag("rttl"),
        Opt::value("name"),
        Opt::flag("rsource"),
        Opt::flag("rdest"),
        Opt::value("mask"),
    ],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Recent {
    /// Name of the option that says what to do.
    action: &'static str,
    invert: bool,
    seconds: Option<u32>,
    reap: bool,
    hits: Option<u32>,
    ttl: bool,
    list: Box<str>,
    by_destination: bool,
    mask: [u8; 16],
    addr_len: u8,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let action = parse_action(args)?;
    let len = args.family.addr_len();
    let mask = args.get("mask").map(|given| parse_mask(given, len)).transpose()?;
    let side = args.given.iter().rfind(|given| matches!(given.name, "rsource" | "rdest"));
    let hits = |given| number::between(given, 0, MAX_HITS).map(|hits| hits as u32);
    Ok(Box::new(Recent {
        action: action.name,
        invert: action.invert,
        seconds: args.get("seconds").map(|given| number::u32_from(given, 1)).transpose()?,
        reap: args.has("reap"),
        hits: args.get("hitcount").map(hits).transpose()?.filter(|hits| *hits > 0),
        ttl: args.has("rttl"),
        list: args.get("name").map(parse_name).transpose()?.unwrap_or_else(|| "DEFAULT".into()),
        by_destination: side.is_some_and(|given| given.name == "rdest"),
        mask: mask.unwrap_or([0xff; 16]),
        addr_len: len as u8,
    }))
}

/// The one action; those that only write take no conditions.
fn parse_action<'s, 'a>(args: &'s Args<'a>) -> Result<&'s Given<'a>, What> {
    let actions = ["set", "rcheck", "update", "remove"];
    args.one_of(&actions)?;
    args.any_of(&actions)?;
    if args.has("reap") {
        args.required("seconds")?;
    }
    for condition in ["seconds", "reap", "hitcount", "rttl"] {
        args.one_of(&["set", condition])?;
        args.one_of(&["remove", condition])?;
    }
    actions.iter().find_map(|name| args.get(name)).ok_or_else(|| args.expected("an action"))
}

fn parse_mask(given: &Given<'_>, len: usize) -> Result<[u8; 16], What> {
    value::address(given.text(), len).ok_or_else(|| given.expected("a mask written as an address"))
}

/// The list is a file in `/proc/net/xt_recent`.
fn parse_name(given: &Given<'_>) -> Result<Box<str>, What> {
    let name = given.text();
    if name.is_empty() || name.len() > MAX_NAME || name.contains('/') || matches!(name, "." | "..")
    {
        return Err(given.expected(format!("a file name of at most {MAX_NAME} bytes")));
    }
    Ok(name.into())
}

/// Looks in a list.
#[derive(Debug)]
struct Looking {
    list: Box<str>,
    invert: bool,
    stays_empty: bool,
}

impl Memory for Looking {
    fn evaluate(&mut self, _transit: &mut Transit<'_, '_>) -> Outcome {
        if self.stays_empty { Outcome::from_bool(self.invert) } else { Outcome::MAYBE }
    }

    fn told(&mut self, entered: &BTreeSet<&str>) {
        self.stays_empty = !entered.contains(&*self.list);
    }

    fn couples_flows(&self, _sets: Option<&Sets>) -> bool {
        false
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}

impl Match for Recent {
    fn enters(&self) -> Option<&str> {
        (self.action == "set").then_some(&*self.list)
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        let (list, invert) = (self.list.clone(), self.invert);
        (self.action != "set").then(|| Box::new(Looking { list, invert, stays_empty: false }) as _)
    }

    fn evaluate(&self, _transit: &Transit<'_, '_>) -> Outcome {
        match self.action {
            "set" => Outcome::from_bool(!self.invert),
            _ => Outcome::MAYBE,
        }
    }

    fn print(&self, to: &mut Printer) {
        to.flag(self.invert, self.action);
        if let Some(seconds) = self.seconds {
            to.option(false, "seconds", seconds);
        }
        if self.reap {
            to.flag(false, "reap");
        }
        if let Some(hits) = self.hits {
            to.option(false, "hitcount", hits);
        }
        if self.ttl {
            to.flag(false, "rttl");
        }
        to.flag(false, "name").plain(&self.list);
        to.option(false, "mask", value::address_text(&self.mask, self.addr_len.into()));
        to.flag(false, if self.by_destination { "rdest" } else { "rsource" });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ipv4_udp, with_transit};
    use super::*;

    #[test]
    fn a_list_that_nothing_enters_stays_empty() {
        let bytes = ipv4_udp(b"");
        let look = |entered: &[&str], invert| {
            let mut memory = Looking { list: "a".into(), invert, stays_empty: false };
            memory.told(&entered.iter().copied().collect());
            with_transit(&bytes, bytes.len(), |transit| memory.evaluate(transit))
        };
        assert_eq!(look(&["b"], false), Outcome::NO);
        assert_eq!(look(&["b"], true), Outcome::YES);
        assert_eq!(look(&["a"], false), Outcome::MAYBE);
    }
}
