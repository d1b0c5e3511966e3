//! Changes of what workers share besides rules: the access list and the sets.
//!
//! Contract: a change is in force for every decision that begins after the call returns. It waits for no worker, and
//! for no writer of rules: if a writer replaces the lists meanwhile, the change is made again on the new lists, as if
//! it had come after them.

use access::list::Change;
use rules::ipset::{EditError, Edited, Sets};

use super::Published;
use super::tally::Tally;
use crate::shared::Shared;

impl<T: Tally> Published<T> {
    /// Changes the access list, all at one moment; returns the number of ranges of sources that are banned now.
    pub fn change_bans(&self, changes: &[Change]) -> usize {
        self.of_current(|shared| shared.bans().update_all(changes))
    }

    /// Changes the sets by lines of `ipset restore`, all at one moment; see [`Sets::restore`].
    ///
    /// # Errors
    /// A line is refused: then nothing has changed.
    pub fn change_sets(&self, text: &str, time: u64) -> Result<Edited, EditError> {
        self.of_current(|shared| match shared.sets() {
            Some(sets) => sets.clone().restore(text, time),
            None => Sets::default().restore(text, time),
        })
    }

    /// Applies a change to what workers share, and again where that was replaced meanwhile.
    fn of_current<R>(&self, mut change: impl FnMut(&Shared) -> R) -> R {
        loop {
            let shared = self.shared();
            let changed = change(&shared);
            if self.shared().is(&shared) {
                return changed;
            }
        }
    }
}
