//! The packets that come, of those that are asked about.

use conntrack::CtState;
use rules::model::Family;
use rules::predicate::Field;

use super::States;
use super::question::{Question, in_network, number};
use crate::diagram::{Region, TooLarge};
use crate::space::{Part, Space};

/// The packets that come in, or that the host sends, of those that are asked about.
pub(super) fn packets(
    space: &mut Space,
    question: &Question,
    is_sent: bool,
    states: States,
) -> Result<Region, TooLarge> {
    let mut all = if is_sent { space.sent()? } else { space.arriving()? };
    let states = match states {
        States::New => &[CtState::New][..],
        States::Established => &[CtState::Established, CtState::Related],
        // Any one will do where nothing asks for it.
        States::Any => &[CtState::New],
    };
    let mut parts = vec![space.in_states(states)?, elsewhere(space, question)?];
    // Nobody has marked a packet that comes.
    parts.push(space.range(Part::Field(Field::Mark), 0, 0)?);
    if !is_sent {
        parts.push(question.by_nets(space)?);
        parts.push(question.own_ways(space)?);
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
    let [low, high] = loopback(space.family());
    let local = space.range(Part::Field(Field::Destination), low, high)?;
    parts.push(space.diagrams.without(Region::ALL, local)?);
    if is_sent {
        parts.push(question.sent_by_host(space)?);
    }
    for part in parts {
        all = space.diagrams.and(all, part)?;
    }
    Ok(all)
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
