//! [`Evaluator`]: a handler with the one program that it walks, for whom it never changes: replay, `why`, tests.

use packet::Link;

use crate::arrival::Arrival;
use crate::disposition::Outcome;
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
    /// Nothing seen yet.
    #[must_use]
    pub fn new(program: &'p Program) -> Self {
        Self { program, handler: Handler::new(program) }
    }

    /// The program that it walks.
    #[must_use]
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// As [`Handler::prefetch`].
    pub fn prefetch<'b>(&self, frames: impl Iterator<Item = (&'b mut [u8], Link, usize)>) {
        self.handler.prefetch(self.program, frames);
    }

    /// Connections made so far, those included that no packet confirmed.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.handler.state().connections()
    }

    /// As [`Handler::handle`]: nothing is sent.
    #[inline]
    pub fn handle<'a>(
        &mut self,
        bytes: &mut [u8],
        arrival: &Arrival<'a>,
        observer: &mut impl Observer,
    ) -> Outcome<'a>
    where
        'p: 'a,
    {
        self.handler.handle(self.program, bytes, arrival, observer).outcome
    }
}
