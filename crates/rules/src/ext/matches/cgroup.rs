//! `-m cgroup`: the control group of the socket that sent or gets the packet.
//!
//! A packet that the host only forwards has no socket, and does not match, inverted or not; of any other no capture shows
//! it. Source: iptables-extensions(8); Linux 6.18 `net/netfilter/xt_cgroup.c`.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::matches::owner::is_forwarded;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Hook;
use crate::outcome::Outcome;
use crate::transit::Transit;

const MAX_PATH: usize = 511;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "cgroup",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("path").invertible(), Opt::value("cgroup").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Cgroup {
    group: Group,
    invert: bool,
}

#[derive(Debug)]
enum Group {
    Path(Box<str>),
    Class(u32),
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_hook(&[Hook::Input, Hook::Output, Hook::Postrouting])?;
    args.any_of(&["path", "cgroup"])?;
    args.one_of(&["path", "cgroup"])?;
    let given = args.get("path").map_or_else(|| args.required("cgroup"), Ok)?;
    let group = match given.name {
        "path" if given.text().len() > MAX_PATH => {
            return Err(given.expected(format!("at most {MAX_PATH} bytes")));
        }
        "path" => Group::Path(given.text().into()),
        _ => Group::Class(number::u32(given)?),
    };
    Ok(Box::new(Cgroup { group, invert: given.invert }))
}

impl Match for Cgroup {
    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        if is_forwarded(transit) { Outcome::NO } else { Outcome::MAYBE }
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some("the control group of the socket is not captured")
    }

    fn print(&self, to: &mut Printer) {
        match &self.group {
            Group::Path(path) => to.string(self.invert, "path", path),
            Group::Class(class) => to.option(self.invert, "cgroup", class),
        };
    }
}
