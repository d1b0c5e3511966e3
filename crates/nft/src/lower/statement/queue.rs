//! `queue`: hands the packet to a program. Where none listens it is dropped, unless the rule says that it passes then.
//!
//! Source: kernel `net/netfilter/nft_queue.c`, `nf_queue.c`.

use crate::lower::constants;
use crate::stmt;
use host::QueueVerdict;
use packet::Mark;
use rules::Transit;
use rules::ext::Effect;

/// The queues that packets come to.
#[derive(Debug)]
pub(crate) struct Queue {
    first: u16,
    last: u16,
    bypass: bool,
}

impl Queue {
    /// Makes it of the statement; `None` where the number of the queue is computed.
    pub(crate) fn new(queue: &stmt::Queue) -> Option<Self> {
        let span = constants::span(&queue.to, 16)?;
        let (first, last) = (u16::try_from(span.low).ok()?, u16::try_from(span.high).ok()?);
        Some(Self { first, last, bypass: queue.bypass })
    }

    /// Queues the packet: its fate is known if every queue that it may come to has the same. A program that is not known may
    /// change what it accepts.
    pub(crate) fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        let of = |verdict| match verdict {
            QueueVerdict::Accept => Effect::Accept,
            QueueVerdict::Nobody if self.bypass => Effect::Accept,
            QueueVerdict::Drop | QueueVerdict::Nobody => Effect::Drop,
            QueueVerdict::Unknown => Effect::Either,
        };
        let mut effects = transit.host.queues.within(self.first, self.last).map(of);
        let first = effects.next().unwrap_or(Effect::Either);
        let effect = if effects.all(|other| other == first) { first } else { Effect::Either };
        transit.queued = true;
        if effect == Effect::Either {
            transit.mark = Mark { value: 0, unknown: u32::MAX };
            transit.forget_net(0..transit.packet.len());
        }
        effect
    }
}
