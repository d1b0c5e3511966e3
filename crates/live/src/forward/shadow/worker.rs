//! [`ShadowWorker`]: a worker's part of the shadow.
//!
//! Contract: one thread's own. Without a shadow it costs a look at one word for each burst.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use conntrack::steer::Shard;
use packet::{FlowKey, Headers, Packet};
use rules::eval::Nobody;

use super::pair::{Example, Pair, Side, word};
use super::{LOADED, Shadow, Slot};
use dataplane::publish::{BurstGuard, Worker};
use dataplane::{Arrival, Program, addresses};
use dataplane::{Disposition, DropReason, FinalVerdict};

/// A worker's state for evaluating the shadow.
pub(crate) struct ShadowWorker {
    slot: Arc<Slot>,
    /// The worker's part of the connections, the same as in force.
    shard: Option<Shard>,
    /// The slot's number when it was last looked at.
    number: u64,
    by: Option<By>,
    /// The start of an unbroken run of turns with frames, in nanoseconds since the Unix epoch.
    busy_since: Option<u64>,
}

struct By {
    shadow: Arc<Shadow>,
    rules: Worker,
    came: Vec<u8>,
    copy: Vec<u8>,
    found: Vec<Pair>,
}

/// A burst under the shadow.
pub(crate) struct Watched<'s> {
    shadow: &'s Shadow,
    guard: BurstGuard<'s>,
    /// The frame as it came, and a copy that rules may rewrite.
    came: &'s mut Vec<u8>,
    copy: &'s mut Vec<u8>,
    found: &'s mut Vec<Pair>,
    frames: u64,
}

impl ShadowWorker {
    pub(crate) fn new(slot: Arc<Slot>, shard: Option<Shard>) -> Self {
        Self { slot, shard, number: 0, by: None, busy_since: None }
    }

    /// Notes that a turn begins.
    pub(crate) fn turns(&mut self) {
        let number = self.slot.number.load(Ordering::Acquire);
        if number != self.number {
            self.number = number;
            self.by = self.slot.get().map(|shadow| By {
                rules: shadow.published.worker_of(self.shard.clone()),
                shadow,
                came: Vec::new(),
                copy: Vec::new(),
                found: Vec::new(),
            });
        }
    }

    /// Notes that a turn that began at `now` has ended, with this number of frames.
    pub(crate) fn turned(&mut self, now: u64, frames: usize) {
        self.busy_since = (frames > 0).then(|| self.busy_since.unwrap_or(now));
    }

    /// Begins a burst of `frames` frames, which `may_be_lost` if they wait; `None` without a shadow, or where it is
    /// left out.
    pub(crate) fn burst(
        &mut self,
        now: u64,
        frames: usize,
        may_be_lost: bool,
    ) -> Option<Watched<'_>> {
        let By { shadow, rules, came, copy, found } = self.by.as_mut()?;
        let is_loaded = |since: u64| u128::from(now.saturating_sub(since)) > LOADED.as_nanos();
        if may_be_lost && self.busy_since.is_some_and(is_loaded) {
            shadow.add(0, frames as u64, found);
            return None;
        }
        Some(Watched { shadow, guard: rules.burst(), came, copy, found, frames: 0 })
    }
}

impl Watched<'_> {
    /// Keeps a frame as it came.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        self.came.clear();
        self.came.extend_from_slice(bytes);
    }

    /// Evaluates the frame that was kept, and compares with what the program in force makes of it.
    pub(crate) fn compare(
        &mut self,
        (end, tuple): (Disposition, Option<FlowKey>),
        program: &Program,
        arrival: &Arrival<'_>,
    ) {
        if matches!(end.verdict, FinalVerdict::Drop(DropReason::Denied(_))) {
            return;
        }
        self.frames += 1;
        self.copy.clone_from(self.came);
        let came = arrival.headers.and_then(|headers| ends_of(self.copy, headers));
        // The shadow may need other headers.
        let given = Arrival { headers: None, ..*arrival };
        let by = self.guard.handle(self.copy, &given, &mut Nobody).outcome;
        let leaves = |end: &Disposition, tuple: Option<FlowKey>| {
            let is_let_go = matches!(end.verdict, FinalVerdict::Accept(_));
            let ends = tuple.map(|tuple| (tuple.source, tuple.destination)).or(came);
            ends.filter(|_| is_let_go)
        };
        let ends = [leaves(&end, tuple), leaves(&by.end, by.tuple)];
        let (in_force, by) = (end, by.end);
        if word(&in_force.verdict) == word(&by.verdict) && ends[0] == ends[1] {
            return;
        }
        // The destination matters only if the packet goes elsewhere.
        let are_both = ends.iter().all(Option::is_some);
        let ends = ends.map(|ends| ends.filter(|_| are_both));
        let sides =
            [Side::of(&in_force, ends[0], program), Side::of(&by, ends[1], self.guard.program())];
        match self.found.iter_mut().find(|found| found.is_of(&sides)) {
            Some(found) => found.packets += 1,
            None => {
                let names = [arrival.input.unwrap_or_default(), arrival.output.unwrap_or_default()];
                let example = Example::of(self.came, arrival.time.unwrap_or(0), names);
                self.found.push(Pair { sides, example, packets: 1 });
            }
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.shadow.add(self.frames, 0, self.found);
    }
}

/// Source and destination of a frame as it came.
fn ends_of(bytes: &mut [u8], headers: &Headers) -> Option<(IpAddr, IpAddr)> {
    addresses(&Packet::with_headers(bytes, *headers))
}
