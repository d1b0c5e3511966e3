//! [`NoWay`]: why there is no way to a node.

use crate::identity::NotGenuine;
use crate::message::Refusal;

/// Why there is no way to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoWay {
    /// The directory refuses.
    Refused(Refusal),
    /// Nothing came of the question in time.
    Silent,
    /// The directory named an identity that is not genuine.
    NotGenuine(NotGenuine),
    /// Too many questions wait, or there are too many peers.
    Full,
}

impl std::fmt::Display for NoWay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) => why.fmt(f),
            Self::Silent => f.write_str("the directory does not answer"),
            Self::NotGenuine(why) => write!(f, "its identity is not to be relied on: {why}"),
            Self::Full => f.write_str("too many questions wait, or there are too many peers"),
        }
    }
}
