//! [`Account`]: counts the fate of every frame of one direction of a wire, as far as one worker had the frame.
//!
//! Contract: `received + made = sent + dropped`, summed over all reasons, whenever no burst is on its way. A frame that
//! moves to another worker counts there. Frames that no port received count as made: replies, and
//! fragments in place of a packet that was reassembled. One thread writes, anyone may read.

use std::sync::atomic::{AtomicU64, Ordering};

use pktio::Lost;

use dataplane::{DropReason, FinalVerdict, Skip};

/// Why a received frame did not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A rule drops the frame.
    Rule,
    /// The policy of a chain drops the frame.
    Policy,
    /// A match drops the frame on the spot.
    HotDrop,
    /// The frame's headers are faulty.
    Stack,
    /// The frame is rejected, with a reply to its sender as far as the rate of replies allows.
    Reject,
    /// The frame's verdict is unknown, and `unknown` is configured to drop it.
    Unknown,
    /// Connection tracking has no room, or no use for the frame.
    Conntrack,
    /// The frame waits for other fragments, or other frames leave in its place: its packet was reassembled, or
    /// rewritten to another length.
    Fragment,
    /// No rules are for the frame: it is neither IPv4 nor IPv6 and `other` is configured to drop it, or the handler skipped it.
    Other,
    /// The frame did not arrive whole.
    Truncated,
    /// The frame's link type is not known.
    LinkType,
    /// The access list denies the frame.
    Denied,
    /// The packet has no time to live left, where packets age.
    Ttl,
    /// The packet is larger than the MTU of its output port.
    TooBig,
    /// Routing refuses the packet.
    Refused,
    /// The packet was accepted, but some byte of it is not known.
    NotKnown,
    /// The output port did not take the frame.
    TxFull,
    /// A reply exceeds the rate of replies.
    ReplyRate,
    /// The worker panicked over the frame, or before it.
    Panic,
    /// The output port is down or its device is missing, or a port failed while the frame was on its way.
    Device,
    /// The ring to the worker that has the connection had no room for the frame.
    Handover,
    /// The queue of a wire that keeps the order of all frames had no room for the frame.
    Queue,
    /// The worker that had the frame took too long, on such a wire.
    Overdue,
    /// A middlebox drops the frame.
    Middlebox,
    /// A middlebox failed over the frame, and `on_error` is configured to drop it.
    Handler,
    /// The ring to the middlebox had no room for the frame.
    MiddleboxRing,
    /// The frame is no IP packet, and a tunnel carries nothing else.
    NotIp,
    /// No peer of the tunnel has the destination.
    NoPeer,
    /// The peer in the tunnel cannot be reached yet, and too many packets wait already.
    NoSession,
    /// The message was received on a tunnel, and names no session that exists.
    UnknownSession,
    /// The message was received on a tunnel, and is not genuine.
    Forged,
    /// The message was received on a tunnel a second time, or too late to know.
    Replayed,
    /// The packet was received on a tunnel, and its source does not belong to its peer.
    Source,
    /// The packet met congestion on its way through a tunnel and has no way to carry the mark.
    Congestion,
    /// A tunnel had no memory for the frame.
    NoRoom,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 35] = [
        Self::Rule,
        Self::Policy,
        Self::HotDrop,
        Self::Stack,
        Self::Reject,
        Self::Unknown,
        Self::Conntrack,
        Self::Fragment,
        Self::Other,
        Self::Truncated,
        Self::LinkType,
        Self::Denied,
        Self::Ttl,
        Self::TooBig,
        Self::Refused,
        Self::NotKnown,
        Self::TxFull,
        Self::ReplyRate,
        Self::Panic,
        Self::Device,
        Self::Handover,
        Self::Queue,
        Self::Overdue,
        Self::Middlebox,
        Self::Handler,
        Self::MiddleboxRing,
        Self::NotIp,
        Self::NoPeer,
        Self::NoSession,
        Self::UnknownSession,
        Self::Forged,
        Self::Replayed,
        Self::Source,
        Self::Congestion,
        Self::NoRoom,
    ];

    /// The reason's name in JSON. A replay's `route` is `refused` here, its `reassembly` is `conntrack`, its `foreign` `unknown`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Policy => "policy",
            Self::HotDrop => "hotdrop",
            Self::Stack => "stack",
            Self::Reject => "reject",
            Self::Unknown => "unknown",
            Self::Conntrack => "conntrack",
            Self::Fragment => "fragment",
            Self::Other => "other",
            Self::Truncated => "truncated",
            Self::LinkType => "link_type",
            Self::Denied => "denied",
            Self::Ttl => "ttl",
            Self::TooBig => "too_big",
            Self::Refused => "refused",
            Self::NotKnown => "not_known",
            Self::TxFull => "tx_full",
            Self::ReplyRate => "reply_rate",
            Self::Panic => "panic",
            Self::Device => "device",
            Self::Handover => "handover",
            Self::Queue => "queue",
            Self::Overdue => "overdue",
            Self::Middlebox => "middlebox",
            Self::Handler => "handler_error",
            Self::MiddleboxRing => "middlebox_ring",
            Self::NotIp => "tunnel_not_ip",
            Self::NoPeer => "tunnel_no_peer",
            Self::NoSession => "tunnel_no_session",
            Self::UnknownSession => "tunnel_unknown",
            Self::Forged => "tunnel_forged",
            Self::Replayed => "tunnel_replayed",
            Self::Source => "tunnel_source",
            Self::Congestion => "tunnel_congestion",
            Self::NoRoom => "tunnel_no_room",
        }
    }

    /// Why nothing left of a packet that the handler was given.
    pub(crate) fn of(verdict: &FinalVerdict) -> Self {
        match verdict {
            FinalVerdict::Accept(_) => Self::NotKnown,
            FinalVerdict::Reject(_) => Self::Reject,
            FinalVerdict::Unknown => Self::Unknown,
            FinalVerdict::Skip(Skip::Fragment) => Self::Fragment,
            FinalVerdict::Skip(_) => Self::Other,
            FinalVerdict::Drop(reason) => match reason {
                DropReason::Rule(_) => Self::Rule,
                DropReason::Policy { .. } => Self::Policy,
                DropReason::HotDrop(_) => Self::HotDrop,
                DropReason::Stack(_) => Self::Stack,
                DropReason::Conntrack | DropReason::Reassembly => Self::Conntrack,
                DropReason::Foreign(_) => Self::Unknown,
                DropReason::Denied(_) => Self::Denied,
                DropReason::Ttl => Self::Ttl,
                DropReason::TooBig => Self::TooBig,
                DropReason::Route(_) => Self::Refused,
            },
        }
    }
}

impl From<Lost> for Reason {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::NotIp => Self::NotIp,
            Lost::NoPeer => Self::NoPeer,
            Lost::NoSession => Self::NoSession,
            Lost::TooLong { .. } => Self::TooBig,
            Lost::Unknown => Self::UnknownSession,
            Lost::Forged => Self::Forged,
            Lost::Replayed => Self::Replayed,
            Lost::Source => Self::Source,
            Lost::Congestion => Self::Congestion,
            Lost::NoRoom => Self::NoRoom,
        }
    }
}

/// Reasons by which a verdict drops a frame; each other reason is another verdict's, or none's.
const DROPS: [Reason; 9] = [
    Reason::Rule,
    Reason::Policy,
    Reason::HotDrop,
    Reason::Stack,
    Reason::Conntrack,
    Reason::Denied,
    Reason::Ttl,
    Reason::TooBig,
    Reason::Refused,
];

/// Counters of one direction of a wire.
#[derive(Debug)]
pub(crate) struct Account {
    received: AtomicU64,
    /// Frames that were received here and given to other workers; and frames that came from others.
    handed_over: AtomicU64,
    taken_over: AtomicU64,
    made: AtomicU64,
    sent: AtomicU64,
    unevaluated: AtomicU64,
    accepted: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    dropped: [AtomicU64; Reason::ALL.len()],
}

/// The fates of all frames of one direction so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accounted {
    /// Frames received. A frame that moves from worker to worker counts once, and not while it is on its way.
    pub received: u64,
    /// Received frames that were evaluated by another worker than their receiver, once for each move.
    pub taken_over: u64,
    /// Frames made here.
    pub made: u64,
    /// Frames that a port took.
    pub sent: u64,
    /// Frames among `sent` that no rule saw, after a panic.
    pub unevaluated: u64,
    /// Received frames that were accepted. A port may still have refused to take them.
    pub accepted: u64,
    /// Bytes of the frames received, from the Ethernet header on.
    pub received_bytes: u64,
    /// Bytes of the frames that a port took.
    pub sent_bytes: u64,
    /// Frames that did not leave, in the order of [`Reason::ALL`].
    pub dropped: [u64; Reason::ALL.len()],
}

impl Default for Account {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            received: zero(),
            handed_over: zero(),
            taken_over: zero(),
            made: zero(),
            sent: zero(),
            unevaluated: zero(),
            accepted: zero(),
            received_bytes: zero(),
            sent_bytes: zero(),
            dropped: std::array::from_fn(|_| zero()),
        }
    }
}

impl Default for Accounted {
    fn default() -> Self {
        Account::default().read()
    }
}

impl Account {
    pub(crate) fn received(&self, frames: usize) {
        add(&self.received, frames as u64);
    }

    /// Counts bytes of received frames.
    pub(crate) fn received_bytes(&self, bytes: u64) {
        add(&self.received_bytes, bytes);
    }

    /// Counts received frames that were accepted.
    pub(crate) fn accepted(&self, frames: usize) {
        add(&self.accepted, frames as u64);
    }

    /// Counts frames that were received here and are another worker's.
    pub(crate) fn handed_over(&self, frames: usize) {
        add(&self.handed_over, frames as u64);
    }

    /// Counts frames that another worker received and that are this one's.
    pub(crate) fn taken_over(&self, frames: usize) {
        add(&self.taken_over, frames as u64);
    }

    pub(crate) fn made(&self, frames: usize) {
        add(&self.made, frames as u64);
    }

    pub(crate) fn sent(&self, frames: usize) {
        add(&self.sent, frames as u64);
    }

    /// Counts bytes of frames that a port took.
    pub(crate) fn sent_bytes(&self, bytes: u64) {
        add(&self.sent_bytes, bytes);
    }

    pub(crate) fn unevaluated(&self, frames: usize) {
        add(&self.unevaluated, frames as u64);
    }

    pub(crate) fn dropped(&self, reason: Reason, frames: usize) {
        if let Some(count) = self.dropped.get(reason as usize) {
            add(count, frames as u64);
        }
    }

    /// Drops what was on its way when a burst ended early for this reason, except the number of frames that are
    /// `elsewhere`; returns the number dropped.
    pub(crate) fn abandon(&self, reason: Reason, elsewhere: usize) -> usize {
        let now = self.read();
        let left = (now.received + now.made).saturating_sub(now.sent + now.dropped()) as usize;
        let left = left.saturating_sub(elsewhere);
        self.dropped(reason, left);
        left
    }

    /// The number of frames without a fate, as far as this account goes: other accounts may count the frames, or their
    /// fates.
    pub(crate) fn on_its_way(&self) -> i64 {
        let now = self.read();
        (now.received + now.made) as i64 - (now.sent + now.dropped()) as i64
    }

    pub(crate) fn read(&self) -> Accounted {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let taken_over = get(&self.taken_over);
        Accounted {
            received: (get(&self.received) + taken_over).saturating_sub(get(&self.handed_over)),
            taken_over,
            made: get(&self.made),
            sent: get(&self.sent),
            unevaluated: get(&self.unevaluated),
            accepted: get(&self.accepted),
            received_bytes: get(&self.received_bytes),
            sent_bytes: get(&self.sent_bytes),
            dropped: self.dropped.each_ref().map(get),
        }
    }
}

/// Adds to a counter that has one writer.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Accounted {
    /// Frames that did not leave.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Frames that did not leave for a reason.
    #[must_use]
    pub fn of(&self, reason: Reason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or_default()
    }

    /// Frames that were evaluated, by verdict.
    #[must_use]
    pub fn verdicts(&self) -> [(&'static str, u64); 4] {
        [
            ("accept", self.accepted + self.of(Reason::NotKnown)),
            ("drop", DROPS.into_iter().map(|reason| self.of(reason)).sum()),
            ("reject", self.of(Reason::Reject)),
            ("unknown", self.of(Reason::Unknown)),
        ]
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut dropped = self.dropped;
        dropped.iter_mut().zip(other.dropped).for_each(|(sum, more)| *sum += more);
        Self {
            received: self.received + other.received,
            taken_over: self.taken_over + other.taken_over,
            made: self.made + other.made,
            sent: self.sent + other.sent,
            unevaluated: self.unevaluated + other.unevaluated,
            accepted: self.accepted + other.accepted,
            received_bytes: self.received_bytes + other.received_bytes,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            dropped,
        }
    }

    /// Whether every frame is accounted for.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.received + self.made == self.sent + self.dropped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_counts_in_its_own_place() {
        let account = Account::default();
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            account.received(at + 1);
            account.dropped(reason, at + 1);
        }
        let now = account.read();
        let counts: Vec<_> = Reason::ALL.iter().map(|reason| now.of(*reason)).collect();
        assert_eq!(counts, (1..=35).collect::<Vec<u64>>());
        assert!(now.balances());
    }

    #[test]
    fn what_was_on_its_way_is_dropped_once() {
        let account = Account::default();
        account.received(5);
        account.sent(2);
        assert!(!account.read().balances());
        assert_eq!(account.abandon(Reason::Panic, 1), 2);
        let left = [(), ()].map(|()| account.abandon(Reason::Panic, 0));
        assert_eq!(left, [1, 0]);
        assert_eq!((account.read().of(Reason::Panic), account.read().balances()), (3, true));
    }
}
