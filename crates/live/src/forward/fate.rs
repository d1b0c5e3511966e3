//! [`Fate`]: what becomes of a frame on a wire, and when its EtherType alone decides that.

use packet::{Link, ethertype, plain_ethertype};
use pktio::Frame;

use crate::config::Other;
use crate::forward::account::Reason;
use dataplane::Program;

/// The fate of a frame of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The frame leaves unchanged.
    Passes,
    /// This number of the frame's first bytes leave.
    Leaves(usize),
    /// This number of made frames leave in its place.
    Replaced(usize),
    Dropped(Reason),
}

impl Fate {
    /// Why the frame is dropped, if it is.
    #[inline]
    pub(crate) fn reason(self) -> Option<Reason> {
        match self {
            Self::Dropped(reason) => Some(reason),
            Self::Passes | Self::Leaves(_) | Self::Replaced(_) => None,
        }
    }
}

/// The fate of a whole frame that no rule of the program is for, where its EtherType alone decides that.
#[inline]
pub(crate) fn unseen(
    frame: Frame<'_>,
    link: Link,
    program: &Program,
    other: Other,
) -> Option<Fate> {
    let Frame { bytes, meta } = frame;
    let is_whole = link == Link::Wire && meta.wire_length as usize <= bytes.len();
    let ethertype = plain_ethertype(bytes).filter(|_| is_whole)?;
    (!program.is_for(ethertype)).then(|| unruled(ethertype, other))
}

/// A frame for whose family there are no rules: IP passes, as without rules in the kernel, else the wire decides.
pub(crate) fn unruled(ethertype: u16, other: Other) -> Fate {
    match (ethertype, other) {
        (ethertype::IPV4 | ethertype::IPV6, _) | (_, Other::Pass) => Fate::Passes,
        (_, Other::Drop) => Fate::Dropped(Reason::Other),
    }
}
