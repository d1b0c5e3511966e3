//! [`State`]: what rules of another language share under a name, such as the limits and quotas of nft. The first rule that
//! asks for it makes it.

use std::any::Any;
use std::fmt;

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

impl State {
    /// Asks the state, which is made if nobody asked before. `None` if nothing is known of it, or it is of another kind.
    pub(super) fn ask<T: Any + Send, R>(
        &mut self,
        make: impl FnOnce() -> T,
        ask: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        if self.lost {
            return None;
        }
        let held = self.held.get_or_insert_with(|| Box::new(make()));
        held.downcast_mut().map(ask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_made_once_and_may_be_lost() {
        let mut state = State::default();
        let add = |state: &mut State| {
            state.ask(
                || 0,
                |count: &mut u32| {
                    *count += 1;
                    *count
                },
            )
        };
        assert_eq!((add(&mut state), add(&mut state)), (Some(1), Some(2)));
        assert_eq!(state.ask(|| 0_u8, |_| ()), None, "it is of another kind");
        state.lost = true;
        assert_eq!(add(&mut state), None);
    }
}
