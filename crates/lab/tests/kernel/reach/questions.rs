//! Questions about a host, and packets that they are about, drawn as `fixtures/reach/README.md` says.

use std::net::IpAddr;

use fastrand::Rng;
use host::{Host, Network};
use lint::{Question, To};
use packet::{icmpv4, icmpv6, tcp, udp};
use rules::model::Family;

use super::packets::{GRE, Sent, address, number};

/// What is drawn from.
pub(super) struct Pool {
    is_v6: bool,
    networks: Vec<Network>,
    ports: Vec<u16>,
}

fn whole(addr: IpAddr) -> Network {
    Network { addr, bits: if addr.is_ipv6() { 128 } else { 32 } }
}

impl Pool {
    /// What a host and its rules name.
    pub(super) fn of(host: &Host, rules: &str, family: Family) -> Self {
        let is_v6 = family == Family::Ipv6;
        let assigned = host.assigned.iter().flat_map(|all| all.all());
        let assigned = assigned.flat_map(|one| [whole(one.addr), one.subnet]);
        let routes = host.routes.iter().flat_map(|routes| routes.all()).map(|it| it.destination);
        let bare = |word: &str| word.trim_start_matches('[').replace("]:", " ").replace(']', "");
        let words = rules.split_whitespace().filter(|word| word.contains(['.', ':']));
        let named = words.filter_map(|word| {
            let word = bare(word);
            let first = word.split(' ').next().unwrap_or_default();
            let v4 = first.split_once(':').filter(|_| !is_v6).map_or(first, |(addr, _)| addr);
            Network::parse(v4)
        });
        let outside = ["203.0.113.7", "192.0.2.99", "8.8.8.8", "2001:db8:ffff::7", "2a00::1"];
        let outside = outside.into_iter().filter_map(Network::parse);
        let mut networks: Vec<Network> =
            assigned.chain(routes).chain(named).chain(outside).collect();
        networks.retain(|network| network.addr.is_ipv6() == is_v6);
        let ports = rules.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok());
        let ports = ports.filter(|port| *port > 6).chain([9, 22, 80, 40_000]).collect();
        Self { is_v6, networks, ports }
    }

    fn address(&self, rng: &mut Rng) -> IpAddr {
        let network = self.networks[rng.usize(..self.networks.len())];
        self.address_in(network, rng)
    }

    fn address_in(&self, network: Network, rng: &mut Rng) -> IpAddr {
        let [low, high] = [number(network.addr), number(network.last())];
        let wide = u128::from(rng.u64(..)) << 64 | u128::from(rng.u64(..));
        let most = if self.is_v6 { u128::MAX } else { u32::MAX.into() };
        let at = match (rng.u8(..6), (high - low).checked_add(1)) {
            (0, _) => low,
            (1, _) => high,
            (2, _) => low.saturating_add(1),
            (3, _) => high.saturating_add(1),
            (_, Some(count)) => low + wide % count,
            (_, None) => wide,
        };
        address(at.min(most), self.is_v6)
    }

    fn port(&self, rng: &mut Rng) -> u16 {
        let port = self.ports[rng.usize(..self.ports.len())];
        if rng.u8(..4) == 0 { port.saturating_add(1) } else { port }
    }

    fn network(&self, rng: &mut Rng) -> Network {
        match rng.u8(..3) {
            0 => self.networks[rng.usize(..self.networks.len())],
            _ => whole(self.address(rng)),
        }
    }

    fn protocol(&self, rng: &mut Rng) -> u8 {
        match rng.u8(..10) {
            0..5 => tcp::PROTOCOL,
            5..8 => udp::PROTOCOL,
            8 if self.is_v6 => icmpv6::PROTOCOL,
            8 => icmpv4::PROTOCOL,
            _ => GRE,
        }
    }

    /// A question.
    pub(super) fn question(&self, inputs: &[String], rng: &mut Rng) -> Question {
        let which = rng.u8(..4);
        let to = (which != 0).then(|| {
            let protocol = Some(self.protocol(rng)).filter(|_| rng.u8(..4) > 0);
            let has_ports = protocol.is_none_or(|it| [tcp::PROTOCOL, udp::PROTOCOL].contains(&it));
            let port = self.port(rng);
            let last = if rng.u8(..4) == 0 { port.saturating_add(rng.u16(..100)) } else { port };
            let ports = Some([port, last]).filter(|_| has_ports && rng.u8(..4) > 0);
            To { network: self.network(rng), ports, protocol }
        });
        let from = (which < 2).then(|| self.network(rng));
        let input = rng.choice(inputs).filter(|_| rng.bool()).cloned();
        Question { to, from, input, ..Question::default() }
    }

    /// A packet that a question is about, or that may come to be.
    pub(super) fn packet(&self, question: &Question, inputs: &[String], rng: &mut Rng) -> Sent {
        let (to, from) = (question.to, question.from);
        let source = match from {
            Some(from) => self.inside(from, rng),
            None => self.address(rng),
        };
        // What is sent on may be sent elsewhere first.
        let asked = to.filter(|_| rng.u8(..3) > 0);
        let destination = match asked {
            Some(to) => self.inside(to.network, rng),
            None => self.address(rng),
        };
        let ports = asked.and_then(|to| to.ports);
        let port = match ports {
            Some([low, high]) => rng.u16(low..=high),
            None => self.port(rng),
        };
        let protocol = to.and_then(|to| to.protocol).unwrap_or_else(|| self.protocol(rng));
        let input = question.input.clone().or_else(|| rng.choice(inputs).cloned());
        Sent {
            input: input.expect("a link"),
            source,
            destination,
            protocol,
            ports: [40_000 + rng.u16(..1_000), port],
            flags: 2,
            icmp: [0; 2],
            tos: 0,
            ttl: 64,
        }
        .settled()
    }

    fn inside(&self, network: Network, rng: &mut Rng) -> IpAddr {
        loop {
            let address = self.address_in(network, rng);
            if network.holds(address) {
                return address;
            }
        }
    }
}
