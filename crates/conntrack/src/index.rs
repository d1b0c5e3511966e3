//! [`Index`]: finds the places of flows by the hashes of their tuples.
//!
//! Buckets of one cache line hold seven places with 32 bits of their hashes. A place whose home bucket is
//! full goes to the next one with room, and every bucket that it passed counts it, so that a search goes
//! on only where something did pass and a removal leaves no trace behind.
//!
//! Contract: memory is bounded from the start and taken as it is used: the system hands zeroed pages out when they are
//! first touched, so that an index of which little is used costs little (a replay has one for each of up to 255
//! workers). There is room for two places of every flow. Places far from home are read past many buckets; with hashes
//! that nobody can foresee there are few of them.

use crate::key::Direction;

const CELLS: usize = 7;
/// Places that an average bucket holds when the table is full.
const LOAD: usize = 4;

/// A flow by its slot. It leads nowhere once the flow has ended, even if the slot is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// One direction of the flow in one slot of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TupleSlot {
    pub(crate) slot: u32,
    pub(crate) direction: Direction,
}

impl TupleSlot {
    /// Never 0, which marks an empty cell. Slots are below 2^30.
    fn code(self) -> u32 {
        (self.slot << 1 | u32::from(self.direction == Direction::Reply)) + 1
    }

    fn of(code: u32) -> Option<Self> {
        let code = code.checked_sub(1)?;
        let direction = if code & 1 == 1 { Direction::Reply } else { Direction::Original };
        Some(Self { slot: code >> 1, direction })
    }
}

/// Words of a bucket.
///
/// The cells come first. High half: high half of the hash; low half: the place. 0 is empty. The last word counts the
/// places that found no room here or before, and lie in a later bucket.
type Bucket = [u64; CELLS + 1];

/// The word that counts places that passed.
const PASSED: usize = CELLS;

fn cells(bucket: &Bucket) -> [u64; CELLS] {
    let [cells @ .., _] = *bucket;
    cells
}

/// Where the tuple of a hash may be found: buckets of cells.
#[derive(Debug)]
pub(crate) struct Index {
    /// Numbers, which can be had zeroed without being written.
    words: Vec<u64>,
    /// The first word of a cache line.
    start: usize,
    mask: usize,
}

impl Index {
    fn count(flows: usize) -> usize {
        (flows * 2).div_ceil(LOAD).next_power_of_two().max(2)
    }

    /// Bytes that an index for this number of flows takes once all of it is used.
    pub(crate) fn bytes_for(flows: usize) -> usize {
        Self::count(flows) * size_of::<Bucket>()
    }

    /// An index for the two places of each of `flows` flows.
    pub(crate) fn new(flows: usize) -> Self {
        let count = Self::count(flows);
        let words = vec![0; (count + 1) * size_of::<Bucket>() / size_of::<u64>()];
        // Only speed depends on it, and a vector that does not grow stays where it is.
        let start = words.as_ptr().align_offset(size_of::<Bucket>());
        Self { words, start: if start > CELLS { 0 } else { start }, mask: count - 1 }
    }

    #[inline]
    fn buckets(&self) -> &[Bucket] {
        self.words.get(self.start..).unwrap_or_default().as_chunks().0
    }

    #[inline]
    fn bucket_mut(&mut self, at: usize) -> Option<&mut Bucket> {
        self.words.get_mut(self.start..)?.as_chunks_mut().0.get_mut(at)
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        (self.mask + 1) * size_of::<Bucket>()
    }

    fn bucket(&self, hash: u64, step: usize) -> usize {
        (hash as usize).wrapping_add(step) & self.mask
    }

    /// What `found` makes of the first place with this hash of which it makes something.
    #[inline]
    pub(crate) fn find<T>(
        &self,
        hash: u64,
        mut found: impl FnMut(TupleSlot) -> Option<T>,
    ) -> Option<T> {
        let buckets = self.buckets();
        for step in 0..=self.mask {
            let [cells @ .., passed] = buckets.get(self.bucket(hash, step))?;
            for cell in cells {
                if cell >> 32 == hash >> 32
                    && let Some(place) = TupleSlot::of(*cell as u32)
                    && let Some(found) = found(place)
                {
                    return Some(found);
                }
            }
            if *passed == 0 {
                return None;
            }
        }
        None
    }

    /// The first cell on the way from the home of a hash that `is_it` takes, and how many buckets lie before it. The
    /// way ends where nothing passed.
    #[inline]
    fn search(&self, hash: u64, mut is_it: impl FnMut(u64) -> bool) -> Option<(usize, usize)> {
        for step in 0..=self.mask {
            let bucket = self.buckets().get(self.bucket(hash, step))?;
            if let Some(at) = cells(bucket).iter().position(|cell| is_it(*cell)) {
                return Some((step, at));
            }
            if bucket[PASSED] == 0 {
                return None;
            }
        }
        None
    }

    /// Reads the home bucket of a hash, so that it is near when it is searched.
    #[inline]
    pub(crate) fn touch(&self, hash: u64) -> u64 {
        self.buckets().get(self.bucket(hash, 0)).map_or(0, |bucket| bucket[PASSED])
    }

    /// The first place in the home bucket that has these 32 bits of the hash, and whether there may be more of them, there
    /// or in a later bucket.
    #[inline]
    pub(crate) fn guess(&self, hash: u64) -> (Option<TupleSlot>, bool) {
        let start = self.start + self.bucket(hash, 0) * size_of::<Bucket>() / size_of::<u64>();
        let bucket: Option<&Bucket> = self.words.get(start..).and_then(<[u64]>::first_chunk);
        let Some([cells @ .., passed]) = bucket else { return (None, false) };
        match cells.iter().find(|cell| **cell >> 32 == hash >> 32) {
            Some(cell) => (TupleSlot::of(*cell as u32), true),
            None => (None, *passed != 0),
        }
    }

    /// Adds a place, for which there is room.
    pub(crate) fn insert(&mut self, hash: u64, place: TupleSlot) {
        let Some((step, cell)) = self.room(hash) else { return };
        for passed in 0..step {
            let at = self.bucket(hash, passed);
            if let Some(bucket) = self.bucket_mut(at) {
                bucket[PASSED] += 1;
            }
        }
        let at = self.bucket(hash, step);
        if let Some(cell) = self.bucket_mut(at).and_then(|bucket| bucket.get_mut(cell)) {
            *cell = (hash >> 32) << 32 | u64::from(place.code());
        }
    }

    /// The first empty cell, and how many buckets lie before it.
    fn room(&self, hash: u64) -> Option<(usize, usize)> {
        (0..=self.mask).find_map(|step| {
            let bucket = self.buckets().get(self.bucket(hash, step))?;
            Some((step, cells(bucket).iter().position(|cell| *cell == 0)?))
        })
    }

    /// Removes a place that was inserted with this hash.
    pub(crate) fn remove(&mut self, hash: u64, place: TupleSlot) {
        let code = u64::from(place.code());
        let found = self.search(hash, |cell| cell & 0xffff_ffff == code);
        let Some((step, cell)) = found else { return };
        for passed in 0..step {
            let at = self.bucket(hash, passed);
            if let Some(bucket) = self.bucket_mut(at) {
                bucket[PASSED] = bucket[PASSED].saturating_sub(1);
            }
        }
        let at = self.bucket(hash, step);
        if let Some(cell) = self.bucket_mut(at).and_then(|bucket| bucket.get_mut(cell)) {
            *cell = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;

    fn place(slot: u32) -> TupleSlot {
        TupleSlot { slot, direction: Direction::Original }
    }

    #[test]
    fn a_bucket_is_one_cache_line() {
        assert_eq!(size_of::<Bucket>(), 64);
        for flows in [1, 16, 1024, 100_000] {
            let index = Index::new(flows);
            assert_eq!(index.buckets().as_ptr().addr() % 64, 0);
            assert!(index.buckets().len() > index.mask);
        }
    }

    /// Kilobytes of this process that lie in memory.
    #[cfg(target_os = "linux")]
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_not_used_takes_no_memory() {
        let before = resident();
        let mut indexes: Vec<Index> = (0..64).map(|_| Index::new(262_144)).collect();
        indexes.iter_mut().for_each(|index| index.insert(7 << 32 | 7, place(7)));
        let grown = resident().saturating_sub(before);
        let whole: usize = indexes.iter().map(Index::bytes).sum();
        assert!(whole >= 512 << 20 && grown < 64 << 10, "{grown} kB for {whole} bytes");
    }

    #[test]
    fn a_place_survives_its_code() {
        for slot in [0, 1, (1 << 30) - 1] {
            for direction in [Direction::Original, Direction::Reply] {
                let place = TupleSlot { slot, direction };
                assert_eq!(TupleSlot::of(place.code()), Some(place));
            }
        }
        assert_eq!(TupleSlot::of(0), None);
    }

    #[test]
    fn equal_hashes_find_room_as_long_as_there_is_any() {
        let mut index = Index::new(1024);
        let hash = 0x1234_5678_9abc_def0;
        for slot in 0..1024 {
            index.insert(hash, place(slot));
        }
        let there = |index: &Index, slot| {
            index.find(hash, |found| (found.slot == slot).then_some(())).is_some()
        };
        assert!((0..1024).all(|slot| there(&index, slot)));
        index.remove(hash, place(0));
        assert!(!there(&index, 0) && there(&index, 1023));
        index.insert(hash, place(9999));
        assert!(there(&index, 9999));
    }

    #[test]
    fn what_is_not_there_is_not_looked_for_beyond_its_home() {
        let mut index = Index::new(1024);
        let mut looked_at = 0;
        let nothing = index.search(7, |_| {
            looked_at += 1;
            false
        });
        assert_eq!((nothing, looked_at), (None, CELLS));
        index.insert(7, place(1));
        index.remove(7, place(2));
        assert_eq!(index.find(7, Some), Some(place(1)));
    }

    proptest! {
        /// Few hashes and few buckets, so that most insertions pass full ones.
        #[test]
        fn equals_a_map(steps in prop::collection::vec((any::<bool>(), 0u64..6, 0u32..60), 0..400)) {
            let mut index = Index::new(60);
            let mut model = BTreeMap::new();
            for (insert, hash, slot) in steps {
                let hash = (hash << 32) | (hash * 3);
                if !insert {
                    if let Some(hash) = model.remove(&slot) {
                        index.remove(hash, place(slot));
                    }
                } else if let Entry::Vacant(free) = model.entry(slot) {
                    index.insert(hash, place(slot));
                    free.insert(hash);
                }
                for (slot, hash) in &model {
                    let found = index.find(*hash, |p| (p.slot == *slot).then_some(p));
                    prop_assert_eq!(found, Some(place(*slot)));
                }
            }
            for (slot, hash) in model {
                index.remove(hash, place(slot));
            }
            prop_assert!(index.words.iter().all(|word| *word == 0));
        }
    }
}
