//! `-j QUEUE`: hands the packet to the program on queue 0, whose answer the host tells, or nobody.
//!
//! Source: iptables(8) "TARGETS"; kernel `net/netfilter/nf_queue.c`.

use crate::error::What;
use crate::ext::kit::queued::Queued;
use crate::ext::{Args, Course, Effect, IP, Printer, Support, Target, TargetKind};
use crate::transit::Transit;

pub(crate) static KIND: TargetKind =
    TargetKind { name: "QUEUE", families: IP, options: &[], support: Support::Evaluated, parse };

#[derive(Debug)]
struct Queue {
    queued: Queued,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    let queued = Queued { queues: (0, 0), bypass: false, in_nat: Queued::is_in_nat(args) };
    Ok(Box::new(Queue { queued }))
}

impl Target for Queue {
    fn print(&self, _to: &mut Printer) {}

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        self.queued.apply(transit)
    }

    fn course(&self) -> Course {
        Course::Ends(Effect::Either)
    }
}
