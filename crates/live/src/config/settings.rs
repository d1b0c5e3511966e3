//! [`Settings`]: the configuration of a run, as types.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use dataplane::config::Unresolved;
use pktio::{FaultRates, Pace, XdpMode};
use rules::model::Family;

use super::middlebox::{JavaSettings, MiddleboxSettings};
use super::place::{At, ConfigError, Named};
use super::privileges::{Privileges, Reopen};

/// A configuration that was read, before its rules and ports are opened.
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
    /// Tables that the run has besides the tables of its files.
    pub own: Vec<OwnTable>,
    /// The host's sets, as `ipset save` prints them.
    pub ipset: Option<Named>,
    /// The access list and its changes.
    pub bans: Option<Named>,
    /// The treatment of packets with an unknown verdict.
    pub unknown: Unresolved,
    /// What becomes of frames once a worker has panicked.
    pub on_panic: OnPanic,
    /// The most connections at a time.
    pub connections: usize,
    /// What becomes of connections over a restart.
    pub restart: RestartSettings,
    /// What privileges are kept while the run lasts.
    pub privileges: Privileges,
    /// What opens a device that has come back.
    pub reopen: Reopen,
    /// The path of the control socket, if there is one.
    pub socket: Option<Named>,
    /// The folder of the journal, if there is one.
    pub journal: Option<Named>,
    /// Where metrics are served, if anywhere.
    pub metrics: Option<MetricsSettings>,
    /// The format of the log.
    pub log: LogFormat,
    /// The middleboxes, if there are any.
    pub middlebox: Option<MiddleboxSettings>,
    /// The workers: their number and their cores.
    pub workers: Workers,
    /// The sizes of bursts.
    pub burst: BurstSettings,
    /// The arguments of DPDK's EAL.
    pub eal: Vec<String>,
}

/// Where metrics are served, and what they hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsSettings {
    /// The address to listen on, and its port.
    pub listen: SocketAddr,
    /// Whether every page has the counters of rules.
    pub rules: bool,
    /// Names that clients may give in the field Host, besides addresses and localhost.
    pub names: Vec<String>,
}

/// The format of the log on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// An object of JSON on each line.
    Json,
}

/// The workers: their number and their cores.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workers {
    /// The cores that workers run on.
    pub cores: Cores,
    /// The number of workers; by default the number of cores to run on, and one where they run anywhere.
    pub count: Option<usize>,
}

/// The cores that workers run on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cores {
    /// Any core.
    #[default]
    Any,
    /// Cores that are close together: both threads of a core, then the next core, then the next socket.
    Compact,
    /// Cores that are far apart: sockets in turn, and second threads of a core last.
    Scatter,
    /// One worker on each of these cores.
    These(Vec<usize>),
}

/// The sizes of bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstSettings {
    /// Frames that a port hands over at once, at most.
    pub rx: usize,
    /// Frames that a device is given at once, at most.
    pub tx: usize,
    /// Frames whose memory a worker keeps before it gives it back; for ports of DPDK.
    pub free: usize,
    /// How long frames may be held back so that more are sent at once, in microseconds.
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
    /// The port's name, for `-i` and `-o`.
    pub name: String,
    /// The port's kind.
    pub kind: Kind,
    /// The addresses that rules translate to and that it answers from: at most one of each family.
    pub addresses: Vec<IpAddr>,
    /// Bytes of the longest packet that the port may carry; a device has its own MTU.
    pub mtu: Option<u32>,
    /// Where the configuration names the port's device, or else the port.
    pub at: At,
    /// What happens when the port's device disappears.
    pub gone: Gone,
}

/// What happens when the device of a port disappears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gone {
    /// The device is waited for, and opened again when it is back.
    #[default]
    Wait,
    /// The run ends.
    End,
}

/// Kinds of ports.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A port that reads frames from one capture and writes them to another.
    Pcap {
        /// The capture that is read, if any.
        file: Option<Named>,
        /// The pace of the frames that are read.
        pace: Pace,
        /// The capture that is written, if any.
        out: Option<Named>,
    },
    /// An interface, through a packet socket. Linux.
    AfPacket {
        /// The device's name, or a pattern such as `veth*`, which names the first device that matches.
        device: String,
        /// Queues to receive on, at most: no more are opened than there are workers.
        queues: u16,
    },
    /// An interface, through AF_XDP. Linux.
    AfXdp {
        /// The device's name.
        device: String,
        /// Queues to receive on, at most.
        queues: u16,
        /// What runs the XDP program: the driver or the kernel's stack.
        mode: XdpMode,
    },
    /// A TUN device, which is created if there is none of its name. Linux.
    Tun {
        /// The device's name.
        device: String,
    },
    /// A device of DPDK's.
    Dpdk {
        /// The device's name, as the EAL has it.
        device: String,
    },
    /// A port that receives what it transmits.
    Loopback,
    /// The tunnels of an overlay. Linux.
    Tunnel {
        /// The tunnel's own configuration.
        file: Named,
    },
    /// Another port, whose received frames are lost, repeated, cut and damaged.
    Fault {
        /// The place of that port among the ports.
        of: usize,
        /// The seed of the random faults.
        seed: u64,
        /// The rates of the faults.
        rates: FaultRates,
    },
}

/// A wire between two ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireSettings {
    /// The places of both ports.
    pub ports: [usize; 2],
    /// What becomes of the time to live of packets.
    pub ttl: Ttl,
    /// What becomes of frames that are neither IPv4 nor IPv6 and that no rules are for.
    pub other: Other,
    /// What becomes of one port when the other one's link is lost.
    pub link: LinkLoss,
    /// Which frames keep their order.
    pub order: Order,
    /// Where the configuration names the wire.
    pub at: At,
}

/// Which frames of a wire leave in the order in which they came, where several workers evaluate them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The frames of a flow: each flow is one worker's.
    #[default]
    Flow,
    /// All frames that a port receives: they wait for each other.
    Wire,
}

/// What becomes of the time to live of packets that cross a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ttl {
    /// The time to live stays: the wire is transparent.
    #[default]
    Keep,
    /// The time to live is lowered, and packets have to fit the output port, as on a router.
    Lower,
}

/// What becomes of a port when the link of the other one is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkLoss {
    /// The other port stays up.
    #[default]
    Keep,
    /// The other port is taken down, too, until the link is back.
    Pass,
}

/// What becomes of frames that are neither IPv4 nor IPv6 and no bridge or ARP rules are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Other {
    /// The frames leave.
    #[default]
    Pass,
    /// The frames are dropped.
    Drop,
}

/// What becomes of frames once a worker has panicked: no rule sees them any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnPanic {
    /// No frame leaves.
    #[default]
    Closed,
    /// All frames leave.
    Open,
}

/// What becomes of connections over a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestartSettings {
    /// Where connections are kept while tamis does not run, if anywhere.
    pub file: Option<Named>,
    /// How many seconds after a start without that file connections that begin in their middle are taken for
    /// established.
    pub grace: u64,
}

/// Rules of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesSettings {
    /// The family.
    pub family: Family,
    /// The file that holds the rules.
    pub file: Named,
}

/// A table that a run has besides the rules of its files: whatever rules are put in force, it stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTable {
    /// The family of its rules.
    pub family: Family,
    /// The table's name.
    pub name: &'static str,
    /// What the run begins with: the table, as the save tool prints it.
    pub text: String,
}

impl Settings {
    /// Frames that may be at the middlebox of a worker while the worker goes on.
    pub(crate) fn ring(&self) -> usize {
        self.middlebox.as_ref().map_or(0, |set| set.ring)
    }

    /// The handler in Java that tamis itself is to start a JVM for, if there is one.
    #[must_use]
    pub fn java(&self) -> Option<&JavaSettings> {
        self.middlebox.as_ref()?.java.as_ref()
    }

    /// Refuses a handler in Java, for programs that open a run with a middlebox of their own.
    ///
    /// # Errors
    /// The configuration names one, at that line and column.
    pub fn expect_no_java(&self) -> Result<(), ConfigError> {
        let what = "expected no kind: the program that opens this run has its middlebox";
        self.java().map_or(Ok(()), |java| Err(self.refuse(java.at, what)))
    }

    /// Returns an error at a place of this configuration.
    #[must_use]
    pub fn refuse(&self, at: At, what: impl fmt::Display) -> ConfigError {
        ConfigError { file: self.file.clone(), at, what: what.to_string() }
    }

    /// The ports that wires join.
    pub(crate) fn joined(&self) -> impl Iterator<Item = &PortSettings> {
        let places = self.wires.iter().flat_map(|wire| wire.ports);
        places.filter_map(|place| self.ports.get(place))
    }
}

impl PortSettings {
    /// The interface of the kernel's that the port drives, by name or by pattern; the device that a TUN port makes is none.
    pub(crate) fn interface(&self) -> Option<&str> {
        match &self.kind {
            Kind::AfPacket { device, .. } | Kind::AfXdp { device, .. } => Some(device),
            Kind::Tun { .. }
            | Kind::Dpdk { .. }
            | Kind::Pcap { .. }
            | Kind::Loopback
            | Kind::Tunnel { .. }
            | Kind::Fault { .. } => None,
        }
    }

    /// The port's address of a family.
    pub(crate) fn address_of(&self, family: Family) -> Option<IpAddr> {
        let is_v6 = family == Family::Ipv6;
        self.addresses.iter().copied().find(|address| address.is_ipv6() == is_v6)
    }

    /// The place of the port that a fault port wraps.
    pub(super) fn wraps(&self) -> Option<usize> {
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
