//! [`Sounding`]: what is found out of the router in front of a node, and how far that is.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::limits;
use crate::paths::Pair;
use crate::router::{Router, Strangers};

/// What is found out of a node's router, and how far that is.
#[derive(Debug, Default)]
pub(super) struct Sounding {
    pub(super) router: Router,
    pub(super) step: Step,
    /// Ports of the relay that the node was asked to probe, and where it was seen there.
    pub(super) asked: Vec<(u16, Option<SocketAddr>)>,
    /// Where it was seen last, and when.
    pub(super) last: Option<(SocketAddr, u64)>,
    /// When it was asked last, how often it may still be, and how many ports it was asked to probe.
    pub(super) asked_at: Option<u64>,
    pub(super) left: u8,
    pub(super) used: u16,
    /// Pairs whose attempt waits for what is found out, or for the end of another one, and the time since their last attempt that is
    /// enough for one.
    pub(super) waiting: BTreeMap<Pair, u64>,
}

impl Sounding {
    /// Where else a node may be whose router took what came for its own: Linux gives the port that it then gave to what the
    /// node sends elsewhere, too, for 30 s.
    pub(super) fn displaced(&self) -> Option<SocketAddr> {
        let (at, _) = self.last?;
        (self.router.strangers == Strangers::Taken).then_some(at)
    }

    /// Whether a node was asked for probes a moment ago that have not arrived.
    pub(super) fn is_under_way(&self, now: u64) -> bool {
        let is_recent = |at: u64| now.saturating_sub(at) < limits::SOUNDS;
        !self.asked.is_empty() && self.asked_at.is_some_and(is_recent)
    }
}

/// What is being found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Step {
    #[default]
    Ports,
    Strangers,
    /// Everything is known, but where the router's next port is.
    Next,
}
