//! [`Top`]: the keys that were counted most, in a bounded room.
//!
//! Contract: [`ROOM`] keys are kept. A key that comes when there is no room takes the place, and the count, of the key
//! that has the least. So none is counted less than it came, and none more than that by more than the whole divided by
//! the room; whatever is more than that share of the whole is there.
//!
//! Source: Metwally, Agrawal, El Abbadi, *Efficient computation of frequent and top-k elements in data streams* (ICDT 2005),
//! "space-saving". A search for the least is linear: keys come here once for many frames.

use std::collections::HashMap;
use std::hash::Hash;

/// Keys that are kept.
pub(super) const ROOM: usize = 512;

/// Frames, and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Volume {
    /// Number of frames.
    pub(super) frames: u64,
    /// Number of their bytes.
    pub(super) bytes: u64,
}

/// The keys that were counted most.
#[derive(Debug)]
pub(super) struct Top<K> {
    kept: HashMap<K, Volume>,
}

impl<K> Default for Top<K> {
    fn default() -> Self {
        Self { kept: HashMap::new() }
    }
}

impl<K: Hash + Eq + Copy + Ord> Top<K> {
    pub(super) fn add(&mut self, key: K, more: Volume) {
        let is_room = self.kept.len() < ROOM || self.kept.contains_key(&key);
        let before = if is_room { Volume::default() } else { self.take_least() };
        let kept = self.kept.entry(key).or_insert(before);
        *kept = kept.and(more);
    }

    fn take_least(&mut self) -> Volume {
        let least = self.kept.iter().min_by_key(|(key, kept)| (kept.frames, **key));
        let Some((key, volume)) = least.map(|(key, kept)| (*key, *kept)) else {
            return Volume::default();
        };
        self.kept.remove(&key);
        volume
    }

    /// Adds what another one counted.
    pub(super) fn merge(&mut self, other: Self) {
        other.kept.into_iter().for_each(|(key, volume)| self.add(key, volume));
    }

    /// The first `count` keys, the most frames first.
    pub(super) fn most(&self, count: usize) -> Vec<(K, Volume)> {
        let mut all: Vec<_> = self.kept.iter().map(|(key, kept)| (*key, *kept)).collect();
        all.sort_unstable_by_key(|(key, volume)| (std::cmp::Reverse(volume.frames), *key));
        all.truncate(count);
        all
    }
}

impl Volume {
    fn and(self, other: Self) -> Self {
        Self { frames: self.frames + other.frames, bytes: self.bytes + other.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: Volume = Volume { frames: 1, bytes: 100 };

    #[test]
    fn the_most_come_first_and_keys_decide_between_equals() {
        let mut top = Top::default();
        for key in [3, 1, 2, 3, 3, 2, 1] {
            top.add(key, ONE);
        }
        let keys = |count| top.most(count).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!((keys(9), keys(2)), (vec![3, 1, 2], vec![3, 1]));
        assert_eq!(top.most(1)[0].1, Volume { frames: 3, bytes: 300 });
    }

    proptest! {
        /// Compares it with a count of everything.
        #[test]
        fn no_count_is_too_low_nor_off_by_more_than_the_share_of_a_place(
            keys in prop::collection::vec((0..3_u16, 0..5_000_u16), 1..8_000))
        {
            let mut top = Top::default();
            let mut exact = HashMap::<u16, u64>::new();
            // A third of them are a few keys that come again and again.
            let keys: Vec<u16> = keys.iter().map(|(of, key)| if *of == 0 { key % 7 } else { *key }).collect();
            for key in &keys {
                top.add(*key, ONE);
                *exact.entry(*key).or_default() += 1;
            }
            let share = keys.len() as u64 / ROOM as u64;
            prop_assert!(top.kept.len() <= ROOM);
            for (key, volume) in &top.kept {
                prop_assert!(volume.frames >= exact[key] && volume.frames <= exact[key] + share);
            }
            for (key, count) in &exact {
                prop_assert!(*count <= share || top.kept.contains_key(key), "{key}: {count}");
            }
        }
    }
}
