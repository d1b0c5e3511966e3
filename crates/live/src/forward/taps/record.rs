//! [`Record`]: what a worker writes down of a frame, before its rule is looked up.

use std::sync::Arc;

use pktio::LinkType;
use rules::model::Family;

use crate::forward::account::Reason;
use dataplane::{FinalVerdict, Program, Why};

/// A frame without its bytes, which have their own ring.
#[derive(Debug)]
pub(super) struct Record {
    /// Nanoseconds since the Unix epoch.
    pub(super) time: u64,
    /// The wire's end on which the frame was received.
    pub(super) from: u8,
    /// Why it was dropped, if it was.
    pub(super) reason: Option<Reason>,
    pub(super) decision: Option<Decision>,
    pub(super) link_type: LinkType,
    pub(super) wire_length: u32,
    /// The number of bytes that were kept.
    pub(super) captured: u32,
    /// Whether no watcher wanted it: it is kept for later ones.
    pub(super) is_sample: bool,
}

/// The rules' verdict on a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged {
    pub(crate) verdict: FinalVerdict,
    pub(crate) family: Option<Family>,
    /// What an unknown verdict depends on.
    pub(crate) why: Option<Why>,
}

/// A verdict with the program whose rules gave it.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) judged: Judged,
    pub(crate) program: Arc<Program>,
}

impl Record {
    /// The verdict in a word.
    pub(super) fn verdict(&self) -> &'static str {
        verdict(self.reason, self.decision.as_ref().map(|decision| &decision.judged))
    }
}

/// A frame's verdict in a word: what rules said, or that it was dropped whatever they said.
pub(super) fn verdict(reason: Option<Reason>, judged: Option<&Judged>) -> &'static str {
    match (reason, judged.map(|judged| judged.verdict)) {
        (Some(Reason::Reject), _) => "reject",
        (Some(Reason::Unknown), _) | (None, Some(FinalVerdict::Unknown)) => "unknown",
        (Some(_), _) => "drop",
        (None, _) => "accept",
    }
}
