//! [`State`]: what rules of another language share under a name, such as the limits and quotas of nft. The first rule that
//! asks for it makes it.

use std::any::Any;
use std::fmt;

use super::{ListSort, ListUse, Named, NamedLists};

/// A state that somebody else knows the kind of.
#[derive(Default)]
pub(crate) struct State {
    held: Option<Box<dyn Any + Send>>,
    /// Some packet may have changed it: nothing is known of it any more.
    pub(super) lost: bool,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { held, lost } = self;
        f.debug_struct("State").field("held", &held.is_some()).field("lost", lost).finish()
    }
}

impl NamedLists {
    /// The number of the state of this name.
    pub fn join_state(&mut self, name: &str) -> usize {
        self.join(ListUse { name, sort: ListSort::State })
    }

    /// Asks the state of this number, which is made if nobody asked before. `None` if nothing is known of it.
    pub fn state<T: Any + Send, R>(
        &self,
        at: usize,
        make: impl FnOnce() -> T,
        ask: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        let mut named = self.hold(at)?;
        let Named::State(state) = &mut *named else { return None };
        if state.lost {
            return None;
        }
        let held = state.held.get_or_insert_with(|| Box::new(make()));
        held.downcast_mut().map(ask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_one_for_all_that_name_it() {
        let mut lists = NamedLists::default();
        let (first, second) = (lists.join_state("a"), lists.join_state("a"));
        let other = lists.join_state("b");
        let add = |at: usize| {
            lists.state(
                at,
                || 0,
                |count: &mut u32| {
                    *count += 1;
                    *count
                },
            )
        };
        assert_eq!((add(first), add(second), add(other)), (Some(1), Some(2), Some(1)));
        assert_eq!(lists.state(first, || 0_u8, |_| ()), None, "it is of another kind");
        lists.make_indeterminate();
        assert_eq!(add(first), None);
    }
}
