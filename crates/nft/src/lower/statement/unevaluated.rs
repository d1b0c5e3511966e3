//! Statements that are not evaluated.

use super::{Act, Next};
use rules::Transit;

/// A statement that is not evaluated.
#[derive(Debug)]
pub(crate) struct Unevaluated {
    pub name: Box<str>,
    pub tracks: bool,
    pub harm: Harm,
}

/// What of a packet may be another one after a statement that is not evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    /// Nothing: the statement counts, copies or notes something that no rule asks for.
    Nothing,
    /// The rule may end.
    End,
    /// What is known of its connection.
    Connection,
    /// Everything.
    Anything,
}

impl Act for Unevaluated {
    fn act(&self, transit: &mut Transit<'_, '_>) -> Next {
        match self.harm {
            Harm::Nothing => Next::On,
            Harm::End => Next::MayEnd,
            Harm::Connection => {
                transit.ct.change(false, |_| {});
                Next::On
            }
            Harm::Anything => {
                transit.make_indeterminate();
                Next::MayEnd
            }
        }
    }

    fn lacks(&self) -> Option<&str> {
        // Nothing is lacking where nothing that happens to packets depends on it.
        (self.harm != Harm::Nothing).then_some(&*self.name)
    }

    fn may_end(&self) -> bool {
        matches!(self.harm, Harm::End | Harm::Anything)
    }

    fn watches(&self) -> bool {
        self.harm == Harm::Nothing
    }

    fn tracks(&self) -> bool {
        self.tracks
    }
}
