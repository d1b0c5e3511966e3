//! [`Listing`]: the flows that are listed, and what a line says of each ([`Listed`]).

use std::sync::Arc;

use super::kept::Kept;
use crate::flow::Counters;
use crate::helper::Helper;
use crate::key::{Direction, Tuple};
use crate::sctp::State as SctpState;
use crate::second::SECOND;
use crate::tcp::State as TcpState;

/// No packet was recorded before this time, in nanoseconds since the Unix epoch: the first year.
const FIRST_RECORDED: u64 = 365 * 86_400 * SECOND;

/// What a listing of tamis's own begins with; the time follows, in seconds since the Unix epoch.
pub(super) const HEADING: &str = "# tamis connections/1 at=";

/// The flows that there are when the first packet comes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    pub(crate) flows: Vec<Listed>,
    /// When it was made, in nanoseconds, where tamis did: else the first packet comes at that time.
    pub(crate) at: Option<u64>,
    /// When the kernel printed it, in nanoseconds, if that is known.
    pub(crate) printed: Option<u64>,
}

impl Listing {
    /// Flows that a table listed at this time, in nanoseconds.
    #[must_use]
    pub fn of_flows(flows: Vec<Listed>, at: u64) -> Self {
        Self { flows, at: Some(at), printed: None }
    }

    /// Whether the kernel certainly printed it after this time, in nanoseconds since the Unix epoch. Packets that nobody
    /// recorded count from the epoch on, and come whenever it was printed.
    #[must_use]
    pub fn is_later(&self, time: u64) -> bool {
        time > FIRST_RECORDED && self.printed.is_some_and(|printed| printed > time)
    }

    /// What a table of one address family goes on with: of a listing that tamis wrote, the flows of that family. The
    /// kernel's table is one for both, so its listing stays whole.
    #[must_use]
    pub fn of_family(self: &Arc<Self>, is_ipv6: bool) -> Arc<Self> {
        if self.at.is_none() {
            return Arc::clone(self);
        }
        let own = self.flows.iter().filter(|flow| flow.original.is_ipv6() == is_ipv6);
        Arc::new(Self { flows: own.cloned().collect(), at: self.at, printed: None })
    }

    /// Joins two listings as of the later of their times, without flows that have died by then.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let at = self.at.max(other.at);
        let aged = |listing: Self| {
            let passed = at.unwrap_or(0).saturating_sub(listing.at.unwrap_or(0)) / SECOND;
            listing.flows.into_iter().filter_map(move |flow| {
                let left = flow.left.checked_sub(passed)?;
                Some(Listed { left, ..flow })
            })
        };
        let flows = aged(self).chain(aged(other)).collect();
        Self { flows, at, printed: None }
    }

    /// Returns the flows.
    #[must_use]
    pub fn into_flows(self) -> Vec<Listed> {
        self.flows
    }

    /// Flows in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether the listing has no flows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }
}

/// What a line says of a flow; printed as that line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// In their zones.
    pub(crate) original: Tuple,
    pub(crate) reply: Tuple,
    /// Seconds that it has left.
    pub(crate) left: u64,
    pub(crate) state: State,
    pub(crate) replied: bool,
    pub(crate) assured: bool,
    pub(crate) mark: u32,
    pub(crate) helper: Helper,
    /// What only tamis writes.
    pub(crate) kept: Option<Kept>,
}

/// What it says of a protocol's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// None.
    Plain,
    Tcp(TcpState),
    Sctp(SctpState),
}

impl Listed {
    /// Returns the flow's tuple in a direction, in its zone.
    #[must_use]
    pub fn tuple(&self, direction: Direction) -> &Tuple {
        match direction {
            Direction::Original => &self.original,
            Direction::Reply => &self.reply,
        }
    }

    /// What it counted in a direction; `None` if the listing does not say.
    #[must_use]
    pub fn counters(&self, direction: Direction) -> Option<Counters> {
        let [original, reply] = self.kept.as_ref()?.counters;
        Some(if direction == Direction::Original { original } else { reply })
    }

    /// Seconds that it has left.
    #[must_use]
    pub fn seconds_left(&self) -> u64 {
        self.left
    }

    /// The name of its protocol's state, of protocols that have any.
    #[must_use]
    pub fn state(&self) -> Option<String> {
        match self.state {
            State::Plain => None,
            State::Tcp(state) => Some(state.to_string()),
            State::Sctp(state) => Some(state.name().to_owned()),
        }
    }

    /// Whether packets of both directions were seen.
    #[must_use]
    pub fn is_replied(&self) -> bool {
        self.replied
    }

    /// Whether it is not the first to go where room is made.
    #[must_use]
    pub fn is_assured(&self) -> bool {
        self.assured
    }

    /// Returns the connection mark.
    #[must_use]
    pub fn mark(&self) -> u32 {
        self.mark
    }
}
