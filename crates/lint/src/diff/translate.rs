//! What targets of nat make of packets that begin a connection, where a rule tells it: an address, a port, this host.

use std::net::IpAddr;

use conntrack::{Side, has_ports};
use rules::ext::TargetUse;
use rules::model::{Family, Hook};
use rules::nat::{Mapping, Ports};
use rules::predicate::{ADDRESS_TYPES, Field, type_ranges};

use super::altered::{Alterations, Altered, Packets};
use crate::diagram::{Region, TooLarge};
use crate::space::{Part, Space};

/// Bits of [`Field::Translated`].
const SOURCE: u32 = 0;
const DESTINATION: u32 = 1;

/// Packets after a target that translates their flow.
pub(super) fn translated(
    space: &mut Space,
    alterations: &mut Alterations,
    (hook, target): (Hook, &TargetUse),
    packets: Packets,
    text: &str,
) -> Result<Vec<Packets>, TooLarge> {
    let mapping = target.body.mapping();
    let by_hook = if matches!(hook, Hook::Prerouting | Hook::Output) {
        Side::Destination
    } else {
        Side::Source
    };
    let side = mapping.map_or(by_hook, |mapping| mapping.side);
    let mut altered = alterations.get(packets.altered).clone();
    altered.translations.push(text.to_owned());
    altered.by.insert(text.to_owned());
    let translated = space.levels(Part::Field(Field::Translated)).end - 1;
    if side == Side::Source {
        // Nothing sees its source after that.
        altered.is(translated - SOURCE, true);
        let altered = alterations.number(altered)?;
        return Ok(vec![Packets { altered, ..packets }]);
    }
    altered.is(translated - DESTINATION, true);
    let what = format!("what {text} makes of packets");
    let mut all = Vec::new();
    for (input, region) in by_input(space, mapping, hook, packets)? {
        let mut altered = altered.clone();
        address(space, &mut altered, mapping, (hook, input), &what)?;
        all.extend(ports(space, alterations, altered, (mapping, region), &what)?);
    }
    Ok(all)
}

/// Splits packets by the address that a redirection gives them, which depends on their input interface, where it is
/// known.
fn by_input(
    space: &mut Space,
    mapping: Option<Mapping>,
    hook: Hook,
    packets: Packets,
) -> Result<Vec<(Option<IpAddr>, Region)>, TooLarge> {
    let (mut known, mut left) = (Vec::new(), packets.region);
    let is_redirected = mapping.is_some_and(|it| it.redirects && it.range.addresses.is_none());
    if is_redirected && hook == Hook::Prerouting && space.routed().is_some() {
        let usual = usual_redirected(space)?;
        for (kind, address) in space.addresses_of_inputs() {
            let by = space.range(Part::Input, kind, kind)?;
            let by = space.diagrams.and(by, usual)?;
            let region = space.diagrams.and(left, by)?;
            left = space.diagrams.without(left, by)?;
            known.push((Some(address), region));
        }
    }
    known.push((None, left));
    known.retain(|(_, region)| !region.is_empty());
    Ok(known)
}

/// Destinations that are redirected to the address of an interface: for IPv6 destinations of global scope only, as
/// others are redirected to an address of their scope.
fn usual_redirected(space: &mut Space) -> Result<Region, TooLarge> {
    let mut all = Region::ALL;
    if space.family() == Family::Ipv6 {
        let narrow = [(1, u32::MAX.into()), (0xfe80 << 112, u128::MAX)];
        for (low, high) in narrow {
            let one = space.range(Part::Field(Field::Destination), low, high)?;
            all = space.diagrams.without(all, one)?;
        }
    }
    Ok(all)
}

/// Packets with the destination port that a target gives them, as far as they have one.
fn ports(
    space: &mut Space,
    alterations: &mut Alterations,
    mut altered: Altered,
    (mapping, packets): (Option<Mapping>, Region),
    what: &str,
) -> Result<Vec<Packets>, TooLarge> {
    // Others have no port.
    let without = altered.clone();
    let with_port = protocols_with_ports(space)?;
    match mapping.map(|mapping| mapping.range.ports) {
        Some(None) => {}
        Some(Some(Ports { first, last, base: None })) if first == last => {
            altered.set(space, Part::Field(Field::DestinationPort), first.into());
        }
        _ => altered.lose(space, Part::Field(Field::DestinationPort), what)?,
    }
    let mut all = Vec::new();
    for (altered, region) in [
        (altered, space.diagrams.and(packets, with_port)?),
        (without, space.diagrams.without(packets, with_port)?),
    ] {
        if !region.is_empty() {
            all.push(Packets { altered: alterations.number(altered)?, region });
        }
    }
    Ok(all)
}

fn protocols_with_ports(space: &mut Space) -> Result<Region, TooLarge> {
    let mut any = Region::NONE;
    for protocol in (0..=u8::MAX).filter(|protocol| has_ports(*protocol)) {
        let one = space.range(Part::Field(Field::Protocol), protocol.into(), protocol.into())?;
        any = space.diagrams.or(any, one)?;
    }
    Ok(any)
}

/// Where packets go after it.
fn address(
    space: &mut Space,
    altered: &mut Altered,
    mapping: Option<Mapping>,
    (hook, input): (Hook, Option<IpAddr>),
    what: &str,
) -> Result<(), TooLarge> {
    let destination = Part::Field(Field::Destination);
    let addresses = mapping.map(|mapping| (mapping.range.addresses, mapping.redirects));
    match addresses {
        // A port alone.
        Some((None, false)) => Ok(()),
        Some((None, true)) => {
            match (hook, input) {
                (Hook::Output, _) => altered.set(space, destination, loopback(space)),
                (_, Some(address)) => altered.set(space, destination, number(address)),
                _ => altered.lose(space, destination, what)?,
            }
            of_type(space, altered, LOCAL);
            Ok(())
        }
        Some((Some([first, last]), _)) if first == last => {
            altered.set(space, destination, number(first));
            way(space, altered, first)
        }
        _ => {
            altered.lose(space, destination, what)?;
            altered.lose(space, Part::Field(Field::DestinationType), what)?;
            // Where routes are followed they tell the way of each.
            if space.routed().is_none() { altered.lose(space, Part::Way, what) } else { Ok(()) }
        }
    }
}

const UNICAST: u128 = 1;
const LOCAL: u128 = 2;

fn of_type(space: &Space, altered: &mut Altered, kind: u128) {
    altered.set(space, Part::Field(Field::DestinationType), kind);
    let own = ["LOCAL", "BROADCAST", "ANYCAST"];
    let is_own = ADDRESS_TYPES.get(kind as usize).is_some_and(|name| own.contains(name));
    if space.routed().is_none() {
        altered.set(space, Part::Way, u128::from(!is_own));
    }
}

/// Which way an address leads: to this host if it is one of its own, which may not be known.
fn way(space: &mut Space, altered: &mut Altered, address: IpAddr) -> Result<(), TooLarge> {
    let ranges = type_ranges(space.host(), space.family());
    let at = number(address);
    let types = ranges.iter().find(|range| (range.first..=range.last).contains(&at));
    let types = types.map_or(0, |range| range.types);
    if types.is_power_of_two() {
        of_type(space, altered, types.trailing_zeros().into());
        return Ok(());
    }
    if space.routed().is_some() {
        let what = format!("what {address} is to this host");
        return altered.lose(space, Part::Field(Field::DestinationType), &what);
    }
    let asked = space.asked_level(&format!("{OWN}{address}"))?;
    of_type(space, altered, 0);
    let last = space.levels(Part::Field(Field::DestinationType)).end - 1;
    altered.depend(last - UNICAST.trailing_zeros(), asked, true);
    altered.depend(last - LOCAL.trailing_zeros(), asked, false);
    altered.depend(space.levels(Part::Way).start, asked, true);
    Ok(())
}

/// What is asked where an address may be the host's own.
pub(super) const OWN: &str = "whether the host has the address ";

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

fn loopback(space: &Space) -> u128 {
    match space.family() {
        Family::Ipv6 => 1,
        _ => 0x7f00_0001,
    }
}
