//! `-j mark`: changes the packet mark on a bridge, and gives a verdict.
//!
//! Source: ebtables-nft(8); kernel `net/bridge/netfilter/ebt_mark.c`.

use crate::error::What;
use crate::ext::kit::verdict;
use crate::ext::targets::mark::SetMark;
use crate::ext::{Args, BRIDGE, Effect, Opt, Printer, Support, Target, TargetKind};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "mark",
    families: BRIDGE,
    options: &[
        Opt::value("mark-set").alias(&["set-mark"]),
        Opt::value("mark-or"),
        Opt::value("mark-and"),
        Opt::value("mark-xor"),
        Opt::value("mark-target"),
    ],
    support: Support::Evaluated,
    parse,
};

const ACTIONS: [&str; 4] = ["mark-set", "mark-or", "mark-and", "mark-xor"];

#[derive(Debug)]
struct Mark {
    /// One of [`ACTIONS`].
    action: &'static str,
    bits: u32,
    verdict: Effect,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.any_of(&ACTIONS)?;
    args.one_of(&ACTIONS)?;
    let verdict = verdict::parse(args, "mark-target", Effect::Accept)?;
    let found = ACTIONS.into_iter().find_map(|name| Some((name, args.get(name)?)));
    let Some((action, given)) = found else { return Err(args.expected("--mark-set")) };
    let bits = value::u32(given.text()).ok_or_else(|| given.expected("a value of 32 bits"))?;
    Ok(Box::new(Mark { action, bits, verdict }))
}

impl Target for Mark {
    fn print(&self, to: &mut Printer) {
        to.option(false, self.action, format_args!("{:#x}", self.bits));
        to.option(false, "mark-target", verdict::name(self.verdict));
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        let bits = self.bits;
        match self.action {
            "mark-set" => SetMark { value: bits, mask: u32::MAX },
            "mark-or" => SetMark { value: bits, mask: bits },
            "mark-and" => SetMark { value: 0, mask: !bits },
            _ => SetMark { value: bits, mask: 0 },
        }
        .change(transit);
        self.verdict
    }
}
