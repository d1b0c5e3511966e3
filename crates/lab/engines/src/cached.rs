//! `cached`: decisions that each worker remembers, over any engine. The first study's future work.
//!
//! What was remembered counts only while its *stamps* are as they were. A stamp counts changes that ended and those
//! that are under way; while one is, every look goes to the engine. Two kinds:
//! [`Invalidation::Exact`] has stamps for PNG of a source and for R of a destination in blocks of sources,
//! so a change revokes only pairs that it may concern (by a hash: two of them may share a stamp, which
//! revokes more, never less); [`Invalidation::Epoch`] has one stamp for all.
//!
//! Concurrency: a worker's memory is its own; stamps are shared counters. Bounded: a number of decisions a
//! worker and of stamps that does not depend on the number of addresses. A stamp is the same again after 2^48 changes:
//! at ten million a second, of one stamp, between two looks of one worker, in most of a year.
//!
//! Linearization: `update` where the engine below has it, which lies between its stamps. A remembered
//! decision was right after its stamps were read with none under way; stamp of the source equal now, then
//! stamp of the destination equal: neither `PNG[S]` nor `R[D]` for S changed until the first of the two was
//! read, so the decision is right at that moment.

use crate::{Address, Config, Decide, Engine};

use super::sync::{AtomicU64, Ordering};

/// Decisions that each worker remembers.
const REMEMBERED: usize = 1 << 16;
/// A change of a longer range than this revokes every stamp.
const LONGEST: usize = 1 << 18;

/// How exact invalidation is: more stamps and smaller blocks revoke less that a change does not concern, and cost more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grain {
    /// Stamps; rounded up to a power of two.
    pub stamps: usize,
    /// Sources of one block, at least one.
    pub block: usize,
}

impl Default for Grain {
    fn default() -> Self {
        Self { stamps: 1 << 18, block: 64 }
    }
}

/// What a change revokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalidation {
    /// The pairs it may concern.
    Exact(Grain),
    /// All.
    Epoch,
}

/// An engine whose decisions its workers remember.
#[derive(Debug)]
pub struct Cached<E> {
    engine: E,
    stamps: Stamps,
}

impl<E> Cached<E> {
    /// Remembers what this engine decides.
    #[must_use]
    pub fn new(engine: E, invalidation: Invalidation) -> Self {
        let (count, block) = match invalidation {
            // One stamp for all is what an epoch is.
            Invalidation::Exact(Grain { stamps, block }) => (stamps.max(2), block.max(1)),
            Invalidation::Epoch => (1, 1),
        };
        let words = (0..count.next_power_of_two()).map(|_| AtomicU64::new(0)).collect();
        Self { engine, stamps: Stamps { words, block } }
    }
}

/// Counters of changes: those under way in the lowest 16 bits, no more than there are threads; above them those that
/// ended.
#[derive(Debug)]
struct Stamps {
    words: Box<[AtomicU64]>,
    block: usize,
}

const UNDER_WAY: u64 = 1;
const ENDED: u64 = 1 << 16;

impl Stamps {
    fn at(&self, hash: u64) -> &AtomicU64 {
        &self.words[hash as usize & (self.words.len() - 1)]
    }

    fn png<A: Address>(&self, source: A) -> &AtomicU64 {
        self.at(source.spread())
    }

    fn accepts<A: Address>(&self, destination: A, block: u64) -> &AtomicU64 {
        self.at((destination.spread() ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(17))
    }

    /// The block of a source; sources without a number share one.
    fn block_of<A: Address>(&self, source: A) -> u64 {
        source.index().map_or(u64::MAX, |source| (source / self.block) as u64)
    }

    /// Calls `each` with the stamps of what a change may concern.
    fn of_change<A: Address>(&self, config: &Config<A>, mut each: impl FnMut(&AtomicU64)) {
        if self.words.len() == 1 {
            return each(&self.words[0]);
        }
        each(self.png(config.address));
        if config.begin >= config.end {
            return;
        }
        match (config.begin.index(), config.end.index()) {
            (Some(begin), Some(end)) if end - begin <= LONGEST => {
                let blocks = begin / self.block..=(end - 1) / self.block;
                blocks.for_each(|block| each(self.accepts(config.address, block as u64)));
            }
            // Too long to name its blocks: every stamp.
            _ => self.words.iter().for_each(each),
        }
    }
}

fn is_quiet(stamp: u64) -> bool {
    stamp.is_multiple_of(ENDED)
}

impl<A: Address, E: Engine<A>> Engine<A> for Cached<E> {
    fn decide(&self, source: A, destination: A) -> bool {
        self.engine.decide(source, destination)
    }

    fn update(&self, config: &Config<A>) {
        self.stamps.of_change(config, |stamp| {
            stamp.fetch_add(UNDER_WAY, Ordering::SeqCst);
        });
        self.engine.update(config);
        self.stamps.of_change(config, |stamp| {
            stamp.fetch_add(ENDED - UNDER_WAY, Ordering::SeqCst);
        });
    }

    fn bytes(&self) -> usize {
        self.engine.bytes() + self.stamps.words.len() * 8 + REMEMBERED * size_of::<Memory<A>>()
    }

    fn retries(&self) -> u64 {
        self.engine.retries()
    }

    fn worker(&self) -> Box<dyn Decide<A> + '_> {
        Box::new(Worker { cached: self, memory: vec![None; REMEMBERED].into() })
    }
}

/// A decision that a worker remembers.
#[derive(Debug, Clone, Copy)]
struct Remembered<A> {
    source: A,
    destination: A,
    stamps: (u64, u64),
    permitted: bool,
}

type Memory<A> = Option<Remembered<A>>;

/// One worker's memory.
#[derive(Debug)]
struct Worker<'e, A, E> {
    cached: &'e Cached<E>,
    memory: Box<[Memory<A>]>,
}

impl<A: Address, E: Engine<A>> Decide<A> for Worker<'_, A, E> {
    fn decide(&mut self, source: A, destination: A) -> bool {
        let Cached { engine, stamps } = self.cached;
        let (png, accepts) =
            (stamps.png(source), stamps.accepts(destination, stamps.block_of(source)));
        let now = (png.load(Ordering::SeqCst), accepts.load(Ordering::SeqCst));
        let at = source.spread().wrapping_add(destination.spread().rotate_left(7));
        let slot = &mut self.memory[at as usize & (REMEMBERED - 1)];
        if let Some(known) = slot
            && (known.source, known.destination, known.stamps) == (source, destination, now)
        {
            return known.permitted;
        }
        let permitted = engine.decide(source, destination);
        if is_quiet(now.0) && is_quiet(now.1) {
            *slot = Some(Remembered { source, destination, stamps: now, permitted });
        }
        permitted
    }

    fn update(&mut self, config: &Config<A>) {
        self.cached.update(config);
    }
}
