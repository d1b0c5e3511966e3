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
use pktio::FrameMeta;

use crate::alone::Alone;
use crate::batch::{Batch, seen_at};
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

/// One worker on a thread of its own.
struct Worker<'s> {
    to: SyncSender<Batch>,
    from: Receiver<Batch>,
    /// Nothing where not all workers started.
    thread: ScopedJoinHandle<'s, Option<Counted>>,
}

/// A batch that workers have, whole or in parts.
enum Flight {
    Whole(usize),
    /// Which worker has each frame.
    Parts(Box<Batch>, Vec<u8>),
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
        let workers = gate.start(wanted_threads, |_| {
            let (to, batches) = sync_channel::<Batch>(most);
            let (back, from) = sync_channel(most);
            let (lane, gate) = (lanes.next(), &gate);
            let work = move || {
                let _alarm = Alarm(stop);
                let is_open = gate.wait();
                let mut lane = lane.filter(|_| is_open)?;
                for mut batch in batches {
                    lane.evaluate(&mut batch);
                    if back.send(batch).is_err() {
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
                let key = key.clone();
                return self.give_parts(batch, &key);
            }
        };
        send(&self.workers[worker], batch);
        self.flying.push_back(Flight::Whole(worker));
        Ok(())
    }

    /// Gives each packet to the worker of its connection.
    fn give_parts(&mut self, mut batch: Batch, key: &Key) -> Result<(), Alone> {
        let mut parts: Vec<Batch> = Vec::with_capacity(self.workers.len());
        for _ in &self.workers {
            let mut part = self.idle.pop().unwrap_or_default();
            part.clear();
            part.stream = batch.stream.clone();
            parts.push(part);
        }
        let mut owners = Vec::with_capacity(batch.arrived.len());
        let Batch { burst, arrived, seen, .. } = &mut batch;
        for (at, (frame, arrived)) in burst.iter_mut().zip(&*arrived).enumerate() {
            let owner = owner(frame.bytes, frame.meta, key, parts.len())?;
            parts[owner].burst.push(frame.bytes, *frame.meta);
            parts[owner].arrived.push(*arrived);
            parts[owner].seen.extend(seen.get(at));
            owners.push(owner as u8);
        }
        for (worker, part) in self.workers.iter().zip(parts) {
            send(worker, part);
        }
        self.flying.push_back(Flight::Parts(Box::new(batch), owners));
        Ok(())
    }

    /// Waits for the oldest batch and reports it.
    fn take_back(&mut self, sink: &mut Sink<'_, '_>) -> Result<Option<Stop>, Error> {
        let mut batch = match self.flying.pop_front() {
            None => return Ok(None),
            Some(Flight::Whole(worker)) => {
                let Some(batch) = receive(&self.workers[worker]) else {
                    return Ok(Some(Stop::Dead));
                };
                batch
            }
            Some(Flight::Parts(mut batch, owners)) => {
                let parts: Option<Vec<Batch>> = self.workers.iter().map(receive).collect();
                let Some(mut parts) = parts else { return Ok(Some(Stop::Dead)) };
                if let Some(alone) = self.watch.sees(&batch, &parts) {
                    return Ok(Some(Stop::Alone(alone)));
                }
                join(&mut batch, &mut parts, &owners);
                self.idle.append(&mut parts);
                *batch
            }
        };
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
fn join(batch: &mut Batch, parts: &mut [Batch], owners: &[u8]) {
    let mut outcomes: Vec<_> = parts.iter_mut().map(|part| part.outcomes.drain(..)).collect();
    let next = |owner: &u8| outcomes.get_mut(usize::from(*owner))?.next();
    batch.outcomes.extend(owners.iter().filter_map(next));
}

/// Whether a fragment is among these frames: of one of which nothing told which way it went, its bytes tell.
fn holds_fragment(batch: &mut Batch) -> bool {
    let Batch { burst, seen, .. } = batch;
    burst.iter_mut().enumerate().any(|(at, frame)| match seen_at(seen, at).sighting {
        Sighting::Unknown => link_of(frame.meta.link_type).is_some_and(|link| {
            let len = frame.meta.wire_length as usize;
            is_fragment(&Packet::parse(frame.bytes, len, link, Checksums::Ignore))
        }),
        _ => seen_at(seen, at).is_fragment,
    })
}

/// The worker of a packet, which finds its headers anew: to hand them on in the batch did not pay (500,000 tracked
/// packets, two workers: 0.373 s of user time, and 0.363 s without; medians of 11).
fn owner(bytes: &mut [u8], meta: &FrameMeta, key: &Key, workers: usize) -> Result<usize, Alone> {
    let Some(link) = link_of(meta.link_type) else { return Ok(0) };
    let packet = Packet::parse(bytes, meta.wire_length as usize, link, Checksums::Ignore);
    if is_fragment(&packet) {
        return Err(Alone::Fragments);
    }
    Ok(key.shard(&packet, workers))
}

/// Gives a batch to a worker. Of one that is no more it does not come back.
fn send(worker: &Worker<'_>, batch: Batch) {
    let _ = worker.to.send(batch);
}

/// The next batch of a worker; none of one that has panicked.
fn receive(worker: &Worker<'_>) -> Option<Batch> {
    worker.from.recv().ok()
}

#[cfg(test)]
mod tests;
