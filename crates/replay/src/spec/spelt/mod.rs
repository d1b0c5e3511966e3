//! Packets as other programs print them: a line of the kernel's log, of `nft monitor trace`, of `conntrack -L`, of
//! tcpdump. [`in_our_words`] makes a SPEC of each.
//!
//! Contract: what a line says is taken over, and nothing is added to it; a word that has to be understood and is not is
//! an error with its column. What the line does not say is what it is for a SPEC that does not say it.

mod connection;
mod log;
mod tcpdump;
mod trace;

use std::fmt::{self, Display, Write};
use std::net::IpAddr;

use packet::tcp::Flags;
use rules::protocol_number;

use super::{SpecError, Word, expected, split};

/// The SPEC of such a line; `None` if it is none, as far as it can be told.
pub(super) fn in_our_words(text: &str) -> Result<Option<String>, SpecError> {
    let words = split(text);
    for read in [log::read, trace::read, connection::read, tcpdump::read] {
        if let Some(said) = read(&words, text.len() + 1)? {
            return Ok(Some(said.to_string()));
        }
    }
    Ok(None)
}

/// What a line says of a packet.
#[derive(Debug, Default)]
struct Said {
    keys: String,
    /// By name or number; `arp` for a question of it.
    protocol: String,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    /// Where the protocol has any.
    ports: Option<[u16; 2]>,
    /// TCP flags, or an ICMP type and code.
    message: String,
    /// Bytes of the IP packet.
    len: Option<usize>,
}

impl Said {
    /// Adds `key=value`, unless the value is empty.
    fn key(&mut self, key: &str, value: impl Display) {
        let before = self.keys.len();
        // Writing to a String cannot fail.
        let _ = write!(self.keys, " {key}={value}");
        if self.keys.ends_with('=') {
            self.keys.truncate(before);
        }
    }

    /// Its addresses.
    fn between(&mut self, source: IpAddr, destination: IpAddr) {
        (self.source, self.destination) = (Some(source), Some(destination));
    }

    fn flags(&mut self, flags: Flags) {
        self.message = flags.to_string();
    }

    fn icmp(&mut self, kind: impl Display, code: u8) {
        self.message = if code == 0 { kind.to_string() } else { format!("{kind}/{code}") };
    }

    /// Bytes of its headers, as a SPEC builds them.
    fn header_len(&self) -> usize {
        let ip = if self.source.is_some_and(|source| source.is_ipv6()) { 40 } else { 20 };
        ip + match &*self.protocol {
            "tcp" => 20,
            "udp" | "icmp" | "icmpv6" => 8,
            _ => 12,
        }
    }
}

impl Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(source), Some(destination)) = (self.source, self.destination) else {
            return f.write_str(&self.protocol);
        };
        if self.protocol == "arp" {
            return write!(f, "arp who-has {destination} tell {source}{}", self.keys);
        }
        let end =
            |addr: IpAddr, at: usize| match self.ports.and_then(|ports| ports.get(at).copied()) {
                Some(port) => std::net::SocketAddr::new(addr, port).to_string(),
                None => addr.to_string(),
            };
        // A later fragment has no ports, nor flags.
        let is_headless = self.ports.is_none() && matches!(&*self.protocol, "tcp" | "udp");
        let protocol = match &*self.protocol {
            "tcp" if is_headless => "6",
            "udp" if is_headless => "17",
            name => name,
        };
        write!(f, "{protocol} {} > {}", end(source, 0), end(destination, 1))?;
        if !self.message.is_empty() && !is_headless {
            write!(f, " {}", self.message)?;
        }
        if let Some(len) = self.len.filter(|len| *len >= self.header_len()) {
            write!(f, " len={len}")?;
        }
        f.write_str(&self.keys)
    }
}

/// What a value has to be; `at` is the column at which it begins.
fn read_as<T: std::str::FromStr>(at: usize, value: &str, what: &str) -> Result<T, SpecError> {
    value.parse().map_err(|_| expected(at, format!("{what}, found \"{value}\"")))
}

/// A number, where there is a word for it.
fn number<T: std::str::FromStr>(word: Option<Word<'_>>) -> Result<Option<T>, SpecError> {
    word.map(|(column, text)| read_as(column, text, "a number")).transpose()
}

/// An address, which has to be there; `what` says how it is spelt.
fn address(word: Option<Word<'_>>, end: usize, what: &str) -> Result<IpAddr, SpecError> {
    let (column, text) = word.ok_or_else(|| expected(end, what))?;
    read_as(column, text, "an address")
}

/// Both ports, where they are given.
fn ports(source: Option<Word<'_>>, to: Option<Word<'_>>) -> Result<Option<[u16; 2]>, SpecError> {
    Ok(number(source)?.zip(number(to)?).map(|(source, to)| [source, to]))
}

/// Whether a SPEC takes a protocol by this name or number.
fn is_protocol(name: &str) -> bool {
    name.parse::<u8>().is_ok() || protocol_number(name).is_some() || name == "icmpv6"
}

/// The value of `key=value` among words, with its column.
fn value_of<'a>(words: &[Word<'a>], key: &str) -> Option<Word<'a>> {
    words.iter().find_map(|(column, word)| {
        let value = word.strip_prefix(key)?.strip_prefix('=')?;
        Some((column + key.len() + 1, value))
    })
}

#[cfg(test)]
mod tests;
