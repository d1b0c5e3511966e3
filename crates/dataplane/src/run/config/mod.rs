//! What `tamis run` is told: ports, wires, rules, and what happens where they leave something open.
//!
//! Contract: reading starts nothing. Every error names file, line and column, and says what is allowed; a key that
//! this tamis does not know is one, so is one that it knows and cannot do yet. Files that are named lie beside the
//! file that names them, unless their paths are absolute. `docs/live.md` has it for users.

mod dpdk;
mod metrics;
mod middlebox;
mod port;
mod privileges;
pub mod properties;
mod read;
pub mod tunnel;
mod work;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use pktio::{FaultRates, Pace, XdpMode};
use rules::model::Family;

use crate::config::Unresolved;
use crate::keys::{Value, Wrong, string};

pub(super) use port::innermost;

pub use middlebox::{JavaSettings, MiddleboxSettings, OnError, Side, Slot};
pub use privileges::{Privileges, Reopen, Reopened};

/// A configuration, read but not looked into: neither rules nor ports are open.
#[derive(Debug, Clone, PartialEq)]
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
    /// The access list and its changes.
    pub bans: Option<Named>,
    /// What an unknown verdict becomes.
    pub unknown: Unresolved,
    /// What becomes of frames once the worker has panicked.
    pub on_panic: OnPanic,
    /// Most connections at a time.
    pub connections: usize,
    /// What becomes of connections over a restart.
    pub restart: RestartSettings,
    /// What privileges are kept while it runs.
    pub privileges: Privileges,
    /// Who opens a device that has come back.
    pub reopen: Reopen,
    /// Where the control socket is, if there is one.
    pub socket: Option<PathBuf>,
    /// The folder of the journal, if there is one.
    pub journal: Option<PathBuf>,
    /// Where metrics are to be had, if anywhere.
    pub metrics: Option<MetricsSettings>,
    /// How what happens is told.
    pub log: LogFormat,
    /// Where middleboxes are, if there are any.
    pub middlebox: Option<MiddleboxSettings>,
    /// Who does the work.
    pub workers: Workers,
    /// How many frames go together.
    pub burst: BurstSettings,
    /// What DPDK's EAL is told.
    pub eal: Vec<String>,
}

/// Where metrics are to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricsSettings {
    /// The address that is listened at, and its port.
    pub listen: SocketAddr,
    /// Whether every page has the counters of rules.
    pub rules: bool,
}

/// How what happens is told on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// In lines for people.
    #[default]
    Text,
    /// An object of JSON on each line.
    Json,
}

/// Who does the work: how many, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workers {
    /// Where each runs.
    pub cores: Cores,
    /// How many there are; as many as there are cores to run on where nothing is said, and one where they run anywhere.
    pub count: Option<usize>,
}

/// Where workers run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cores {
    /// Anywhere.
    #[default]
    Any,
    /// Close together: both threads of a core, then the next core, then the next socket.
    Compact,
    /// Far apart: sockets in turn, and second threads of a core last.
    Scatter,
    /// One on each of these.
    These(Vec<usize>),
}

/// How many frames go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstSettings {
    /// Frames that a port hands over at once, at most.
    pub rx: usize,
    /// Frames that a device is given at once, at most.
    pub tx: usize,
    /// Frames whose memory a worker keeps before others can have it; by ports of DPDK.
    pub free: usize,
    /// How long frames may be held back so that more go at once, in microseconds.
    pub drain_us: u32,
}

impl Default for BurstSettings {
    fn default() -> Self {
        Self { rx: 64, tx: 32, free: 256, drain_us: 50 }
    }
}

/// A port.
#[derive(Debug, Clone, PartialEq)]
pub struct PortSettings {
    /// What `-i` and `-o` see.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// What it translates to, and answers as: at most one address of each family.
    pub addresses: Vec<IpAddr>,
    /// Bytes of the longest packet that it is given to carry; a device says it itself.
    pub mtu: Option<u32>,
    /// Where the configuration names its device, or else the port.
    pub at: At,
    /// What happens when its device goes.
    pub gone: Gone,
}

/// What happens when the device of a port goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gone {
    /// It is waited for, and opened again when it is back.
    #[default]
    Wait,
    /// The run ends.
    End,
}

/// Kinds of ports.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Frames come from one capture and go to another.
    Pcap {
        /// What is read, if anything is.
        file: Option<Named>,
        /// When its frames come.
        pace: Pace,
        /// What is written, if anything is.
        out: Option<Named>,
    },
    /// An interface, by way of a packet socket. Linux.
    AfPacket {
        /// Its name, or a pattern such as `veth*`, of which the first one is taken that there is.
        device: String,
        /// Queues to receive by, at most: no more than there are workers are opened.
        queues: u16,
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
    /// A device of DPDK's.
    Dpdk {
        /// Its name, as the EAL has it.
        device: String,
    },
    /// What it transmits it receives.
    Loopback,
    /// The tunnels of an overlay. Linux.
    Tunnel {
        /// Its own configuration.
        file: Named,
    },
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
    /// What becomes of times to live.
    pub ttl: Ttl,
    /// What is neither IPv4 nor IPv6 and no rules are for.
    pub other: Other,
    /// What becomes of one port when the other one's link is lost.
    pub link: LinkLoss,
    /// What keeps its order.
    pub order: Order,
    /// Where the configuration says so.
    pub at: At,
}

/// Which frames of a wire leave in the order in which they came, where several workers evaluate them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Those of a flow: each flow is one worker's.
    #[default]
    Flow,
    /// All that come in by a port: they wait for each other.
    Wire,
}

/// What becomes of the time to live of packets that cross a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ttl {
    /// It stays: the wire is transparent.
    #[default]
    Keep,
    /// It is lowered, and packets have to fit the port that they leave by, as on a router.
    Lower,
}

/// What becomes of a port when the link of the other one is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkLoss {
    /// It stays up.
    #[default]
    Keep,
    /// It goes down, too, until the link is back.
    Pass,
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

/// What becomes of connections over a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestartSettings {
    /// Where they are while tamis does not run, if anywhere.
    pub file: Option<Named>,
    /// For so many seconds after a start without that file, connections that begin in their middle are established.
    pub grace: u64,
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

impl At {
    /// That of an offset into a text.
    fn of(text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Self { line, column: before.len() - start + 1 }
    }
}

impl Named {
    /// A file that the text of `config` names.
    fn of(config: &str, text: &str, value: &Value<'_>) -> Result<Self, Wrong> {
        match string(value)? {
            "" => Err((value.span(), "expected the name of a file, found \"\"".to_owned())),
            name => Ok(Self { path: beside(config, name), at: At::of(text, value.span().start) }),
        }
    }
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

    /// Frames that may be at the middlebox of a worker while the worker goes on.
    pub(super) fn ring(&self) -> usize {
        self.middlebox.as_ref().map_or(0, |set| set.ring)
    }

    /// The handler in Java that tamis itself is to start a JVM for, if there is one.
    #[must_use]
    pub fn java(&self) -> Option<&JavaSettings> {
        self.middlebox.as_ref()?.java.as_ref()
    }

    /// For programs that open a run with a middlebox of their own: there is none in Java besides.
    ///
    /// # Errors
    /// There is one, at that line and column.
    pub fn expect_no_java(&self) -> Result<(), ConfigError> {
        let what = "expected no kind: the program that opens this run has its middlebox";
        self.java().map_or(Ok(()), |java| Err(self.refuse(java.at, what)))
    }

    /// Folders that a run reads files of, once it is told to read them again.
    #[must_use]
    pub fn folders_read(&self) -> Vec<&Path> {
        let rules = self.rules.iter().map(|rules| &*rules.file.path);
        let sets = self.ipset.iter().map(|sets| &*sets.path);
        let bans = self.bans.iter().map(|bans| &*bans.path);
        let files = [Path::new(&self.file)].into_iter().chain(rules).chain(sets).chain(bans);
        folders(files)
    }

    /// Folders that a run writes files to, or removes them from, while it runs or when it ends.
    #[must_use]
    pub fn folders_written(&self) -> Vec<&Path> {
        let connections = self.restart.file.iter().map(|file| &*file.path);
        let mut folders = folders(connections.chain(self.socket.as_deref()));
        folders.extend(self.journal.as_deref());
        folders
    }

    /// An error at a place of this configuration.
    #[must_use]
    pub fn refuse(&self, at: At, what: impl fmt::Display) -> ConfigError {
        ConfigError { file: self.file.clone(), at, what: what.to_string() }
    }

    /// The ports that wires join.
    pub(super) fn joined(&self) -> impl Iterator<Item = &PortSettings> {
        let places = self.wires.iter().flat_map(|wire| wire.ports);
        places.filter_map(|place| self.ports.get(place))
    }
}

impl PortSettings {
    /// Its address of a family.
    pub(super) fn address_of(&self, family: Family) -> Option<IpAddr> {
        let is_v6 = family == Family::Ipv6;
        self.addresses.iter().copied().find(|address| address.is_ipv6() == is_v6)
    }

    /// The place of the port that it has in it.
    fn wraps(&self) -> Option<usize> {
        match self.kind {
            Kind::Fault { of, .. } => Some(of),
            Kind::AfPacket { .. }
            | Kind::AfXdp { .. }
            | Kind::Tun { .. }
            | Kind::Dpdk { .. }
            | Kind::Pcap { .. }
            | Kind::Loopback
            | Kind::Tunnel { .. } => None,
        }
    }
}

/// The folders that files are in, each once.
fn folders<'f>(files: impl Iterator<Item = &'f Path>) -> Vec<&'f Path> {
    let mut folders: Vec<&Path> = files.map(folder).collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

/// The folder that a file is in.
pub(super) fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file that is named in a configuration: beside it, unless its path is absolute.
fn beside(config: &str, name: &str) -> PathBuf {
    Path::new(config).parent().unwrap_or(Path::new("")).join(name)
}
