//! Where the routes of a host send packets: a region of packets with their way and their output interface.
//!
//! Contract: a packet is in [`Space::routed`] with one way and one output interface, as [`Host::route_in`] or
//! [`Host::route_out`] gives them, or not at all, where they refuse it. What they do not know is asked, under the name
//! of what is missing. Each is asked about one of the packets that are [`Alike`] to them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use host::{Alike, Assumed, Host, Incoming, LinkKind, Missing, Outgoing, Routed};
use rules::model::{Family, Hook};
use rules::predicate::Field;

use super::part::Part;
use super::parts::ip;
use super::predicates::Space;
use crate::diagram::{Region, TooLarge};

/// Combinations that are asked about.
const MOST_CELLS: usize = 1 << 20;

/// Classes of one field.
const MOST_CLASSES: usize = 4_096;

/// Packets that routing does not tell apart by one thing, and a number that stands for it.
type Class = (Region, u128);

/// Where a packet goes: which way, by which interface of [`Space::interface`], and what is missing to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Course {
    to_host: Option<bool>,
    output: Option<u128>,
    missing: Option<&'static str>,
}

/// The input interfaces of packets, as far as links or routes name them, without `lo` and what belongs to another.
#[must_use]
pub(crate) fn inputs(host: &Host) -> Vec<String> {
    let above = |name: Option<&str>| {
        let kind = name.and_then(|name| host.links.named(name)).map(|link| link.kind);
        matches!(kind, Some(LinkKind::Bridge | LinkKind::Bond))
    };
    let links = host.links.all().iter().filter(|link| link.up && !above(link.master.as_deref()));
    let mut names: Vec<String> = match host.links.is_empty() {
        true => outputs(host),
        false => links.map(|link| link.name.to_string()).collect(),
    };
    names.retain(|name| name != "lo");
    names
}

/// The interfaces that routes and addresses name.
pub(crate) fn outputs(host: &Host) -> Vec<String> {
    let routes = host.routes.iter().flat_map(|routes| routes.all());
    let routed = routes.flat_map(|route| route.devices()).map(str::to_owned);
    let assigned = host.assigned.iter().flat_map(|all| all.all());
    let assigned = assigned.map(|one| one.interface.to_string());
    let given = host.addresses.iter().map(|(name, _)| name.clone());
    let mut names: Vec<String> = routed.chain(assigned).chain(given).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl Space {
    /// Makes packets that come in on these interfaces, or at OUTPUT the host's own, go where routes send them;
    /// nothing changes where no routes of the family are given.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn follow(&mut self, inputs: &[String], hook: Hook) -> Result<(), TooLarge> {
        let Some(alike) = self.host.alike(self.family() == Family::Ipv6) else { return Ok(()) };
        let classes = Classes::of(self, &alike)?;
        let own = [String::new()];
        let inputs = if hook == Hook::Output { &own[..] } else { inputs };
        let count = classes.addresses.len().saturating_mul(classes.addresses.len());
        if count.saturating_mul(classes.others.len()).saturating_mul(inputs.len()) > MOST_CELLS {
            return Err(TooLarge);
        }
        let mut at = |field| {
            let ranges = classes.addresses.iter().map(|(ranges, _)| self.at(field, ranges));
            ranges.collect::<Result<Vec<Region>, TooLarge>>()
        };
        let ends = [at(Field::Source)?, at(Field::Destination)?];
        let mut all = Region::NONE;
        for input in inputs {
            let kind = self.interface(input);
            let by_input = self.range(Part::Input, kind, kind)?;
            for other in &classes.others {
                let here = self.between_all((&classes, &ends), other, input)?;
                let here = self.diagrams.and(here, other.region)?;
                let here = self.diagrams.and(here, by_input)?;
                all = self.diagrams.or(all, here)?;
            }
        }
        self.routed = Some(all);
        Ok(())
    }

    /// The interfaces that are distinguished by name and have an address each, with it.
    pub(crate) fn addresses_of_inputs(&self) -> Vec<(u128, IpAddr)> {
        let is_v6 = self.family() == Family::Ipv6;
        let names = (0..self.names.count()).filter_map(|kind| {
            let name = &self.names.kind(kind).filter(|_| self.is_one(kind))?.name;
            Some((kind, self.host.address_of(name, is_v6)?))
        });
        names.collect()
    }

    /// Where packets go that are alike but for their addresses.
    fn between_all(
        &mut self,
        (classes, [sources_at, destinations_at]): (&Classes, &[Vec<Region>; 2]),
        other: &Other,
        input: &str,
    ) -> Result<Region, TooLarge> {
        // Sources from which every destination is reached alike.
        let mut sources: BTreeMap<Vec<Option<Course>>, Region> = BTreeMap::new();
        for ((_, from), source) in classes.addresses.iter().zip(sources_at) {
            let to = |(_, destination): &(_, u128)| self.course(*from, *destination, other, input);
            let courses: Vec<Option<Course>> = classes.addresses.iter().map(to).collect();
            let known = sources.entry(courses).or_insert(Region::NONE);
            *known = self.diagrams.or(*known, *source)?;
        }
        let mut all = Region::NONE;
        for (courses, source) in sources {
            let mut destinations: BTreeMap<Course, Region> = BTreeMap::new();
            for (one, course) in destinations_at.iter().zip(courses) {
                let Some(course) = course else { continue };
                let known = destinations.entry(course).or_insert(Region::NONE);
                *known = self.diagrams.or(*known, *one)?;
            }
            for (course, destination) in destinations {
                let there = self.along(course)?;
                let there = self.diagrams.and(there, destination)?;
                let there = self.diagrams.and(there, source)?;
                all = self.diagrams.or(all, there)?;
            }
        }
        Ok(all)
    }

    fn at(&mut self, field: Field, ranges: &[[IpAddr; 2]]) -> Result<Region, TooLarge> {
        let mut all = Region::NONE;
        for range in ranges {
            let [low, high] = range.map(number);
            let one = self.range(Part::Field(field), low, high)?;
            all = self.diagrams.or(all, one)?;
        }
        Ok(all)
    }

    /// The packets that go a way by an interface.
    fn along(&mut self, course: Course) -> Result<Region, TooLarge> {
        let Course { to_host, output, missing } = course;
        let mut all = match missing {
            Some(what) => self.asked(&format!("{MISSING}{what}"))?,
            None => Region::ALL,
        };
        if let Some(to_host) = to_host {
            let way = u128::from(!to_host);
            let way = self.range(Part::Way, way, way)?;
            all = self.diagrams.and(all, way)?;
        }
        if let Some(output) = output {
            let output = self.range(Part::Output, output, output)?;
            all = self.diagrams.and(all, output)?;
        }
        Ok(all)
    }

    /// Where one packet goes; `None` where it goes nowhere.
    fn course(&self, source: u128, to: u128, other: &Other, input: &str) -> Option<Course> {
        let family = self.family();
        let (source, destination) = (ip(family, source), ip(family, to));
        let Other { mark, tos, protocol, ports, .. } = *other;
        let (tos, mark, protocol, ports) = (Some(tos), Some(mark), Some(protocol), Some(ports));
        let (routed, assumed) = if input.is_empty() {
            let to = Outgoing::to(destination);
            let outgoing = Outgoing { source, tos, mark, protocol, ports, ..to };
            (self.host.route_out(&outgoing), Assumed::default())
        } else {
            let from = Incoming::new(source, destination, Some(input));
            self.host.route_in_assuming(&Incoming { tos, mark, protocol, ports, ..from })
        };
        let sure = |to_host, output| Course { to_host: Some(to_host), output, missing: None };
        let several = "which of several routes takes a packet";
        Some(match routed {
            // Without settings a source is taken to come in where the routes lead back to it.
            _ if assumed.rp_filter => return None,
            Routed::Refused(_) => return None,
            Routed::Input(_) => sure(true, None),
            Routed::Forward { output: Some(output), .. } => {
                sure(false, Some(self.interface(output)))
            }
            Routed::Forward { output: None, .. } => {
                Course { missing: Some(several), ..sure(false, None) }
            }
            Routed::Unknown(missing) => {
                let to_host = self.host.is_local(destination).filter(|is_own| *is_own);
                let missing = Missing::name(missing);
                Course { to_host, output: None, missing: Some(missing) }
            }
        })
    }
}

/// What is asked where it is not known where a packet goes.
const MISSING: &str = "where routes lead: ";

/// The combinations of all that routing looks at.
struct Classes {
    addresses: Vec<(Vec<[IpAddr; 2]>, u128)>,
    others: Vec<Other>,
}

/// Packets that are alike but for addresses and interfaces.
struct Other {
    region: Region,
    mark: u32,
    tos: u8,
    protocol: u8,
    ports: [u16; 2],
}

impl Classes {
    fn of(space: &mut Space, alike: &Alike) -> Result<Self, TooLarge> {
        let addresses = alike.addresses.iter().filter_map(|ranges| {
            let [first, _] = ranges.first()?;
            Some((ranges.clone(), number(*first)))
        });
        let marks = alike.marks.iter().map(|(mark, mask)| Test::masked(*mark, *mask));
        let marks = space.classes(Field::Mark, &marks.collect::<Vec<_>>())?;
        let services = alike.services.iter().map(|(tos, mask)| Test::masked(*tos, *mask));
        let services = space.classes(Field::Tos, &services.collect::<Vec<_>>())?;
        // A search looks at the ports of these.
        let with_ports: &[u8] = match alike.ports.iter().all(Vec::is_empty) {
            true => &[],
            false => &[6, 17, 33, 50, 51, 132, 136],
        };
        let protocols = alike.protocols.iter().chain(with_ports);
        let protocols: Vec<Test> = protocols.map(|it| Test::range(*it, *it)).collect();
        let protocols = space.classes(Field::Protocol, &protocols)?;
        let ports = |space: &mut Space, field, which: usize| {
            let tests = alike.ports[which].iter().map(|(low, high)| Test::range(*low, *high));
            space.classes(field, &tests.collect::<Vec<_>>())
        };
        let sources = ports(space, Field::SourcePort, 0)?;
        let destinations = ports(space, Field::DestinationPort, 1)?;
        let fields = [marks, services, protocols, sources, destinations];
        let count = fields.iter().fold(1_usize, |count, it| count.saturating_mul(it.len()));
        if count > MOST_CELLS {
            return Err(TooLarge);
        }
        let mut others = vec![(Region::ALL, [0; 5])];
        for (place, of_field) in fields.into_iter().enumerate() {
            let mut finer = Vec::new();
            for (region, numbers) in &others {
                for (class, number) in &of_field {
                    let region = space.diagrams.and(*region, *class)?;
                    let mut numbers: [u128; 5] = *numbers;
                    numbers[place] = *number;
                    finer.push((region, numbers));
                }
            }
            others = finer;
        }
        let others = others.into_iter().map(|(region, [mark, tos, protocol, from, to])| Other {
            region,
            mark: mark as u32,
            tos: tos as u8,
            protocol: protocol as u8,
            ports: [from as u16, to as u16],
        });
        Ok(Self { addresses: addresses.collect(), others: others.collect() })
    }
}

/// What tells numbers of a field apart.
#[derive(Clone, Copy)]
enum Test {
    Masked(u128, u128),
    Range(u128, u128),
}

impl Test {
    fn masked(value: impl Into<u128>, mask: impl Into<u128>) -> Self {
        Self::Masked(value.into(), mask.into())
    }

    fn range(low: impl Into<u128>, high: impl Into<u128>) -> Self {
        Self::Range(low.into(), high.into())
    }
}

impl Space {
    /// Numbers of a field by what tests say of them, each class with one of its numbers.
    fn classes(&mut self, field: Field, tests: &[Test]) -> Result<Vec<Class>, TooLarge> {
        let part = Part::Field(field);
        let mut regions = vec![Region::ALL];
        for test in tests {
            let holds = match *test {
                Test::Masked(value, mask) => self.masked(part, value & mask, mask)?,
                Test::Range(low, high) => self.range(part, low, high)?,
            };
            for place in 0..regions.len() {
                let inside = self.diagrams.and(regions[place], holds)?;
                if !inside.is_empty() && inside != regions[place] {
                    regions[place] = self.diagrams.without(regions[place], holds)?;
                    regions.push(inside);
                }
            }
            if regions.len() > MOST_CLASSES {
                return Err(TooLarge);
            }
        }
        Ok(regions.into_iter().map(|region| (region, self.number_in(part, region))).collect())
    }
}

fn number(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}
