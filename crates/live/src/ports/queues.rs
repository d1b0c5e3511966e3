//! [`Queues`]: the queues of a port, as workers share them.

use std::io;

use pktio::{BoxedPort, Port as _};

use crate::config::Order;
use crate::ports::shared_port::SharedPort;

/// A port, as workers share it.
pub(crate) struct Queues {
    /// What each worker drives: a queue of its own, or its part of one.
    pub(crate) parts: Vec<BoxedPort>,
    /// The number of queues. As many workers receive, the first ones; on an ordered wire all do, in turn.
    pub(crate) receiving: usize,
}

impl Queues {
    /// Whether the port's frames come and leave in envelopes.
    pub(crate) fn have_envelopes(&self) -> bool {
        self.parts.first().is_some_and(|part| part.envelope().is_some())
    }

    /// Shares queues, at most one for each worker. Where there are fewer, as many workers receive, and the others
    /// transmit through those queues in turn.
    ///
    /// # Errors
    /// The machine has no descriptors left.
    pub(crate) fn of(queues: Vec<BoxedPort>, workers: usize, order: Order) -> io::Result<Self> {
        let receiving = queues.len();
        if receiving >= workers {
            return Ok(Self { parts: queues, receiving });
        }
        let mut shared = Vec::new();
        for (at, queue) in queues.into_iter().enumerate() {
            let sharing = (workers - at).div_ceil(receiving);
            shared.push(SharedPort::of(queue, sharing, order)?.into_iter());
        }
        let part = |worker: usize| shared.get_mut(worker % receiving.max(1))?.next();
        let parts = (0..workers).filter_map(part).map(|part| Box::new(part) as BoxedPort);
        Ok(Self { parts: parts.collect(), receiving })
    }
}
