//! `-m osf`: the operating system that a SYN looks like.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_osf.c`.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::{Args, Match, MatchKind, Opt, Printer, Support, V4};
use crate::family::Hook;

const TCP: u8 = 6;
const MAX_GENRE: usize = 31;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "osf",
    aliases: &[],
    families: V4,
    protocol: None,
    options: &[Opt::value("genre").invertible(), Opt::value("ttl"), Opt::value("log")],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Osf {
    genre: Box<str>,
    invert: bool,
    ttl: Option<u8>,
    log: Option<u8>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_protocol(&[TCP])?;
    args.needs_hook(&[Hook::Prerouting, Hook::Input, Hook::Forward])?;
    let given = args.required("genre")?;
    if given.text().len() > MAX_GENRE {
        return Err(given.expected(format!("at most {MAX_GENRE} bytes")));
    }
    let level = |name| {
        args.get(name)
            .map(|given| number::between(given, 0, 2).map(|level| level as u8))
            .transpose()
    };
    Ok(Box::new(Osf {
        genre: given.text().into(),
        invert: given.invert,
        ttl: level("ttl")?,
        log: level("log")?,
    }))
}

impl Match for Osf {
    fn print(&self, to: &mut Printer) {
        to.flag(self.invert, "genre").plain(&self.genre);
        for (name, level) in [("ttl", self.ttl), ("log", self.log)] {
            if let Some(level) = level {
                to.option(false, name, level);
            }
        }
    }
}
