//! The neighbours that a host knows, as `ip neigh` prints them, and the ports of its bridges, as `bridge -o link` does.

use std::net::IpAddr;

use crate::text::{TextError, index, lines, mac, records};

/// A neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// The neighbour's address.
    pub addr: IpAddr,
    /// The interface that leads to it.
    pub interface: Option<Box<str>>,
    /// The Ethernet address, if it is known.
    pub mac: Option<[u8; 6]>,
    /// Nobody answered for it.
    pub failed: bool,
}

/// A port of a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The port's name.
    pub name: Box<str>,
    /// The name of the port's bridge.
    pub bridge: Option<Box<str>>,
    /// Whether the port passes frames on.
    pub forwarding: bool,
}

/// Reads `ip neigh`.
///
/// # Errors
/// A line that begins with no address, with its place.
pub fn parse_neighbours(text: &str) -> Result<Vec<Neighbour>, TextError> {
    let neighbour = |line: crate::text::Line<'_>| {
        let word = line.at(0);
        Ok(Neighbour {
            addr: word.text.parse().map_err(|_| word.not("an address"))?,
            interface: line.after("dev").map(|word| word.text.into()),
            mac: line.after("lladdr").and_then(|word| mac(word.text)),
            failed: line.has("FAILED") || line.has("INCOMPLETE"),
        })
    };
    lines(text).filter(|line| !line.continues).map(neighbour).collect()
}

/// Reads `bridge -o link`.
///
/// # Errors
/// A line that begins no record of bridge(8), with its place.
pub fn parse_ports(text: &str) -> Result<Vec<Port>, TextError> {
    let mut ports = Vec::new();
    for record in records(text) {
        let line = &record.head;
        index(line)?;
        let name = line.at(1).text.trim_end_matches(':').split('@').next();
        let name = name.filter(|name| !name.is_empty());
        ports.push(Port {
            name: name.ok_or_else(|| line.at(1).not("the name of a port"))?.into(),
            bridge: line.after("master").map(|word| word.text.into()),
            forwarding: line.after("state").is_some_and(|state| state.text == "forwarding"),
        });
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_and_ports() {
        let text = "10.0.0.2 dev br0 lladdr 02:00:00:00:00:01 REACHABLE\nfe80::1 dev br0  FAILED\n";
        let neighbours = parse_neighbours(text).unwrap();
        assert_eq!(neighbours[0].mac, Some([2, 0, 0, 0, 0, 1]));
        assert!(neighbours[1].failed && neighbours[1].mac.is_none());
        assert_eq!(
            parse_neighbours("x").unwrap_err().to_string(),
            "1:1: expected an address, found \"x\""
        );
        let text =
            "4: v0@v1: <BROADCAST,UP> mtu 1500 master br0 state forwarding priority 32 cost 2 ";
        let port = &parse_ports(text).unwrap()[0];
        assert_eq!(
            (&*port.name, port.bridge.as_deref(), port.forwarding),
            ("v0", Some("br0"), true)
        );
    }
}
