//! A packet's result, and every named reason for it.

use access::list::Denied;
use host::{Assumed, Missing, Refused};
use packet::{FlowKey, Headers, L3Fault};
use rules::Iface;
use rules::eval::{By, Cause, RuleRef};
use rules::ext::Answer;
use rules::model::Family;

use crate::path::Path;

/// A packet's result, and how it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// Its result.
    pub end: Disposition,
    /// The interface that it came in by, as decided.
    pub input: Iface<'a>,
    /// The interface that it goes out by.
    pub output: Iface<'a>,
    /// Its addresses and ports after all translation, if they are known: where rules translate, or the packet was seen
    /// leaving. Elsewhere they are as they came.
    pub tuple: Option<FlowKey>,
    /// Its length as it leaves, from the network header on.
    pub len: u64,
    /// What the host sends its sender, if it certainly sends something.
    pub answer: Option<Answer>,
}

impl From<Disposition> for Outcome<'_> {
    /// Of a packet that passed no hook.
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

/// A packet's verdict, and what is to be known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disposition {
    /// The verdict, and what gave it.
    pub verdict: FinalVerdict,
    /// The family whose rules evaluated it.
    pub family: Option<Family>,
    /// The way it took.
    pub path: Option<Path>,
    /// Its length as the kernel counts it: from the network header on.
    pub bytes: u64,
    /// Its IPv4 total length was left to the network card of the capturing host.
    pub offload: bool,
    /// Its last IPv6 extension header claims more bytes than there are, which kernels take differently.
    pub overrun: bool,
    /// Whether it is part of a connection that was taken for established.
    pub midstream: Midstream,
    /// What routing took as usual, because it is not given.
    pub assumed: Assumed,
    /// What may have given its verdict, where the verdict is certain and what gave it is not.
    pub either: Option<Either>,
    /// Whether its verdict is that of the state that it was taken for, because not all of its connection was captured.
    pub early: Early,
}

/// What may have given a verdict of which nothing else is uncertain: a rule of which nobody knows whether it matched,
/// and one after it that does the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Either {
    /// The first that may have; as of a drop, whatever the verdict.
    pub first: DropReason,
    /// The last that may have.
    pub last: DropReason,
    /// There are more between them.
    pub others: bool,
}

/// Whether a verdict depends on what a packet was taken for, because not all of its connection was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Early {
    /// It does not.
    #[default]
    No,
    /// It does, as the first one of its connection.
    First,
    /// It does, as one did before.
    Later,
}

/// Whether a packet's connection was taken for established because its beginning was not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Midstream {
    /// It was not.
    #[default]
    No,
    /// It was, with this packet.
    First,
    /// It was, with an earlier one.
    Later,
}

/// The five ends of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalVerdict {
    /// It went through; by what, if any rule or policy let it.
    Accept(Option<By>),
    /// It was dropped silently.
    Drop(DropReason),
    /// It was dropped and its sender told.
    Reject(By),
    /// It depends on something that is not known.
    Unknown,
    /// It was not evaluated.
    Skip(Skip),
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// A rule's target drops it.
    Rule(RuleRef),
    /// The policy of a built-in chain.
    Policy {
        /// Index of the table.
        table: u32,
        /// Index of the chain.
        chain: u32,
    },
    /// A match of this rule dropped it on the spot.
    HotDrop(RuleRef),
    /// The kernel's stack refuses it before its hooks.
    Stack(L3Fault),
    /// Routing refuses it, after PREROUTING.
    Route(Refused),
    /// Its time to live ran out between the hooks.
    Ttl,
    /// It is larger than the link that it would leave by can carry, and must not be fragmented.
    TooBig,
    /// Connection tracking: no room in the table, another connection has its tuple, or it is a fragment
    /// that cannot be put together with others.
    Conntrack,
    /// It is a fragment for the host that cannot be put together with others, and no connections are tracked.
    Reassembly,
    /// The access list: its source is banned, or its destination does not accept its source.
    Denied(Denied),
}

/// Why a packet was not evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Skip {
    /// There are no rules for its family.
    Family,
    /// Another frame showed the packet before: this one shows it leaving, or coming in by `lo`.
    Second,
    /// The device above the one that showed it shows it, too.
    Lower,
    /// The link type of its capture is not known.
    LinkType,
    /// It is a fragment that waited for others: the last one stands for the whole packet.
    Fragment,
    /// Its frame was addressed to another host.
    OtherHost,
}

/// Why a verdict is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// A rule could not tell.
    Rule(Family, RuleRef, Cause),
    /// The capture does not hold its network header.
    NotCaptured,
    /// A fragment, and the rules make the kernel reassemble it first.
    Fragment,
    /// Where it goes, or whether its connection has a place in the table, depends on a translation that is
    /// not known.
    Translation,
    /// The table of connections is full: whether there was room for one more is not known.
    Room,
    /// Whether it is for the host or goes on is not given.
    Way,
    /// Where it goes depends on this, which the host's files would tell.
    Host(Missing),
    /// Whether it fits the link that it leaves by is not known.
    Size,
}

impl Disposition {
    /// A frame that no rule was asked about.
    #[must_use]
    pub fn skipped(skip: Skip) -> Self {
        Self { verdict: FinalVerdict::Skip(skip), ..Self::of(None, &Headers::default(), 0) }
    }

    /// A packet before its walk, whose verdict is still unknown: the family whose rules evaluate it, its headers, and
    /// its length from the network header on.
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
    /// The one word of `--verdicts`.
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
