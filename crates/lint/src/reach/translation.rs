//! Another destination: what packets become by it, and which packets became others.
//!
//! An address or a port that is taken from several may be any of them, as an answer of a test that can only be asked.

use std::net::IpAddr;

use packet::{tcp, udp};
use rules::eval::{By, RuleRef};
use rules::model::{Action, Hook, Ruleset};
use rules::nat::Translation;
use rules::predicate::{Field, Values};

use super::question::{Question, number};
use super::{Translated, rule_text};
use crate::diagram::{Region, TooLarge};
use crate::packet::translated;
use crate::space::{Part, Preferred, Space};

/// Protocols whose ports are translated.
const WITH_PORTS: [u8; 4] = [tcp::PROTOCOL, udp::PROTOCOL, 33, 132];

/// A destination that packets get.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// The rule that gives it.
    pub(crate) at: RuleRef,
    /// Addresses to take one from; without, every address, of which nothing is known.
    addresses: Option<[u128; 2]>,
    /// The address stays.
    keeps_address: bool,
    /// Ports to take one from; without, the port stays.
    ports: Option<[u128; 2]>,
    /// The packet is for the host then.
    pub(crate) to_host: bool,
    /// In words.
    pub(super) shown: Translated,
}

/// Packets of protocols that have ports.
pub(super) fn with_ports(space: &mut Space) -> Result<Region, TooLarge> {
    let mut all = Region::NONE;
    for protocol in WITH_PORTS {
        let one = space.between(Part::Field(Field::Protocol), [protocol.into(); 2])?;
        all = space.diagrams.or(all, one)?;
    }
    Ok(all)
}

impl Change {
    /// What a rule makes of the packets of a region; `None` where it leaves their destination alone.
    pub(super) fn by(
        space: &Space,
        ruleset: &Ruleset,
        question: &Question,
        (by, hook): (By, Hook),
        region: Region,
    ) -> Option<Self> {
        let By::Rule(at) = by else { return None };
        let chain = &ruleset.tables[at.table as usize].chains[at.chain as usize];
        let Action::Target(target) = &chain.rules[at.rule as usize].action else { return None };
        let family = space.family();
        let given = (0..6).filter_map(|seed| {
            let preferred = match seed {
                0 => Preferred::usual(family),
                _ => Preferred::drawn(family, seed),
            };
            let mut values = space.sample(region, &preferred)?.values;
            if hook == Hook::Prerouting {
                values.output.clear();
            }
            translated(ruleset, hook, &values, &*target.body, &question.host)
        });
        let given: Vec<Translation> = given.collect();
        let first = *given.first()?;
        let is_one = given.iter().all(|it| *it == first);
        let addresses = first.range.addresses.filter(|_| is_one);
        let keeps_address = is_one && !first.is_vague && addresses.is_none();
        let ports = first.range.ports.map(|ports| [ports.first.into(), ports.last.into()]);
        let (line, by) = rule_text(ruleset, at);
        let to = destination(addresses, ports, first.redirects, keeps_address);
        Some(Self {
            at,
            addresses: addresses.map(|both| both.map(number)),
            keeps_address,
            ports,
            to_host: first.redirects,
            shown: Translated { line, by, to },
        })
    }

    /// A packet with the destination that it gets, where that is one.
    pub(crate) fn one(&self, values: &Values) -> Option<Values> {
        let mut values = values.clone();
        match self.addresses {
            Some([low, high]) if low == high => values.set(Field::Destination, low),
            None if self.keeps_address => {}
            _ => return None,
        }
        match self.ports {
            Some([low, high]) if low == high => values.set(Field::DestinationPort, low),
            None => {}
            Some(_) => return None,
        }
        Some(values)
    }

    /// The packets that it may make.
    fn made(&self, space: &mut Space) -> Result<Region, TooLarge> {
        let mut all = Region::ALL;
        if let Some(addresses) = self.addresses {
            all = space.between(Part::Field(Field::Destination), addresses)?;
        }
        if let Some(ports) = self.ports {
            let ports = space.between(Part::Field(Field::DestinationPort), ports)?;
            let has_none = with_ports(space)?;
            let has_none = space.diagrams.without(Region::ALL, has_none)?;
            let either = space.diagrams.or(ports, has_none)?;
            all = space.diagrams.and(all, either)?;
        }
        Ok(all)
    }

    /// A region, whatever the destination was or will be.
    fn free(&self, space: &mut Space, mut region: Region) -> Result<Region, TooLarge> {
        if !self.keeps_address {
            region = space.with_any(region, Part::Field(Field::Destination))?;
        }
        if self.ports.is_some() {
            let has_ports = with_ports(space)?;
            let others = space.diagrams.without(region, has_ports)?;
            let those = space.diagrams.and(region, has_ports)?;
            let those = space.with_any(those, Part::Field(Field::DestinationPort))?;
            region = space.diagrams.or(those, others)?;
        }
        Ok(region)
    }

    /// What packets of a region may become.
    pub(super) fn after(&self, space: &mut Space, region: Region) -> Result<Region, TooLarge> {
        let free = self.free(space, region)?;
        let made = self.made(space)?;
        space.diagrams.and(free, made)
    }

    /// The packets that may become one of a region.
    pub(super) fn before_some(
        &self,
        space: &mut Space,
        region: Region,
    ) -> Result<Region, TooLarge> {
        let made = self.made(space)?;
        let both = space.diagrams.and(region, made)?;
        self.free(space, both)
    }

    /// The packets that become one of a region, whichever is taken.
    pub(super) fn before_all(&self, space: &mut Space, region: Region) -> Result<Region, TooLarge> {
        let outside = space.diagrams.without(Region::ALL, region)?;
        let may = self.before_some(space, outside)?;
        space.diagrams.without(Region::ALL, may)
    }
}

/// `10.0.0.5:80`, `10.0.0.5-10.0.0.9`, `this host:3128`.
fn destination(
    addresses: Option<[IpAddr; 2]>,
    ports: Option<[u128; 2]>,
    to_host: bool,
    keeps_address: bool,
) -> String {
    let address = match addresses {
        Some([low, high]) if low == high => match (low, ports) {
            (IpAddr::V6(low), Some(_)) => format!("[{low}]"),
            _ => low.to_string(),
        },
        Some([low, high]) => format!("{low}-{high}"),
        None if to_host => "this host".to_owned(),
        None if keeps_address => "the same address".to_owned(),
        None => "another address".to_owned(),
    };
    match ports {
        Some([low, high]) if low == high => format!("{address}:{low}"),
        Some([low, high]) => format!("{address}:{low}-{high}"),
        None => address,
    }
}
