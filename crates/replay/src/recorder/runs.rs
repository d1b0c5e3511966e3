//! [`Runs`]: packets counted by a key that is mostly that of the one counted before.
//!
//! Contract: such a packet costs no hash.

use std::collections::HashMap;
use std::hash::Hash;

use crate::report::Count;

/// Packets by key.
#[derive(Debug)]
pub(super) struct Runs<K> {
    counts: HashMap<K, Count>,
    /// Packets of the last key that `counts` does not have yet.
    last: Option<(K, Count)>,
}

impl<K> Default for Runs<K> {
    fn default() -> Self {
        Self { counts: HashMap::new(), last: None }
    }
}

impl<K: Copy + Eq + Hash> Runs<K> {
    /// Counts one more packet.
    #[inline]
    pub(super) fn add(&mut self, key: K, bytes: u64) {
        match &mut self.last {
            Some((last, count)) if *last == key => count.add(bytes),
            _ => {
                self.end();
                let mut count = Count::default();
                count.add(bytes);
                self.last = Some((key, count));
            }
        }
    }

    fn end(&mut self) {
        if let Some((key, count)) = self.last.take() {
            self.counts.entry(key).or_default().merge(&count);
        }
    }

    /// Adds what another one counted.
    pub(super) fn merge(&mut self, other: Self) {
        for (key, count) in other.counts() {
            self.counts.entry(key).or_default().merge(&count);
        }
    }

    /// All that was counted.
    pub(super) fn counts(mut self) -> HashMap<K, Count> {
        self.end();
        self.counts
    }
}
