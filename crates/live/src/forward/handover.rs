//! [`Handover`]: moves a frame that one worker receives and another owns to its owner, with its memory.
//!
//! Contract: between each two workers there is a ring for each direction, with one producer and one consumer, of
//! [`RING`] frames; what does not fit is dropped. Frames keep their order from one worker to another. Nobody waits,
//! except a worker that reads a capture, which may lose nothing. A worker that was given frames is woken once per burst
//! ([`Handover::wake`]). The rings are `rtrb`'s: that crate decides their memory order.

use std::collections::VecDeque;
use std::task::Waker;
use std::thread;

use packet::{Headers, Packet};
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use crate::forward::fragments::{Fragments, Goes, Piece};
use crate::forward::handover_frame::HandoverFrame;
use crate::forward::steering::{Follows, Steering};

/// Frames on their way from one worker to another.
pub(crate) const RING: usize = 1024;

/// Frames that are taken from a ring at a time, at most.
const AT_ONCE: usize = 64;

/// The owner of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// This worker, now.
    Own,
    /// The worker of this number, through a ring; through its own queue, fragments follow the held ones.
    Of { worker: usize, is_placed: bool },
    /// Nobody, before the first fragment of the packet comes.
    Held(Piece),
}

/// A worker's ends of all rings.
#[derive(Debug)]
pub(crate) struct Handover {
    number: usize,
    steering: Steering,
    fragments: Fragments,
    /// Rings to the other workers; none to itself.
    to: Vec<Option<Lane>>,
    from: Vec<Consumer<HandoverFrame>>,
    /// The queue to itself.
    own: VecDeque<HandoverFrame>,
    /// Whether own fragments follow others that were held, and so go through `own`.
    is_behind: bool,
    /// The wires and ends of fragments that were held, and for which there was no room then.
    lost: Vec<(u16, u8)>,
}

/// The ring from one worker to another.
#[derive(Debug)]
struct Lane {
    ring: Producer<HandoverFrame>,
    waker: Waker,
    has_new: bool,
}

/// The ends of the workers that these wake, one for each.
pub(crate) fn among(wakers: &[Waker], steering: &Steering) -> Vec<Handover> {
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
    /// The owner of a frame that comes at `now`, in nanoseconds; `keeps` if no other worker receives fragments of its
    /// packet. Fragments are to be given or held in the order in which this was asked.
    pub(crate) fn place(
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
    pub(crate) fn hold(&mut self, piece: Piece, now: u64, handed: HandoverFrame) {
        let copy = handed.frame.copied();
        self.fragments.hold(piece, now, HandoverFrame { frame: copy, is_placed: true, ..handed });
    }

    /// Gives a frame to a worker; returns it where there is no room, to be dropped. With `waits` it waits for room,
    /// unless the worker has ended.
    pub(crate) fn give(
        &mut self,
        worker: usize,
        mut handed: HandoverFrame,
        waits: bool,
    ) -> Option<HandoverFrame> {
        let Some(lane) = self.to.get_mut(worker).and_then(Option::as_mut) else {
            self.own.push_back(handed);
            return None;
        };
        loop {
            match lane.ring.push(handed) {
                Ok(()) => {
                    lane.has_new = true;
                    return None;
                }
                Err(PushError::Full(back)) if waits && !lane.ring.is_abandoned() => handed = back,
                Err(PushError::Full(back)) => return Some(back),
            }
            lane.waker.wake_by_ref();
            thread::yield_now();
        }
    }

    /// Gives on the fragments whose first one has come; fragments for which there is no room are [`Handover::dropped`].
    pub(crate) fn release(&mut self, waits: bool) {
        for (owner, handed) in std::mem::take(&mut self.fragments.released) {
            let HandoverFrame { wire, from, .. } = handed;
            if self.give(owner, handed, waits).is_some() {
                self.lost.push((wire, from));
            }
        }
    }

    /// Fragments that were held and dropped: the wire of each, and its end of arrival.
    pub(crate) fn dropped(&mut self) -> impl Iterator<Item = (u16, u8)> {
        let late = self.fragments.dropped.drain(..).map(|handed| (handed.wire, handed.from));
        late.chain(self.lost.drain(..))
    }

    /// Drops the fragments that are held, at the end of a run.
    pub(crate) fn give_up(&mut self) {
        self.fragments.give_up();
    }

    /// Frames that other workers have given to this one, and that it has not taken.
    pub(crate) fn waiting(&self) -> usize {
        self.from.iter().map(Consumer::slots).sum()
    }

    /// Takes what the other workers and this one itself have given.
    pub(crate) fn take(&mut self, taken: &mut VecDeque<HandoverFrame>) {
        taken.append(&mut self.own);
        self.is_behind = false;
        for ring in &mut self.from {
            taken.extend((0..AT_ONCE).map_while(|_| ring.pop().ok()));
        }
    }

    /// Wakes the workers that were given frames.
    pub(crate) fn wake(&mut self) {
        for lane in self.to.iter_mut().flatten() {
            if std::mem::take(&mut lane.has_new) {
                lane.waker.wake_by_ref();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::craft::{Addresses, Craft, Fragment, Message};
    use packet::{Checksums, Link, parse};
    use pktio::{FrameMeta, Taken};
    use rules::model::Family;
    use rules::save::{LoadOptions, load};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    /// Counts wake-ups.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Two workers under rules that steer by ports, with the waker of each.
    fn two() -> (Vec<Handover>, [Arc<Woken>; 2]) {
        let nat = "*nat\n:POSTROUTING ACCEPT [0:0]\n\
            -A POSTROUTING -j SNAT --to-source 192.0.2.1\nCOMMIT\n";
        let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
        let rules = Arc::new(load(nat, &options).expect("rules").ruleset);
        let woken = [Arc::<Woken>::default(), Arc::default()];
        let wakers = woken.each_ref().map(|woken| Waker::from(Arc::clone(woken)));
        (among(&wakers, &Steering::of(&[rules], 2).0), woken)
    }

    /// A fragment, with 32 bytes of payload, of a datagram from this port.
    fn fragment(port: u16, offset: u16) -> Vec<u8> {
        let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
        let whole = Craft::new(addresses, Message::udp(port, 53));
        let fragment = Some(Fragment { offset, more: offset < 64 });
        Craft { id: port.into(), payload_len: 32, fragment, ..whole }.frame()
    }

    fn handed(bytes: &[u8]) -> HandoverFrame {
        let taken = Taken::Lent { bytes, meta: FrameMeta::default() };
        HandoverFrame { wire: 3, from: 1, is_placed: true, frame: taken.into_buf() }
    }

    fn place(hands: &mut Handover, bytes: &[u8]) -> Place {
        let mut bytes = bytes.to_vec();
        let headers = parse(Link::Wire, &bytes, bytes.len(), Checksums::Ignore);
        hands.place(&mut bytes, &headers, true, 1)
    }

    fn taken(hands: &mut Handover) -> Vec<Vec<u8>> {
        let mut taken = VecDeque::new();
        hands.take(&mut taken);
        taken.into_iter().map(|handed| handed.frame.bytes().to_vec()).collect()
    }

    /// Fragments before the first one reach its owner in the order in which they came, and before it; likewise at the
    /// keeper itself, whose own would otherwise not wait for them.
    #[test]
    fn fragments_that_were_held_come_in_order_and_before_the_first() {
        let (mut hands, _) = two();
        let mut owners = [0; 2];
        for port in 4000..4020 {
            let [first, second, third] = [0, 40, 72].map(|offset| fragment(port, offset));
            for bytes in [&third, &second] {
                let Place::Held(piece) = place(&mut hands[0], bytes) else { panic!("{port}") };
                hands[0].hold(piece, 1, handed(bytes));
            }
            let Place::Of { worker, is_placed: true } = place(&mut hands[0], &first) else {
                panic!("{port}: it overtakes those that were held")
            };
            hands[0].release(false);
            assert!(hands[0].give(worker, handed(&first), false).is_none());
            assert_eq!(taken(&mut hands[worker]), [third, second, first], "{port}");
            owners[worker] += 1;
        }
        assert!(owners.iter().all(|count| *count > 0), "{owners:?}");
    }

    #[test]
    fn what_is_held_at_the_end_is_dropped_where_it_came_in() {
        let (mut hands, _) = two();
        for offset in [40, 72] {
            let bytes = fragment(4000, offset);
            let Place::Held(piece) = place(&mut hands[0], &bytes) else { panic!("{offset}") };
            hands[0].hold(piece, 1, handed(&bytes));
        }
        assert_eq!(hands[0].dropped().count(), 0);
        hands[0].give_up();
        assert_eq!(hands[0].dropped().collect::<Vec<_>>(), [(3, 1); 2]);
    }

    #[test]
    fn what_a_full_ring_has_no_room_for_is_dropped_and_whoever_got_frames_is_woken_once() {
        let (mut hands, woken) = two();
        let count = |woken: &Woken| woken.0.load(Ordering::Relaxed);
        hands[0].wake();
        assert_eq!(woken.each_ref().map(|woken| count(woken)), [0, 0]);
        let frame = fragment(4000, 0);
        for _ in 0..RING {
            assert!(hands[0].give(1, handed(&frame), false).is_none());
        }
        assert!(hands[0].give(1, handed(&frame), false).is_some());
        hands[0].wake();
        hands[0].wake();
        assert_eq!(woken.each_ref().map(|woken| count(woken)), [0, 1]);
        // A fragment that was held, and whose owner has no room.
        let held = |port| {
            place(&mut two().0[0], &fragment(port, 0)) == Place::Of { worker: 1, is_placed: true }
        };
        let port = (4000..4020).find(|port| held(*port)).expect("one is the other's");
        let late = fragment(port, 40);
        let Place::Held(piece) = place(&mut hands[0], &late) else { panic!("{port}") };
        hands[0].hold(piece, 1, handed(&late));
        place(&mut hands[0], &fragment(port, 0));
        hands[0].release(false);
        assert_eq!(hands[0].dropped().collect::<Vec<_>>(), [(3, 1)]);
        let mut all = 0;
        while let more @ 1.. = taken(&mut hands[1]).len() {
            all += more;
        }
        assert_eq!(all, RING);
    }
}
