//! What is asked: where to, where from, and what is known of the host.

use std::net::IpAddr;

use host::routes::RouteKind;
use host::{Host, Network};
use rules::ipset::Sets;
use rules::model::{Family, Hook};
use rules::predicate::{Field, Values};
use rules::{protocol_name, protocol_number};

use crate::diagram::{Region, TooLarge};
use crate::space::{Part, Space, inputs, ip, outputs};

/// Where packets are to arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct To {
    /// Addresses.
    pub network: Network,
    /// Destination ports, both ends.
    pub ports: Option<[u16; 2]>,
    /// Protocol; with ports alone TCP, UDP and what else has them.
    pub protocol: Option<u8>,
}

/// The question to `reach`.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Where packets are to arrive.
    pub to: Option<To>,
    /// Where they come from.
    pub from: Option<Network>,
    /// The input interface of packets.
    pub input: Option<String>,
    /// The output interface of packets.
    pub output: Option<String>,
    /// Networks behind interfaces.
    pub nets: Vec<(String, Network)>,
    /// The host's own addresses, if they are known.
    pub own: Option<Vec<Network>>,
    /// The only way that is asked for, by its hook in the filter table.
    pub way: Option<Hook>,
    /// The host.
    pub host: Host,
    /// Sets of the host, if they are known.
    pub sets: Option<Sets>,
}

impl To {
    /// Reads `ADDRESS[/BITS][:PORT[-PORT]][/PROTOCOL]`; an IPv6 address with a port stands in brackets. What stands after
    /// a `/` is a protocol if it is no number, or if a port or another `/` stands before it.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = || {
            "expected ADDRESS[/BITS][:PORT[-PORT]][/PROTOCOL], an IPv6 address with a port in []"
                .to_owned()
        };
        let (rest, protocol) = match text.rsplit_once('/') {
            Some((_, word)) if word.contains([':', ']']) => (text, None),
            Some((rest, word)) if word.parse::<u8>().is_err() => {
                (rest, Some(protocol_number(word).ok_or_else(expected)?))
            }
            Some((rest, word)) if has_port(rest) || rest.contains('/') => {
                (rest, Some(word.parse().map_err(|_| expected())?))
            }
            _ => (text, None),
        };
        let (network, ports) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, "")) => (address.to_owned(), None),
            Some((address, more)) => match more.split_once(':') {
                Some((bits, ports)) => (format!("{address}{bits}"), Some(ports)),
                None => (format!("{address}{more}"), None),
            },
            None if rest.matches(':').count() == 1 => {
                let (network, ports) = rest.split_once(':').ok_or_else(expected)?;
                (network.to_owned(), Some(ports))
            }
            None => (rest.to_owned(), None),
        };
        let network = Network::parse(&network).ok_or_else(expected)?;
        let port = |text: &str| text.parse::<u16>().map_err(|_| expected());
        let ports = ports.map(|text| {
            let (low, high) = text.split_once('-').unwrap_or((text, text));
            Ok::<_, String>([port(low)?, port(high)?])
        });
        let ports = ports.transpose()?;
        if ports.is_some_and(|[low, high]| low > high) {
            return Err(expected());
        }
        Ok(Self { network, ports, protocol })
    }
}

/// `ADDRESS:PORT` and `[ADDRESS]:PORT`, but no IPv6 address alone.
fn has_port(text: &str) -> bool {
    text.contains("]:") || text.matches(':').count() == 1
}

impl std::fmt::Display for To {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Network { addr, bits } = self.network;
        let is_whole = bits == if addr.is_ipv4() { 32 } else { 128 };
        let network = if is_whole { addr.to_string() } else { self.network.to_string() };
        match self.ports {
            Some(_) if addr.is_ipv6() => write!(f, "[{network}]")?,
            _ => f.write_str(&network)?,
        }
        match self.ports {
            Some([low, high]) if low == high => write!(f, ":{low}")?,
            Some([low, high]) => write!(f, ":{low}-{high}")?,
            None => {}
        }
        match self.protocol {
            Some(number) => match protocol_name(number) {
                Some(name) => write!(f, "/{name}"),
                None => write!(f, "/{number}"),
            },
            None => Ok(()),
        }
    }
}

/// The addresses that a host has, as far as anything tells; `None` where nothing does.
#[must_use]
pub(super) fn own_addresses(host: &Host) -> Option<Vec<Network>> {
    let whole = |addr: IpAddr| Network { addr, bits: if addr.is_ipv4() { 32 } else { 128 } };
    let named = host.addresses.iter().map(|(_, addr)| whole(*addr));
    let assigned = host.assigned.iter().flat_map(host::Addresses::all).map(|it| whole(it.addr));
    let routes = host.routes.iter().flat_map(host::routes::Routes::all);
    let local = routes.filter(|route| route.kind == RouteKind::Local).map(|it| it.destination);
    let told: Vec<Network> = match &host.local {
        Some(given) => given.iter().copied().chain(named).collect(),
        None => named.chain(assigned).chain(local).collect(),
    };
    (!told.is_empty()).then_some(told)
}

impl Question {
    /// Adds what a host says to the question.
    #[must_use]
    pub fn of_host(mut self, host: &Host) -> Self {
        self.own = own_addresses(host);
        self.host = host.clone();
        self
    }

    /// The family of the addresses that are asked for.
    #[must_use]
    pub fn family(&self) -> Option<Family> {
        let network = self.to.map(|to| to.network).or(self.from)?;
        Some(if network.addr.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 })
    }

    /// The input interfaces of packets, where the host's routes say where they go: its links, or, where these are not
    /// given, the interfaces that routes or rules name.
    pub(super) fn inputs(&self, named: impl Iterator<Item = String>) -> Option<Vec<String>> {
        let is_v6 = self.family()? == Family::Ipv6;
        let mut routes = self.host.routes.iter().flat_map(|routes| routes.all());
        if !routes.any(|route| route.destination.addr.is_ipv6() == is_v6) {
            return None;
        }
        let mut all = inputs(&self.host);
        if self.host.links.is_empty() {
            all.extend(named.filter(|name| name != "lo"));
            all.extend(self.nets.iter().map(|(name, _)| name.clone()));
            all.extend(self.input.clone());
        }
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    /// All interfaces that the host, or the question, names.
    pub(super) fn interfaces(&self) -> Vec<String> {
        let mut all = outputs(&self.host);
        let links = self.host.links.all().iter().map(|link| link.name.to_string());
        all.extend(links.chain(self.nets.iter().map(|(name, _)| name.clone())));
        all.extend([&self.input, &self.output].into_iter().flatten().cloned());
        all.push("lo".to_owned());
        all
    }

    /// The ways that packets may take, by their hooks in the filter table. What the host sends itself is listed only if
    /// its own address is asked for: a network that contains its address mostly contains others.
    pub(super) fn ways(&self) -> Vec<Hook> {
        if let Some(way) = self.way {
            return vec![way];
        }
        let holds = |own: &Network, from: Network| own.holds(from.addr) && own.bits <= from.bits;
        let own = || self.own.iter().flatten();
        let is_host = self.from.is_some_and(|from| own().any(|own| holds(own, from)));
        let all = [Hook::Input, Hook::Forward, Hook::Output];
        all.into_iter().filter(|way| *way != Hook::Output || is_host).collect()
    }

    /// All packets that arrive where it is asked for.
    pub(super) fn arriving(&self, space: &mut Space) -> Result<Region, TooLarge> {
        let Some(to) = self.to else { return Ok(Region::ALL) };
        let mut all = in_network(space, Field::Destination, to.network)?;
        let protocol = Part::Field(Field::Protocol);
        if let Some(number) = to.protocol {
            let one = space.range(protocol, number.into(), number.into())?;
            all = space.diagrams.and(all, one)?;
        } else if to.ports.is_some() {
            let with_ports = with_ports(space)?;
            all = space.diagrams.and(all, with_ports)?;
        }
        if let Some(ports) = to.ports {
            let [low, high] = ports.map(u128::from);
            let ports = space.range(Part::Field(Field::DestinationPort), low, high)?;
            let whole = space.of_predicate(&rules::predicate::Predicate::HasHeader)?;
            let both = space.diagrams.and(ports, whole)?;
            all = space.diagrams.and(all, both)?;
        }
        Ok(all)
    }

    /// Packets that come in on the interface that their source is behind.
    pub(super) fn by_nets(&self, space: &mut Space) -> Result<Region, TooLarge> {
        // Where a packet goes out that is sent elsewhere on its way, its destination as it came does not tell.
        self.behind(space, Part::Input, Field::Source)
    }

    /// Packets that pass, at one end, the interface that the address there is behind: the longest prefix counts.
    fn behind(&self, space: &mut Space, part: Part, field: Field) -> Result<Region, TooLarge> {
        let mut nets: Vec<&(String, Network)> = self.nets_of(space.family()).collect();
        nets.sort_by_key(|(_, network)| std::cmp::Reverse(network.bits));
        let (mut all, mut left) = (Region::NONE, Region::ALL);
        for (name, network) in nets {
            let inside = in_network(space, field, *network)?;
            let inside = space.diagrams.and(left, inside)?;
            left = space.diagrams.without(left, inside)?;
            let kind = space.interface(name);
            let there = space.range(part, kind, kind)?;
            let there = space.diagrams.and(inside, there)?;
            all = space.diagrams.or(all, there)?;
        }
        space.diagrams.or(all, left)
    }

    fn nets_of(&self, family: Family) -> impl Iterator<Item = &(String, Network)> {
        self.nets.iter().filter(move |(_, net)| net.addr.is_ipv4() == (family == Family::Ipv4))
    }

    /// Where the host's addresses are known: packets to them with the way to the host, and to others with the way on. Those
    /// to groups may go either way.
    pub(super) fn own_ways(&self, space: &mut Space) -> Result<Region, TooLarge> {
        let Some(own) = &self.own else { return Ok(Region::ALL) };
        let mut to_host = Region::NONE;
        for network in own {
            let one = in_network(space, Field::Destination, *network)?;
            to_host = space.diagrams.or(to_host, one)?;
        }
        let destination = Part::Field(Field::Destination);
        let groups = match space.family() {
            Family::Ipv6 => [(0xff << 120, u128::MAX), (0xff << 120, u128::MAX)],
            _ => [(0xe000_0000, 0xefff_ffff), (0xffff_ffff, 0xffff_ffff)],
        };
        let mut either = Region::NONE;
        for (low, high) in groups {
            let group = space.range(destination, low, high)?;
            either = space.diagrams.or(either, group)?;
        }
        let in_way = space.range(Part::Way, 0, 0)?;
        let here = space.diagrams.and(to_host, in_way)?;
        let others = space.diagrams.without(Region::ALL, to_host)?;
        let on = space.diagrams.without(others, in_way)?;
        let told = space.diagrams.or(here, on)?;
        let either = space.diagrams.without(either, to_host)?;
        space.diagrams.or(told, either)
    }

    /// The packets that have one of the host's addresses; all where they are not known.
    pub(super) fn sent_by_host(&self, space: &mut Space) -> Result<Region, TooLarge> {
        let Some(own) = &self.own else { return Ok(Region::ALL) };
        let mut all = Region::NONE;
        for network in own {
            let one = in_network(space, Field::Source, *network)?;
            all = space.diagrams.or(all, one)?;
        }
        Ok(all)
    }

    /// Gives a packet the names of interfaces that were given, where rules do not tell others apart from them.
    pub(super) fn name_interfaces(&self, space: &Space, values: &mut Values) {
        let longest = |address: u128| {
            let nets = self.nets_of(space.family());
            let holding = nets.filter(|(_, net)| net.holds(ip(space.family(), address)));
            holding.max_by_key(|(_, net)| net.bits).map(|(name, _)| name.clone())
        };
        let source = longest(values.number(Field::Source));
        let destination = longest(values.number(Field::Destination));
        let input = self.input.clone().or(source);
        let output = self.output.clone().or(destination);
        for (now, name) in [(&mut values.input, input), (&mut values.output, output)] {
            match name.filter(|name| space.interface(name) == space.interface(now)) {
                Some(name) => *now = name,
                // Where nothing names an interface no name matters, and none is made up.
                None if space.names_none() => now.clear(),
                None => {}
            }
        }
    }
}

fn is_of(family: Family, network: &Network) -> bool {
    network.addr.is_ipv4() == (family == Family::Ipv4)
}

/// An address as a number.
pub(super) fn number(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

/// The packets whose address at one end is in a network; none of the other family.
pub(super) fn in_network(
    space: &mut Space,
    field: Field,
    network: Network,
) -> Result<Region, TooLarge> {
    if !is_of(space.family(), &network) {
        return Ok(Region::NONE);
    }
    space.range(Part::Field(field), number(network.addr), number(network.last()))
}

/// Packets of protocols that have ports.
fn with_ports(space: &mut Space) -> Result<Region, TooLarge> {
    let mut all = Region::NONE;
    for protocol in (0..=u8::MAX).filter(|protocol| conntrack::has_ports(*protocol)) {
        let number = protocol.into();
        let one = space.range(Part::Field(Field::Protocol), number, number)?;
        all = space.diagrams.or(all, one)?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_reads_and_prints() {
        for (text, shown) in [
            ("10.0.0.5", "10.0.0.5"),
            ("10.0.0.5:80", "10.0.0.5:80"),
            ("10.0.0.5:80/tcp", "10.0.0.5:80/tcp"),
            ("10.0.0.5/tcp", "10.0.0.5/tcp"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.0/8:80", "10.0.0.0/8:80"),
            ("10.0.0.0/8:80-90/udp", "10.0.0.0/8:80-90/udp"),
            ("10.0.0.0/8/6", "10.0.0.0/8/tcp"),
            ("10.0.0.5:80/17", "10.0.0.5:80/udp"),
            ("2001:db8::5", "2001:db8::5"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("[2001:db8::5]:443/tcp", "[2001:db8::5]:443/tcp"),
            ("[2001:db8::]/32:443", "[2001:db8::/32]:443"),
            ("[2001:db8::/32]:443", "[2001:db8::/32]:443"),
        ] {
            assert_eq!(To::parse(text).unwrap().to_string(), shown, "{text}");
        }
        for wrong in ["", "web", "10.0.0.5:", "10.0.0.5:http", "10.0.0.5:90-80", "10.0.0.5/33"] {
            assert!(To::parse(wrong).is_err(), "{wrong}");
        }
    }
}
