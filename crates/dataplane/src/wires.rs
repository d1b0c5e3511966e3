//! [`Wires`]: the wires whose ports are a capture's interfaces, as a live run had them; and the file that names them.
//!
//! Contract: a frame that a port of a wire received crosses the wire, as it did live: nothing routes it, and the wire
//! says whether it ages. Everything else is as without wires. A file is lines of words; empty lines and lines that
//! begin with `#` do not count:
//!
//! ```text
//! port NAME ADDRESS …                what rules translate to there
//! wire NAME NAME keep|lower MTU MTU  its time to live, and the longest packet of each port in bytes, or -
//! ```

use std::fmt;
use std::net::IpAddr;

use packet::visible;

/// Wires, and the addresses of their ports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wires {
    /// Each wire.
    pub all: Vec<Join>,
    /// Ports with their addresses.
    pub addresses: Vec<(String, IpAddr)>,
}

/// Two ports that are joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Join {
    /// The names of the ports.
    pub ports: [String; 2],
    /// How frames cross that were received on each port.
    pub crossings: [Crossing; 2],
}

/// How frames cross a wire in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Crossing {
    /// Whether frames cross as at a router: their time to live is lowered, and they have to fit the output port. What a
    /// router does not send further (to a group, to everybody, within a link) crosses as at a bridge all the same.
    pub ages: bool,
    /// Bytes of the longest packet of the output port.
    pub mtu: Option<u32>,
    /// Bytes of the longest packet of the input port.
    pub mtu_back: Option<u32>,
}

/// An error in a file, with its line, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WiresError {
    line: usize,
    what: String,
}

impl fmt::Display for WiresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

impl std::error::Error for WiresError {}

impl Wires {
    /// Whether a port of a wire, or one with addresses, has this name.
    #[must_use]
    pub fn has_port(&self, name: &str) -> bool {
        self.all.iter().any(|join| join.ports.iter().any(|port| port == name))
            || self.addresses.iter().any(|(port, _)| port == name)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A line is no port and no wire.
    pub fn parse(text: &str) -> Result<Self, WiresError> {
        let mut wires = Self::default();
        for (line, number) in text.lines().zip(1..) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let read = match words[..] {
                [] => Some(()),
                [first, ..] if first.starts_with('#') => Some(()),
                ["port", name, ref addresses @ ..] => wires.port(name, addresses),
                ["wire", first, second, ttl, mtu, other] => {
                    wires.wire(first, second, ttl, [mtu, other])
                }
                _ => None,
            };
            read.ok_or_else(|| {
                let expected = "\"port NAME ADDRESS …\" or \"wire NAME NAME keep|lower MTU MTU\"";
                let what = format!("expected {expected}, found \"{}\"", visible::word(line));
                WiresError { line: number, what }
            })?;
        }
        Ok(wires)
    }

    fn port(&mut self, name: &str, addresses: &[&str]) -> Option<()> {
        for address in addresses {
            self.addresses.push((name.to_owned(), address.parse().ok()?));
        }
        Some(())
    }

    fn wire(&mut self, first: &str, second: &str, ttl: &str, mtus: [&str; 2]) -> Option<()> {
        let ages = match ttl {
            "keep" => false,
            "lower" => true,
            _ => return None,
        };
        let [left, right] =
            mtus.map(|mtu| if mtu == "-" { Some(None) } else { mtu.parse().ok().map(Some) });
        let (left, right) = (left?, right?);
        let crossings = [(right, left), (left, right)];
        let crossings = crossings.map(|(mtu, mtu_back)| Crossing { ages, mtu, mtu_back });
        self.all.push(Join { ports: [first.to_owned(), second.to_owned()], crossings });
        Some(())
    }
}

/// Prints the wires as a file.
impl fmt::Display for Wires {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, address) in &self.addresses {
            writeln!(f, "port {name} {address}")?;
        }
        let mtu = |mtu: Option<u32>| mtu.map_or_else(|| "-".to_owned(), |mtu| mtu.to_string());
        for Join {
            ports: [first, second],
            crossings: [Crossing { ages, mtu: right, mtu_back: left }, _],
        } in &self.all
        {
            let ttl = if *ages { "lower" } else { "keep" };
            writeln!(f, "wire {first} {second} {ttl} {} {}", mtu(*left), mtu(*right))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = "port left 192.0.2.1\nport left 2001:db8::1\nwire left right keep - 1500\n\
                    wire a b lower 9000 1500\n";
        let wires = Wires::parse(text).unwrap();
        assert_eq!(wires.to_string(), text);
        let [there, back] = wires.all[1].crossings;
        assert_eq!((there.mtu, there.mtu_back, there.ages), (Some(1500), Some(9000), true));
        assert_eq!((back.mtu, back.mtu_back), (Some(9000), Some(1500)));
        assert_eq!(Wires::parse("# none\n\n").unwrap(), Wires::default());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for wrong in
            ["wire a b keep 1", "wire a b up - -", "wire a b keep x -", "port a 1.2.3", "link a"]
        {
            let error = Wires::parse(&format!("# one\n{wrong}")).unwrap_err().to_string();
            assert!(
                error.starts_with("2: expected") && error.ends_with(&format!("\"{wrong}\"")),
                "{error}"
            );
        }
    }
}
