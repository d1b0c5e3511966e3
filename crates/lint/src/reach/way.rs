//! The packets that come, among the packets in question.

use conntrack::CtState;
use packet::{icmpv4, icmpv6};
use rules::model::Family;
use rules::predicate::{Field, Predicate};

use super::answer::States;
use super::question::{Question, in_network, number};
use crate::diagram::{Region, TooLarge};
use crate::space::{Part, Space};

/// The packets that come in, or that the host sends, among the packets in question.
pub(super) fn packets(
    space: &mut Space,
    question: &Question,
    is_sent: bool,
    states: States,
) -> Result<Region, TooLarge> {
    let mut all = if is_sent { space.sent()? } else { space.arriving()? };
    let mut parts = match states {
        States::New | States::Any => vec![opening(space)?],
        States::Established => Vec::new(),
    };
    let states = match states {
        States::New => &[CtState::New][..],
        States::Established => &[CtState::Established, CtState::Related],
        // Any one will do where nothing asks for it.
        States::Any => &[CtState::New],
    };
    parts.extend([space.in_states(states)?, elsewhere(space, question)?]);
    // Nobody has marked a packet that comes.
    parts.push(space.range(Part::Field(Field::Mark), 0, 0)?);
    if !is_sent {
        parts.push(question.by_nets(space)?);
        parts.push(from_outside(space, question)?);
        // Routes tell the way of packets as they are after PREROUTING.
        if space.routed().is_none() {
            parts.push(question.own_ways(space)?);
        }
    }
    if let Some(network) = question.from {
        parts.push(in_network(space, Field::Source, network)?);
    }
    for (part, name) in [(Part::Input, &question.input), (Part::Output, &question.output)] {
        if let Some(name) = name.as_ref().filter(|_| part == Part::Output || !is_sent) {
            let kind = space.interface(name);
            parts.push(space.range(part, kind, kind)?);
        }
    }
    // IPv4 packets may be sent on before routing refuses them.
    if is_sent || space.family() == Family::Ipv6 || space.routed().is_none() {
        let [low, high] = loopback(space.family());
        let local = space.range(Part::Field(Field::Destination), low, high)?;
        parts.push(space.diagrams.without(Region::ALL, local)?);
    }
    if is_sent {
        parts.push(question.sent_by_host(space)?);
        parts.extend(space.routed());
    }
    for part in parts {
        all = space.diagrams.and(all, part)?;
    }
    Ok(all)
}

/// The packets that open a connection: the tracker takes them for new, and of TCP they are plain SYNs alone, though it
/// picks connections up in their middle, too.
fn opening(space: &mut Space) -> Result<Region, TooLarge> {
    let among = |field, numbers: &[u8]| {
        let one =
            |number: &u8| Predicate::Range { field, low: (*number).into(), high: (*number).into() };
        Predicate::Any(numbers.iter().map(one).collect())
    };
    // The other family's ICMP is INVALID.
    let (others, requests) = match space.family() {
        Family::Ipv6 => (icmpv4::PROTOCOL, &[128, 139][..]),
        _ => (icmpv6::PROTOCOL, &[8, 13, 15, 17][..]),
    };
    // Of FIN, SYN, RST and ACK it has SYN alone. No rule looks at flags of what is not TCP, or at types of what is not
    // ICMP: that they are the same there keeps regions small.
    let syn = Predicate::Masked { field: Field::TcpFlags, value: 0x02, mask: 0x17 };
    space.of_predicate(&Predicate::All(vec![
        Predicate::HasHeader,
        syn,
        among(Field::IcmpType, requests),
        Predicate::Not(Box::new(among(Field::Protocol, &[others]))),
    ]))
}

/// Packets whose addresses the stack takes from outside, whatever routes there are.
fn from_outside(space: &mut Space, question: &Question) -> Result<Region, TooLarge> {
    let is_v6 = space.family() == Family::Ipv6;
    let networks: &[&str] = match (is_v6, space.routed()) {
        (true, _) => &["::1", "ff00::/8"],
        (false, None) => &["127.0.0.0/8", "224.0.0.0/4", "255.255.255.255"],
        // Routing looks at them, and at the host's own, by its settings.
        (false, Some(_)) => &[],
    };
    let mut refused = Region::NONE;
    for network in networks.iter().filter_map(|text| host::Network::parse(text)) {
        let one = in_network(space, Field::Source, network)?;
        refused = space.diagrams.or(refused, one)?;
    }
    if is_v6 {
        // Groups of no scope, and of this host alone.
        let of_scope = |scope: u128| Predicate::Masked {
            field: Field::Destination,
            value: 0xff << 120 | scope << 112,
            mask: 0xff0f << 112,
        };
        let narrow = space.of_predicate(&Predicate::Any(vec![of_scope(0), of_scope(1)]))?;
        refused = space.diagrams.or(refused, narrow)?;
    } else if space.routed().is_none() && question.own.is_some() {
        let own = question.sent_by_host(space)?;
        refused = space.diagrams.or(refused, own)?;
    }
    space.diagrams.without(Region::ALL, refused)
}

/// Packets that leave the host or come to it: not by `lo`, if rules know it, unless it is asked for.
fn elsewhere(space: &mut Space, question: &Question) -> Result<Region, TooLarge> {
    const LO: &str = "lo";
    let is_asked = [&question.input, &question.output].into_iter().flatten().any(|it| it == LO);
    let kind = space.interface(LO);
    if is_asked || !space.is_one(kind) {
        return Ok(Region::ALL);
    }
    let mut all = Region::ALL;
    for part in [Part::Input, Part::Output] {
        let lo = space.range(part, kind, kind)?;
        all = space.diagrams.without(all, lo)?;
    }
    Ok(all)
}

/// Addresses of loopback, to which no packet comes from elsewhere.
fn loopback(family: Family) -> [u128; 2] {
    let network = host::Network::parse("127.0.0.0/8").filter(|_| family == Family::Ipv4);
    network.map_or([1, 1], |it| [number(it.addr), number(it.last())])
}
