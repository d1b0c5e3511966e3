//! [`Sets`]: the sets of a host, of one worker or of all of them.
//!
//! Contract: a worker's own sets take no lock. Those of all workers are seen at once as the last change left them:
//! an element that one has added, removed or renewed is what the next search of any other finds. Of changes of one
//! element the last stays, none is lost; a list is searched as a whole, members included. Searches that count
//! nothing take a lock for readers, of which each thread has its own part (`ShardedLock`): they neither wait for
//! each other nor write to one word. Changes, and hits of elements that count, wait for all searches to end and
//! exclude them; so sets with counters, and rules that add every packet, take turns, as they do for the kernel's
//! lock of a set. The lock is held for one search or change, and its holder takes no other.

use std::sync::{Arc, PoisonError};

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};

use super::{Addition, AllSets, Query, Sets, Touched, Whose};
use crate::transit::Transit;

impl Default for Whose {
    fn default() -> Self {
        Self::Own(AllSets::default())
    }
}

impl Sets {
    pub(super) fn own(sets: AllSets) -> Self {
        Self { whose: Whose::Own(sets), begun: false }
    }

    /// Makes the sets shared: all clones are then one.
    #[must_use]
    pub fn shared(self) -> Self {
        let whose = match self.whose {
            Whose::Own(sets) => Whose::Shared(Arc::new(ShardedLock::new(sets))),
            shared @ Whose::Shared(_) => shared,
        };
        Self { whose, ..self }
    }

    /// Others that are as these are now.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self { whose: Whose::Own(self.look(AllSets::clone)), begun: self.begun }
    }

    /// Number of sets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.look(|sets| sets.sets.len())
    }

    /// Whether there is no set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of elements of a set, if there is one of this name.
    #[must_use]
    pub fn elements(&self, name: &str) -> Option<usize> {
        self.look(|sets| sets.elements(name))
    }

    /// Whether a look at some set may change what later ones find: elements count, or time out from the first packet
    /// on.
    #[must_use]
    pub fn change_by_themselves(&self) -> bool {
        self.look(AllSets::change_by_themselves)
    }

    /// Sets the clock: timeouts count from the first time that is given.
    #[inline]
    pub fn begin(&mut self, time: Option<u64>) {
        if !self.begun && time.is_some() {
            self.begun = true;
            self.change(|sets| sets.start = sets.start.or(time));
        }
    }

    /// Any of them may have been changed: every later search is unknown.
    pub(crate) fn make_indeterminate(&mut self) {
        self.change(AllSets::make_indeterminate);
    }

    /// Whether the packet is in the set of this name; `None` if that is not known. What a hit would change goes to
    /// `touched`.
    pub(crate) fn search(
        &self,
        name: &str,
        query: &Query<'_>,
        transit: &Transit<'_, '_>,
        touched: &mut Touched,
    ) -> Option<bool> {
        self.look(|sets| sets.search(name, query, transit, touched))
    }

    /// Searches as [`Self::search`] does, and changes what a hit changes.
    pub(crate) fn ask(
        &mut self,
        name: &str,
        query: &Query<'_>,
        transit: &Transit<'_, '_>,
        touched: &mut Touched,
    ) -> Option<bool> {
        if let Whose::Shared(sets) = &self.whose {
            let found = read(sets).search(name, query, transit, touched);
            if touched.is_nothing() {
                return found;
            }
            // A change in between may have changed what was found.
            *touched = Touched::default();
        }
        let len = transit.packet.len() as u64;
        self.change(|sets| {
            let found = sets.search(name, query, transit, touched);
            sets.touch(touched, transit.certain, len);
            found
        })
    }

    /// Adds the packet to the set of this name.
    pub(crate) fn add(&mut self, name: &str, how: &Addition<'_>, transit: &Transit<'_, '_>) {
        self.change(|sets| sets.add(name, how, transit));
    }

    /// Removes the packet from the set of this name.
    pub(crate) fn remove(&mut self, name: &str, by_source: &[bool], transit: &Transit<'_, '_>) {
        self.change(|sets| sets.remove(name, by_source, transit));
    }

    #[inline]
    pub(super) fn look<R>(&self, look: impl FnOnce(&AllSets) -> R) -> R {
        match &self.whose {
            Whose::Own(sets) => look(sets),
            Whose::Shared(sets) => look(&read(sets)),
        }
    }

    #[inline]
    pub(super) fn change<R>(&mut self, change: impl FnOnce(&mut AllSets) -> R) -> R {
        match &mut self.whose {
            Whose::Own(sets) => change(sets),
            Whose::Shared(sets) => change(&mut write(sets)),
        }
    }
}

fn read(sets: &ShardedLock<AllSets>) -> ShardedLockReadGuard<'_, AllSets> {
    sets.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(sets: &ShardedLock<AllSets>) -> ShardedLockWriteGuard<'_, AllSets> {
    sets.write().unwrap_or_else(PoisonError::into_inner)
}
