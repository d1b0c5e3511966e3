//! [`Handover`]: a frame that a worker receives and another one owns moves to that one, with its memory.
//!
//! Contract: between each two workers there is a ring for each direction, with one producer and one consumer, of
//! [`RING`] frames; what does not fit is dropped. Frames keep their order from one worker to
//! another. Nobody waits, but for a worker that reads a capture, which has to lose nothing. Whoever was given frames is woken
//! once for a burst ([`Handover::wake`]). The rings are `rtrb`'s: their last word on the order of memory is that crate's.

use std::collections::VecDeque;
use std::task::Waker;
use std::thread;

use packet::{Headers, Packet};
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::fragments::{Fragments, Goes, Piece};
use super::handed::Handed;
use super::steering::{Follows, Steering};

/// Frames on their way from one worker to another.
pub(super) const RING: usize = 1024;

/// Frames that are taken from a ring at a time.
const AT_ONCE: usize = 64;

/// Whose a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// This worker's, now.
    Own,
    /// This worker's, by way of a ring; by its own, fragments follow those that were held.
    Of { worker: usize, is_placed: bool },
    /// Nobody's, before the first fragment of its packet comes.
    Held(Piece),
}

/// A worker's ends of all rings.
#[derive(Debug)]
pub(super) struct Handover {
    number: usize,
    steering: Steering,
    fragments: Fragments,
    /// None to itself.
    to: Vec<Option<Lane>>,
    from: Vec<Consumer<Handed>>,
    /// To itself.
    own: VecDeque<Handed>,
    /// Its own fragments follow others that were held: they go by `own`.
    is_behind: bool,
    /// Where fragments came in that were held, and for which there was no room then.
    lost: Vec<(u16, u8)>,
}

/// One worker's way to another.
#[derive(Debug)]
struct Lane {
    ring: Producer<Handed>,
    waker: Waker,
    has_new: bool,
}

/// The ends of workers that these wake, each with its own.
pub(super) fn among(wakers: &[Waker], steering: &Steering) -> Vec<Handover> {
    let hands = |number| Handover {
        number,
        steering: steering.clone(),
        fragments: Fragments::default(),
        to: Vec::new(),
        from: Vec::new(),
        own: VecDeque::new(),
        is_behind: false,
        lost: Vec::new(),
    };
    let mut all: Vec<Handover> = (0..wakers.len()).map(hands).collect();
    for from in 0..wakers.len() {
        for (to, waker) in wakers.iter().enumerate() {
            if from == to {
                all[from].to.push(None);
                continue;
            }
            let (ring, consumer) = RingBuffer::new(RING);
            all[from].to.push(Some(Lane { ring, waker: waker.clone(), has_new: false }));
            all[to].from.push(consumer);
        }
    }
    all
}

impl Handover {
    /// Whose a frame is that comes at `now`, in nanoseconds; `keeps` if nobody else receives fragments of its packet.
    /// Fragments are to be given or held in the order in which this was asked.
    pub(super) fn place(
        &mut self,
        bytes: &mut [u8],
        headers: &Headers,
        keeps: bool,
        now: u64,
    ) -> Place {
        let Some(piece) = Piece::of(&Packet::with_headers(bytes, *headers)) else {
            return match self.steering.owner(bytes, headers) {
                owner if owner == self.number => Place::Own,
                worker => Place::Of { worker, is_placed: true },
            };
        };
        let keeper = match self.steering.of_fragment(&piece) {
            Follows::Addresses(owner) if owner == self.number => return Place::Own,
            Follows::Addresses(worker) => return Place::Of { worker, is_placed: true },
            Follows::First(_) if keeps => self.number,
            Follows::First(keeper) => keeper,
        };
        if keeper != self.number {
            return Place::Of { worker: keeper, is_placed: false };
        }
        let Self { steering, fragments, is_behind, .. } = self;
        let goes = fragments.place(piece, now, || steering.owner(bytes, headers));
        *is_behind |= goes == Goes::Nowhere || !fragments.released.is_empty();
        match goes {
            Goes::To(worker) if worker == self.number && !self.is_behind => Place::Own,
            Goes::To(worker) => Place::Of { worker, is_placed: true },
            Goes::Nowhere => Place::Held(piece),
        }
    }

    /// Holds a fragment until the first of its packet comes.
    pub(super) fn hold(&mut self, piece: Piece, now: u64, handed: Handed) {
        let copy = handed.frame.copied();
        self.fragments.hold(piece, now, Handed { frame: copy, is_placed: true, ..handed });
    }

    /// Gives a frame to a worker; false where there is no room, and the frame is dropped. One that `waits` waits for
    /// room, unless the worker is no more.
    pub(super) fn give(&mut self, worker: usize, mut handed: Handed, waits: bool) -> bool {
        let Some(lane) = self.to.get_mut(worker).and_then(Option::as_mut) else {
            self.own.push_back(handed);
            return true;
        };
        loop {
            match lane.ring.push(handed) {
                Ok(()) => {
                    lane.has_new = true;
                    return true;
                }
                Err(PushError::Full(back)) if waits && !lane.ring.is_abandoned() => handed = back,
                Err(PushError::Full(_)) => return false,
            }
            lane.waker.wake_by_ref();
            thread::yield_now();
        }
    }

    /// Gives on the fragments whose first one has come; those for which there is no room are [`Handover::dropped`].
    pub(super) fn release(&mut self, waits: bool) {
        for (owner, handed) in std::mem::take(&mut self.fragments.released) {
            let Handed { wire, from, .. } = handed;
            if !self.give(owner, handed, waits) {
                self.lost.push((wire, from));
            }
        }
    }

    /// Fragments that were held and dropped: the wire and the end that each came in by.
    pub(super) fn dropped(&mut self) -> impl Iterator<Item = (u16, u8)> {
        let late = self.fragments.dropped.drain(..).map(|handed| (handed.wire, handed.from));
        late.chain(self.lost.drain(..))
    }

    /// Drops the fragments that are held: the run ends.
    pub(super) fn give_up(&mut self) {
        self.fragments.give_up();
    }

    /// Takes what others have given it, and it itself.
    pub(super) fn take(&mut self, taken: &mut VecDeque<Handed>) {
        taken.append(&mut self.own);
        self.is_behind = false;
        for ring in &mut self.from {
            taken.extend((0..AT_ONCE).map_while(|_| ring.pop().ok()));
        }
    }

    /// Wakes those that were given frames.
    pub(super) fn wake(&mut self) {
        for lane in self.to.iter_mut().flatten() {
            if std::mem::take(&mut lane.has_new) {
                lane.waker.wake_by_ref();
            }
        }
    }
}
