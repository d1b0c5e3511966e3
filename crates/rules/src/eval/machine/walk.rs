//! [`Walk`]: how far a walk has come, and what it has found.

use super::super::header::Key;
use super::super::observer::{Alive, Cause};
use super::super::{Memories, Verdicts};
use crate::model::Policy;
use crate::transit::Transit;
use conntrack::{CtState, States};

/// A walk under way.
pub(super) struct Walk<'s, 'o, 'p, S, O> {
    pub(super) source: &'s S,
    pub(super) number: u32,
    /// That of the built-in chain.
    pub(super) policy: Policy,
    pub(super) verdicts: &'o mut Verdicts,
    pub(super) memories: &'o mut Memories,
    pub(super) observer: &'o mut O,
    /// How surely the packet is at the next rule.
    pub(super) here: Alive,
    pub(super) key: &'o mut Key<'p>,
    /// Steps taken so far.
    pub(super) steps: u32,
    /// Steps at which the observer is asked whether to stop.
    pub(super) ask_at: u32,
    /// Why it is not to go on.
    pub(super) over: Option<Cause>,
    /// The states in which the last rule matches, if nothing else of it is open.
    pub(super) open: Option<States>,
    /// The states of all packets, once those of the one under way are fewer.
    pub(super) full: Option<States>,
    /// Where the packet is in the state that it is taken for.
    pub(super) taken: Place,
    /// Whether the rule at hand matches it in that state, with which it is at it.
    pub(super) takes: bool,
    /// How many chains lie around the innermost one.
    pub(super) depth: u32,
}

/// Where the packet is in the state that it is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Nobody asks, or that is not known any more.
    Open,
    /// In this state, at the next rule of the chain that lies so deep; what is walked may lie deeper.
    Walks(CtState, u32),
    /// It goes on with the policy of the built-in chain.
    Returned,
    /// It has met its verdict.
    Ended,
}

impl Place {
    pub(super) fn of(transit: &Transit<'_, '_>) -> Self {
        transit.ct.walks_as.map_or(Self::Open, |state| Self::Walks(state, 0))
    }
}
