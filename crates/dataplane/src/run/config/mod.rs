//! What `tamis run` is told: ports, wires, rules, and what happens where they leave something open.
//!
//! Contract: reading starts nothing. Every error names file, line and column, and says what is allowed; a key that
//! this tamis does not know is one, so is one that it knows and cannot do yet. Files that are named lie beside the
//! file that names them, unless their paths are absolute. `docs/live.md` has it for users.

mod keys;
mod read;

use std::fmt;
use std::path::{Path, PathBuf};

use pktio::{FaultRates, XdpMode};
use rules::model::Family;

use crate::config::Unresolved;

/// A configuration, read but not looked into: neither rules nor ports are open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The file, as named.
    pub file: String,
    /// Ports, in the order of the file.
    pub ports: Vec<PortSettings>,
    /// Wires, in the order of the file.
    pub wires: Vec<WireSettings>,
    /// Rules, at most one file for each family.
    pub rules: Vec<RulesSettings>,
    /// The host's sets, as `ipset save` prints them.
    pub ipset: Option<Named>,
    /// What an unknown verdict becomes.
    pub unknown: Unresolved,
    /// What becomes of frames once the worker has panicked.
    pub on_panic: OnPanic,
    /// Most connections at a time.
    pub connections: usize,
    /// Where the control socket is, if there is one.
    pub socket: Option<PathBuf>,
}

/// A port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSettings {
    /// What `-i` and `-o` see.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// Kinds of ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Frames come from one capture and go to another.
    Pcap {
        /// What is read, if anything is.
        file: Option<Named>,
        /// What is written, if anything is.
        out: Option<Named>,
    },
    /// An interface, by way of a packet socket. Linux.
    AfPacket {
        /// Its name.
        device: String,
    },
    /// An interface, by way of AF_XDP. Linux.
    AfXdp {
        /// Its name.
        device: String,
        /// Queues to receive by, at most.
        queues: u16,
        /// Who hands frames over.
        mode: XdpMode,
    },
    /// A TUN device, which is made where there is none of its name. Linux.
    Tun {
        /// Its name.
        device: String,
    },
    /// What it transmits it receives.
    Loopback,
    /// Another port, which loses, repeats, cuts and damages what it receives.
    Fault {
        /// Its place among the ports.
        of: usize,
        /// What the faults are drawn from.
        seed: u64,
        /// How often they strike.
        rates: FaultRates,
    },
}

/// Two ports, joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireSettings {
    /// Their places among the ports.
    pub ports: [usize; 2],
    /// What is neither IPv4 nor IPv6 and no rules are for.
    pub other: Other,
}

/// What becomes of frames that are neither IPv4 nor IPv6 and no bridge or ARP rules are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Other {
    /// They leave.
    #[default]
    Pass,
    /// They do not.
    Drop,
}

/// What becomes of frames once the worker has panicked: no rule sees them any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnPanic {
    /// None leaves.
    #[default]
    Closed,
    /// All leave.
    Open,
}

/// Rules of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesSettings {
    /// The family.
    pub family: Family,
    /// The file that holds them.
    pub file: Named,
}

/// A file, and where it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its path, as it is opened.
    pub path: PathBuf,
    /// Where the configuration names it.
    pub at: At,
}

/// A place in the configuration, line and column from 1; the column counts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// A configuration that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, as named.
    pub file: String,
    /// Where.
    pub at: At,
    /// What is allowed there, or what is wrong with a file that is named there.
    pub what: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.at.line, self.at.column, self.what)
    }
}

impl std::error::Error for ConfigError {}

impl Settings {
    /// Reads a configuration that came from `file`.
    ///
    /// # Errors
    /// It is refused at a line and column.
    pub fn from_text(file: &str, text: &str) -> Result<Self, ConfigError> {
        read::settings(file, text)
    }

    /// An error at a place of this configuration.
    pub(super) fn refuse(&self, at: At, what: impl fmt::Display) -> ConfigError {
        ConfigError { file: self.file.clone(), at, what: what.to_string() }
    }

    /// The names of ports that wires join.
    pub(super) fn joined(&self) -> impl Iterator<Item = &str> {
        let places = self.wires.iter().flat_map(|wire| wire.ports);
        places.filter_map(|place| Some(&*self.ports.get(place)?.name))
    }
}

impl PortSettings {
    /// The place of the port that it has in it.
    fn wraps(&self) -> Option<usize> {
        match self.kind {
            Kind::Fault { of, .. } => Some(of),
            Kind::AfPacket { .. }
            | Kind::AfXdp { .. }
            | Kind::Tun { .. }
            | Kind::Pcap { .. }
            | Kind::Loopback => None,
        }
    }
}

/// A file that is named in a configuration: beside it, unless its path is absolute.
fn beside(config: &str, name: &str) -> PathBuf {
    Path::new(config).parent().unwrap_or(Path::new("")).join(name)
}
