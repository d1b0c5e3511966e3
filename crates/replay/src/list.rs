//! [`List`]: which packets are shown, in the report or as they come.

use dataplane::{Disposition, FinalVerdict};

/// Which packets to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Dropped ones.
    Drop,
    /// Rejected ones.
    Reject,
    /// Those whose verdict is unknown.
    Unknown,
    /// Those whose verdict is another under [`versus`](crate::run::Wanted::versus).
    Change,
}

impl List {
    /// Whether a packet is one of them; `changed` says whether its verdict is another one.
    pub(crate) fn lists(self, end: &Disposition, changed: bool) -> bool {
        match self {
            Self::Drop => matches!(end.verdict, FinalVerdict::Drop(_)),
            Self::Reject => matches!(end.verdict, FinalVerdict::Reject(_)),
            Self::Unknown => end.verdict == FinalVerdict::Unknown,
            Self::Change => changed,
        }
    }
}
