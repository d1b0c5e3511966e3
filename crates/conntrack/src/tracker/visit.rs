//! [`Visit`]: a packet's circumstances.

use crate::helper::Helper;
use crate::key::Zone;
use crate::view::Certainty;

/// Where tracking meets a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EntryHook {
    /// The packet was received: checksums are verified, if at all.
    #[default]
    Prerouting,
    /// The packet was made on this host.
    Output,
}

/// What `-j CT` in the raw table asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Template {
    /// Where the flow is looked up.
    pub zone: Zone,
    /// The helper of a new flow.
    pub helper: Helper,
}

/// A packet's circumstances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Visit {
    /// The packet's time in nanoseconds.
    pub now: u64,
    /// The packet's number, which names a flow that it creates. Greater than 0.
    pub frame: u64,
    /// The hook that the packet is at.
    pub hook: EntryHook,
    /// Whether the capture says that an interface received the packet.
    pub came_in: bool,
    /// What the raw table asked for.
    pub template: Template,
    /// Whether it surely got here.
    pub certainty: Certainty,
    /// When the capture began, in nanoseconds; `None`: with the first packet.
    pub began: Option<u64>,
    /// The packet ends at this host, and no packet of the host was captured: answers are not seen.
    pub unheard: bool,
    /// Whether the host opens connections in the place of clients (`-j SYNPROXY`).
    pub proxy: Proxy,
}

/// Whether the host opens connections in the place of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Proxy {
    /// No rule asks for it.
    #[default]
    None,
    /// The host does, and what it sends is seen.
    Seen,
    /// The host does, and what it sends is not seen: a segment that opens nothing may be part of such a connection.
    Unseen,
}
