//! Where packets come from: one stream, in one order, whoever asks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Scope;

use crossbeam_channel::{Receiver, bounded};
use crossbeam_utils::CachePadded;
use engines::{Address, Packet};
use parking_lot::Mutex;

/// A stream of packets that threads take from, each the next ones.
pub trait Source<A: Address>: Sync {
    /// The next packets, at most `most`; none at the end. They lie in the source or in `room`.
    fn next<'p>(&'p self, room: &'p mut Vec<Packet<A>>, most: usize) -> &'p [Packet<A>];
}

/// Packets that were prepared: taking some costs one atomic addition.
#[derive(Debug)]
pub struct Trace<'t, A> {
    packets: &'t [Packet<A>],
    next: CachePadded<AtomicUsize>,
}

impl<'t, A> Trace<'t, A> {
    /// These packets.
    #[must_use]
    pub fn new(packets: &'t [Packet<A>]) -> Self {
        Self { packets, next: CachePadded::default() }
    }
}

impl<A: Address> Source<A> for Trace<'_, A> {
    fn next<'p>(&'p self, _room: &'p mut Vec<Packet<A>>, most: usize) -> &'p [Packet<A>] {
        let from = self.next.fetch_add(most, Ordering::Relaxed).min(self.packets.len());
        &self.packets[from..(from + most).min(self.packets.len())]
    }
}

/// A generator that must not be used by two threads at a time: they take turns.
#[derive(Debug)]
pub struct Serial<I>(Mutex<I>);

impl<I> Serial<I> {
    /// What this yields.
    pub fn new(generator: I) -> Self {
        Self(Mutex::new(generator))
    }
}

impl<A: Address, I: Iterator<Item = Packet<A>> + Send> Source<A> for Serial<I> {
    fn next<'p>(&'p self, room: &'p mut Vec<Packet<A>>, most: usize) -> &'p [Packet<A>] {
        room.clear();
        room.extend(self.0.lock().by_ref().take(most));
        room
    }
}

/// Chunks that wait between a generator and whoever takes from it, and their size.
const CHUNKS: usize = 8;
const CHUNK: usize = 256;

/// What generators yield in threads of their own, ahead of whoever takes it. Packets that wait in here are
/// not in flight yet; of one generator there are never more than [`Ahead::MOST`].
#[derive(Debug)]
pub struct Ahead<A> {
    /// Of each generator its chunks; they take turns.
    chunks: Vec<Receiver<Vec<Packet<A>>>>,
    turn: usize,
    chunk: std::vec::IntoIter<Packet<A>>,
}

impl<A: Address> Ahead<A> {
    /// The most packets that wait: those queued, the chunk being made and the one being taken from.
    pub const MOST: usize = (CHUNKS + 2) * CHUNK;

    /// Starts the generator; it ends with its last packet, or when nobody takes any more.
    pub fn start<'s>(
        scope: &'s Scope<'s, '_>,
        generator: impl Iterator<Item = Packet<A>> + Send + 's,
    ) -> Self {
        let mut generator = generator.fuse();
        let chunks = std::iter::from_fn(move || {
            let chunk: Vec<_> = generator.by_ref().take(CHUNK).collect();
            (!chunk.is_empty()).then_some(chunk)
        });
        Self::start_all(scope, [chunks], CHUNKS)
    }

    /// Starts generators of chunks, which are taken from each in turn until one has none; `ahead` chunks of each wait.
    pub fn start_all<'s, C: Iterator<Item = Vec<Packet<A>>> + Send + 's>(
        scope: &'s Scope<'s, '_>,
        generators: impl IntoIterator<Item = C>,
        ahead: usize,
    ) -> Self {
        let start = |mut generator: C| {
            let (to, chunks) = bounded(ahead);
            scope.spawn(move || generator.all(|chunk| to.send(chunk).is_ok()));
            chunks
        };
        let chunks = generators.into_iter().map(start).collect();
        Self { chunks, turn: 0, chunk: Vec::new().into_iter() }
    }
}

impl<A> Iterator for Ahead<A> {
    type Item = Packet<A>;

    fn next(&mut self) -> Option<Packet<A>> {
        loop {
            if let Some(packet) = self.chunk.next() {
                return Some(packet);
            }
            self.chunk = self.chunks.get(self.turn)?.recv().ok()?.into_iter();
            self.turn = (self.turn + 1) % self.chunks.len();
        }
    }
}
