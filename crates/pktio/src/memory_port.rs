//! [`MemoryPort`]: two ports joined by a wire, in memory: what one transmits the other receives, in order. A port can
//! also be joined with itself.
//!
//! Contract: frames that have their memory with them move; others are copied into chunks of the wire's pool, and
//! counted. Each direction holds a bounded number of frames, and takes no more when it is full or the pool is empty.
//! Each end may be on its own thread; a burst takes the queue's lock once to receive and twice to transmit. What waits
//! in a direction goes back to its regions when both ends have been dropped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::burst::Burst;
use crate::memory::{FrameBuf, Taken};
use crate::pool::Pool;
use crate::port::{Port, PortError, Stats};
use crate::readiness::{Bell, Readiness};

/// One end of a wire.
#[derive(Debug)]
pub struct MemoryPort {
    incoming: Arc<Direction>,
    outgoing: Arc<Direction>,
    /// Rung when frames come in.
    bell: Arc<Bell>,
    pool: Pool,
    /// Frames handed over at once.
    burst_frames: usize,
    /// Frames on their way to the queue, and chunks to copy into: empty between bursts.
    leaving: Vec<FrameBuf>,
    chunks: Vec<FrameBuf>,
    stats: Stats,
}

/// One direction of a wire.
#[derive(Debug)]
struct Direction {
    queue: Mutex<Queue>,
    /// Frames that it holds at most.
    capacity: usize,
}

#[derive(Debug)]
struct Queue {
    frames: VecDeque<FrameBuf>,
    /// The bell of the end that receives.
    bell: Arc<Bell>,
}

impl Direction {
    fn new(capacity: usize, bell: &Arc<Bell>) -> Arc<Self> {
        let queue = Queue { frames: VecDeque::with_capacity(capacity), bell: Arc::clone(bell) };
        Arc::new(Self { queue: Mutex::new(queue), capacity })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryPort {
    /// Two ends of a wire. Each direction holds `capacity` frames; each end hands over `burst_frames` of them (at
    /// least one) at a time.
    pub fn pair(pool: &Pool, capacity: usize, burst_frames: usize) -> [Self; 2] {
        let bells = [Arc::<Bell>::default(), Arc::default()];
        let to = bells.each_ref().map(|bell| Direction::new(capacity, bell));
        let [first_bell, second_bell] = bells;
        let end = |incoming: &Arc<_>, outgoing: &Arc<_>, bell| {
            Self::new([Arc::clone(incoming), Arc::clone(outgoing)], bell, pool, burst_frames)
        };
        [end(&to[0], &to[1], first_bell), end(&to[1], &to[0], second_bell)]
    }

    /// A port that receives what it transmits. As [`MemoryPort::pair`].
    pub fn looped(pool: &Pool, capacity: usize, burst_frames: usize) -> Self {
        let bell = Arc::default();
        let both = Direction::new(capacity, &bell);
        Self::new([Arc::clone(&both), both], bell, pool, burst_frames)
    }

    fn new(
        [incoming, outgoing]: [Arc<Direction>; 2],
        bell: Arc<Bell>,
        pool: &Pool,
        burst_frames: usize,
    ) -> Self {
        Self {
            incoming,
            outgoing,
            bell,
            pool: pool.clone(),
            burst_frames: burst_frames.max(1),
            leaving: Vec::new(),
            chunks: Vec::new(),
            stats: Stats::default(),
        }
    }

    /// Rings `bell` from now on when frames come in; other ports of the same worker may ring it, too.
    #[must_use]
    pub fn with_bell(mut self, bell: &Arc<Bell>) -> Self {
        self.incoming.queue().bell = Arc::clone(bell);
        self.bell = Arc::clone(bell);
        self
    }

    /// Moves the first frames of a burst, `most` or fewer, to `leaving`; copies as far as there are chunks.
    fn take(&mut self, burst: &mut Burst, most: usize) -> usize {
        let Self { pool, leaving, chunks, stats, .. } = self;
        let wanted = burst.buffered(most);
        pool.fill(chunks, wanted);
        // Without chunks for all, up to the first frame that there is none for.
        let most = if chunks.len() < wanted { burst.up_to_buffered(chunks.len()) } else { most };
        let mut taken = 0;
        for frame in burst.drain(most) {
            taken += 1;
            match frame {
                Taken::Moved(frame) => leaving.push(frame.into_buf()),
                Taken::Lent { bytes, meta } => {
                    let Some(mut copy) = chunks.pop() else { continue };
                    copy.meta = meta;
                    if copy.extend(bytes) {
                        stats.tx_copied += 1;
                        leaving.push(copy);
                    } else {
                        stats.tx_too_long += 1;
                    }
                }
            }
        }
        chunks.clear();
        taken
    }
}

impl Port for MemoryPort {
    /// The oldest frames, numbered in the order in which they are received.
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        let mut queue = self.incoming.queue();
        let waiting = queue.frames.len().min(self.burst_frames);
        for mut frame in queue.frames.drain(..waiting) {
            self.stats.rx_frames += 1;
            self.stats.rx_bytes += frame.bytes().len() as u64;
            frame.meta.number = self.stats.rx_frames;
            burst.push_frame(frame);
        }
        Ok(waiting)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        // Nobody else fills this direction: the room can only grow.
        let room = self.outgoing.capacity - self.outgoing.queue().frames.len();
        let taken = self.take(burst, room.min(burst.len()));
        self.stats.tx_full += burst.len() as u64;
        self.stats.tx_frames += self.leaving.len() as u64;
        self.stats.tx_bytes += self.leaving.iter().map(|f| f.bytes().len() as u64).sum::<u64>();
        if !self.leaving.is_empty() {
            let mut queue = self.outgoing.queue();
            queue.frames.extend(self.leaving.drain(..));
            queue.bell.ring();
        }
        Ok(taken)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Bell(&self.bell)
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}
