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
    /// The state of this name in the kernel's lists.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "NONE" => Self::None,
            "CLOSED" => Self::Closed,
            "COOKIE_WAIT" => Self::CookieWait,
            "COOKIE_ECHOED" => Self::CookieEchoed,
            "ESTABLISHED" => Self::Established,
            "SHUTDOWN_SENT" => Self::ShutdownSent,
            "SHUTDOWN_RECD" => Self::ShutdownRecd,
            "SHUTDOWN_ACK_SENT" => Self::ShutdownAckSent,
            "HEARTBEAT_SENT" => Self::HeartbeatSent,
            _ => return None,
        })
    }
}

/// What is remembered of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sctp {
    /// Its state.
    pub state: State,
    /// Verification tags that packets of each direction carry.
    pub(super) tags: [u32; 2],
    /// An INIT was seen from each direction.
    pub(super) init: [bool; 2],
    /// A HEARTBEAT with a strange tag was the last word of this direction.
    pub(super) strange_heartbeat: Option<Direction>,
}

impl Sctp {
    /// An association of which nothing but its state is known.
    pub(crate) fn listed(state: State) -> Self {
        Self { state, ..Self::default() }
    }
}
