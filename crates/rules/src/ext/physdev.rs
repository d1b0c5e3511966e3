//! `-m physdev`: the bridge ports that a bridged packet comes in and goes out by.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_physdev.c`.

use super::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::model::Hook;
use crate::save::What;

const MAX_NAME: usize = 15;

/// The kind.
pub(super) static KIND: MatchKind = MatchKind {
    name: "physdev",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("physdev-in").invertible(),
        Opt::value("physdev-out").invertible(),
        Opt::flag("physdev-is-in").invertible(),
        Opt::flag("physdev-is-out").invertible(),
        Opt::flag("physdev-is-bridged").invertible(),
    ],
    support: Support::Parsed,
    parse,
};

/// Options in printing order.
const ORDER: [&str; 5] =
    ["physdev-is-in", "physdev-in", "physdev-is-out", "physdev-out", "physdev-is-bridged"];

#[derive(Debug)]
struct Physdev {
    tests: Box<[Test]>,
}

#[derive(Debug)]
struct Test {
    name: &'static str,
    invert: bool,
    /// Interface name, with its `+`; empty for a flag.
    iface: Box<str>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&ORDER)?;
    let bridged = args.get("physdev-is-bridged").is_some_and(|given| !given.invert);
    if !bridged && (args.has("physdev-out") || args.has("physdev-is-out")) {
        refuse_output(args)?;
    }
    let given = ORDER.into_iter().filter_map(|name| args.get(name));
    let tests: Result<_, What> = given.map(parse_test).collect();
    Ok(Box::new(Physdev { tests: tests? }))
}

/// A local packet has no bridge port to leave by when OUTPUT sees it.
fn refuse_output(args: &Args<'_>) -> Result<(), What> {
    use Hook::{Forward, Input, Postrouting, Prerouting};
    args.needs_hook(&[Prerouting, Input, Forward, Postrouting])
}

fn parse_test(given: &Given<'_>) -> Result<Test, What> {
    if given.text().len() > MAX_NAME {
        return Err(given.expected(format!("an interface name of at most {MAX_NAME} bytes")));
    }
    Ok(Test { name: given.name, invert: given.invert, iface: given.text().into() })
}

impl Match for Physdev {
    fn print(&self, to: &mut Printer) {
        for Test { name, invert, iface } in &self.tests {
            to.flag(*invert, name);
            if matches!(*name, "physdev-in" | "physdev-out") {
                to.plain(iface);
            }
        }
    }
}
