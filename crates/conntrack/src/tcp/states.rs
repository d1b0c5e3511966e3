//! The states of a connection as one in the middle sees them, and the table of transitions.
//!
//! Source: Linux 6.18 `nf_conntrack_proto_tcp.c` (the table is a fact of the kernel's behaviour),
//! `include/uapi/linux/netfilter/nf_conntrack_tcp.h` (numbers).

use super::Kind;
use crate::key::Direction;
use std::fmt;

/// States, numbered as in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
#[repr(u8)]
pub enum State {
    /// Before the first segment.
    #[default]
    None = 0,
    /// A SYN was seen.
    SynSent = 1,
    /// A SYN and its acknowledgement were seen.
    SynRecv = 2,
    /// Open.
    Established = 3,
    /// A FIN was seen.
    FinWait = 4,
    /// A FIN and its acknowledgement were seen.
    CloseWait = 5,
    /// FINs of both sides were seen.
    LastAck = 6,
    /// The last acknowledgement was seen.
    TimeWait = 7,
    /// Reset.
    Close = 8,
    /// SYNs of both sides were seen: simultaneous open.
    SynSent2 = 9,
}

impl State {
    /// The state of this name in the kernel's lists.
    pub(crate) fn named(name: &str) -> Option<Self> {
        const ALL: [State; 10] = [
            State::None,
            State::SynSent,
            State::SynRecv,
            State::Established,
            State::FinWait,
            State::CloseWait,
            State::LastAck,
            State::TimeWait,
            State::Close,
            State::SynSent2,
        ];
        ALL.into_iter().find(|state| state.to_string() == name)
    }

    /// The connection is on its way to the end: it may be dropped early.
    #[must_use]
    pub fn is_closing(self) -> bool {
        matches!(
            self,
            Self::FinWait | Self::CloseWait | Self::LastAck | Self::TimeWait | Self::Close
        )
    }
}

impl State {
    /// Returns the name in the kernel's lists.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::SynSent => "SYN_SENT",
            Self::SynRecv => "SYN_RECV",
            Self::Established => "ESTABLISHED",
            Self::FinWait => "FIN_WAIT",
            Self::CloseWait => "CLOSE_WAIT",
            Self::LastAck => "LAST_ACK",
            Self::TimeWait => "TIME_WAIT",
            Self::Close => "CLOSE",
            Self::SynSent2 => "SYN_SENT2",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a segment leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// To this state, if it fits.
    To(State),
    /// Nowhere, but it may be right all the same: it passes.
    Ignore,
    /// Nowhere: it is INVALID.
    Invalid,
}

const fn to(state: State) -> Next {
    Next::To(state)
}

const IV: Next = Next::Invalid;
const IG: Next = Next::Ignore;
const SS: Next = to(State::SynSent);
const SR: Next = to(State::SynRecv);
const ES: Next = to(State::Established);
const FW: Next = to(State::FinWait);
const CW: Next = to(State::CloseWait);
const LA: Next = to(State::LastAck);
const TW: Next = to(State::TimeWait);
const CL: Next = to(State::Close);
const S2: Next = to(State::SynSent2);

/// By direction, kind of segment (SYN, SYN+ACK, FIN, ACK, RST) and old state.
#[rustfmt::skip]
const TABLE: [[[Next; 10]; 5]; 2] = [
    [   // NONE SS  SR  ES  FW  CW  LA  TW  CL  S2
        [SS, SS, IG, IG, IG, IG, IG, SS, SS, S2],
        [IV, IV, SR, IV, IV, IV, IV, IV, IV, SR],
        [IV, IV, FW, FW, LA, LA, LA, TW, CL, IV],
        [ES, IV, ES, ES, CW, CW, TW, TW, CL, IV],
        [IV, CL, CL, CL, CL, CL, CL, CL, CL, CL],
    ],
    [
        [IV, S2, IV, IV, IV, IV, IV, SS, IV, S2],
        [IV, SR, IG, IG, IG, IG, IG, IG, IG, SR],
        [IV, IV, FW, FW, LA, LA, LA, TW, CL, IV],
        [IV, IG, SR, ES, CW, CW, TW, TW, CL, IG],
        [IV, CL, CL, CL, CL, CL, CL, CL, CL, CL],
    ],
];

/// Where a segment of this kind leads from `old`.
#[inline]
pub(super) fn next(direction: Direction, kind: Kind, old: State) -> Next {
    let [original, reply] = &TABLE;
    let rows = if direction == Direction::Original { original } else { reply };
    rows.get(kind as usize).and_then(|row| row.get(old as usize)).copied().unwrap_or(IV)
}
