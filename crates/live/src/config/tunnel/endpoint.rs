//! [`Endpoint`]: the address and port of a peer, by address or by name.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Bytes of a name, and of a part of it between dots (RFC 1035).
const MOST_BYTES: usize = 253;
const MOST_BYTES_OF_LABEL: usize = 63;

/// A peer's endpoint: `ADDRESS:PORT`, `[ADDRESS]:PORT` or `NAME:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    host: Host,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    Name(String),
}

/// The error for a text that is no endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoEndpoint;

impl fmt::Display for NoEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no endpoint: ADDRESS:PORT, [ADDRESS]:PORT or NAME:PORT")
    }
}

impl std::error::Error for NoEndpoint {}

impl Endpoint {
    /// The endpoint's name, if it has one; it is looked up again while the peer is silent.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.host {
            Host::Address(_) => None,
            Host::Name(name) => Some(name),
        }
    }

    /// The endpoint's address and port, if it has no name.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self.host {
            Host::Address(address) => Some(SocketAddr::new(address, self.port)),
            Host::Name(_) => None,
        }
    }

    /// The endpoint's UDP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(at: SocketAddr) -> Self {
        Self { host: Host::Address(at.ip()), port: at.port() }
    }
}

impl FromStr for Endpoint {
    type Err = NoEndpoint;

    fn from_str(text: &str) -> Result<Self, NoEndpoint> {
        let (host, port) = text.rsplit_once(':').ok_or(NoEndpoint)?;
        let port = port.parse().ok().filter(|_| port.bytes().all(|c| c.is_ascii_digit()));
        let port = port.filter(|port| *port != 0).ok_or(NoEndpoint)?;
        let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match (inside, host.parse()) {
            (Some(v6), _) => Host::Address(IpAddr::V6(v6.parse().map_err(|_| NoEndpoint)?)),
            (None, Ok(v4)) => Host::Address(IpAddr::V4(v4)),
            (None, Err(_)) if is_name(host) => Host::Name(host.to_owned()),
            (None, Err(_)) => return Err(NoEndpoint),
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

/// Whether a text can be the name of a host or a domain: with only digits in the last part it would be a bad address.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        (1..=MOST_BYTES_OF_LABEL).contains(&part.len())
            && part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
            && !part.starts_with('-')
    };
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_number = |part: &str| part.bytes().all(|c| c.is_ascii_digit());
    text.len() <= MOST_BYTES
        && text.split('.').all(is_part)
        && !text.rsplit('.').next().is_some_and(is_number)
}
