//! [`Distinct`]: what a packet met, each once, in the order in which it was met.
//!
//! Contract: an addition costs the same however much was met before; memory is bounded by what all packets met.

use std::collections::HashMap;
use std::hash::Hash;

/// A set in order, that is emptied at once.
#[derive(Debug)]
pub(crate) struct Distinct<T> {
    /// What is in it.
    met: Vec<T>,
    /// In which round each was met last.
    rounds: HashMap<T, u64>,
    round: u64,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self { met: Vec::new(), rounds: HashMap::new(), round: 0 }
    }
}

impl<T: Copy + Eq + Hash> Distinct<T> {
    /// Adds one, unless it is there.
    pub(crate) fn add(&mut self, one: T) {
        if self.rounds.insert(one, self.round) != Some(self.round) {
            self.met.push(one);
        }
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.met.clear();
        self.round += 1;
    }

    /// What is in it, the first one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.met.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use super::*;

    thread_local!(static COMPARED: Cell<usize> = const { Cell::new(0) });

    #[derive(Debug, Clone, Copy, Eq)]
    struct Counted(u32);

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    impl Hash for Counted {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    #[test]
    fn each_is_in_it_once_until_it_is_emptied() {
        let mut set = Distinct::default();
        [3, 1, 3, 2, 1].into_iter().for_each(|one| set.add(one));
        assert_eq!(set.iter().copied().collect::<Vec<_>>(), [3, 1, 2]);
        set.clear();
        assert_eq!(set.iter().count(), 0);
        [1, 1].into_iter().for_each(|one| set.add(one));
        assert_eq!(set.iter().copied().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn many_cost_no_more_each_than_few() {
        const MANY: u32 = 10_000;
        let mut set = Distinct::default();
        for _ in 0..2 {
            (0..MANY).for_each(|one| set.add(Counted(one)));
        }
        assert_eq!(set.iter().count(), MANY as usize);
        assert!(COMPARED.get() < 4 * MANY as usize, "{}", COMPARED.get());
    }
}
