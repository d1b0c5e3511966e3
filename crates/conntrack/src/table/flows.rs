//! [`Table`]: its slots, and the index by which a flow is found, confirmed and taken out again.

use crate::evicted::Evicted;
use crate::flow::{Doubt, Flow};
use crate::index::{Handle, Index, TupleSlot};
use crate::key::{Direction, HashKey, Tuple};
use crate::slab::Slab;
use crate::status::Status;

/// Slots that the sweep looks at for every new flow.
const SWEEP: usize = 4;

/// Slots have 30 bits.
const MOST: usize = 1 << 30;

/// What happened to the table so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableStats {
    /// Flows made, confirmed or not.
    pub created: u64,
    /// Flows evicted to make room.
    pub early_drops: u64,
    /// New flows refused for want of room.
    pub refused: u64,
    /// Flows that died of their timeout.
    pub expired: u64,
}

/// Why a flow cannot be confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// This one has one of its tuples.
    With(Handle),
    /// The flow itself no longer exists.
    Gone,
}

/// The flows, found by either tuple.
#[derive(Debug)]
pub(crate) struct Table {
    pub(super) flows: Slab,
    pub(super) free: Vec<u32>,
    pub(super) index: Index,
    pub(super) max: usize,
    /// Whether this table alone decides: a flow that it evicts no longer exists, and no other table counts.
    pub(super) decides: bool,
    pub(super) sweep_at: usize,
    /// Zones of one direction were in use: two flows may have one tuple.
    pub(super) has_twins: bool,
    /// A flow was refused: since then flows that are closing may go, too.
    pub(super) pressure: bool,
    /// How often a flow may have been evicted to make room.
    pub(super) squeezes: u32,
    /// Where the search for a flow that may go stands, and slots that it has passed since it found one.
    pub(super) search_at: usize,
    pub(super) passed: usize,
    /// Flows that are not in here, although the kernel may have them.
    pub(super) evicted: Evicted,
    pub(super) key: HashKey,
    pub(super) stats: TableStats,
    /// Flows with a helper that have ended: what depends on them must end too.
    pub(super) buried: Vec<Handle>,
}

impl Table {
    pub(crate) fn new(max: usize, decides: bool, key: HashKey) -> Self {
        let max = Self::bounded(max);
        Self {
            flows: Slab::default(),
            free: Vec::new(),
            index: Index::new(max),
            max,
            decides,
            sweep_at: 0,
            has_twins: false,
            pressure: false,
            squeezes: 0,
            search_at: 0,
            passed: 0,
            evicted: Evicted::default(),
            key,
            stats: TableStats::default(),
            buried: Vec::new(),
        }
    }

    fn bounded(max: usize) -> usize {
        max.clamp(1, MOST)
    }

    /// Bytes of address space that it reserves, whether used or not.
    pub(crate) fn reserves(max: usize) -> usize {
        Index::bytes_for(Self::bounded(max))
    }

    /// Flows in it, those included that died and were not met yet.
    pub(crate) fn len(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    /// The hash of a tuple in this table.
    #[inline]
    pub(crate) fn hash(&self, tuple: &Tuple) -> u64 {
        tuple.hash(&self.key)
    }

    pub(crate) fn stats(&self) -> TableStats {
        self.stats
    }

    /// Bytes that it takes when full.
    pub(crate) fn bytes_when_full(&self) -> usize {
        self.max * (size_of::<Flow>() + size_of::<u32>()) + self.index.bytes()
    }

    #[inline]
    pub(crate) fn flow(&self, handle: Handle) -> Option<&Flow> {
        self.flows.get(handle.slot as usize).filter(|flow| flow.generation == handle.generation)
    }

    #[inline]
    pub(crate) fn flow_mut(&mut self, handle: Handle) -> Option<&mut Flow> {
        self.flows.get_mut(handle.slot as usize).filter(|flow| flow.generation == handle.generation)
    }

    pub(super) fn handle(&self, slot: u32) -> Handle {
        let generation = self.flows.get(slot as usize).map_or(0, |flow| flow.generation);
        Handle { slot, generation }
    }

    /// Returns the living flow of which one tuple, zone included, equals this one. `want` restricts the direction.
    /// Where several match, which zones of one direction allow, the flow that was confirmed last is returned.
    #[inline(never)]
    pub(crate) fn find(
        &mut self,
        tuple: &Tuple,
        want: Option<Direction>,
        now: u64,
    ) -> Option<(Handle, Direction)> {
        self.find_hashed(self.hash(tuple), tuple, want, now)
    }

    /// [`Self::find`] in any direction, inlined for the usual flow: it is alive, lies at home in the index, and no two
    /// flows have one tuple.
    #[inline(always)]
    pub(crate) fn find_here(&mut self, tuple: &Tuple, now: u64) -> Option<(Handle, Direction)> {
        let hash = self.hash(tuple);
        let (guess, may_be_more) = self.index.guess(hash);
        if let Some(TupleSlot { slot, direction }) = guess
            && let Some(flow) = self.flows.get(slot as usize)
            && flow.tuple(direction) == tuple
            && !flow.is_expired(now)
            && !self.has_twins
        {
            let handle = Handle { slot, generation: flow.generation };
            return Some((handle, flow.direction_of(direction, tuple)));
        }
        if may_be_more { self.find_hashed(hash, tuple, None, now) } else { None }
    }

    /// [`Self::find`] for a tuple whose hash is known.
    #[inline(never)]
    fn find_hashed(
        &mut self,
        hash: u64,
        tuple: &Tuple,
        want: Option<Direction>,
        now: u64,
    ) -> Option<(Handle, Direction)> {
        if self.has_twins || want.is_some() {
            return self.find_among(hash, tuple, want, now);
        }
        let flows = &self.flows;
        let found = self.index.find(hash, |TupleSlot { slot, direction }| {
            let flow = flows.get(slot as usize)?;
            if flow.tuple(direction) != tuple {
                return None;
            }
            let handle = Handle { slot, generation: flow.generation };
            Some((handle, flow.direction_of(direction, tuple), flow.is_expired(now)))
        });
        let (handle, direction, is_expired) = found?;
        if is_expired {
            self.expire(handle);
            return None;
        }
        Some((handle, direction))
    }

    /// [`Self::find_hashed`] where two flows may have one tuple, or a direction is wanted.
    #[inline(never)]
    fn find_among(
        &mut self,
        hash: u64,
        tuple: &Tuple,
        want: Option<Direction>,
        now: u64,
    ) -> Option<(Handle, Direction)> {
        loop {
            let mut last = None;
            let nothing: Option<()> = self.index.find(hash, |TupleSlot { slot, direction }| {
                let flow = self.flows.get(slot as usize)?;
                if want.is_none_or(|want| want == direction) && flow.tuple(direction) == tuple {
                    last = last.max(Some((flow.born, slot, direction == Direction::Reply)));
                }
                None
            });
            debug_assert_eq!(nothing, None, "all are looked at");
            let (_, slot, is_reply) = last?;
            let handle = self.handle(slot);
            let flow = self.flow(handle)?;
            if !flow.is_expired(now) {
                let found = if is_reply { Direction::Reply } else { Direction::Original };
                return Some((handle, flow.direction_of(found, tuple)));
            }
            self.expire(handle);
        }
    }

    /// Two flows may have one tuple.
    #[inline]
    pub(crate) fn has_twins(&self) -> bool {
        self.has_twins
    }

    /// The living flow that has this tuple, seen from the zones of an original and a reply tuple: a flow has it
    /// in the direction whose zone this is, and in either where both are one (`nf_ct_key_equal`).
    #[inline]
    pub(crate) fn find_in(
        &mut self,
        tuple: &Tuple,
        zones: [u16; 2],
        now: u64,
    ) -> Option<(Handle, Direction)> {
        self.find(tuple, wanted(tuple, zones), now)
    }

    /// Reads what lookups of these hashes will read, all at once, so that they need not wait for memory
    /// one after the other.
    pub(crate) fn prefetch(&self, hashes: &[u64]) {
        let buckets = hashes.iter().fold(0, |sum, hash| sum ^ self.index.touch(*hash));
        std::hint::black_box(buckets);
        let flows = hashes.iter().fold(0, |sum, hash| {
            let (guess, _) = self.index.guess(*hash);
            let flow = guess.and_then(|place| self.flows.get(place.slot as usize));
            sum ^ flow.map_or(0, Flow::touch)
        });
        std::hint::black_box(flows);
    }

    /// A slot for a flow that is in nobody's way and never will be found. `None` when the table is full.
    pub(crate) fn lodge(&mut self, flow: &Flow) -> Option<Handle> {
        (self.len() < self.max).then(|| self.place(flow))
    }

    /// A copy of a flow in a slot that is free.
    pub(super) fn place(&mut self, flow: &Flow) -> Handle {
        if let Some(slot) = self.free.pop()
            && let Some(place) = self.flows.get_mut(slot as usize)
        {
            let generation = place.generation;
            place.clone_from(flow);
            place.generation = generation;
            return Handle { slot, generation };
        }
        let slot = self.flows.len() as u32;
        self.flows.push(flow);
        Handle { slot, generation: flow.generation }
    }

    /// Makes a flow findable by both tuples, or changes nothing.
    pub(crate) fn confirm(&mut self, handle: Handle, now: u64) -> Result<(), Conflict> {
        let Some(flow) = self.flow(handle) else { return Err(Conflict::Gone) };
        let (original, mut reply) = (flow.original, flow.reply);
        if flow.indeterminate_ends != [false; 2] {
            // What its replies look like is not known: none is found.
            reply = original;
        }
        let zones = [original.zone(), flow.reply.zone()];
        let hashes = [self.hash(&original), self.hash(&reply)];
        for (tuple, hash) in [&original, &reply].into_iter().zip(hashes) {
            // Mostly there is none.
            let (guess, may_be_more) = self.index.guess(hash);
            if (guess.is_some() || may_be_more)
                && let Some((other, _)) = self.find_hashed(hash, tuple, wanted(tuple, zones), now)
            {
                return Err(Conflict::With(other));
            }
        }
        self.has_twins |= zones[0] != zones[1];
        let places = places(handle.slot).into_iter().zip(hashes);
        let linked = if reply == original { 1 } else { 2 };
        places.take(linked).for_each(|(place, hash)| self.index.insert(hash, place));
        if let Some(flow) = self.flow_mut(handle) {
            flow.status.set(Status::CONFIRMED);
            flow.deadline = flow.deadline.saturating_add(now);
        }
        Ok(())
    }

    /// Takes a flow out of the table; its handle stays good until [`Self::release`].
    pub(crate) fn unlink(&mut self, handle: Handle) {
        let Some(flow) = self.flow_mut(handle) else { return };
        if flow.is_confirmed() && flow.status.set(Status::DYING) {
            let tuples = [flow.original, flow.reply];
            for (tuple, place) in tuples.iter().zip(places(handle.slot)) {
                let hash = self.hash(tuple);
                self.index.remove(hash, place);
            }
        }
    }

    /// Takes a flow out of the table and gives its slot back.
    pub(crate) fn release(&mut self, handle: Handle) {
        self.unlink(handle);
        let Some(flow) = self.flow_mut(handle) else { return };
        flow.generation = flow.generation.wrapping_add(1);
        flow.deadline = u64::MAX;
        flow.status = Status::default();
        if flow.has_helper() {
            self.buried.push(handle);
        }
        self.free.push(handle.slot);
    }

    /// The flows with a helper that went since the last call.
    pub(crate) fn take_buried(&mut self) -> Vec<Handle> {
        std::mem::take(&mut self.buried)
    }

    /// Whether there is anything for [`Self::take_buried`].
    #[inline]
    pub(crate) fn has_buried(&self) -> bool {
        !self.buried.is_empty()
    }

    #[cold]
    pub(super) fn expire(&mut self, handle: Handle) {
        self.stats.expired += 1;
        self.release(handle);
    }

    /// Looks at the next slots for the dead.
    pub(super) fn sweep(&mut self, now: u64) {
        let mut left = SWEEP.min(self.flows.len());
        while left > 0 {
            self.sweep_at = if self.sweep_at >= self.flows.len() { 0 } else { self.sweep_at };
            let from = self.sweep_at;
            let flows = self.flows.beside(from, left);
            let is_dead = |flow: &Flow| flow.is_expired(now) && flow.is_confirmed();
            let dead = (0..).zip(flows).filter(|(_, flow)| is_dead(flow));
            let dead = dead.fold(0u32, |dead, (at, _)| dead | 1 << at);
            left -= flows.len();
            self.sweep_at += flows.len();
            if dead != 0 {
                self.expire_all(from, dead);
            }
        }
    }

    /// Expires the flows whose bits are set in `dead`, counted from slot `from`.
    #[cold]
    fn expire_all(&mut self, from: usize, dead: u32) {
        for at in (0..SWEEP).filter(|at| dead >> at & 1 == 1) {
            self.expire(self.handle((from + at) as u32));
        }
    }

    /// Every living flow, by slot.
    pub(crate) fn living(&self, now: u64) -> impl Iterator<Item = &Flow> {
        self.living_by_handle(now).map(|(_, flow)| flow)
    }

    /// Returns every living flow with its handle, by slot.
    pub(crate) fn living_by_handle(&self, now: u64) -> impl Iterator<Item = (Handle, &Flow)> {
        let living = (0..).zip(self.flows.iter()).filter(move |(_, flow)| flow.lives(now));
        living.map(|(slot, flow)| (Handle { slot, generation: flow.generation }, flow))
    }

    /// Slots that there are, in use or not.
    pub(crate) fn slots(&self) -> usize {
        self.flows.len()
    }

    /// Returns the living flows in `slots` slots from `from` on.
    pub(crate) fn living_among(
        &self,
        from: usize,
        slots: usize,
        now: u64,
    ) -> impl Iterator<Item = (Handle, &Flow)> {
        let all = from..from.saturating_add(slots).min(self.flows.len());
        let flows = all.filter_map(|slot| Some((slot as u32, self.flows.get(slot)?)));
        let living = flows.filter(move |(_, flow)| flow.lives(now));
        living.map(|(slot, flow)| (Handle { slot, generation: flow.generation }, flow))
    }

    /// Living flows whose state is not certain.
    pub(crate) fn doubtful(&self, now: u64) -> usize {
        self.living(now).filter(|flow| flow.doubt != Doubt::None).count()
    }
}

/// In which direction alone a flow has a tuple, of the zones of its original and its reply tuple; `None` where both are
/// one.
#[inline]
fn wanted(tuple: &Tuple, [original, reply]: [u16; 2]) -> Option<Direction> {
    match (original == tuple.zone(), reply == tuple.zone()) {
        (true, true) => None,
        (true, false) => Some(Direction::Original),
        (false, _) => Some(Direction::Reply),
    }
}

fn places(slot: u32) -> [TupleSlot; 2] {
    [Direction::Original, Direction::Reply].map(|direction| TupleSlot { slot, direction })
}
