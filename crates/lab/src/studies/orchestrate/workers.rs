//! [`Run`]: what the workers of a run share, and its end where one of them panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use engines::{Address, Engine, Packet};
use parking_lot::Mutex;

use super::in_flight::InFlight;
use super::meter::{Meter, Outcome};
use super::sink::Sink;
use super::source::Source;

/// The most packets between source and end: bounded state bounds latency.
pub const IN_FLIGHT: usize = 256;
/// The longest burst that a worker takes at a time.
pub(super) const BURST: usize = 64;

/// What the workers of a run share.
#[derive(Clone, Copy)]
pub(super) struct Run<'r, A: Address> {
    pub(super) engine: &'r dyn Engine<A>,
    pub(super) source: &'r dyn Source<A>,
    pub(super) sink: &'r Sink,
    pub(super) in_flight: &'r InFlight,
    pub(super) meter: &'r Meter,
    pub(super) threads: usize,
    pub(super) panicked: &'r Panicked,
}

/// What the first thread that panicked said.
pub(super) type Panicked = Mutex<Option<String>>;

impl<A: Address> Run<'_, A> {
    /// Packets that a worker takes at a time, so that all together stay in flight.
    pub(super) fn burst(&self) -> usize {
        (IN_FLIGHT / self.threads).clamp(1, BURST)
    }

    /// Takes packets from the source when there is room for them in flight; none at the end, or once the run is given
    /// up.
    pub(super) fn take<'p>(&'p self, room: &'p mut Vec<Packet<A>>, most: usize) -> &'p [Packet<A>] {
        if !self.in_flight.enter(most) {
            return &[];
        }
        let packets = self.source.next(room, most);
        self.in_flight.leave(most - packets.len());
        packets
    }

    /// Does what one thread does of the run, which is given up where that panics.
    pub(super) fn part(&self, work: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            self.panicked.lock().get_or_insert_with(|| message(&*panic));
            self.in_flight.give_up();
        }
    }

    /// What was counted, unless a thread panicked.
    pub(super) fn outcome(&self, started: Instant) -> Result<Outcome, String> {
        match self.panicked.lock().take() {
            Some(message) => Err(format!("a thread of the run panicked: {message}")),
            None => Ok(self.meter.outcome(started.elapsed(), self.in_flight.high_water())),
        }
    }
}

/// What a panic says.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
