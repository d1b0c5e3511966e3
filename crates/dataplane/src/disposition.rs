//! A packet's result, and every named reason for it.

use access::list::Denied;
use host::{Assumed, Missing, Refused};
use packet::{FlowKey, Headers, L3Fault};
use rules::Iface;
use rules::eval::{By, Cause, RuleRef};
use rules::ext::Answer;
use rules::model::Family;

use crate::routing::path::Path;

/// A packet's result, and how it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// The packet's result.
    pub end: Disposition,
    /// The packet's input interface, as decided.
    pub input: Iface<'a>,
    /// The packet's output interface.
    pub output: Iface<'a>,
    /// The packet's addresses and ports after all translation, if they are known: where rules translate, or the packet
    /// was seen leaving. Elsewhere they are as they came.
    pub tuple: Option<FlowKey>,
    /// The packet's length as it leaves, from the network header on.
    pub len: u64,
    /// The answer that the host sends to the packet's sender, if it certainly sends one.
    pub answer: Option<Answer>,
}

impl From<Disposition> for Outcome<'_> {
    /// The outcome of a packet that passed no hook.
    fn from(end: Disposition) -> Self {
        Self {
            input: Iface::Unknown,
            output: Iface::Unknown,
            tuple: None,
            len: end.bytes,
            answer: None,
            end,
        }
    }
}

/// A packet's verdict and the facts behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disposition {
    /// The verdict, and what gave it.
    pub verdict: FinalVerdict,
    /// The family whose rules evaluated the packet.
    pub family: Option<Family>,
    /// The packet's path through the host.
    pub path: Option<Path>,
    /// The packet's length as the kernel counts it: from the network header on.
    pub bytes: u64,
    /// The IPv4 total length was left to the network card of the capturing host.
    pub offload: bool,
    /// The last IPv6 extension header claims more bytes than there are, which kernels take differently.
    pub overrun: bool,
    /// Whether the packet is part of a connection that was taken for established.
    pub midstream: Midstream,
    /// What routing took as usual, because it is not given.
    pub assumed: Assumed,
    /// The candidates for what gave the verdict, where the verdict is certain and its giver is not.
    pub either: Option<Either>,
    /// Whether the verdict is that of an assumed connection state, because not all of the connection was captured.
    pub early: Early,
}

/// What may have given a verdict that is itself certain: a rule that may or may not have matched, and a later rule that
/// does the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Either {
    /// The first candidate; as the reason of a drop, whatever the verdict.
    pub first: DropReason,
    /// The last candidate.
    pub last: DropReason,
    /// Whether there are more candidates between them.
    pub others: bool,
}

/// Whether a verdict depends on an assumed connection state, because not all of the connection was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Early {
    /// The verdict does not depend on it.
    #[default]
    No,
    /// The verdict depends on it, as the first of the connection.
    First,
    /// The verdict depends on it, and so did an earlier one of the connection.
    Later,
}

/// Whether a packet's connection was taken for established because its beginning was not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Midstream {
    /// The connection was not taken for established.
    #[default]
    No,
    /// The connection was taken for established with this packet.
    First,
    /// The connection was taken for established with an earlier packet.
    Later,
}

/// The five possible ends of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalVerdict {
    /// The packet went through; by what, if any rule or policy let it.
    Accept(Option<By>),
    /// The packet was dropped: without a word, unless the host answers it (time to live, size, route).
    Drop(DropReason),
    /// A rule dropped the packet and had its sender informed.
    Reject(By),
    /// The verdict depends on something that is not known.
    Unknown,
    /// The packet was not evaluated.
    Skip(Skip),
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// A rule's target drops the packet.
    Rule(RuleRef),
    /// The policy of a built-in chain drops the packet.
    Policy {
        /// Index of the table.
        table: u32,
        /// Index of the chain.
        chain: u32,
    },
    /// A match of this rule dropped the packet on the spot.
    HotDrop(RuleRef),
    /// The kernel's stack refuses the packet before its hooks.
    Stack(L3Fault),
    /// Routing refuses the packet, after PREROUTING.
    Route(Refused),
    /// The time to live ran out between the hooks.
    Ttl,
    /// The packet is larger than the MTU of its output link, and must not be fragmented.
    TooBig,
    /// Connection tracking refuses the packet: the table has no room, another connection has its tuple, or it is a
    /// fragment that cannot be reassembled with others.
    Conntrack,
    /// It is a fragment for the host that cannot be reassembled with others, and no connections are tracked.
    Reassembly,
    /// The access list denies the packet: its source is banned, or its destination does not accept its source.
    Denied(Denied),
    /// A chain of another ruleset on the host, by its place in [`host::Host::foreign`], which may have dropped the
    /// packet before something else did: where that chain alone drops it, the verdict is unknown.
    Foreign(u16),
}

/// Why a packet was not evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Skip {
    /// No rules are for the packet's family.
    Family,
    /// Another frame showed the packet before: this one shows it leaving, or entering on `lo`.
    Second,
    /// The device above this frame's device shows the packet, too.
    Lower,
    /// The link type of the capture is not known.
    LinkType,
    /// The frame is a fragment that waited for others: the last one stands for the whole packet.
    Fragment,
    /// The frame was addressed to another host.
    OtherHost,
}

/// Why a verdict is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// A rule could not decide.
    Rule(Family, RuleRef, Cause),
    /// The capture does not hold the packet's network header.
    NotCaptured,
    /// The packet is a fragment, and the rules make the kernel reassemble it first.
    Fragment,
    /// The route, or whether the connection has a place in the table, depends on a translation that is not known.
    Translation,
    /// The table of connections is full: whether there was room for one more is not known.
    Room,
    /// Whether the kernel's tracker of the packet's protocol drops it, which is not modelled (DCCP before 6.17).
    Tracker,
    /// Local delivery or forwarding is undecided by what is given.
    Way,
    /// Whether the host made the packet, or it arrived on a link that was not recorded.
    Unrecorded,
    /// The route depends on this, which the host's files would say.
    Host(Missing),
    /// The output link's MTU, and so whether the packet fits it, is not known.
    Size,
    /// What a chain of another ruleset does to the packet, by its place in [`host::Host::foreign`].
    Foreign(u16),
}

impl Disposition {
    /// The disposition of a frame that was not evaluated.
    #[must_use]
    pub fn skipped(skip: Skip) -> Self {
        Self { verdict: FinalVerdict::Skip(skip), ..Self::of(None, &Headers::default(), 0) }
    }

    /// The disposition of a packet before its walk, whose verdict is still unknown: the family whose rules evaluate it,
    /// its headers, and its length from the network header on.
    #[inline]
    pub(crate) fn of(family: Option<Family>, headers: &Headers, len: usize) -> Self {
        Self {
            verdict: FinalVerdict::Unknown,
            family,
            path: None,
            bytes: len as u64,
            offload: headers.offload,
            overrun: headers.overrun,
            midstream: Midstream::No,
            assumed: Assumed::default(),
            either: None,
            early: Early::No,
        }
    }
}

impl From<By> for DropReason {
    fn from(by: By) -> Self {
        match by {
            By::Rule(at) => Self::Rule(at),
            By::Policy { table, chain } => Self::Policy { table, chain },
            By::HotDrop(at) => Self::HotDrop(at),
        }
    }
}

impl FinalVerdict {
    /// The verdict's word in `--verdicts`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Accept(_) => "accept",
            Self::Drop(_) => "drop",
            Self::Reject(_) => "reject",
            Self::Unknown => "unknown",
            Self::Skip(_) => "skip",
        }
    }
}
