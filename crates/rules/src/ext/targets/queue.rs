//! `-j QUEUE`: hands the packet to a program, whose verdict is unknown.
//!
//! Source: iptables(8) "TARGETS"; kernel `net/netfilter/nf_queue.c`.

use crate::error::What;
use crate::ext::{Args, IP, Printer, Support, Target, TargetKind};

pub(crate) static KIND: TargetKind =
    TargetKind { name: "QUEUE", families: IP, options: &[], support: Support::Parsed, parse };

#[derive(Debug)]
struct Queue;

fn parse(_args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    Ok(Box::new(Queue))
}

impl Target for Queue {
    fn print(&self, _to: &mut Printer) {}
}
