//! A replay on several threads: one reads and reports, the others are workers.
//!
//! Contract: what comes out is what one thread makes of the captures, whatever the number of threads. As
//! [`rules::Class`] says, whole batches go to the workers in turn, or the packets of a connection to one worker
//! ([`conntrack::steer`]), or all packets to one. The queues are bounded; batches come back in the order in which they went
//! out. What only shows while packets come, that packets depend on each other which the rules let workers share,
//! ends the run ([`Ended::Again`]): it starts again with one worker, and what was reported is not reported
//! twice.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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

/// How a run ended.
pub(crate) enum Ended {
    /// At the end of the captures, with what each worker counted, and why only one of them went on.
    Done(Vec<Counted>, Option<Alone>),
    /// Before: packets depend on each other, and one worker has to see them all.
    Again(Alone),
}

/// How packets are given to workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Split {
    /// All to the only one.
    None,
    /// Whole batches in turn.
    Batches,
    /// By what those of a connection have in common; no more connections than this.
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
    /// Nothing where not all workers started.
    thread: ScopedJoinHandle<'s, Option<Counted>>,
}

/// A batch that workers have: one of them, or all.
enum Flight {
    Whole(usize),
    Shared(Arc<Batch>),
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

/// Runs a replay with these workers, each on a thread of its own. Raises `stop` where one panics, so that nobody waits
/// for a capture that is silent.
pub(crate) fn beside(
    lanes: Vec<Lane<'_>>,
    split: Split,
    stop: Option<&Arc<AtomicBool>>,
    source: &mut Source<'_, '_>,
    sink: &mut Sink<'_, '_>,
) -> Result<Ended, Error> {
    let wanted_threads = lanes.len();
    // One worker may be given all that is under way.
    let most = IN_FLIGHT * wanted_threads;
    let gate = Gate::default();
    thread::scope(|scope| {
        let mut lanes = lanes.into_iter();
        let workers = gate.start(wanted_threads, |number| {
            let (to, given) = sync_channel::<Work>(most);
            let (back, from) = sync_channel(most);
            let (lane, gate) = (lanes.next(), &gate);
            let work = move || {
                let _alarm = Alarm(stop);
                let is_open = gate.wait();
                let mut lane = lane.filter(|_| is_open)?;
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
            Ok(Worker { to, from, thread })
        });
        let workers =
            workers.map_err(|source| Error::Threads { wanted: wanted_threads, source })?;
        let mut run = Run {
            workers,
            watch: Watch::new(split.connections()),
            split,
            flying: VecDeque::new(),
            idle: Vec::new(),
            turn: 0,
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

struct Run<'s> {
    workers: Vec<Worker<'s>>,
    split: Split,
    /// Batches that workers have, the oldest first.
    flying: VecDeque<Flight>,
    /// Batches that nobody has.
    idle: Vec<Batch>,
    /// Batches given out.
    turn: usize,
    /// Why only one worker goes on.
    why: Option<Alone>,
    /// What workers leave that concerns others.
    watch: Watch,
}

impl Run<'_> {
    /// Reads, gives out and takes back until the captures end, or something stops it.
    fn pump(
        &mut self,
        source: &mut Source<'_, '_>,
        sink: &mut Sink<'_, '_>,
    ) -> Result<Option<Stop>, Error> {
        let mut more = true;
        while more || !self.flying.is_empty() {
            if !more || self.flying.len() >= self.most() {
                if let Some(stop) = self.take_back(sink)? {
                    return Ok(Some(stop));
                }
                continue;
            }
            let mut batch = self.idle.pop().unwrap_or_default();
            more = source.next(&mut batch)?;
            if more && let Err(alone) = self.give_out(batch) {
                return Ok(Some(Stop::Alone(alone)));
            }
        }
        Ok(None)
    }

    /// Most batches that workers may have: no queue is ever full.
    fn most(&self) -> usize {
        match self.split {
            Split::Batches => IN_FLIGHT * self.workers.len(),
            Split::None | Split::Flows { .. } => IN_FLIGHT,
        }
    }

    fn give_out(&mut self, mut batch: Batch) -> Result<(), Alone> {
        self.turn += 1;
        let worker = match &self.split {
            Split::None => 0,
            // Fragments wait for others at one and the same worker.
            Split::Batches if holds_fragment(&mut batch) => 0,
            Split::Batches => self.turn % self.workers.len(),
            Split::Flows { key, .. } => {
                share_out(&mut batch, key, self.workers.len())?;
                let batch = Arc::new(batch);
                for worker in &self.workers {
                    send(worker, Work::Shared(Arc::clone(&batch)));
                }
                self.flying.push_back(Flight::Shared(batch));
                return Ok(());
            }
        };
        send(&self.workers[worker], Work::Whole(batch));
        self.flying.push_back(Flight::Whole(worker));
        Ok(())
    }

    /// Waits for the oldest batch and reports it.
    fn take_back(&mut self, sink: &mut Sink<'_, '_>) -> Result<Option<Stop>, Error> {
        let batch = match self.flying.pop_front() {
            None => return Ok(None),
            Some(Flight::Whole(worker)) => match receive(&self.workers[worker]) {
                Some(Done::Whole(batch)) => Some(batch),
                _ => None,
            },
            Some(Flight::Shared(batch)) => {
                let parts = self.workers.iter().map(|worker| match receive(worker) {
                    Some(Done::Part(part)) => Some(part),
                    _ => None,
                });
                let parts: Option<Vec<Part>> = parts.collect();
                // All of them have let go of it.
                let Some((parts, mut batch)) = parts.zip(Arc::into_inner(batch)) else {
                    return Ok(Some(Stop::Dead));
                };
                if let Some(alone) = self.watch.sees(&batch, &parts) {
                    return Ok(Some(Stop::Alone(alone)));
                }
                join(&mut batch, parts);
                Some(batch)
            }
        };
        let Some(mut batch) = batch else { return Ok(Some(Stop::Dead)) };
        sink.take(&mut batch)?;
        self.idle.push(batch);
        Ok(None)
    }

    /// Ends the workers and adds up what they counted. Goes on with the panic of one that panicked.
    fn end(self, stop: Option<Stop>) -> Ended {
        let threads = self.workers.into_iter().map(|worker| worker.thread);
        let counted = threads.filter_map(|thread| match thread.join() {
            Ok(counted) => counted,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let counted = counted.collect();
        match stop {
            Some(Stop::Alone(why)) => Ended::Again(why),
            // Whoever is dead has panicked, so the end was not reached.
            Some(Stop::Dead) | None => Ended::Done(counted, self.why),
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

/// The worker of a packet, which finds its headers again: those of a usual frame are found as fast as they are carried.
fn owner(bytes: &mut [u8], meta: &FrameMeta, key: &Key, workers: usize) -> Result<usize, Alone> {
    let Some(link) = link_of(meta.link_type) else { return Ok(0) };
    let packet = Packet::parse(bytes, meta.wire_length as usize, link, Checksums::Ignore);
    if is_fragment(&packet) {
        return Err(Alone::Fragments);
    }
    Ok(key.shard(&packet, workers))
}

/// Whether a fragment is among these frames: of one of which nothing told which way it went, its bytes tell.
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

/// Gives a worker something to do. Of one that is no more it does not come back.
fn send(worker: &Worker<'_>, work: Work) {
    let _ = worker.to.send(work);
}

/// What a worker did next; nothing of one that has panicked.
fn receive(worker: &Worker<'_>) -> Option<Done> {
    worker.from.recv().ok()
}

#[cfg(test)]
mod tests;
