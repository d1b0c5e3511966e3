//! What is done with permitted packets: their fingerprint is counted in a histogram of 65,536 bins.
//!
//! Contract: a fingerprint is computed for permitted packets only, and no count is lost, whichever way the
//! counts are kept: in one concurrent map that all workers update (as the first study did), in shared
//! atomics, or by each worker for itself and added up by twos at the end (its future work).

use std::sync::atomic::{AtomicU64, Ordering};

use engines::{Address, Body, Data, Packet, Permits};
use parking_lot::Mutex;

/// A fingerprint's bins.
pub const BINS: usize = 1 << 16;

/// How counts are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bins {
    /// Permitted packets make no work.
    None,
    /// A concurrent map.
    SharedMap,
    /// An atomic for each bin.
    Atomics,
    /// Each worker its own, added up at the end.
    Shards,
}

impl Bins {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::SharedMap, Self::Atomics, Self::Shards];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SharedMap => "shared_map",
            Self::Atomics => "atomics",
            Self::Shards => "shards",
        }
    }
}

/// Counts of all fingerprints.
pub type Histogram = Box<[u64]>;

/// Where fingerprints are counted.
#[derive(Debug)]
pub struct Sink {
    /// The work that a permitted packet makes.
    work: fn(Body) -> u16,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    None,
    Map(papaya::HashMap<u16, AtomicU64>),
    Atomics(Box<[AtomicU64]>),
    /// Those of workers that ended.
    Shards(Mutex<Vec<Histogram>>),
    /// No counts, but what was counted in the order in which it was.
    #[cfg(test)]
    Sequence(Mutex<Vec<u16>>),
}

impl Sink {
    /// Does this work and keeps its counts.
    #[must_use]
    pub fn new(work: fn(Body) -> u16, bins: Bins) -> Self {
        let kept = match bins {
            Bins::None => Kept::None,
            Bins::SharedMap => Kept::Map(papaya::HashMap::new()),
            Bins::Atomics => Kept::Atomics((0..BINS).map(|_| AtomicU64::new(0)).collect()),
            Bins::Shards => Kept::Shards(Mutex::default()),
        };
        Self { work, kept }
    }

    /// Keeps the order in which fingerprints are counted.
    #[cfg(test)]
    pub(super) fn sequence(work: fn(Body) -> u16) -> Self {
        Self { work, kept: Kept::Sequence(Mutex::default()) }
    }

    /// Fingerprints in the order in which they were counted.
    #[cfg(test)]
    pub(super) fn into_sequence(self) -> Vec<u16> {
        match self.kept {
            Kept::Sequence(sequence) => sequence.into_inner(),
            _ => Vec::new(),
        }
    }

    /// Does without work.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_| 0, Bins::None)
    }

    /// The work of a permitted packet.
    pub(super) fn work(&self, body: Body) -> u16 {
        (self.work)(body)
    }

    /// One worker's way in.
    pub(super) fn collector(&self) -> Collector<'_> {
        let shard = matches!(self.kept, Kept::Shards(_)).then(empty);
        Collector { sink: self, shard }
    }

    /// All counts, when every worker has ended.
    #[must_use]
    pub fn histogram(self) -> Histogram {
        let mut histogram = empty();
        match self.kept {
            Kept::None => {}
            Kept::Map(map) => {
                for (bin, count) in &map.pin() {
                    histogram[usize::from(*bin)] = count.load(Ordering::Relaxed);
                }
            }
            Kept::Atomics(bins) => {
                for (to, count) in histogram.iter_mut().zip(bins) {
                    *to = count.into_inner();
                }
            }
            Kept::Shards(shards) => return reduce(shards.into_inner()),
            #[cfg(test)]
            Kept::Sequence(_) => {}
        }
        histogram
    }
}

fn empty() -> Histogram {
    vec![0; BINS].into()
}

/// Adds shards up by twos, in as many rounds as a tree has levels; the pairs of a round side by side.
fn reduce(mut shards: Vec<Histogram>) -> Histogram {
    while shards.len() > 1 {
        let half = shards.len().div_ceil(2);
        let others = shards.split_off(half);
        std::thread::scope(|scope| {
            for (to, from) in shards.iter_mut().zip(&others) {
                scope.spawn(move || to.iter_mut().zip(from).for_each(|(to, from)| *to += from));
            }
        });
    }
    shards.pop().unwrap_or_else(empty)
}

/// One worker's way into a sink.
#[derive(Debug)]
pub(super) struct Collector<'s> {
    sink: &'s Sink,
    shard: Option<Histogram>,
}

impl Collector<'_> {
    /// The permitted packets of a burst.
    pub(super) fn burst<A: Address>(&mut self, packets: &[Packet<A>], permits: &Permits) {
        if matches!(self.sink.kept, Kept::None) {
            return;
        }
        for (at, packet) in packets.iter().enumerate() {
            if let Packet::Data(data) = packet
                && permits.has(at)
            {
                self.packet(data);
            }
        }
    }

    /// One permitted packet.
    pub(super) fn packet<A: Address>(&mut self, data: &Data<A>) {
        if !matches!(self.sink.kept, Kept::None) {
            let fingerprint = self.sink.work(data.body);
            self.count(fingerprint);
        }
    }

    /// Counts a fingerprint.
    pub(super) fn count(&mut self, fingerprint: u16) {
        let bin = usize::from(fingerprint);
        match (&self.sink.kept, &mut self.shard) {
            (_, Some(shard)) => shard[bin] += 1,
            (Kept::Atomics(bins), _) => {
                bins[bin].fetch_add(1, Ordering::Relaxed);
            }
            (Kept::Map(map), _) => {
                let map = map.pin();
                let count = map.get_or_insert_with(fingerprint, || AtomicU64::new(0));
                count.fetch_add(1, Ordering::Relaxed);
            }
            #[cfg(test)]
            (Kept::Sequence(sequence), None) => sequence.lock().push(fingerprint),
            (Kept::None | Kept::Shards(_), None) => {}
        }
    }
}

impl Drop for Collector<'_> {
    fn drop(&mut self) {
        if let (Kept::Shards(shards), Some(shard)) = (&self.sink.kept, self.shard.take()) {
            shards.lock().push(shard);
        }
    }
}
