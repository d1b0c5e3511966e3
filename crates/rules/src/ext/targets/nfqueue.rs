//! `-j NFQUEUE`: hands the packet to a program, whose answer the host tells, or nobody.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_NFQUEUE.c`.

use crate::error::What;
use crate::ext::kit::queued::Queued;
use crate::ext::{Args, Course, Effect, Given, IP, Opt, Printer, Support, Target, TargetKind};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "NFQUEUE",
    families: IP,
    options: &[
        Opt::value("queue-num"),
        Opt::value("queue-balance"),
        Opt::flag("queue-bypass"),
        Opt::flag("queue-cpu-fanout"),
    ],
    support: Support::Evaluated,
    parse,
};

const MAX_BALANCED: u64 = 65534;

#[derive(Debug)]
struct Nfqueue {
    queued: Queued,
    /// `--queue-balance`, whose range the queues are.
    balances: bool,
    cpu_fanout: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.one_of(&["queue-num", "queue-balance"])?;
    let cpu_fanout = args.has("queue-cpu-fanout");
    let (first, last) = match (args.get("queue-balance"), args.get("queue-num")) {
        (Some(given), _) => balance(given)?,
        (None, _) if cpu_fanout => return Err(args.expected("--queue-balance")),
        (None, Some(given)) => {
            let number = value::u16(given.text());
            (number.ok_or_else(|| given.expected("a queue number 0-65535"))?, None)
        }
        (None, None) => (0, None),
    };
    let queued = Queued {
        queues: (first, last.unwrap_or(first)),
        bypass: args.has("queue-bypass"),
        in_nat: Queued::is_in_nat(args),
    };
    Ok(Box::new(Nfqueue { queued, balances: last.is_some(), cpu_fanout }))
}

fn balance(given: &Given<'_>) -> Result<(u16, Option<u16>), What> {
    value::range(given.text(), ':', MAX_BALANCED)
        .filter(|(first, last)| first < last)
        .map(|(first, last)| (first as u16, Some(last as u16)))
        .ok_or_else(|| given.expected("a range first:last of queues 0-65534"))
}

impl Target for Nfqueue {
    fn print(&self, to: &mut Printer) {
        let (first, last) = self.queued.queues;
        match self.balances {
            true => to.option(false, "queue-balance", format_args!("{first}:{last}")),
            false => to.option(false, "queue-num", first),
        };
        if self.queued.bypass {
            to.flag(false, "queue-bypass");
        }
        if self.cpu_fanout {
            to.flag(false, "queue-cpu-fanout");
        }
    }
    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        self.queued.apply(transit)
    }

    fn queues(&self) -> bool {
        true
    }

    fn course(&self) -> Course {
        Course::Ends(Effect::Either)
    }
}
