//! [`Service`]: a protocol and the ports of it that a line of the policy names.

use std::fmt;
use std::str::FromStr;

/// A protocol that a line of the policy can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP over IPv4, ICMPv6 over IPv6.
    Icmp,
}

/// Protocols, with their words and their numbers in messages.
const PROTOCOLS: [(Protocol, &str, u8); 3] =
    [(Protocol::Tcp, "tcp", 6), (Protocol::Udp, "udp", 17), (Protocol::Icmp, "icmp", 1)];

/// A protocol and a range of its destination ports; of [`Protocol::Icmp`] always all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Service {
    /// The protocol.
    pub protocol: Protocol,
    /// The first port and the last.
    pub ports: (u16, u16),
}

/// All ports.
const ALL: (u16, u16) = (0, u16::MAX);

/// The error for a text that is no service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAService;

impl fmt::Display for NotAService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected \"tcp/22\", \"udp/8000-8010\", \"tcp\", \"udp\" or \"icmp\"")
    }
}

impl std::error::Error for NotAService {}

impl Protocol {
    /// The protocol's number in messages: that of IP, and of ICMP over IPv4.
    #[must_use]
    pub fn number(self) -> u8 {
        PROTOCOLS.into_iter().find(|it| it.0 == self).map_or(0, |it| it.2)
    }

    fn word(self) -> &'static str {
        PROTOCOLS.into_iter().find(|it| it.0 == self).map_or("", |it| it.1)
    }
}

impl Service {
    /// Whether these are all ports of the protocol.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.ports == ALL
    }

    /// Whether a packet to this port is of the service.
    #[must_use]
    pub fn holds(&self, protocol: Protocol, port: u16) -> bool {
        let (first, last) = self.ports;
        self.protocol == protocol && (protocol == Protocol::Icmp || (first..=last).contains(&port))
    }

    /// The service of these numbers, as a message has them.
    pub(crate) fn of_numbers(protocol: u8, ports: (u16, u16)) -> Option<Self> {
        let (protocol, ..) = PROTOCOLS.into_iter().find(|it| it.2 == protocol)?;
        let is_good = ports.0 <= ports.1 && (protocol != Protocol::Icmp || ports == ALL);
        is_good.then_some(Self { protocol, ports })
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.protocol.word())?;
        match self.ports {
            ALL => Ok(()),
            (first, last) if first == last => write!(f, "/{first}"),
            (first, last) => write!(f, "/{first}-{last}"),
        }
    }
}

impl FromStr for Service {
    type Err = NotAService;

    fn from_str(text: &str) -> Result<Self, NotAService> {
        let (word, ports) = match text.split_once('/') {
            Some((word, ports)) => (word, Some(ports)),
            None => (text, None),
        };
        let (protocol, _, number) =
            PROTOCOLS.into_iter().find(|it| it.1 == word).ok_or(NotAService)?;
        let ports = match ports {
            None => ALL,
            Some(_) if protocol == Protocol::Icmp => return Err(NotAService),
            Some(ports) => {
                let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
                (port(first)?, port(last)?)
            }
        };
        Self::of_numbers(number, ports).ok_or(NotAService)
    }
}

fn port(text: &str) -> Result<u16, NotAService> {
    let is_number = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or(NotAService)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_printed_as_they_are_written() {
        for text in ["tcp/22", "udp/53", "tcp/8000-8010", "icmp", "tcp", "udp"] {
            assert_eq!(text.parse::<Service>().unwrap().to_string(), text);
        }
        let wrong = ["", "tcp/", "tcp/9-8", "tcp/65536", "icmp/8", "sctp/1", "tcp/+1", "tcp/1-2-3"];
        assert!(wrong.iter().all(|text| text.parse::<Service>() == Err(NotAService)));
    }

    #[test]
    fn a_range_holds_its_ends() {
        let range: Service = "tcp/8000-8010".parse().unwrap();
        let holds = |port| range.holds(Protocol::Tcp, port);
        assert!(holds(8_000) && holds(8_010) && !holds(7_999) && !holds(8_011));
        assert!(!range.holds(Protocol::Udp, 8_000));
    }
}
