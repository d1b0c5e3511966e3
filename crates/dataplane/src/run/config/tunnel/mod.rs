//! What `tamis tunnel up` is told: this end of the overlay, and its peers. A `[[port]]` of kind `tunnel` names such a
//! file, too.
//!
//! Contract: as for the configuration of a run ([`super`]): every error names file, line and column, and reading starts
//! nothing. Files with secrets that others than their owner may read are refused. `docs/tunnel.md` has it for users.

mod endpoint;
mod file;
mod peer;
mod print;
mod read;
mod secret;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ::tunnel::{Offer, Prefix, PresharedKey, PrivateKey, PublicKey};

use host::Network;

pub use endpoint::{Endpoint, NoEndpoint, is_name as is_domain};
pub use read::is_name;

use super::{At, ConfigError, Kind, MetricsSettings, Named, Privileges, RulesSettings, Settings};

/// The mark of outer datagrams where routes into the tunnel would take them and nothing is said: by it they do not.
pub const MARK: u32 = 0x7461;

/// The port of the host, at the other end of a tunnel's wire: what `-i` and `-o` see.
pub const HOST: &str = "host";

/// Where control sockets are while nothing else is said.
pub const FOLDER: &str = "/run/tamis";

/// Bytes of the longest inner packet where nothing is said: sealed, and over IPv6, it fits a link of 1,500.
pub const MTU: u16 = 1420;

/// One end of the overlay, read but not looked into: rules are not open.
#[derive(Debug, Clone)]
pub struct TunnelSettings {
    /// The file, as named.
    pub file: String,
    /// The device, and what `-i` and `-o` see.
    pub name: String,
    /// Who this end is.
    pub key: PrivateKey,
    /// The file that holds it.
    pub key_file: Named,
    /// Addresses of the device, and how many bits of each its link has.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The UDP port; 0 is any.
    pub listen: u16,
    /// Bytes of the longest inner packet.
    pub mtu: u16,
    /// The ciphers that are offered.
    pub ciphers: Ciphers,
    /// The mark of outer datagrams (`SO_MARK`).
    pub mark: Option<u32>,
    /// The device that outer datagrams leave by, where it is not left to routes.
    pub device: Option<String>,
    /// The DSCP of outer datagrams.
    pub dscp: Dscp,
    /// Servers that the host asks for names while the tunnel is up.
    pub dns: Vec<IpAddr>,
    /// Domains that names are searched in; where there are none and there are servers, they are asked for all names.
    pub search: Vec<String>,
    /// Where routes to allowed prefixes are put.
    pub table: Table,
    /// Commands that are run by a shell.
    pub hooks: Hooks,
    /// Rules for inner packets, at most one file for each family.
    pub rules: Vec<RulesSettings>,
    /// The host's sets, as `ipset save` prints them.
    pub ipset: Option<Named>,
    /// The access list and its changes.
    pub bans: Option<Named>,
    /// How many workers there are.
    pub workers: usize,
    /// What privileges are kept while it runs.
    pub privileges: Privileges,
    /// Where the control socket is.
    pub control: PathBuf,
    /// Where metrics are to be had, if anywhere.
    pub metrics: Option<MetricsSettings>,
    /// Who it speaks to, in the order of the file.
    pub peers: Vec<PeerSettings>,
}

/// A peer of a tunnel.
#[derive(Debug, Clone)]
pub struct PeerSettings {
    /// What status, drops and metrics call it.
    pub name: String,
    /// Who it is.
    pub key: PublicKey,
    /// What the pair shares besides.
    pub preshared: PresharedKey,
    /// The file that holds it, if there is one.
    pub preshared_file: Option<Named>,
    /// Where it is, if that is known.
    pub endpoint: Option<Endpoint>,
    /// The addresses that are its own.
    pub allowed: Vec<Prefix>,
    /// Seconds of silence after which it gets a keepalive.
    pub keepalive: Option<u16>,
    /// Where the configuration names its endpoint, or else begins with it.
    pub at: At,
}

/// Ciphers that a tunnel offers. ChaCha20-Poly1305 is always among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ciphers {
    /// Those that this processor is fast at.
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
    /// That of the inner packet.
    Copy,
    /// This one, below 64.
    Fixed(u8),
}

impl Default for Dscp {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

/// Where routes to allowed prefixes are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Table {
    /// In the main table; default routes in one of their own, which outer datagrams do not take.
    #[default]
    Auto,
    /// Nowhere.
    Off,
    /// All in this table.
    Number(u32),
}

/// Commands that are run by a shell, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hooks {
    /// Before the device is made.
    pub pre_up: Vec<String>,
    /// Once packets pass.
    pub post_up: Vec<String>,
    /// Before the device goes.
    pub pre_down: Vec<String>,
    /// After it is gone.
    pub post_down: Vec<String>,
}

impl Ciphers {
    /// What is offered in handshakes.
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
    /// Reads a configuration, and the files with keys that it names.
    ///
    /// # Errors
    /// It is refused at a line and column; a file that cannot be read, at its beginning.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let name = file.display().to_string();
        let text = secret::bounded(file).map_err(|error| ConfigError {
            file: name.clone(),
            at: At { line: 1, column: 1 },
            what: error.to_string(),
        })?;
        Self::from_text(&name, &text)
    }

    /// Reads a configuration that came from `file`, and the files with keys that it names.
    ///
    /// # Errors
    /// It is refused at a line and column.
    pub fn from_text(file: &str, text: &str) -> Result<Self, ConfigError> {
        read::settings(file, text)
    }

    /// Whether outer datagrams would be routed into the tunnel, too: an allowed prefix holds all addresses of a family,
    /// or that of a peer's endpoint.
    #[must_use]
    pub fn catches_itself(&self) -> bool {
        self.peers.iter().flat_map(|peer| &peer.allowed).any(|prefix| self.is_own_way(prefix))
    }

    /// Whether an outer datagram may have to go to an address of this prefix, as far as addresses of endpoints are known.
    #[must_use]
    pub fn is_own_way(&self, prefix: &Prefix) -> bool {
        let network = Network { addr: prefix.address(), bits: prefix.len() };
        let endpoints = self.peers.iter().filter_map(|peer| peer.endpoint.as_ref()?.address());
        prefix.is_empty() || endpoints.map(|to| to.ip()).any(|to| network.holds(to))
    }

    /// Whether a peer has a name instead of an address, which is looked up while the tunnel is up.
    #[must_use]
    pub fn has_names(&self) -> bool {
        self.peers.iter().filter_map(|peer| peer.endpoint.as_ref()).any(|to| to.name().is_some())
    }

    /// Where the control socket is of a tunnel of this name, where nothing is said.
    #[must_use]
    pub fn control_of(name: &str) -> PathBuf {
        Path::new(FOLDER).join(format!("{name}.sock"))
    }
}

/// The key that a pair shares, of a file that nobody but its owner may reach.
///
/// # Errors
/// In one line, with the file: it is none, or others may reach it.
pub fn preshared_key(file: &Path) -> Result<PresharedKey, String> {
    secret::key(file)
}

impl Settings {
    /// Whether names are looked up while it runs: those of a tunnel's peers.
    #[must_use]
    pub fn looks_names_up(&self) -> bool {
        self.ports.iter().any(|port| match &port.kind {
            Kind::Tunnel { file } => {
                TunnelSettings::read(&file.path).is_ok_and(|tunnel| tunnel.has_names())
            }
            _ => false,
        })
    }
}
