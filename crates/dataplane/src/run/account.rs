//! [`Account`]: the fate of every frame of one direction of a wire, counted, as far as one worker had it.
//!
//! Contract: `received + made = sent + dropped`, summed over all reasons, whenever no burst is on its way. A frame that
//! moves to another worker counts there. Made are
//! the frames that leave beside those that came: replies, and fragments in place of a packet that was put together.
//! One thread writes, anyone may read.

use std::sync::atomic::{AtomicU64, Ordering};

use pktio::Lost;

use crate::disposition::{DropReason, FinalVerdict, Skip};

/// Why a frame that came in did not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A rule drops it.
    Rule,
    /// The policy of a chain.
    Policy,
    /// A match drops it on the spot.
    HotDrop,
    /// Its headers are faulty.
    Stack,
    /// It is rejected; its sender is told as far as the rate of replies allows.
    Reject,
    /// Its verdict is unknown, and that is configured to drop it.
    Unknown,
    /// Connection tracking has no room, or no use for it.
    Conntrack,
    /// It waits for other fragments, or others leave in its place: what it is part of was put together, or rewritten
    /// to another length.
    Fragment,
    /// It is neither IPv4 nor IPv6, no rules are for it, and `other` is configured to drop it.
    Other,
    /// It did not arrive whole.
    Truncated,
    /// Its link type is not known.
    LinkType,
    /// The access list denies it.
    Denied,
    /// It has no time to live left, where packets age.
    Ttl,
    /// It is too big for the port that it would leave by.
    TooBig,
    /// Something else refuses it.
    Refused,
    /// It was accepted, but some byte of it is not known.
    NotKnown,
    /// The port that it leaves by did not take it.
    TxFull,
    /// A reply over the rate of replies.
    ReplyRate,
    /// The worker panicked over it, or before it.
    Panic,
    /// The port that it leaves by is down or gone, or a port failed while it was on its way.
    Device,
    /// There was no room for it on its way to the worker that has its connection.
    Handover,
    /// There was no room for it among those that wait, on a wire that keeps the order of all.
    Queue,
    /// The worker that had it took too long, on such a wire.
    Overdue,
    /// A middlebox drops it.
    Middlebox,
    /// A middlebox failed over it, and that is configured to drop it.
    Handler,
    /// There was no room for it in the ring to its middlebox.
    MiddleboxRing,
    /// It is no IP packet, and a tunnel carries nothing else.
    NotIp,
    /// Its destination is no peer's of the tunnel.
    NoPeer,
    /// Its peer in the tunnel cannot be reached yet, and too many wait already.
    NoSession,
    /// It came by a tunnel, and names no session that there is.
    UnknownSession,
    /// It came by a tunnel, and is not genuine.
    Forged,
    /// It came by a tunnel a second time, or too late to tell.
    Replayed,
    /// It came by a tunnel, and its source is none of its peer's.
    Source,
    /// It met congestion on its way through a tunnel, of which it cannot be told.
    Congestion,
    /// There was no memory for it in a tunnel.
    NoRoom,
}

impl Reason {
    /// All of them.
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

    /// Its name in JSON; those that a replay has, too, are named as there.
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
    pub(super) fn of(verdict: &FinalVerdict) -> Self {
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

/// Reasons by which a verdict drops a frame; of the others each is another verdict's, or none's.
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
pub(super) struct Account {
    received: AtomicU64,
    /// Of those received, the ones given to other workers; and what came from others.
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
    /// Frames received. One that moves from worker to worker counts once, and not while it is on its way.
    pub received: u64,
    /// Of those, the ones that another worker received than the one that evaluated them, for each time they moved.
    pub taken_over: u64,
    /// Frames made here.
    pub made: u64,
    /// Frames that a port took.
    pub sent: u64,
    /// Of those sent, the ones that no rule saw, after a panic.
    pub unevaluated: u64,
    /// Frames that came, and were accepted. A port may still have refused to take them.
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
    pub(super) fn received(&self, frames: usize) {
        add(&self.received, frames as u64);
    }

    /// Bytes of frames that were received.
    pub(super) fn received_bytes(&self, bytes: u64) {
        add(&self.received_bytes, bytes);
    }

    /// Frames that came were accepted.
    pub(super) fn accepted(&self, frames: usize) {
        add(&self.accepted, frames as u64);
    }

    /// Frames that were received here are another worker's.
    pub(super) fn handed_over(&self, frames: usize) {
        add(&self.handed_over, frames as u64);
    }

    /// Frames that another worker received are this one's.
    pub(super) fn taken_over(&self, frames: usize) {
        add(&self.taken_over, frames as u64);
    }

    pub(super) fn made(&self, frames: usize) {
        add(&self.made, frames as u64);
    }

    pub(super) fn sent(&self, frames: usize) {
        add(&self.sent, frames as u64);
    }

    /// Bytes of frames that a port took.
    pub(super) fn sent_bytes(&self, bytes: u64) {
        add(&self.sent_bytes, bytes);
    }

    pub(super) fn unevaluated(&self, frames: usize) {
        add(&self.unevaluated, frames as u64);
    }

    pub(super) fn dropped(&self, reason: Reason, frames: usize) {
        if let Some(count) = self.dropped.get(reason as usize) {
            add(count, frames as u64);
        }
    }

    /// What was on its way when a burst ended early is dropped for this reason, but for so many frames that are
    /// `elsewhere`: how many frames.
    pub(super) fn abandon(&self, reason: Reason, elsewhere: usize) -> usize {
        let now = self.read();
        let left = (now.received + now.made).saturating_sub(now.sent + now.dropped()) as usize;
        let left = left.saturating_sub(elsewhere);
        self.dropped(reason, left);
        left
    }

    /// Frames that have found no fate, as far as this account goes: others may count those, or their fates.
    pub(super) fn on_its_way(&self) -> i64 {
        let now = self.read();
        (now.received + now.made) as i64 - (now.sent + now.dropped()) as i64
    }

    pub(super) fn read(&self) -> Accounted {
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

/// Of a counter with one writer.
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

    /// The frames of both.
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
