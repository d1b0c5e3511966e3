//! `-j LOG`: logs and goes on.
//!
//! Source: iptables-extensions(8); syslog(3) for the levels.

use crate::error::What;
use crate::ext::{Args, Effect, Given, IP, Opt, Printer, Support, Target, TargetKind};
use crate::transit::Transit;
use crate::value;

const MAX_PREFIX: usize = 29;
const DEFAULT_LEVEL: u8 = 4;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "LOG",
    families: IP,
    options: &[
        Opt::value("log-prefix"),
        Opt::value("log-level"),
        Opt::flag("log-tcp-sequence"),
        Opt::flag("log-tcp-options"),
        Opt::flag("log-ip-options"),
        Opt::flag("log-uid"),
        Opt::flag("log-macdecode"),
    ],
    support: Support::Evaluated,
    parse,
};

/// Flags in printing order.
const FLAGS: [&str; 5] =
    ["log-tcp-sequence", "log-tcp-options", "log-ip-options", "log-uid", "log-macdecode"];

const LEVELS: &[(&str, u8)] = &[
    ("alert", 1),
    ("crit", 2),
    ("debug", 7),
    ("emerg", 0),
    ("error", 3),
    ("info", 6),
    ("notice", 5),
    ("panic", 0),
    ("warning", 4),
];

#[derive(Debug)]
struct Log {
    prefix: Box<str>,
    level: u8,
    flags: Vec<&'static str>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    let prefix = match args.get("log-prefix") {
        Some(given) => parse_prefix(given)?,
        None => "",
    };
    let level = match args.get("log-level") {
        Some(given) => parse_level(given.text())
            .ok_or_else(|| given.expected("a level 0-7 or an unambiguous syslog level name"))?,
        None => DEFAULT_LEVEL,
    };
    let flags = FLAGS.into_iter().filter(|name| args.has(name)).collect();
    Ok(Box::new(Log { prefix: prefix.into(), level, flags }))
}

fn parse_prefix<'g>(given: &'g Given<'_>) -> Result<&'g str, What> {
    let text = given.text();
    if text.len() > MAX_PREFIX || text.contains('\n') {
        return Err(given.expected(format!("at most {MAX_PREFIX} bytes without a line end")));
    }
    Ok(text)
}

fn parse_level(text: &str) -> Option<u8> {
    if let Some(level) = value::number(text, 7) {
        return Some(level as u8);
    }
    let starts = |name: &str| !text.is_empty() && name.starts_with(&text.to_ascii_lowercase());
    let mut found = LEVELS.iter().filter(|(name, _)| starts(name));
    match (found.next(), found.next()) {
        (Some((_, level)), None) => Some(*level),
        _ => None,
    }
}

impl Target for Log {
    fn print(&self, to: &mut Printer) {
        if !self.prefix.is_empty() {
            to.string(false, "log-prefix", &self.prefix);
        }
        if self.level != DEFAULT_LEVEL {
            to.option(false, "log-level", self.level);
        }
        for name in &self.flags {
            to.flag(false, name);
        }
    }

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Continue
    }

    fn only_watches(&self) -> bool {
        true
    }

    fn log_prefix(&self) -> Option<&str> {
        Some(&self.prefix)
    }
}
