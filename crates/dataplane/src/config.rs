//! [`Config`]: how packets walk the rules, and the host that they meet; nothing changes it. [`Start`]: what packets and
//! persons change from then on.

use std::sync::Arc;

use access::list::Schedule;
use conntrack::Listing;
use host::{Host, Network};
use packet::Checksums;
use rules::Entropy;
use rules::ipset::Sets;

use crate::disposition::FinalVerdict;
use crate::routing::path::Path;
use crate::wires::Wires;

/// The configuration of a handler: how packets walk the rules.
#[derive(Debug, Clone)]
pub struct Config {
    /// Packets walk the rules as they were read, rule by rule, and not as they are packed: the reference for tests.
    pub reference: bool,
    /// The path of every packet; `None` decides it packet by packet.
    pub path: Option<Path>,
    /// The input interface of packets.
    pub input: Option<String>,
    /// The output interface of packets.
    pub output: Option<String>,
    /// Networks behind interfaces, for packets whose interfaces nothing else names.
    pub nets: Vec<(String, Network)>,
    /// Whether IPv4 header checksums are verified.
    pub checksums: Checksums,
    /// How connections are tracked, where the rules need it.
    pub ct: conntrack::Config,
    /// The source of random numbers: shares of packets, ports. Where they are drawn here, a full table of connections
    /// chooses here, too, which connection it drops.
    pub entropy: Entropy,
    /// What becomes of packets with an unknown verdict, where packets are sent.
    pub unknown: Unresolved,
    /// Whether egress sightings settle NAT ports and possible drops.
    pub pair: bool,
    /// Wires whose ports are the interfaces of captures.
    pub wires: Wires,
    /// The host's own addresses.
    pub host: Host,
}

/// The initial state: what there is when the first packet comes, and changes from then on.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The access list and its changes, if there is one.
    pub bans: Option<Schedule>,
    /// The host's sets; `None` where they are not given.
    pub sets: Option<Sets>,
    /// The connections, where they were listed. Then none began before.
    pub connections: Option<Arc<Listing>>,
}

/// The treatment of packets with an unknown verdict, where packets are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unresolved {
    /// The packets do not leave.
    #[default]
    Drop,
    /// The packets leave, unless some byte of them is not known.
    Accept,
}

impl Unresolved {
    /// Whether packets with a verdict leave.
    #[must_use]
    pub fn lets(self, verdict: &FinalVerdict) -> bool {
        match verdict {
            FinalVerdict::Accept(_) => true,
            FinalVerdict::Unknown => self == Self::Accept,
            FinalVerdict::Drop(_) | FinalVerdict::Reject(_) | FinalVerdict::Skip(_) => false,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            reference: false,
            path: None,
            input: None,
            output: None,
            nets: Vec::new(),
            checksums: Checksums::default(),
            ct: conntrack::Config::default(),
            entropy: Entropy::default(),
            unknown: Unresolved::default(),
            pair: true,
            wires: Wires::default(),
            host: Host::default(),
        }
    }
}
