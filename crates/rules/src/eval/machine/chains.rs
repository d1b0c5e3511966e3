//! Chains of a walk: a packet enters them, comes back out of them, or falls off their end.

use conntrack::States;
use smallvec::SmallVec;

use super::super::source::Source;
use super::super::{Alive, By, Observer, Verdict};
use super::walk::{Place, Walk};
use crate::model::{FallThrough, Policy};
use crate::transit::Transit;

/// The chain being walked, and those that it was jumped to from, the built-in one first. Few rulesets nest deeper than
/// what is kept in place.
pub(super) struct Stack<C> {
    pub(super) innermost: Frame<C>,
    pub(super) callers: SmallVec<[Frame<C>; 8]>,
}

/// A chain being walked.
pub(super) struct Frame<C> {
    /// Index of the chain.
    pub(super) index: u32,
    /// The next rule, in the source and by its number.
    pub(super) cursor: C,
    pub(super) next: u32,
    /// How surely the packet was at the rule that came here.
    pub(super) before: Alive,
    /// The states that the packet's connection may have had there.
    pub(super) states: States,
    pub(super) entry: Entry,
    /// Some packet may have returned.
    pub(super) returned: bool,
    /// Some packet may have met its end in here.
    pub(super) ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Base,
    Jump { sure: bool },
    Goto { sure: bool },
}

impl<'r, 'p, S: Source<'r>, O: Observer> Walk<'_, '_, 'p, S, O> {
    /// The packet goes back to the chain that jumped here.
    pub(super) fn go_back(&mut self, sure: bool, stack: &mut Stack<S::Cursor>) {
        if let (true, Place::Walks(state, depth)) = (self.takes, self.taken) {
            let caller = depth.checked_sub(1);
            self.taken = caller.map_or(Place::Returned, |caller| Place::Walks(state, caller));
        }
        stack.innermost.returned = true;
        self.here = if sure { Alive::Gone } else { Alive::Maybe };
    }

    pub(super) fn enter(
        &mut self,
        to: (u32, S::Cursor),
        entry: Entry,
        sure: bool,
        open: Option<States>,
        stack: &mut Stack<S::Cursor>,
        transit: &mut Transit<'p, '_>,
    ) {
        let states = transit.ct.view.states;
        stack.enter(Frame::new(to, (self.here, states), entry));
        self.depth += 1;
        if let (true, Place::Walks(state, _)) = (self.takes, self.taken) {
            // From where a goto leads, it does not come back to here.
            let is_jump = matches!(entry, Entry::Jump { .. });
            self.taken = if is_jump { Place::Walks(state, self.depth) } else { Place::Open };
        }
        if !sure {
            self.here = Alive::Maybe;
        }
        // Who goes in has one of these.
        let others = open.and_then(|open| States::ANY.without(open));
        self.narrow(others.and_then(|others| states.without(others)), transit);
    }

    /// Leaves the innermost chain: at its end, or because no packet is left in it. Whether there is one around it.
    pub(super) fn leave(
        &mut self,
        stack: &mut Stack<S::Cursor>,
        transit: &mut Transit<'p, '_>,
    ) -> bool {
        if self.here != Alive::Gone {
            let certain = self.here == Alive::Certain;
            self.observer.off_end(self.number, stack.innermost.index, certain);
            self.at_end(stack);
        }
        let frame = &stack.innermost;
        // Where all went in, and nobody came back early, who comes out is who is left.
        if let Some(full) = self.full
            && (frame.returned || frame.entry != (Entry::Jump { sure: true }))
        {
            // In there a target may have changed what is known of its connection.
            let is_known = frame.states.without(full).is_none();
            transit.ct.view.states = if is_known { frame.states } else { full };
        }
        let leaves = frame.returned || self.here != Alive::Gone;
        let Some(mut caller) = stack.callers.pop() else {
            self.fall_off(frame, leaves, transit);
            return false;
        };
        caller.ended |= frame.ended;
        self.depth -= 1;
        if let Place::Walks(state, depth) = self.taken {
            self.taken = Place::Walks(state, depth.min(self.depth));
        }
        self.here = match frame.entry {
            Entry::Goto { sure } => {
                caller.returned |= leaves;
                if sure { Alive::Gone } else { Alive::Maybe }
            }
            // Whoever went in came out again.
            _ if leaves && !frame.ended => frame.before,
            Entry::Jump { sure: true } if !leaves => Alive::Gone,
            _ => Alive::Maybe,
        };
        stack.innermost = caller;
        true
    }

    /// The end of a user chain that has a policy.
    pub(super) fn at_end(&mut self, stack: &mut Stack<S::Cursor>) {
        let index = stack.innermost.index;
        let FallThrough::Policy(policy) = self.source.fall_through(index) else { return };
        let by = By::Policy { table: self.number, chain: index };
        self.takes = self.is_taken_by(true, None);
        self.end(verdict(policy), Some(by), true, stack);
    }

    /// The policy of the built-in chain.
    pub(super) fn fall_off(
        &mut self,
        frame: &Frame<S::Cursor>,
        leaves: bool,
        transit: &mut Transit<'p, '_>,
    ) {
        if leaves {
            let (table, chain) = (self.number, frame.index);
            let certain = !frame.ended && frame.before == Alive::Certain;
            let by = By::Policy { table, chain };
            self.observer.policy(table, chain, certain, transit);
            self.verdicts.add(verdict(self.policy), Some(by));
            if matches!(self.taken, Place::Walks(..) | Place::Returned) {
                self.meet_taken(verdict(self.policy), by);
            }
        }
    }
}

impl<C> Stack<C> {
    /// Goes into a chain.
    pub(super) fn enter(&mut self, chain: Frame<C>) {
        self.callers.push(std::mem::replace(&mut self.innermost, chain));
    }
}

impl<C> Frame<C> {
    #[inline]
    pub(super) fn new(
        (index, cursor): (u32, C),
        (before, states): (Alive, States),
        entry: Entry,
    ) -> Self {
        Self { index, cursor, next: 0, before, states, entry, returned: false, ended: false }
    }
}

pub(super) fn verdict(policy: Policy) -> Verdict {
    match policy {
        Policy::Accept => Verdict::Accept,
        Policy::Drop => Verdict::Drop,
    }
}
