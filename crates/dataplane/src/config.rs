//! What the handler is told about the host it stands for.

use access::list::Schedule;
use host::{Host, Network};
use packet::Checksums;
use rules::Entropy;
use rules::ipset::Sets;
use rules::layout::Kind;

use crate::disposition::FinalVerdict;
use crate::path::Path;
use crate::wires::Wires;

/// How packets are taken to walk.
#[derive(Debug, Clone)]
pub struct Config {
    /// What the rules are laid out as, to be walked; `None` walks them as they were read, which is the reference.
    pub layout: Option<Kind>,
    /// The path of every packet; `None` finds it packet by packet.
    pub path: Option<Path>,
    /// The interface that packets come in by.
    pub input: Option<String>,
    /// The interface that packets go out by.
    pub output: Option<String>,
    /// Networks behind interfaces, for packets whose interfaces nothing else names.
    pub nets: Vec<(String, Network)>,
    /// Whether IPv4 header checksums are verified.
    pub checksums: Checksums,
    /// How connections are tracked, where the rules need it.
    pub ct: conntrack::Config,
    /// The access list and its changes, if there is one.
    pub bans: Option<Schedule>,
    /// The host's sets, as they were when the first packet came; `None` where they are not given.
    pub sets: Option<Sets>,
    /// What random numbers are drawn from: shares of packets, ports. Where they are drawn here, what a full table of
    /// connections lets go is decided here, too.
    pub entropy: Entropy,
    /// What becomes of packets with an unknown verdict, where packets are sent.
    pub unknown: Unresolved,
    /// What frames that show packets leaving tell of them is used.
    pub pair: bool,
    /// Wires that the interfaces of captures are the ports of.
    pub wires: Wires,
    /// The host's own addresses.
    pub host: Host,
}

/// What an unknown verdict becomes of packets that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unresolved {
    /// They do not leave.
    #[default]
    Drop,
    /// They leave, unless some byte of them is not known.
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
            layout: Some(Kind::default()),
            path: None,
            input: None,
            output: None,
            nets: Vec::new(),
            checksums: Checksums::default(),
            ct: conntrack::Config::default(),
            bans: None,
            sets: None,
            entropy: Entropy::default(),
            unknown: Unresolved::default(),
            pair: true,
            wires: Wires::default(),
            host: Host::default(),
        }
    }
}
