//! `-m realm`: the routing realm of the packet's route.
//!
//! It is 0 where no route and no policy rule of the host names a realm; where one does, it is open. Source:
//! iptables-extensions(8); kernel `net/netfilter/xt_realm.c`, `net/ipv4/route.c` (`set_class_tag`).

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::matches::mark::masked_text;
use crate::ext::{Args, Match, MatchKind, Opt, Printer, Support, V4};
use crate::family::Hook;
use crate::outcome::Outcome;
use crate::transit::Transit;

/// The name that every `rt_realms` file gives to realm 0.
const NAMES: &[(&str, u32)] = &[("cosmos", 0)];

pub(crate) static KIND: MatchKind = MatchKind {
    name: "realm",
    aliases: &[],
    families: V4,
    protocol: None,
    options: &[Opt::value("realm").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Realm {
    value: u32,
    mask: u32,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_hook(&[Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting])?;
    let given = args.required("realm")?;
    let (value, mask) = number::named_masked(given, NAMES)?;
    Ok(Box::new(Realm { value, mask, invert: given.invert }))
}

impl Match for Realm {
    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.host.has_realms() {
            // That of every route is 0.
            Some(false) => Outcome::from_bool((self.value == 0) != self.invert),
            Some(true) | None => Outcome::MAYBE,
        }
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some(
            "the realm of the route is not known (routes without realms tell: --routes, or a folder with rule.txt)",
        )
    }

    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "realm", masked_text(self.value, self.mask));
    }
}
