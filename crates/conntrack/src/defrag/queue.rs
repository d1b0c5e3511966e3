//! [`Queue`]: the fragments of one packet; [`Queues`]: the queues of all packets of a family.
//!
//! Fragments may come in any order. A fragment that lies wholly within an earlier run is a duplicate; any other overlap
//! spoils the packet. A run is a stretch of fragments, each appended to the end of the last one when it came.
//!
//! Contract: bounded memory; a queue dies its lifetime after its first fragment.
//!
//! Source: Linux 6.18 `net/ipv4/inet_fragment.c`.

use super::outcome::Carried;
use packet::Packet;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::ops::Range;

/// What the kernel spends, about, on a fragment besides its bytes, and on a queue.
const FRAGMENT_OVERHEAD: usize = 704;

const QUEUE_OVERHEAD: usize = 208;

/// Keys of queues that no longer exist are kept up to this many beyond the number of queues.
const SPARE_ORDER: usize = 1024;

/// Where a fragment lies, in bytes of the payload of the whole packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A fragment's payload as far as it was captured.
#[derive(Debug)]
struct Piece {
    span: Span,
    bytes: Vec<u8>,
    /// Ranges of the payload, relative to its start, that are not known.
    unknown: Vec<Range<usize>>,
}

/// How a fragment fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Added,
    Duplicate,
    Overlap,
}

/// The fragments of one packet.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// What precedes the payload: everything in the first fragment's frame up to it.
    pub(super) head: Vec<u8>,
    /// Ranges of [`Self::head`] that are not known.
    pub(super) head_unknown: Vec<Range<usize>>,
    pieces: Vec<Piece>,
    /// Sorted by start; they do not touch but where fragments did not come in order.
    runs: Vec<Span>,
    /// Length of the payload so far as it is known.
    pub(super) len: usize,
    /// The last fragment came: `len` is final.
    pub(super) has_last: bool,
    has_first: bool,
    held: usize,
    /// Bit n: a fragment's ECN bits have the value n.
    pub(super) ecn: u8,
    /// The longest fragment in bytes, and the longest that must not be fragmented.
    pub(super) longest: usize,
    pub(super) longest_unfragmentable: usize,
    /// What the whole packet carries.
    pub(super) carried: Carried,
    /// Place of the last fragment in the sequence of fragments from its source.
    pub(super) place: u32,
    deadline: u64,
    memory: usize,
}

impl Queue {
    /// Whether a fragment was taken.
    pub(super) fn has_any(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Whether the packet is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.has_first && self.has_last && self.held == self.len
    }

    /// Notes what a fragment at this offset of the packet carries.
    pub(super) fn carry(&mut self, start: usize, carried: Carried) {
        self.carried.is_certain &= carried.is_certain;
        if start == 0 {
            self.carried.mark = carried.mark;
        }
    }

    /// Takes the payload at `from` in the frame.
    pub(super) fn add(&mut self, packet: &Packet<'_>, from: usize, span: Span) -> Fit {
        let fit = self.place_run(span);
        if fit != Fit::Added {
            return fit;
        }
        let (bytes, unknown) = copy(packet, from, span.end - span.start);
        self.memory += bytes.len() + FRAGMENT_OVERHEAD;
        self.held += span.end - span.start;
        self.has_first |= span.start == 0;
        self.pieces.push(Piece { span, bytes, unknown });
        fit
    }

    fn place_run(&mut self, span: Span) -> Fit {
        if let Some(last) = self.runs.last_mut()
            && last.end == span.start
        {
            last.end = span.end;
            return Fit::Added;
        }
        let at = self.runs.partition_point(|run| run.end <= span.start);
        match self.runs.get(at) {
            Some(run) if run.start < span.end => {
                let within = run.start <= span.start && span.end <= run.end;
                if within { Fit::Duplicate } else { Fit::Overlap }
            }
            _ => {
                self.runs.insert(at, span);
                Fit::Added
            }
        }
    }

    /// The frame, its unknown ranges, and how long the pieces are that it is made of.
    pub(super) fn assemble(mut self) -> (Vec<u8>, Vec<Range<usize>>, Vec<u32>) {
        self.pieces.sort_by_key(|piece| piece.span.start);
        let mut frame = self.head;
        let mut unknown = self.head_unknown;
        let mut pieces = Vec::with_capacity(self.pieces.len());
        for piece in self.pieces {
            let start = frame.len();
            pieces.push(piece.bytes.len() as u32);
            unknown.extend(piece.unknown.iter().map(|r| r.start + start..r.end + start));
            frame.extend_from_slice(&piece.bytes);
        }
        (frame, join(unknown), pieces)
    }
}

/// Copies `len` bytes from `from`; the unknown ones are 0 and told.
pub(super) fn copy(packet: &Packet<'_>, from: usize, len: usize) -> (Vec<u8>, Vec<Range<usize>>) {
    if let packet::Read::Known(bytes) = packet.read_slice(from, len) {
        return (bytes.to_vec(), Vec::new());
    }
    let mut bytes = vec![0; len];
    let mut unknown = Vec::new();
    for (at, place) in bytes.iter_mut().enumerate() {
        match packet.read::<1>(from + at) {
            packet::Read::Known([byte]) => *place = byte,
            _ => unknown.push(at..at + 1),
        }
    }
    (bytes, join(unknown))
}

/// Ranges that touch become one; they come sorted.
fn join(ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// The queues of one family.
#[derive(Debug)]
pub(super) struct Queues<K> {
    queues: HashMap<K, Queue>,
    /// Keys in the order in which their queues began. A key whose queue has ended, or has begun again, is skipped.
    order: VecDeque<(u64, K)>,
    lifetime: u64,
    most: usize,
    memory: usize,
}

impl<K: Copy + Eq + Hash> Queues<K> {
    pub(super) fn new(lifetime: u64, most: usize) -> Self {
        let (queues, order) = (HashMap::new(), VecDeque::new());
        Self { queues, order, lifetime, most, memory: 0 }
    }

    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    pub(super) fn len(&self) -> usize {
        self.queues.len()
    }

    /// Takes the queue of a packet out, or a new one; `None` when too much is held.
    pub(super) fn take(&mut self, key: K, now: u64) -> Option<Queue> {
        self.expire(now);
        if self.memory > self.most {
            return None;
        }
        if let Some(queue) = self.queues.remove(&key) {
            self.memory -= queue.memory;
            return Some(queue);
        }
        Some(self.begin(key, now))
    }

    /// A new queue.
    pub(super) fn begin(&mut self, key: K, now: u64) -> Queue {
        if self.order.len() > 2 * self.queues.len() + SPARE_ORDER {
            let queues = &self.queues;
            self.order.retain(|(at, key)| queues.get(key).is_some_and(|q| q.deadline == *at));
        }
        let deadline = now.saturating_add(self.lifetime);
        self.order.push_back((deadline, key));
        Queue { deadline, memory: QUEUE_OVERHEAD, ..Queue::default() }
    }

    /// Puts a queue back to wait for more.
    pub(super) fn put(&mut self, key: K, queue: Queue) {
        self.memory += queue.memory;
        self.queues.insert(key, queue);
    }

    /// Drops the queues whose time is over: lifetimes are equal, so they end in the order they began.
    fn expire(&mut self, now: u64) {
        while let Some((deadline, key)) = self.order.front() {
            let is_over = *deadline <= now;
            let is_current = self.queues.get(key).is_some_and(|q| q.deadline == *deadline);
            if !is_over && is_current {
                return;
            }
            if is_current && let Some(queue) = self.queues.remove(key) {
                self.memory -= queue.memory;
            }
            self.order.pop_front();
        }
    }
}

/// What ECN bits of all fragments together give: `None` where they contradict each other. `seen` has bit
/// n where one has the value n.
pub(super) fn ecn(seen: u8) -> Option<u8> {
    const NOT_ECT: u8 = 1;
    const CE: u8 = 8;
    let marked = seen & CE != 0;
    if seen & NOT_ECT != 0 && seen != NOT_ECT {
        return None;
    }
    Some(if marked && seen != CE { 3 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::ecn;

    #[test]
    fn congestion_marks_add_up_unless_one_fragment_is_not_capable() {
        let values = |values: &[u8]| ecn(values.iter().fold(0, |seen, value| seen | 1 << value));
        assert_eq!(values(&[0]), Some(0));
        assert_eq!(values(&[1, 2]), Some(0));
        assert_eq!(values(&[1, 3]), Some(3));
        assert_eq!(values(&[3]), Some(0), "all of them carry it already");
        assert_eq!(values(&[0, 1]), None);
        assert_eq!(values(&[0, 3]), None);
    }
}
