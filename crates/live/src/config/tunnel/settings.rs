//! [`TunnelSettings`]: the configuration of a tunnel, as types.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use ::tunnel::{Offer, Prefix, PresharedKey, PrivateKey, PublicKey};
use host::Network;
use overlay::{Name, SignerKey};

use super::super::{At, MetricsSettings, Named, Privileges, RulesSettings};
use super::endpoint::Endpoint;

/// The default mark of outer datagrams where routes into the tunnel would take them: the mark keeps them out.
pub const MARK: u32 = 0x7461;

/// The port of the host, at the other end of a tunnel's wire: its name for `-i` and `-o`.
pub const HOST: &str = "host";

/// The default folder of control sockets.
pub const FOLDER: &str = "/run/tamis";

/// The default of bytes of the longest inner packet: sealed, and over IPv6, it fits a link of 1,500.
pub const MTU: u16 = 1420;

/// The settings of one end of the overlay, before rules are opened.
#[derive(Debug, Clone)]
pub struct TunnelSettings {
    /// The file, as named.
    pub file: String,
    /// The device's name, also for `-i` and `-o`.
    pub name: String,
    /// This end's private key.
    pub key: PrivateKey,
    /// The file that holds it.
    pub key_file: Named,
    /// Addresses of the device, and the prefix length of each.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The UDP port; 0 is any.
    pub listen: u16,
    /// Bytes of the longest inner packet.
    pub mtu: u16,
    /// The ciphers that are offered.
    pub ciphers: Ciphers,
    /// The mark of outer datagrams (`SO_MARK`).
    pub mark: Option<u32>,
    /// The output device of outer datagrams, where routes do not decide it.
    pub device: Option<String>,
    /// The DSCP of outer datagrams.
    pub dscp: Dscp,
    /// Peers that the rules let in may measure the tunnel (`tamis tunnel speed`).
    pub answers_speed: bool,
    /// Servers that the host asks for names while the tunnel is up.
    pub dns: Vec<IpAddr>,
    /// Search domains of names; without any, the servers are asked for all names.
    pub search: Vec<String>,
    /// The table for routes to allowed prefixes.
    pub table: Table,
    /// Commands that a shell runs.
    pub hooks: Hooks,
    /// Rules for inner packets, at most one file for each family.
    pub rules: Vec<RulesSettings>,
    /// The host's sets, as `ipset save` prints them.
    pub ipset: Option<Named>,
    /// The access list and its changes.
    pub bans: Option<Named>,
    /// The number of workers.
    pub workers: usize,
    /// What privileges are kept while the tunnel runs.
    pub privileges: Privileges,
    /// The path of the control socket.
    pub control: PathBuf,
    /// Where metrics are served, if anywhere.
    pub metrics: Option<MetricsSettings>,
    /// The network whose directory knows the way to other nodes, if the tunnel is of one.
    pub cloud: Option<CloudSettings>,
    /// The peers, in the order of the file.
    pub peers: Vec<PeerSettings>,
}

/// The network that a tunnel is a node of, as the node was enrolled in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudSettings {
    /// The node's name.
    pub name: Name,
    /// The domain that names of nodes are below.
    pub domain: String,
    /// The directory's address inside the tunnel.
    pub directory: Ipv4Addr,
    /// Where else the directory may be, outside the tunnel, than its peer's endpoint says.
    pub also: Vec<SocketAddr>,
    /// The authority's address inside the tunnel, where it is another process than the directory.
    pub authority: Option<Ipv4Addr>,
    /// The key that identities are signed with.
    pub signer: SignerKey,
    /// The TCP port of the servers, for where UDP is blocked.
    pub tcp: Option<u16>,
}

/// A peer of a tunnel.
#[derive(Debug, Clone)]
pub struct PeerSettings {
    /// The peer's name in status, drops and metrics.
    pub name: String,
    /// The peer's public key.
    pub key: PublicKey,
    /// The secret that the pair shares besides.
    pub preshared: PresharedKey,
    /// The file that holds it, if there is one.
    pub preshared_file: Option<Named>,
    /// The peer's endpoint, if it is known.
    pub endpoint: Option<Endpoint>,
    /// Relays that reach it, where that endpoint is one of theirs: the peer may be reached elsewhere, too.
    pub relays: Vec<SocketAddr>,
    /// The addresses that belong to the peer.
    pub allowed: Vec<Prefix>,
    /// Seconds of silence after which the peer gets a keepalive.
    pub keepalive: Option<u16>,
    /// Where the configuration names the peer's endpoint, or else begins with the peer.
    pub at: At,
}

impl PeerSettings {
    /// A peer of which nothing else is known, named at that place.
    #[must_use]
    pub fn new(name: String, key: PublicKey, at: At) -> Self {
        Self {
            name,
            key,
            preshared: PresharedKey::default(),
            preshared_file: None,
            endpoint: None,
            relays: Vec::new(),
            allowed: Vec::new(),
            keepalive: None,
            at,
        }
    }
}

/// Ciphers that a tunnel offers. ChaCha20-Poly1305 is always among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ciphers {
    /// The ciphers that this processor is fast at.
    #[default]
    Auto,
    /// AES-256-GCM, whatever this processor is.
    Aes256Gcm,
    /// ChaCha20-Poly1305 alone.
    ChaCha20Poly1305,
}

/// The DSCP of outer datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dscp {
    /// The DSCP of the inner packet.
    Copy,
    /// A fixed DSCP, below 64.
    Fixed(u8),
}

impl Default for Dscp {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

/// The table for routes to allowed prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Table {
    /// The main table; default routes have a table of their own, which outer datagrams do not use.
    #[default]
    Auto,
    /// No table.
    Off,
    /// This table, for all routes.
    Number(u32),
}

/// Commands that a shell runs, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hooks {
    /// Before the device is created.
    pub pre_up: Vec<String>,
    /// Once packets pass.
    pub post_up: Vec<String>,
    /// Before the device is removed.
    pub pre_down: Vec<String>,
    /// After the device has been removed.
    pub post_down: Vec<String>,
}

impl Ciphers {
    /// The ciphers that handshakes offer.
    #[must_use]
    pub fn offer(self) -> Offer {
        match self {
            Self::Auto => Offer::of_this_machine(),
            Self::Aes256Gcm => Offer::BOTH,
            Self::ChaCha20Poly1305 => Offer::CHACHA,
        }
    }
}

impl TunnelSettings {
    /// The settings of a tunnel of this name and key whose file says nothing else.
    #[must_use]
    pub fn usual(name: &str, (key, key_file): (PrivateKey, Named)) -> Self {
        Self {
            file: String::new(),
            name: name.to_owned(),
            key,
            key_file,
            addresses: Vec::new(),
            listen: 0,
            mtu: MTU,
            ciphers: Ciphers::default(),
            mark: None,
            device: None,
            dscp: Dscp::default(),
            answers_speed: true,
            dns: Vec::new(),
            search: Vec::new(),
            table: Table::default(),
            hooks: Hooks::default(),
            rules: Vec::new(),
            ipset: None,
            bans: None,
            workers: 1,
            privileges: Privileges::default(),
            control: Self::control_of(name),
            metrics: None,
            cloud: None,
            peers: Vec::new(),
        }
    }

    /// Whether outer datagrams would be routed into the tunnel, too: an allowed prefix holds all addresses of a family,
    /// or the address of a peer's endpoint.
    #[must_use]
    pub fn catches_itself(&self) -> bool {
        let is_own_way = self.own_ways();
        self.peers.iter().flat_map(|peer| &peer.allowed).any(is_own_way)
    }

    /// Whether an outer datagram may have to go to an address of a prefix, as far as addresses of endpoints are known.
    pub fn own_ways(&self) -> impl Fn(&Prefix) -> bool + use<> {
        let endpoints = self.peers.iter().filter_map(|peer| peer.endpoint.as_ref()?.address());
        let mut endpoints: Vec<IpAddr> = endpoints.map(|to| to.ip()).collect();
        endpoints.sort_unstable();
        move |prefix| {
            let network = Network { addr: prefix.address(), bits: prefix.len() };
            let next = endpoints.partition_point(|to| *to < network.addr);
            prefix.is_empty() || endpoints.get(next).is_some_and(|to| network.holds(*to))
        }
    }

    /// Whether a peer has a name instead of an address, which is looked up while the tunnel is up.
    #[must_use]
    pub fn has_names(&self) -> bool {
        self.peers.iter().filter_map(|peer| peer.endpoint.as_ref()).any(|to| to.name().is_some())
    }

    /// The default path of the control socket of a tunnel of this name.
    #[must_use]
    pub fn control_of(name: &str) -> PathBuf {
        Path::new(FOLDER).join(format!("{name}.sock"))
    }
}
