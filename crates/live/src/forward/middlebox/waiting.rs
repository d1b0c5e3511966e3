//! [`Waiting`]: the frames of one direction of a wire that a middlebox is to see, with what it learns of each and the
//! verdicts that it gives.
//!
//! Contract: one thread's own. Frames stand in the order in which they came, with their memory. A frame has a verdict
//! once it was shown, at first [`Verdict::Pass`]. The room of two frames never overlaps, so that what is written into
//! one is not another's. The fields of a descriptor that comes back are checked against that room; where they are wrong
//! the verdict is [`Verdict::Error`] and the frame is as it was.

use std::iter;
use std::mem;

use packet::{Headers, Link};
use pktio::{Burst, FrameMeta};

use super::Verdict;
use super::away::Away;
use super::descriptor::Descriptor;
use super::offsets::Offsets;

/// The least length that a middlebox may leave of a frame: the header of Ethernet, or a byte of another link.
const LEAST: [usize; 2] = [14, 1];

/// Bytes before and after a frame that has no memory of its own, and leaves for another thread.
const ROOM: usize = 64;

/// Frames that wait for verdicts.
#[derive(Debug)]
pub struct Waiting {
    wire: u16,
    from: u8,
    burst: Burst,
    offsets: Vec<Offsets>,
    /// Verdicts of the frames that were shown.
    verdicts: Vec<Verdict>,
    /// When frames without a time of their own came, in nanoseconds since the Unix epoch.
    now: u64,
}

/// A frame that waits for its verdict.
#[derive(Debug)]
pub struct Shown<'w> {
    /// The frame's bytes.
    pub bytes: &'w mut [u8],
    /// What is known about the frame.
    pub meta: &'w FrameMeta,
    /// Where the frame's headers begin.
    pub offsets: &'w Offsets,
    /// The frame's verdict.
    pub verdict: &'w mut Verdict,
}

impl Waiting {
    pub(crate) fn new(wire: u16, from: u8) -> Self {
        let (offsets, verdicts) = (Vec::new(), Vec::new());
        Self { wire, from, burst: Burst::new(), offsets, verdicts, now: 0 }
    }

    /// An empty list for frames with memory of their own.
    pub(super) fn without_buffer() -> Self {
        let (offsets, verdicts) = (Vec::new(), Vec::new());
        Self { wire: 0, from: 0, burst: Burst::with_capacity(0), offsets, verdicts, now: 0 }
    }

    /// The wire that the frames cross, in the order of the configuration.
    #[must_use]
    pub fn wire(&self) -> usize {
        self.wire.into()
    }

    /// The wire's end on which the frames came in: 0 or 1.
    #[must_use]
    pub fn from(&self) -> usize {
        self.from.into()
    }

    /// The number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.burst.len()
    }

    /// Whether there are no frames.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.burst.is_empty()
    }

    /// All frames, to be read, rewritten and judged.
    pub fn frames(&mut self) -> impl Iterator<Item = Shown<'_>> {
        let Self { burst, offsets, verdicts, .. } = self;
        verdicts.resize(burst.len(), Verdict::Pass);
        let frames = burst.iter_mut().zip(&*offsets).zip(verdicts);
        frames.map(|((frame, offsets), verdict)| Shown {
            bytes: frame.bytes,
            meta: frame.meta,
            offsets,
            verdict,
        })
    }

    /// Moves the start of frame `at` by `front` bytes and its end by `back` bytes, to the front where a number is
    /// negative. Its offsets stay as they were. Returns whether there was room; if not, the frame is as it was.
    pub fn reshape(&mut self, at: usize, front: isize, back: isize) -> bool {
        let room = (self.headroom(at), self.tailroom(at));
        let Some(frame) = self.burst.get(at) else { return false };
        let (len, least) = (frame.bytes.len(), LEAST[usize::from(self.offsets[at].is_bare())]);
        let becomes = (len as isize).checked_sub(front).and_then(|len| len.checked_add(back));
        let is_sound = becomes.is_some_and(|becomes| becomes >= least as isize)
            && front.checked_neg().is_some_and(|up| up <= room.0 as isize)
            && front <= len as isize
            && back <= room.1 as isize;
        if !is_sound {
            return false;
        }
        match usize::try_from(front) {
            Ok(less) => self.burst.trim_front(at, less),
            Err(_) => drop(self.burst.grow_front(at, front.unsigned_abs())),
        }
        match usize::try_from(back) {
            Ok(more) => drop(self.burst.grow_back(at, more)),
            Err(_) => self.burst.trim_back(at, back.unsigned_abs()),
        }
        true
    }

    /// Bytes before frame `at` that it can grow into.
    #[must_use]
    pub fn headroom(&self, at: usize) -> usize {
        self.burst.headroom(at)
    }

    /// Bytes after frame `at` that it can grow into: where frames lie next to each other in one buffer, what is between
    /// two is the later one's.
    #[must_use]
    pub fn tailroom(&self, at: usize) -> usize {
        match self.burst.live(at).is_some() || at + 1 == self.burst.len() {
            true => self.burst.tailroom(at),
            false => 0,
        }
    }

    /// Takes all frames of a burst that came at `now`, with their headers as far as they are `known`: frames that have
    /// their memory with them are not copied, nor is any where none waits.
    pub(crate) fn take<'h>(
        &mut self,
        burst: &mut Burst,
        now: u64,
        known: impl Iterator<Item = Option<&'h (Link, Headers)>>,
    ) {
        match self.burst.is_empty() {
            true => mem::swap(&mut self.burst, burst),
            false => self.append(burst),
        }
        self.find(now, known);
    }

    /// Takes all frames of a burst whose buffer stays with it, and whose headers are not known.
    pub(crate) fn take_each(&mut self, burst: &mut Burst, now: u64) {
        self.append(burst);
        self.find(now, iter::empty());
    }

    fn append(&mut self, burst: &mut Burst) {
        burst.drain(usize::MAX).for_each(|frame| self.burst.append(frame));
    }

    /// Finds where the headers of the newest frames begin.
    fn find<'h>(&mut self, now: u64, known: impl Iterator<Item = Option<&'h (Link, Headers)>>) {
        self.now = now;
        let before = self.offsets.len();
        let new = self.burst.range_mut(before..self.burst.len());
        let new = new.zip(known.chain(iter::repeat(None)));
        let found = new.map(|(frame, known)| Offsets::known(frame.bytes, frame.meta, known));
        self.offsets.extend(found);
    }

    /// Whether a frame has the same direction.
    pub(super) fn is_of(&self, away: &Away) -> bool {
        (self.wire, self.from) == (away.wire, away.from)
    }

    /// Switches to the frames of another direction; none may wait.
    pub(super) fn turn_to(&mut self, away: &Away) {
        (self.wire, self.from) = (away.wire, away.from);
    }

    /// Takes a frame that is on its way to a middlebox.
    pub(super) fn push(&mut self, away: Away) {
        self.now = away.now;
        self.offsets.push(away.offsets);
        self.burst.push_frame(away.frame);
    }

    /// Takes a frame that is on its way back.
    pub(crate) fn push_judged(&mut self, away: Away) {
        self.verdicts.push(away.verdict);
        self.push(away);
    }

    /// Hands all frames to another thread, with the verdicts that they have; frames in a burst's buffer are copied.
    pub(crate) fn leave(&mut self) -> impl Iterator<Item = Away> {
        let Self { burst, offsets, verdicts, wire, from, now } = self;
        verdicts.resize(burst.len(), Verdict::Pass);
        let told = offsets.drain(..).zip(verdicts.drain(..));
        burst.drain(usize::MAX).zip(told).map(|(frame, (offsets, verdict))| Away {
            wire: *wire,
            from: *from,
            verdict,
            offsets,
            now: *now,
            frame: frame.into_roomy_buf(ROOM),
        })
    }

    /// The number of frames that have no verdict yet.
    pub(super) fn unseen(&self) -> usize {
        self.burst.len() - self.verdicts.len()
    }

    /// The frames with their verdicts. Frames that were never shown pass.
    pub(crate) fn judged(&mut self) -> (&mut Burst, &[Verdict]) {
        self.verdicts.resize(self.burst.len(), Verdict::Pass);
        (&mut self.burst, &self.verdicts)
    }

    /// Drops all frames that are left, and what is known of all.
    pub(crate) fn clear(&mut self) {
        self.burst.clear();
        self.offsets.clear();
        self.verdicts.clear();
    }

    /// Describes frames that were not shown yet, as many as there is room for; returns their number.
    pub(super) fn describe(&mut self, descriptors: &mut [Descriptor]) -> usize {
        let first = self.verdicts.len();
        let count = descriptors.len().min(self.unseen());
        for (at, descriptor) in (first..first + count).zip(descriptors) {
            *descriptor = self.descriptor(at);
        }
        count
    }

    fn descriptor(&mut self, at: usize) -> Descriptor {
        let [headroom, tailroom] = [self.headroom(at), self.tailroom(at)].map(up_to_u16);
        let Self { wire, from, burst, offsets, now, .. } = self;
        let (Some(frame), Some(offsets)) = (burst.get_mut(at), offsets.get(at)) else {
            return Descriptor::default();
        };
        let time = frame.meta.timestamp.and_then(|time| u64::try_from(time.as_nanos()).ok());
        Descriptor {
            address: frame.bytes.as_mut_ptr().expose_provenance() as u64,
            time: time.unwrap_or(*now),
            length: frame.bytes.len() as u32,
            wire_length: frame.meta.wire_length,
            headroom,
            tailroom,
            network: offsets.network,
            transport: offsets.transport,
            ethertype: offsets.ethertype,
            protocol: offsets.protocol,
            flags: offsets.flags,
            wire: *wire,
            from: *from,
            verdict: Verdict::Pass as u8,
            number: frame.meta.number,
        }
    }

    /// Takes the verdicts of the frames that were described last.
    pub(super) fn take_back(&mut self, descriptors: &[Descriptor]) {
        let first = self.verdicts.len();
        self.verdicts.resize(first + descriptors.len(), Verdict::Pass);
        // From the last one on: room that a frame gives up in front of another was not shown as the other's.
        for (at, descriptor) in (first..first + descriptors.len()).zip(descriptors).rev() {
            let verdict = Verdict::of(descriptor.verdict);
            let is_sound = verdict == Verdict::Drop || self.moved(at, descriptor);
            self.verdicts[at] = if is_sound { verdict } else { Verdict::Error };
        }
    }

    /// Makes a frame begin and end where a descriptor says. Returns whether it may.
    #[inline]
    fn moved(&mut self, at: usize, descriptor: &Descriptor) -> bool {
        let Some(frame) = self.burst.get(at) else { return false };
        let (address, length) = (frame.bytes.as_ptr().addr() as u64, frame.bytes.len());
        if (descriptor.address, descriptor.length as usize) == (address, length) {
            return true;
        }
        let front = descriptor.address.wrapping_sub(address).cast_signed() as isize;
        let by = descriptor.length as isize - length as isize;
        front.checked_add(by).is_some_and(|back| self.reshape(at, front, back))
    }
}

fn up_to_u16(bytes: usize) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}
