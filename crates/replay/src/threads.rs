//! A replay on several threads: this one reads, reports and is a worker too, where packets are shared.
//!
//! Contract: what comes out is what one thread makes of the captures, whatever the number of threads. As
//! [`rules::Class`] says, whole batches go to the workers, or the packets of a connection to one worker
//! ([`conntrack::steer`]), or all packets to one worker that only evaluates. This thread evaluates a whole batch where
//! every other worker has enough to do. The queues are bounded; batches are reported in the order in which they were
//! read. Where packets turn out to depend on each other although the rules let workers share them, the run ends
//! ([`Ended::Again`]): it starts again with one worker, and what was reported is not reported twice.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use conntrack::steer::Key;
use dataplane::is_fragment;
use host::sighting::Sighting;
use packet::{Checksums, Packet};
use pktio::{FrameMeta, FrameMut, LinkType};

use crate::alone::Alone;
use crate::batch::{Batch, Part};
use crate::error::Error;
use crate::gate::Gate;
use crate::lane::{Counted, Lane};
use crate::sink::Sink;
use crate::source::Source;
use crate::watch::Watch;
use dataplane::link_of;

/// Batches on their way to a worker, under its hands, and on their way back.
const IN_FLIGHT: usize = 3;

/// The number of this thread's own worker, and of the worker that sees all fragments.
const OWN: usize = 0;

/// How a run ended.
pub(crate) enum Ended {
    /// At the end of the captures, with what each worker counted, and why only one went on.
    Done(Vec<Counted>, Option<Alone>),
    /// Before: packets depend on each other, and one worker has to see them all.
    Again(Alone),
}

/// How packets are given to workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Split {
    /// All to the only one.
    None,
    /// Whole batches, each to a worker that has room.
    Batches,
    /// By what the packets of a connection have in common; no more connections than this.
    Flows { key: Key, connections: u64 },
}

/// What a worker is given.
#[expect(
    clippy::large_enum_variant,
    reason = "few are under way at once, and a batch is used again as it is"
)]
enum Work {
    /// A batch of its own.
    Whole(Batch),
    /// A batch of which it evaluates its frames, as other workers do theirs.
    Shared(Arc<Batch>),
}

/// What a worker gives back.
#[expect(
    clippy::large_enum_variant,
    reason = "few are under way at once, and a batch is used again as it is"
)]
enum Done {
    Whole(Batch),
    /// What became of its frames. It has let go of the batch.
    Part(Part),
}

/// One worker on a thread of its own.
struct Worker<'s> {
    to: SyncSender<Work>,
    from: Receiver<Done>,
    /// Whole batches that it has.
    has: usize,
    /// The thread's counts, or `None` where not all workers started.
    thread: ScopedJoinHandle<'s, Option<Counted>>,
}

/// A batch that is not reported yet.
#[expect(
    clippy::large_enum_variant,
    reason = "few are under way at once, and a batch is used again as it is"
)]
enum Flight {
    /// A worker has it: its place among [`Run::workers`].
    Whole(usize),
    /// All workers have it, this thread's own excepted.
    Shared(Arc<Batch>),
    /// This thread has evaluated the batch.
    Ready(Batch),
}

/// Why a run goes no further.
enum Stop {
    /// Packets depend on each other.
    Alone(Alone),
    /// A worker panicked.
    Dead,
}

/// Runs a replay with one worker on this thread.
pub(crate) fn alone(
    mut lane: Lane<'_>,
    source: &mut Source<'_, '_>,
    sink: &mut Sink<'_, '_>,
) -> Result<Counted, Error> {
    let mut batch = Batch::default();
    while source.next(&mut batch)? {
        lane.evaluate(&mut batch);
        sink.take(&mut batch)?;
    }
    Ok(lane.counted())
}

/// Runs a replay with as many workers as are `wanted`: the first on this thread, which reads as well; a single one on a
/// thread of its own. Each makes its `lane` itself, so that its memory shares no cache line with another's. Raises `stop`
/// where one panics, so that nobody waits for a capture that is silent.
pub(crate) fn several<'f>(
    wanted: usize,
    lane: impl Fn(usize) -> Lane<'f> + Sync,
    split: Split,
    stop: Option<&Arc<AtomicBool>>,
    source: &mut Source<'_, '_>,
    sink: &mut Sink<'_, '_>,
) -> Result<Ended, Error> {
    let own = (wanted > 1).then(|| lane(OWN));
    let first = usize::from(own.is_some());
    let wanted_threads = wanted - first;
    let gate = Gate::default();
    thread::scope(|scope| {
        let workers = gate.start(wanted_threads, |number| {
            let (to, given) = sync_channel::<Work>(IN_FLIGHT);
            let (back, from) = sync_channel(IN_FLIGHT);
            let (lane, gate, number) = (&lane, &gate, first + number);
            let work = move || {
                let _alarm = Alarm(stop);
                let is_open = gate.wait();
                let mut lane = is_open.then(|| lane(number))?;
                for work in given {
                    let done = match work {
                        Work::Whole(mut batch) => {
                            lane.evaluate(&mut batch);
                            Done::Whole(batch)
                        }
                        Work::Shared(batch) => Done::Part(lane.evaluate_part(&batch, number as u8)),
                    };
                    if back.send(done).is_err() {
                        break;
                    }
                }
                Some(lane.counted())
            };
            let thread = thread::Builder::new().spawn_scoped(scope, work)?;
            Ok(Worker { to, from, has: 0, thread })
        });
        let workers = workers.map_err(|source| Error::Threads { wanted, source })?;
        let mut run = Run {
            own,
            workers,
            watch: Watch::new(split.connections()),
            split,
            flying: VecDeque::new(),
            idle: Vec::new(),
            why: None,
        };
        let stop = run.pump(source, sink)?;
        Ok(run.end(stop))
    })
}

impl Split {
    /// Most connections that there may be.
    fn connections(&self) -> u64 {
        match self {
            Self::Flows { connections, .. } => *connections,
            Self::None | Self::Batches => u64::MAX,
        }
    }
}

struct Run<'f, 's> {
    /// This thread's worker, where packets are shared.
    own: Option<Lane<'f>>,
    /// Workers on threads of their own.
    workers: Vec<Worker<'s>>,
    split: Split,
    /// Batches that are not reported yet, the oldest first.
    flying: VecDeque<Flight>,
    /// Batches that nobody has.
    idle: Vec<Batch>,
    /// Why only one worker goes on.
    why: Option<Alone>,
    /// What workers leave that concerns others.
    watch: Watch,
}

impl Run<'_, '_> {
    /// Reads, gives out and takes back until the captures end, or something stops it.
    fn pump(
        &mut self,
        source: &mut Source<'_, '_>,
        sink: &mut Sink<'_, '_>,
    ) -> Result<Option<Stop>, Error> {
        let mut more = true;
        loop {
            let is_full = self.flying.len() >= self.most();
            match self.oldest(is_full || !more) {
                Err(stop) => return Ok(Some(stop)),
                Ok(Some(mut batch)) => {
                    sink.take(&mut batch)?;
                    self.idle.push(batch);
                }
                Ok(None) if !more => return Ok(None),
                Ok(None) => {
                    let mut batch = self.idle.pop().unwrap_or_default();
                    more = source.next(&mut batch)?;
                    if more && let Err(alone) = self.give_out(batch) {
                        return Ok(Some(Stop::Alone(alone)));
                    }
                }
            }
        }
    }

    /// Most batches that are not reported yet.
    fn most(&self) -> usize {
        match self.split {
            // As many as all workers may have, and as many again that are ready before an older one is.
            Split::Batches => 2 * IN_FLIGHT * self.workers.len(),
            Split::None | Split::Flows { .. } => IN_FLIGHT,
        }
    }

    fn give_out(&mut self, mut batch: Batch) -> Result<(), Alone> {
        let flight = match &self.split {
            Split::Flows { key, .. } => {
                let workers = self.workers.len() + usize::from(self.own.is_some());
                share_out(&mut batch, key, workers)?;
                let batch = Arc::new(batch);
                for worker in &self.workers {
                    worker.give(Work::Shared(Arc::clone(&batch)));
                }
                Flight::Shared(batch)
            }
            Split::None | Split::Batches => self.give_whole(batch),
        };
        self.flying.push_back(flight);
        Ok(())
    }

    /// Gives a whole batch to the worker that has least to do; evaluates it here where all have enough.
    fn give_whole(&mut self, mut batch: Batch) -> Flight {
        let all_busy = self.workers.iter().all(|worker| worker.has >= IN_FLIGHT);
        // Fragments wait for others at one and the same worker.
        if let Some(own) = &mut self.own
            && (all_busy || holds_fragment(&mut batch))
        {
            own.evaluate(&mut batch);
            return Flight::Ready(batch);
        }
        let workers = self.workers.iter().enumerate();
        let at = workers.min_by_key(|(_, worker)| worker.has).map_or(0, |(at, _)| at);
        self.workers[at].has += 1;
        self.workers[at].give(Work::Whole(batch));
        Flight::Whole(at)
    }

    /// Takes back the oldest batch: nothing where there is none, or where it is not evaluated and nobody `waits` for it.
    fn oldest(&mut self, waits: bool) -> Result<Option<Batch>, Stop> {
        let Some(flight) = self.flying.pop_front() else { return Ok(None) };
        let flight = match flight {
            Flight::Ready(batch) => return Ok(Some(batch)),
            Flight::Shared(batch) if waits => return self.evaluated(batch).map(Some),
            Flight::Shared(_) => flight,
            Flight::Whole(at) => match self.workers[at].done(waits)? {
                Some(Done::Whole(batch)) => {
                    self.workers[at].has -= 1;
                    return Ok(Some(batch));
                }
                _ => flight,
            },
        };
        self.flying.push_front(flight);
        Ok(None)
    }

    /// A batch that workers share, once each has evaluated its part, this thread's own too.
    fn evaluated(&mut self, batch: Arc<Batch>) -> Result<Batch, Stop> {
        let mut parts = Vec::with_capacity(self.workers.len() + 1);
        parts.extend(self.own.as_mut().map(|own| own.evaluate_part(&batch, OWN as u8)));
        for worker in &self.workers {
            match worker.done(true)? {
                Some(Done::Part(part)) => parts.push(part),
                _ => return Err(Stop::Dead),
            }
        }
        // All of them have let go of it.
        let mut batch = Arc::into_inner(batch).ok_or(Stop::Dead)?;
        if let Some(alone) = self.watch.sees(&batch, &parts) {
            return Err(Stop::Alone(alone));
        }
        join(&mut batch, parts);
        Ok(batch)
    }

    /// Ends the workers and adds up what they counted. Resumes the panic of a worker that panicked.
    fn end(self, stop: Option<Stop>) -> Ended {
        let threads = self.workers.into_iter().map(|worker| worker.thread);
        let counted = threads.filter_map(|thread| match thread.join() {
            Ok(counted) => counted,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let counted = self.own.map(Lane::counted).into_iter().chain(counted).collect();
        match stop {
            Some(Stop::Alone(why)) => Ended::Again(why),
            // A dead worker has panicked, so the end was not reached.
            Some(Stop::Dead) | None => Ended::Done(counted, self.why),
        }
    }
}

impl Worker<'_> {
    /// Gives it something to do. If it has panicked, that does not come back.
    fn give(&self, work: Work) {
        let _ = self.to.send(work);
    }

    /// What it did next; nothing where that is not done and nobody `waits` for it.
    fn done(&self, waits: bool) -> Result<Option<Done>, Stop> {
        let done = if waits { self.from.recv().map_err(Into::into) } else { self.from.try_recv() };
        match done {
            Ok(done) => Ok(Some(done)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Stop::Dead),
        }
    }
}

/// Raises the flag when it is dropped by a panic.
struct Alarm<'s>(Option<&'s Arc<AtomicBool>>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if let Some(stop) = self.0.filter(|_| thread::panicking()) {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Puts the outcomes of the parts of a batch in the order of its frames.
fn join(batch: &mut Batch, parts: Vec<Part>) {
    let mut outcomes: Vec<_> = parts.into_iter().map(|part| part.outcomes.into_iter()).collect();
    let next = |owner: &u8| outcomes.get_mut(usize::from(*owner))?.next();
    batch.outcomes.extend(batch.owners.iter().filter_map(next));
}

/// Says of each frame of a batch which worker it goes to, that of its connection.
fn share_out(batch: &mut Batch, key: &Key, workers: usize) -> Result<(), Alone> {
    let Batch { burst, owners, .. } = batch;
    for FrameMut { bytes, meta } in burst.iter_mut() {
        owners.push(owner(bytes, meta, key, workers)? as u8);
    }
    Ok(())
}

/// The worker of a packet, by the bytes of a usual frame, else by headers that are found for it.
fn owner(bytes: &mut [u8], meta: &FrameMeta, key: &Key, workers: usize) -> Result<usize, Alone> {
    if meta.link_type == LinkType::ETHERNET
        && let Some(shard) = key.usual_shard(bytes, workers)
    {
        return Ok(shard);
    }
    let Some(link) = link_of(meta.link_type) else { return Ok(0) };
    let packet = Packet::parse(bytes, meta.wire_length as usize, link, Checksums::Ignore);
    if is_fragment(&packet) {
        return Err(Alone::Fragments);
    }
    Ok(key.shard(&packet, workers))
}

/// Whether a fragment is among these frames; parses the frames whose way nothing has shown.
fn holds_fragment(batch: &mut Batch) -> bool {
    let Batch { burst, seen, .. } = batch;
    burst.iter_mut().enumerate().any(|(at, frame)| match seen.get(at) {
        Some(seen) if seen.sighting != Sighting::Unknown => seen.is_fragment,
        _ => {
            may_be_fragment(&frame)
                && link_of(frame.meta.link_type).is_some_and(|link| {
                    let len = frame.meta.wire_length as usize;
                    is_fragment(&Packet::parse(frame.bytes, len, link, Checksums::Ignore))
                })
        }
    })
}

/// Whether a frame may be a fragment, at a glance: one of IPv4 right after an Ethernet header says so itself.
#[inline]
fn may_be_fragment(frame: &FrameMut<'_>) -> bool {
    let Some(start) = frame.bytes.first_chunk::<22>() else { return true };
    let is_plain = frame.meta.link_type == LinkType::ETHERNET && start[12..14] == [8, 0];
    // More fragments, or an offset.
    !is_plain || start[20] & 0x3f != 0 || start[21] != 0
}

#[cfg(test)]
mod tests;
