//! Statements, one file for each kind: what they do to a packet, in the order of their rule.

pub(super) mod log;
pub(super) mod mark;
pub(super) mod nat;
pub(super) mod queue;
pub(super) mod reject;
pub(super) mod sequence;
pub(super) mod tested;
pub(super) mod track;
pub(super) mod unevaluated;
pub(super) mod verdict;
pub(super) mod write;

use std::fmt::Debug;

use rules::Transit;

/// How a rule goes on after a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// With its next statement.
    On,
    /// The rule ends, and the next one follows.
    Ends,
    /// Either of the two.
    MayEnd,
}

/// A statement that gives no verdict.
pub(crate) trait Act: Debug + Send + Sync {
    /// Does it, as certainly as [`Transit::certain`] says.
    fn act(&self, transit: &mut Transit<'_, '_>) -> Next;

    /// What is not evaluated of it.
    fn lacks(&self) -> Option<&str> {
        None
    }

    /// Whether nothing that happens to the packet depends on it.
    fn watches(&self) -> bool {
        false
    }

    /// Whether the rule may end with it.
    fn may_end(&self) -> bool {
        true
    }

    /// Whether it makes the kernel track connections.
    fn tracks(&self) -> bool {
        false
    }

    /// Whether packets are not tracked after it.
    fn untracks(&self) -> bool {
        false
    }

    /// Whether packets may be of other connections after it.
    fn retracks(&self) -> bool {
        false
    }

    /// Whether the verdict on packets of one connection depends on others after it.
    fn couples(&self) -> bool {
        false
    }

    /// What the bytecode loads for it.
    fn bytecode(&self, _show: &mut dyn FnMut(String)) {}

    /// The prefix of the lines that it writes to a log, if it does.
    fn log_prefix(&self) -> Option<&str> {
        None
    }
}
