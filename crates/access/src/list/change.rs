//! [`Change`]: a change of the list.

use super::block::Block;

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The sources may not send to anybody.
    Ban,
    /// The sources may send again.
    Unban,
    /// The destinations accept the sources.
    Accept,
    /// The destinations do not accept the sources.
    Deny,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ban, Self::Unban, Self::Accept, Self::Deny];

    /// Returns the action's word in a file of bans.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ban => "ban",
            Self::Unban => "unban",
            Self::Accept => "accept",
            Self::Deny => "deny",
        }
    }
}

/// One change of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// What is done.
    pub action: Action,
    /// To which sources.
    pub source: Block,
    /// For which destinations, of the source's family; `None`: all. A ban is always for all.
    pub destination: Option<Block>,
}
