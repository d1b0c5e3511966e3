//! [`Evaluator`]: a handler with the one program that it walks, where that never changes: replay, `why`, tests.

use conntrack::steer::Shard;
use packet::Headers;

use crate::arrival::Arrival;
use crate::egress::Egress;
use crate::footprint::Footprint;
use crate::handler::Handler;
use crate::observer::Observer;
use crate::program::Program;

/// Evaluates packets under one program.
#[derive(Debug)]
pub struct Evaluator<'p> {
    program: &'p Program,
    handler: Handler,
}

impl<'p> Evaluator<'p> {
    /// An evaluator that has seen no packet.
    #[must_use]
    pub fn new(program: &'p Program) -> Self {
        Self::of_shard(program, None)
    }

    /// An evaluator for one worker of several that share connections.
    #[must_use]
    pub fn of_shard(program: &'p Program, shard: Option<Shard>) -> Self {
        Self { program, handler: Handler::of_shard(program, shard) }
    }

    /// The program that it walks.
    #[must_use]
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// Whether there are enough connections for [`Evaluator::prefetch`] to pay: fewer stay in the cache, and finding
    /// their packets' places twice costs more than waiting for them.
    #[must_use]
    pub fn fetches(&self) -> bool {
        const CACHED: usize = 16 * 1024;
        self.program.tracks() && self.handler.state().flows() > CACHED
    }

    /// Prefetches like [`Handler::prefetch`].
    pub fn prefetch<'b>(&self, frames: impl Iterator<Item = (&'b [u8], &'b Headers)> + Clone) {
        self.handler.prefetch(self.program, frames);
    }

    /// What was left so far that concerns other workers.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        self.handler.state().footprint()
    }

    /// Evaluates a packet like [`Handler::handle`]; sends nothing.
    #[inline]
    pub fn handle<'a>(
        &mut self,
        bytes: &mut [u8],
        arrival: &Arrival<'a>,
        observer: &mut impl Observer,
    ) -> Egress<'_, 'a>
    where
        'p: 'a,
    {
        self.handler.handle(self.program, bytes, arrival, observer)
    }
}
