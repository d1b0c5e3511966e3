//! [`Said`]: what a line says of a packet, and how words of lines are read.

use std::fmt::{self, Display, Write};
use std::net::IpAddr;

use packet::tcp::Flags;
use rules::protocol_number;

use crate::spec::fields::Fields;
use crate::spec::gaps::header_of;
use crate::spec::word::{SpecError, Word, expected};

/// The lines that a line belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Among {
    /// No others: the line shows a packet by itself.
    #[default]
    None,
    /// The lines of one packet of `nft monitor trace`: its id there, and the chain that it came to.
    Trace {
        /// Id as it is printed.
        id: String,
        /// Family, table and chain.
        chain: String,
    },
    /// The lines of a capture.
    Capture(Captured),
}

/// A line of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Captured {
    /// Time of the line in nanoseconds, from wherever the program counts.
    pub(crate) time: Option<u64>,
    /// What it says after the addresses, which few packets share.
    pub(crate) rest: String,
    /// Where a TCP segment begins and ends, counted from wherever the program counts.
    pub(crate) sequence: Option<[u32; 2]>,
}

/// What a line says of a packet.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) keys: String,
    /// Protocol by name or number; `arp` for an ARP request.
    pub(super) protocol: String,
    pub(super) source: Option<IpAddr>,
    pub(super) destination: Option<IpAddr>,
    /// Where the protocol has any.
    pub(super) ports: Option<[u16; 2]>,
    /// TCP flags, or an ICMP type and code.
    pub(super) message: String,
    /// Bytes of the IP packet.
    pub(super) len: Option<u16>,
    pub(super) among: Among,
}

impl Said {
    /// Adds `key=value`, unless the value is empty.
    pub(super) fn key(&mut self, key: &str, value: impl Display) {
        let before = self.keys.len();
        // Writing to a String cannot fail.
        let _ = write!(self.keys, " {key}={value}");
        if self.keys.ends_with('=') {
            self.keys.truncate(before);
        }
    }

    /// Sets the addresses.
    pub(super) fn between(&mut self, source: IpAddr, destination: IpAddr) {
        (self.source, self.destination) = (Some(source), Some(destination));
    }

    /// Sets the length to the sum of these parts, unless it is known already or too large for a SPEC.
    pub(super) fn length(&mut self, headers: usize, rest: Option<u16>) {
        let sum = rest.and_then(|rest| u16::try_from(headers).ok()?.checked_add(rest));
        self.len = self.len.or(sum);
    }

    /// Checks that a SPEC takes what the line says; a SPEC without TCP flags would be a SYN.
    pub(super) fn check(&self, words: &[Word<'_>], end: usize) -> Result<(), SpecError> {
        if self.protocol == "tcp" && self.ports.is_some() && self.message.is_empty() {
            return Err(expected(end, "TCP flags, which tcpdump -q and cut packets leave out"));
        }
        let mut fields = Fields::default();
        for word in self.keys.split_ascii_whitespace() {
            if let Some((key, value)) = word.split_once('=').filter(|(key, _)| *key != "dns") {
                let set = fields.set((1, word), key, value);
                set.map_err(|error| expected(column_of(words, value), error.what))?;
            }
        }
        Ok(())
    }

    pub(super) fn flags(&mut self, flags: Flags) {
        self.message = flags.to_string();
    }

    pub(super) fn icmp(&mut self, kind: impl Display, code: u8) {
        self.message = if code == 0 { kind.to_string() } else { format!("{kind}/{code}") };
    }

    /// Bytes of its IP header.
    pub(super) fn ip_len(&self) -> usize {
        if self.source.is_some_and(|source| source.is_ipv6()) { 40 } else { 20 }
    }

    /// Bytes of its headers, as a SPEC builds them.
    pub(super) fn header_len(&self) -> usize {
        self.ip_len()
            + match self.protocol() {
                "tcp" => 20,
                "udp" | "icmp" | "icmpv6" => 8,
                name => name.parse().ok().or_else(|| protocol_number(name)).map_or(0, header_of),
            }
    }

    /// The protocol, by number where the packet lacks its header: a later fragment has no ports, flags or type.
    pub(super) fn protocol(&self) -> &str {
        match &*self.protocol {
            "tcp" if self.ports.is_none() => "6",
            "udp" if self.ports.is_none() => "17",
            "icmp" if self.message.is_empty() => "1",
            "icmpv6" if self.message.is_empty() => "58",
            name => name,
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
        let protocol = self.protocol();
        write!(f, "{protocol} {} > {}", end(source, 0), end(destination, 1))?;
        if !self.message.is_empty() && protocol == self.protocol {
            write!(f, " {}", self.message)?;
        }
        if let Some(len) = self.len.filter(|len| usize::from(*len) >= self.header_len()) {
            write!(f, " len={len}")?;
        }
        f.write_str(&self.keys)
    }
}

/// What a value has to be; `at` is the column at which it begins.
pub(super) fn read_as<T: std::str::FromStr>(
    at: usize,
    value: &str,
    what: &str,
) -> Result<T, SpecError> {
    value.parse().map_err(|_| expected(at, format!("{what}, found \"{value}\"")))
}

/// A number, where there is a word for it.
pub(super) fn number<T: std::str::FromStr>(word: Option<Word<'_>>) -> Result<Option<T>, SpecError> {
    word.map(|(column, text)| read_as(column, text, "a number")).transpose()
}

/// An address, which has to be there; `what` says how it is spelt.
pub(super) fn address(word: Option<Word<'_>>, end: usize, what: &str) -> Result<IpAddr, SpecError> {
    let (column, text) = word.ok_or_else(|| expected(end, what))?;
    read_as(column, text, "an address")
}

/// Both ports, where they are given.
pub(super) fn ports(
    source: Option<Word<'_>>,
    to: Option<Word<'_>>,
) -> Result<Option<[u16; 2]>, SpecError> {
    Ok(number(source)?.zip(number(to)?).map(|(source, to)| [source, to]))
}

/// Whether a SPEC takes a protocol by this name or number.
pub(super) fn is_protocol(name: &str) -> bool {
    name.parse::<u8>().is_ok() || protocol_number(name).is_some() || name == "icmpv6"
}

/// Where in a line a value stands that is taken over from it; 1 where it does not stand as it is.
pub(super) fn column_of(words: &[Word<'_>], value: &str) -> usize {
    let is = |word: &str| {
        let bare = word.trim_matches(['"', ',', ';', ':', '(', ')', '[', ']']);
        bare == value || bare.strip_suffix(value).is_some_and(|key| key.ends_with('='))
    };
    let place = words.iter().find(|(_, word)| is(word));
    let place = place.or_else(|| words.iter().find(|(_, word)| word.contains(value)));
    place.map_or(1, |(column, word)| column + word.rfind(value).unwrap_or(0))
}

/// The value of `key=value` among words, with its column.
pub(super) fn value_of<'a>(words: &[Word<'a>], key: &str) -> Option<Word<'a>> {
    words.iter().find_map(|(column, word)| {
        let value = word.strip_prefix(key)?.strip_prefix('=')?;
        Some((column + key.len() + 1, value))
    })
}
