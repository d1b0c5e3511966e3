//! `-j ULOG`: hands a copy to a netlink group and goes on. Kernels before 3.17 had it; NFLOG followed.
//!
//! Source: iptables-extensions(8); `linux/netfilter_ipv4/ipt_ULOG.h`.

use crate::error::What;
use crate::ext::{Args, Effect, Opt, Printer, Support, Target, TargetKind, V4};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "ULOG",
    families: V4,
    options: &[
        Opt::value("ulog-nlgroup"),
        Opt::value("ulog-prefix"),
        Opt::value("ulog-cprange"),
        Opt::value("ulog-qthreshold"),
    ],
    support: Support::Evaluated,
    parse,
};

const MAX_PREFIX: usize = 31;
const MAX_GROUP: u64 = 32;
const MAX_THRESHOLD: u64 = 50;

#[derive(Debug)]
struct Ulog {
    /// 1-32.
    group: u8,
    prefix: Box<str>,
    /// Bytes of each packet to copy; 0 for all.
    copied: u32,
    /// 1-50.
    threshold: u8,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    let prefix = match args.get("ulog-prefix") {
        Some(given) if given.text().is_empty() || given.text().contains('\n') => {
            return Err(given.expected("a prefix without a line end"));
        }
        Some(given) => value::cut(given.text(), MAX_PREFIX),
        None => "",
    };
    let copied = match args.get("ulog-cprange") {
        Some(given) => {
            value::u32(given.text()).ok_or_else(|| given.expected("a number of bytes"))?
        }
        None => 0,
    };
    Ok(Box::new(Ulog {
        group: from_one(args, "ulog-nlgroup", MAX_GROUP)?,
        prefix: prefix.into(),
        copied,
        threshold: from_one(args, "ulog-qthreshold", MAX_THRESHOLD)?,
    }))
}

/// A number from 1, which is also the default, to `max`.
fn from_one(args: &Args<'_>, name: &str, max: u64) -> Result<u8, What> {
    let Some(given) = args.get(name) else { return Ok(1) };
    value::number(given.text(), max)
        .filter(|number| *number > 0)
        .map(|number| number as u8)
        .ok_or_else(|| given.expected(format!("a number 1-{max}")))
}

impl Target for Ulog {
    fn print(&self, to: &mut Printer) {
        if !self.prefix.is_empty() {
            to.string(false, "ulog-prefix", &self.prefix);
        }
        if self.group != 1 {
            to.option(false, "ulog-nlgroup", self.group);
        }
        if self.copied != 0 {
            to.option(false, "ulog-cprange", self.copied);
        }
        if self.threshold != 1 {
            to.option(false, "ulog-qthreshold", self.threshold);
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
