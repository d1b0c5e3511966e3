//! [`Sctp`]: what is remembered of an association.

use crate::key::Direction;

/// States, numbered as in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[repr(u8)]
pub enum State {
    /// Before the first packet.
    #[default]
    None = 0,
    /// Closed, or about to open.
    Closed = 1,
    /// An INIT was seen, or its acknowledgement.
    CookieWait = 2,
    /// A COOKIE ECHO was seen.
    CookieEchoed = 3,
    /// Open.
    Established = 4,
    /// A SHUTDOWN was seen from the original side.
    ShutdownSent = 5,
    /// A SHUTDOWN was seen from the reply side.
    ShutdownRecd = 6,
    /// A SHUTDOWN ACK was seen.
    ShutdownAckSent = 7,
    /// A HEARTBEAT began the flow: another path of an association.
    HeartbeatSent = 8,
}

impl State {
    /// Returns the name in the kernel's lists.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Closed => "CLOSED",
            Self::CookieWait => "COOKIE_WAIT",
            Self::CookieEchoed => "COOKIE_ECHOED",
            Self::Established => "ESTABLISHED",
            Self::ShutdownSent => "SHUTDOWN_SENT",
            Self::ShutdownRecd => "SHUTDOWN_RECD",
            Self::ShutdownAckSent => "SHUTDOWN_ACK_SENT",
            Self::HeartbeatSent => "HEARTBEAT_SENT",
        }
    }

    /// All of them, in the kernel's order, which its tables have.
    pub(super) const ALL: [Self; 9] = [
        Self::None,
        Self::Closed,
        Self::CookieWait,
        Self::CookieEchoed,
        Self::Established,
        Self::ShutdownSent,
        Self::ShutdownRecd,
        Self::ShutdownAckSent,
        Self::HeartbeatSent,
    ];

    /// The state of this name in the kernel's lists.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// What is remembered of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sctp {
    /// The state of the association.
    pub state: State,
    /// Verification tags that packets of each direction carry.
    pub(super) tags: [u32; 2],
    /// An INIT was seen from each direction.
    pub(super) init: [bool; 2],
    /// A HEARTBEAT with a strange tag was the last word of this direction.
    pub(super) strange_heartbeat: Option<Direction>,
}

impl Sctp {
    /// An association of which nothing but its state and its tags is known; those may be 0, which is none.
    pub(crate) fn listed(state: State, tags: [u32; 2]) -> Self {
        Self { state, tags, ..Self::default() }
    }

    /// Verification tags that packets of each direction carry.
    pub(crate) fn tags(&self) -> [u32; 2] {
        self.tags
    }
}
