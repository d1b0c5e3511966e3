//! [`Lanes`]: the queues that one port receives from, in turn, so that no flow waits for all frames of another.
//!
//! Contract: a turn is [`QUANTUM`] bytes or what there is. A lane that had little in its last turn comes first when it is
//! ready again ([`SPARSE`]); the others take turns, and what all sparse lanes together may have of a burst is a part of it,
//! so every lane gets its turns. Frames are written to the first lane. A port of one lane asks nobody.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

/// Bytes of a lane's turn: one superframe ends it.
const QUANTUM: u64 = 64 * 1024;
/// Bytes of a turn after which a lane is not sparse: a few packets of speech, of a question, of a key that was pressed.
const SPARSE: u64 = 4 * 1024;
/// Lanes that are found ready at once.
const READY: usize = 64;

/// Queues of one port.
#[derive(Debug)]
pub(super) struct Lanes {
    queues: Vec<Lane>,
    /// Shows which of several have frames.
    ready: Option<OwnedFd>,
    /// Lanes that may have frames, the next one first.
    turn: VecDeque<usize>,
}

#[derive(Debug)]
struct Lane {
    queue: File,
    /// Whether it is among those whose turn comes.
    is_due: bool,
    /// Whether its last turn was short.
    is_sparse: bool,
}

impl Lanes {
    pub(super) fn new(queues: Vec<OwnedFd>) -> io::Result<Self> {
        let lane = |queue| Lane { queue: File::from(queue), is_due: false, is_sparse: true };
        let queues: Vec<Lane> = queues.into_iter().map(lane).collect();
        let ready = (queues.len() > 1).then(|| watch(&queues)).transpose()?;
        let turn = VecDeque::with_capacity(queues.len());
        Ok(Self { queues, ready, turn })
    }

    /// The lane that frames are written to.
    pub(super) fn first(&self) -> &File {
        &self.queues[0].queue
    }

    pub(super) fn get(&self, lane: usize) -> &File {
        &self.queues[lane].queue
    }

    /// What is readable when some lane has frames.
    pub(super) fn readiness(&self) -> BorrowedFd<'_> {
        self.ready.as_ref().map_or_else(|| self.first().as_fd(), AsFd::as_fd)
    }

    /// Bytes of a turn where there is this much room: of the only lane, all of it.
    pub(super) fn most(&self, room: u64) -> u64 {
        if self.ready.is_some() { room.min(QUANTUM) } else { room }
    }

    /// Gives turns to lanes that have got frames.
    pub(super) fn find_ready(&mut self) -> io::Result<()> {
        let Self { queues, ready, turn } = self;
        let Some(ready) = ready else {
            add(queues, turn, 0);
            return Ok(());
        };
        let mut room = [const { MaybeUninit::<Event>::uninit() }; READY];
        let (events, _) = match epoll::wait(ready, &mut room[..], Some(&NOW)) {
            Err(Errno::INTR) => return Ok(()),
            found => found?,
        };
        for event in events {
            add(queues, turn, event.data.u64() as usize);
        }
        Ok(())
    }

    /// Takes the lane whose turn it is.
    pub(super) fn next(&mut self) -> Option<usize> {
        let lane = self.turn.pop_front()?;
        self.queues[lane].is_due = false;
        Some(lane)
    }

    /// Ends a lane's turn of this many bytes; where it may have more frames, it gets another.
    pub(super) fn end_turn(&mut self, lane: usize, bytes: u64, has_more: bool) {
        self.queues[lane].is_sparse = bytes <= SPARSE;
        if has_more {
            self.queues[lane].is_due = true;
            self.turn.push_back(lane);
        }
    }
}

/// Gives a lane its turn, unless it has one already.
fn add(queues: &mut [Lane], turn: &mut VecDeque<usize>, number: usize) {
    let Some(lane) = queues.get_mut(number).filter(|lane| !lane.is_due) else { return };
    match lane.is_sparse {
        true => turn.push_front(number),
        false => turn.push_back(number),
    }
    lane.is_due = true;
}

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// An epoll instance over all of them.
fn watch(lanes: &[Lane]) -> io::Result<OwnedFd> {
    let ready = epoll::create(CreateFlags::CLOEXEC)?;
    for (lane, number) in lanes.iter().zip(0..) {
        epoll::add(&ready, &lane.queue, EventData::new_u64(number), EventFlags::IN)?;
    }
    Ok(ready)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes of files that are no device's; one lane asks nobody, so this one is given turns by hand.
    fn lanes(count: usize) -> Lanes {
        let file = || OwnedFd::from(File::open("/dev/null").unwrap());
        let lane = |_| Lane { queue: File::from(file()), is_due: false, is_sparse: true };
        let queues = (0..count).map(lane).collect();
        Lanes { queues, ready: None, turn: VecDeque::new() }
    }

    fn is_ready(lanes: &mut Lanes, number: usize) {
        add(&mut lanes.queues, &mut lanes.turn, number);
    }

    #[test]
    fn full_lanes_take_turns_and_a_sparse_one_comes_first() {
        let mut lanes = lanes(4);
        (0..3).for_each(|number| is_ready(&mut lanes, number));
        let mut order = Vec::new();
        for _ in 0..6 {
            let lane = lanes.next().unwrap();
            lanes.end_turn(lane, QUANTUM, true);
            order.push(lane);
        }
        assert_eq!(order, [2, 1, 0, 2, 1, 0]);
        is_ready(&mut lanes, 3);
        assert_eq!(lanes.next(), Some(3));
        // It had too much to come first.
        lanes.end_turn(3, SPARSE + 1, false);
        is_ready(&mut lanes, 3);
        assert_eq!([(); 4].map(|()| lanes.next()), [2, 1, 0, 3].map(Some));
        assert_eq!(lanes.next(), None);
    }

    #[test]
    fn a_lane_that_is_due_is_not_due_twice() {
        let mut lanes = lanes(2);
        [1, 1, 0].into_iter().for_each(|number| is_ready(&mut lanes, number));
        assert_eq!([lanes.next(), lanes.next(), lanes.next()], [Some(0), Some(1), None]);
        lanes.end_turn(1, 10, true);
        is_ready(&mut lanes, 1);
        assert_eq!([lanes.next(), lanes.next()], [Some(1), None]);
    }

    #[test]
    fn one_lane_is_always_ready() {
        let file = OwnedFd::from(File::open("/dev/null").unwrap());
        let mut lanes = Lanes::new(vec![file]).unwrap();
        for _ in 0..2 {
            lanes.find_ready().unwrap();
            assert_eq!([lanes.next(), lanes.next()], [Some(0), None]);
        }
        assert!(lanes.ready.is_none());
    }
}
