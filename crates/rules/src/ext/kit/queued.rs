//! Packets that a rule hands to a program, as `-j NFQUEUE` and `-j QUEUE` do.
//!
//! A packet that the program accepts goes on behind the table: nobody asks the rules after this one about it. Where no
//! program listens it is dropped, unless the rule says that it passes then; it goes on behind the table, too.
//! Source: kernel `net/netfilter/nf_queue.c`, `nfnetlink_queue.c`; in nat, `nf_nat_core.c`.

use crate::ext::{Args, Effect};
use crate::family::TableKind;
use crate::transit::Transit;
use host::{QueueVerdict, Queues};
use packet::Mark;

/// Which queues packets come to, and what becomes of them where no program listens.
#[derive(Debug)]
pub(crate) struct Queued {
    /// The first and the last queue; the kernel shares packets out by a number of its own.
    pub(crate) queues: (u16, u16),
    /// `--queue-bypass`.
    pub(crate) bypass: bool,
    /// In nat, an accepted packet leaves its connection without a translation, and the next one asks again.
    pub(crate) in_nat: bool,
}

impl Queued {
    /// Whether the rule stands in nat.
    pub(crate) fn is_in_nat(args: &Args<'_>) -> bool {
        args.table == TableKind::NAT
    }

    /// Queues the packet; its fate is known if the answer is the same in every queue that it may come to. An unknown
    /// program may change what it accepts.
    pub(crate) fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        let effect = self.effect(&transit.host.queues);
        transit.queued = true;
        if effect == Effect::Either {
            transit.mark = Mark { value: 0, unknown: u32::MAX };
            transit.forget_net(0..transit.packet.len());
        }
        effect
    }

    fn effect(&self, told: &Queues) -> Effect {
        let (first, last) = self.queues;
        let mut effects = told.within(first, last).map(|verdict| match verdict {
            QueueVerdict::Accept => Effect::Accept,
            QueueVerdict::Nobody if self.bypass => Effect::Accept,
            QueueVerdict::Drop | QueueVerdict::Nobody => Effect::Drop,
            QueueVerdict::Unknown => Effect::Either,
        });
        let Some(effect) = effects.next() else { return Effect::Either };
        match effects.all(|other| other == effect) {
            true if self.in_nat && effect == Effect::Accept => Effect::Either,
            true => effect,
            false => Effect::Either,
        }
    }
}
