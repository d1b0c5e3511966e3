//! `-m cpu`: the processor that handles the packet.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_cpu.c`.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};

pub(crate) static KIND: MatchKind = MatchKind {
    name: "cpu",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("cpu").invertible()],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Cpu {
    number: u32,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("cpu")?;
    Ok(Box::new(Cpu { number: number::u32(given)?, invert: given.invert }))
}

impl Match for Cpu {
    fn asks_for(&self) -> Option<&'static str> {
        Some("which processor handled the packet is not captured")
    }

    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "cpu", self.number);
    }
}
