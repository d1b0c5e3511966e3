//! [`WireSpec`]: a wire before it is started, as two open ports.

use std::fmt;

use dataplane::Crossing;

use crate::config::{Order, Other};
use pktio::BoxedPort;

/// A wire before it is started: two named ports.
pub struct WireSpec {
    /// Each port, with its name for `-i` and `-o`. It has one queue, on which the first worker receives.
    pub ports: [(String, BoxedPort); 2],
    /// How the frames that each port receives cross the wire.
    pub crossings: [Crossing; 2],
    /// What becomes of frames that no rules are for.
    pub other: Other,
    /// Which frames keep their order.
    pub order: Order,
}

impl fmt::Debug for WireSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.ports.each_ref().map(|(name, _)| name);
        f.debug_struct("WireSpec").field("ports", &names).finish_non_exhaustive()
    }
}
