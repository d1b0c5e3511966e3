//! `-j NFLOG`: hands a copy to a netlink group and goes on.
//!
//! Source: iptables-extensions(8); `linux/netfilter/xt_NFLOG.h`.

use crate::error::What;
use crate::ext::{Args, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::transit::Transit;
use crate::value;

const MAX_PREFIX: usize = 63;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "NFLOG",
    families: IP,
    options: &[
        Opt::value("nflog-group"),
        Opt::value("nflog-prefix"),
        Opt::value("nflog-range"),
        Opt::value("nflog-size"),
        Opt::value("nflog-threshold"),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Nflog {
    group: u16,
    prefix: Box<str>,
    /// `--nflog-size`, or `--nflog-range`, which the kernel ignores.
    length: Option<(&'static str, u32)>,
    threshold: u16,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.one_of(&["nflog-range", "nflog-size"])?;
    let small = |name| match args.get(name) {
        Some(given) => value::u16(given.text()).ok_or_else(|| given.expected("a number 0-65535")),
        None => Ok(0),
    };
    let length = match args.get("nflog-size").or_else(|| args.get("nflog-range")) {
        Some(given) => {
            let bytes = value::u32(given.text())
                .ok_or_else(|| given.expected("a number of bytes of 32 bits"))?;
            (given.name == "nflog-size" || bytes != 0).then_some((given.name, bytes))
        }
        None => None,
    };
    let prefix = args.get("nflog-prefix").map_or("", |given| given.text());
    Ok(Box::new(Nflog {
        group: small("nflog-group")?,
        prefix: value::cut(prefix, MAX_PREFIX).into(),
        length,
        threshold: small("nflog-threshold")?,
    }))
}

impl Target for Nflog {
    fn print(&self, to: &mut Printer) {
        if !self.prefix.is_empty() {
            to.string(false, "nflog-prefix", &self.prefix);
        }
        if self.group != 0 {
            to.option(false, "nflog-group", self.group);
        }
        if let Some((name, bytes)) = self.length {
            to.option(false, name, bytes);
        }
        if self.threshold != 0 {
            to.option(false, "nflog-threshold", self.threshold);
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
