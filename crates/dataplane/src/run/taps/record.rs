//! [`Record`]: what a worker writes down of a frame, before anybody looks its rule up.

use std::sync::Arc;

use pktio::LinkType;
use rules::model::Family;

use super::super::account::Reason;
use crate::disposition::{FinalVerdict, Why};
use crate::program::Program;

/// A frame, without its bytes, which go another way.
#[derive(Debug)]
pub(super) struct Record {
    /// Nanoseconds since the Unix epoch.
    pub(super) time: u64,
    /// The end of the wire that it came in by.
    pub(super) from: u8,
    /// Why it was dropped, if it was.
    pub(super) reason: Option<Reason>,
    pub(super) decision: Option<Decision>,
    pub(super) link_type: LinkType,
    pub(super) wire_length: u32,
    /// How many bytes of it there are.
    pub(super) captured: u32,
    /// Nobody asked for it: it is kept for who asks later.
    pub(super) is_sample: bool,
}

/// What rules said of a frame.
#[derive(Debug, Clone, Copy)]
pub(in crate::run) struct Judged {
    pub(in crate::run) verdict: FinalVerdict,
    pub(in crate::run) family: Option<Family>,
    /// What an unknown verdict depends on.
    pub(in crate::run) why: Option<Why>,
}

/// The same, with the program whose rules they are.
#[derive(Debug)]
pub(in crate::run) struct Decision {
    pub(in crate::run) judged: Judged,
    pub(in crate::run) program: Arc<Program>,
}

impl Record {
    /// The verdict in a word.
    pub(super) fn verdict(&self) -> &'static str {
        verdict(self.reason, self.decision.as_ref().map(|decision| &decision.judged))
    }
}

/// A frame's verdict in a word: what rules said of it, or that it was dropped whatever they said.
pub(super) fn verdict(reason: Option<Reason>, judged: Option<&Judged>) -> &'static str {
    match (reason, judged.map(|judged| judged.verdict)) {
        (Some(Reason::Reject), _) => "reject",
        (Some(Reason::Unknown), _) | (None, Some(FinalVerdict::Unknown)) => "unknown",
        (Some(_), _) => "drop",
        (None, _) => "accept",
    }
}
