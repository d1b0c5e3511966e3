//! `--log…` and `--nflog…`: the watchers of a rule on a bridge, which say yes to every packet.
//!
//! Source: ebtables-nft(8) "WATCHER EXTENSIONS"; syslog(3) for the levels.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::{Args, BRIDGE, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

/// To the kernel's log.
pub(crate) static LOG: MatchKind = MatchKind {
    name: "log",
    aliases: &[],
    families: BRIDGE,
    protocol: None,
    options: &[
        Opt::flag("log"),
        Opt::value("log-level"),
        Opt::value("log-prefix"),
        Opt::flag("log-ip"),
        Opt::flag("log-arp"),
        Opt::flag("log-ip6"),
    ],
    support: Support::Evaluated,
    parse: parse_log,
};

/// To a netlink group.
pub(crate) static NFLOG: MatchKind = MatchKind {
    name: "nflog",
    aliases: &[],
    families: BRIDGE,
    protocol: None,
    options: &[
        Opt::flag("nflog"),
        Opt::value("nflog-group"),
        Opt::value("nflog-prefix"),
        Opt::value("nflog-range"),
        Opt::value("nflog-threshold"),
    ],
    support: Support::Evaluated,
    parse: parse_nflog,
};

const LEVELS: [&str; 8] = ["emerg", "alert", "crit", "error", "warning", "notice", "info", "debug"];
const DEFAULT_LEVEL: usize = 5;
const FLAGS: [&str; 3] = ["log-ip", "log-arp", "log-ip6"];
const MAX_LOG_PREFIX: usize = 29;
const MAX_NFLOG_PREFIX: usize = 63;

#[derive(Debug)]
struct Log {
    level: usize,
    prefix: Box<str>,
    flags: [bool; 3],
}

#[derive(Debug)]
struct Nflog {
    prefix: Box<str>,
    group: u16,
    range: Option<u32>,
    threshold: Option<u16>,
}

fn prefix(args: &Args<'_>, name: &str, max: usize) -> Result<Box<str>, What> {
    let Some(given) = args.get(name) else { return Ok("".into()) };
    if given.text().len() > max || given.text().contains(['"', '\n']) {
        return Err(given.expected(format!("at most {max} bytes without quotes and line ends")));
    }
    Ok(given.text().into())
}

fn parse_log(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let level = match args.get("log-level") {
        None => DEFAULT_LEVEL,
        Some(given) => LEVELS
            .iter()
            .position(|name| name.eq_ignore_ascii_case(given.text()))
            .or_else(|| value::number(given.text(), 7).map(|level| level as usize))
            .ok_or_else(|| given.expected("a level 0-7 or its name"))?,
    };
    let prefix = prefix(args, "log-prefix", MAX_LOG_PREFIX)?;
    Ok(Box::new(Log { level, prefix, flags: FLAGS.map(|name| args.has(name)) }))
}

fn parse_nflog(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let number = |name, low, high| match args.get(name) {
        Some(given) => number::between(given, low, high).map(Some),
        None => Ok(None),
    };
    Ok(Box::new(Nflog {
        prefix: prefix(args, "nflog-prefix", MAX_NFLOG_PREFIX)?,
        group: number("nflog-group", 1, 0xffff)?.unwrap_or(1) as u16,
        range: number("nflog-range", 1, u32::MAX.into())?.map(|range| range as u32),
        threshold: number("nflog-threshold", 1, 0xffff)?.map(|threshold| threshold as u16),
    }))
}

impl Match for Log {
    fn print(&self, to: &mut Printer) {
        to.option(false, "log-level", LEVELS[self.level]);
        if !self.prefix.is_empty() {
            to.flag(false, "log-prefix").in_quotes(&self.prefix);
        }
        for (name, _) in FLAGS.into_iter().zip(self.flags).filter(|(_, given)| *given) {
            to.flag(false, name);
        }
    }

    fn evaluate(&self, _transit: &Transit<'_, '_>) -> Outcome {
        Outcome::YES
    }
}

impl Match for Nflog {
    fn print(&self, to: &mut Printer) {
        if !self.prefix.is_empty() {
            to.flag(false, "nflog-prefix").in_quotes(&self.prefix);
        }
        to.option(false, "nflog-group", self.group);
        if let Some(range) = self.range {
            to.option(false, "nflog-range", range);
        }
        if let Some(threshold) = self.threshold {
            to.option(false, "nflog-threshold", threshold);
        }
    }

    fn evaluate(&self, _transit: &Transit<'_, '_>) -> Outcome {
        Outcome::YES
    }
}
