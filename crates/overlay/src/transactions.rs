//! [`Transactions`]: the state of questions that wait for their answers, in a cache keyed by transaction: any worker
//! takes up any answer, and what nobody answers goes with time.
//!
//! Contract: bounded in number and in age; what is there is never pushed aside by what comes later.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// The error for a cache that has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// States, each of which goes after a while.
#[derive(Debug)]
pub(crate) struct Transactions<K, T> {
    most: usize,
    age: u64,
    states: HashMap<K, (u64, T)>,
    /// When each began, the oldest first. A state that was removed, or that began again, is in it for nothing.
    order: VecDeque<(u64, K)>,
}

impl<K: Clone + Eq + Hash, T> Transactions<K, T> {
    /// A cache of at most this many states, each for this many nanoseconds.
    pub(crate) fn new(most: usize, age: u64) -> Self {
        Self { most, age, states: HashMap::new(), order: VecDeque::new() }
    }

    /// Begins a state.
    ///
    /// # Errors
    /// [`NoRoom`], and nothing changes.
    pub(crate) fn begin(&mut self, key: K, state: T, now: u64) -> Result<(), NoRoom> {
        if self.order.len() >= self.most {
            return Err(NoRoom);
        }
        self.states.insert(key.clone(), (now, state));
        self.order.push_back((now, key));
        Ok(())
    }

    /// The state of a transaction.
    pub(crate) fn get(&self, key: &K) -> Option<&T> {
        self.states.get(key).map(|(_, state)| state)
    }

    /// The state of a transaction, to be changed.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut T> {
        self.states.get_mut(key).map(|(_, state)| state)
    }

    /// Ends a transaction.
    pub(crate) fn end(&mut self, key: &K) -> Option<T> {
        self.states.remove(key).map(|(_, state)| state)
    }

    /// All states, in no order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut T)> {
        self.states.iter_mut().map(|(key, (_, state))| (key, state))
    }

    /// Takes the next state out that is too old.
    pub(crate) fn expire(&mut self, now: u64) -> Option<(K, T)> {
        loop {
            let (began, key) = self.order.front()?;
            let is_current = self.states.get(key).is_some_and(|(at, _)| at == began);
            if is_current && now.saturating_sub(*began) < self.age {
                return None;
            }
            let (_, key) = self.order.pop_front()?;
            if is_current && let Some((_, state)) = self.states.remove(&key) {
                return Some((key, state));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_keeps_what_it_has() {
        let mut cache = Transactions::new(2, 10);
        assert_eq!(cache.begin(1, 'a', 0), Ok(()));
        assert_eq!(cache.begin(2, 'b', 5), Ok(()));
        assert_eq!(cache.begin(3, 'c', 6), Err(NoRoom));
        assert_eq!((cache.get(&1), cache.get(&3)), (Some(&'a'), None));
        assert_eq!(cache.expire(9), None);
        assert_eq!(cache.expire(10), Some((1, 'a')));
        assert_eq!(cache.expire(10), None);
        assert_eq!(cache.begin(3, 'c', 10), Ok(()));
    }

    #[test]
    fn what_ended_makes_room_at_its_time() {
        let mut cache = Transactions::new(1, 10);
        assert_eq!(cache.begin(1, 'a', 0), Ok(()));
        assert_eq!(cache.end(&1), Some('a'));
        assert_eq!(cache.expire(1), None);
        assert_eq!(cache.begin(2, 'b', 1), Ok(()), "it is in the order for nothing, and went");
    }
}
