//! A region of lent chunks, as a back end's: it knows by their tags which are out.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use pktio::{Burst, FrameBuf, Memory, Pool, Region};

#[derive(Debug)]
pub(super) struct Ring {
    chunk_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<Memory>,
    out: HashSet<u64>,
    /// How often chunks came back, however many at once.
    calls: usize,
}

impl Ring {
    pub(super) fn new(chunks: u64, chunk_bytes: usize) -> Arc<Self> {
        let chunk = |tag| Memory::lent(vec![0; chunk_bytes].leak(), tag);
        let state = State { free: (0..chunks).map(chunk).collect(), ..State::default() };
        Arc::new(Self { chunk_bytes, state: Mutex::new(state) })
    }

    pub(super) fn take(self: &Arc<Self>, headroom: usize) -> Option<FrameBuf> {
        let mut state = self.state.lock().unwrap();
        let memory = state.free.pop()?;
        assert!(state.out.insert(memory.tag()), "given out twice");
        let region: Arc<dyn Region> = Arc::<Self>::clone(self);
        Some(FrameBuf::new(memory, region, headroom))
    }

    pub(super) fn free(&self) -> usize {
        self.state.lock().unwrap().free.len()
    }

    fn calls(&self) -> usize {
        self.state.lock().unwrap().calls
    }
}

impl Region for Ring {
    fn take_back(&self, chunks: &mut dyn Iterator<Item = Memory>) {
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        for memory in chunks {
            assert_eq!(memory.bytes().len(), self.chunk_bytes, "memory without its bytes");
            assert!(state.out.remove(&memory.tag()), "given back twice");
            state.free.push(memory);
        }
    }
}

#[test]
fn chunks_of_a_burst_go_back_with_one_call_for_each_region() {
    let (ring, other) = (Ring::new(8, 64), Ring::new(8, 64));
    let mut burst = Burst::with_capacity(0);
    for ring in [&ring, &ring, &other, &other, &other] {
        burst.push_frame(ring.take(0).unwrap());
    }
    burst.clear();
    assert_eq!([(ring.free(), ring.calls()), (other.free(), other.calls())], [(8, 1); 2]);
}

/// What a back end does that transmits from its own memory.
#[test]
fn a_region_gets_its_own_memory_out_of_a_frame_and_no_other() {
    let (ring, other) = (Ring::new(1, 64), Ring::new(1, 64));
    let mut frame = ring.take(16).unwrap();
    assert!(frame.extend(b"frame"));
    assert_eq!((frame.is_of(&other), frame.is_of(&ring)), (false, true));
    let (memory, range) = frame.reclaim(&ring).expect("it is its own");
    assert_eq!((ring.free(), ring.calls()), (0, 0));
    assert_eq!((memory.tag(), &memory.bytes()[range]), (0, &b"frame"[..]));
    ring.take_back(&mut [memory].into_iter());
    assert_eq!((ring.free(), other.free()), (1, 1));
    let frame = ring.take(16).unwrap();
    assert!(frame.reclaim(&other).is_none());
    assert_eq!((ring.free(), other.free()), (1, 1), "it went back where it belongs");
}

/// A port that reclaims some frames of a burst, and drops the burst before it has drained them.
#[test]
fn what_was_reclaimed_from_a_burst_does_not_go_back_with_it() {
    for is_cleared in [true, false] {
        let ring = Ring::new(3, 64);
        let mut burst = Burst::with_capacity(0);
        (0..3).for_each(|_| burst.push_frame(ring.take(0).unwrap()));
        let (memory, _) = burst.reclaim(1, &ring).expect("it is its own");
        match is_cleared {
            true => burst.clear(),
            false => drop(burst.drain(3)),
        }
        assert_eq!((ring.free(), ring.calls()), (2, 1));
        ring.take_back(&mut [memory].into_iter());
        assert_eq!(ring.free(), 3);
    }
}

#[test]
fn a_region_that_takes_nothing_back_ends_its_burst() {
    #[derive(Debug)]
    struct Sink;
    impl Region for Sink {
        fn take_back(&self, _: &mut dyn Iterator<Item = Memory>) {}
    }
    let region: Arc<dyn Region> = Arc::new(Sink);
    let mut burst = Burst::with_capacity(0);
    for _ in 0..3 {
        let memory = Memory::owned(vec![0; 4].into(), 0);
        burst.push_frame(FrameBuf::new(memory, Arc::clone(&region), 0));
    }
    burst.clear();
    assert_eq!(Arc::strong_count(&region), 1);
}

#[test]
fn memory_outlives_the_pool_that_nobody_has() {
    let pool = Pool::new(1, 8, 0);
    let mut frame = pool.take().unwrap();
    drop(pool);
    assert!(frame.extend(b"alive"));
    assert_eq!(frame.bytes(), b"alive");
}
