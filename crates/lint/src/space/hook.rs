//! Which packets rules at a hook may see.

use conntrack::CtState;
use packet::{tcp, udp};
use rules::Backend;
use rules::model::{Family, Hook};
use rules::predicate::{ADDRESS_TYPES, Field, Form, NO_PROTOCOL, type_ranges};

use super::part::{Part, place};
use super::predicates::Space;
use crate::diagram::{Region, TooLarge};

impl Space {
    /// Every packet that rules at a hook may see.
    ///
    /// # Errors
    /// There is no room.
    pub fn at_hook(&mut self, hook: Hook) -> Result<Region, TooLarge> {
        let last = self.names.count() - 1;
        let interfaces = |is_there: Option<bool>| match is_there {
            Some(true) => (1, last),
            Some(false) => (0, 0),
            None => (0, last),
        };
        let (input, output) = match hook {
            Hook::Prerouting | Hook::Input => (Some(true), Some(false)),
            Hook::Forward => (Some(true), Some(true)),
            Hook::Output => (Some(false), Some(true)),
            Hook::Postrouting => (None, Some(true)),
            Hook::Brouting => (None, None),
        };
        let mut all = self.forms()?;
        for (part, (low, high)) in [
            (Part::State, (0, CtState::ALL.len() as u128 - 1)),
            (Part::Input, interfaces(input)),
            (Part::Output, interfaces(output)),
        ] {
            let range = self.range(part, low, high)?;
            all = self.diagrams.and(all, range)?;
        }
        for constraint in [self.types_at(hook)?, self.sizes(hook)?] {
            all = self.diagrams.and(all, constraint)?;
        }
        Ok(all)
    }

    /// Every packet that comes in: what FORWARD would see of it, and where its own destination sends it.
    ///
    /// # Errors
    /// There is no room.
    pub fn arriving(&mut self) -> Result<Region, TooLarge> {
        let last = self.names.count() - 1;
        let mut all = self.forms()?;
        for (part, (low, high)) in [
            (Part::State, (0, CtState::ALL.len() as u128 - 1)),
            (Part::Input, (1, last)),
            (Part::Output, (1, last)),
        ] {
            let range = self.range(part, low, high)?;
            all = self.diagrams.and(all, range)?;
        }
        for constraint in
            [self.types_at(Hook::Prerouting)?, self.sizes(Hook::Prerouting)?, self.ways()?]
        {
            all = self.diagrams.and(all, constraint)?;
        }
        self.untouched(all)
    }

    /// Every packet that the host sends.
    ///
    /// # Errors
    /// There is no room.
    pub fn sent(&mut self) -> Result<Region, TooLarge> {
        let all = self.at_hook(Hook::Output)?;
        self.untouched(all)
    }

    /// Leaves out packets that begin a connection and were translated already.
    fn untouched(&mut self, all: Region) -> Result<Region, TooLarge> {
        if !self.is_tested(Field::Translated) {
            return Ok(all);
        }
        let new = place(&CtState::ALL, CtState::New);
        let new = self.range(Part::State, new, new)?;
        let translated = self.range(Part::Field(Field::Translated), 1, 3)?;
        let both = self.diagrams.and(new, translated)?;
        self.diagrams.without(all, both)
    }

    /// What goes to an address of the host goes to the host, and what goes to one of another goes on; of groups either
    /// is possible.
    fn ways(&mut self) -> Result<Region, TooLarge> {
        let kind = Field::DestinationType;
        // Where routes are followed they tell the way, once destinations are what they will be.
        if !self.is_tested(kind) || self.routed.is_some() {
            return Ok(Region::ALL);
        }
        let own = self.of_types(kind, &["LOCAL", "BROADCAST", "ANYCAST"])?;
        let mut either = self.of_types(kind, &["MULTICAST"])?;
        if self.family == Family::Ipv6 {
            let groups = self.masked(Part::Field(Field::Destination), 0xff << 120, 0xff << 120)?;
            either = self.diagrams.or(either, groups)?;
        }
        let in_way = self.range(Part::Way, 0, 0)?;
        let to_host = self.diagrams.and(own, in_way)?;
        let others = self.diagrams.without(Region::ALL, own)?;
        let on = self.diagrams.without(others, in_way)?;
        let either = self.diagrams.without(either, own)?;
        let told = self.diagrams.or(to_host, on)?;
        self.diagrams.or(told, either)
    }

    /// The types that addresses have: as far as they tell that themselves, and as the host is known; what is forwarded
    /// goes to no address of this host.
    fn types_at(&mut self, hook: Hook) -> Result<Region, TooLarge> {
        let mut all = Region::ALL;
        for (address, kind) in
            [(Field::Source, Field::SourceType), (Field::Destination, Field::DestinationType)]
        {
            if self.is_tested(kind) {
                let types = self.types(address, kind)?;
                all = self.diagrams.and(all, types)?;
            }
        }
        if hook == Hook::Forward && self.is_tested(Field::DestinationType) {
            let own = self.of_types(Field::DestinationType, &["LOCAL", "BROADCAST"])?;
            all = self.diagrams.without(all, own)?;
        }
        Ok(all)
    }

    /// Addresses with each of the types that they may have.
    pub(crate) fn types(&mut self, address: Field, kind: Field) -> Result<Region, TooLarge> {
        let mut any = Region::NONE;
        for range in type_ranges(&self.host, self.family) {
            let addresses = self.range(Part::Field(address), range.first, range.last)?;
            let types = (0..ADDRESS_TYPES.len()).filter(|place| range.types >> place & 1 == 1);
            let types = self.one_of(Part::Field(kind), types.map(|place| place as u128))?;
            let both = self.diagrams.and(addresses, types)?;
            any = self.diagrams.or(any, both)?;
        }
        Ok(any)
    }

    /// Packets with one of these types of address.
    pub(crate) fn of_types(&mut self, kind: Field, names: &[&str]) -> Result<Region, TooLarge> {
        let places = (0..).zip(ADDRESS_TYPES).filter(|(_, name)| names.contains(name));
        let places: Vec<u128> = places.map(|(place, _)| place).collect();
        self.one_of(Part::Field(kind), places)
    }

    /// Lengths are no shorter than headers, what is forwarded has time to live, and whom the link layer addressed is
    /// only known of what arrived over it.
    fn sizes(&mut self, hook: Hook) -> Result<Region, TooLarge> {
        let mut all = Region::ALL;
        if self.is_tested(Field::Length) {
            all = self.lengths()?;
        }
        if self.is_tested(Field::Ttl) && hook == Hook::Forward {
            let alive = self.range(Part::Field(Field::Ttl), 1, u8::MAX.into())?;
            all = self.diagrams.and(all, alive)?;
        }
        if self.is_tested(Field::PacketType) {
            let to_host = self.range(Part::Field(Field::PacketType), 0, 0)?;
            let by_link = self.range(Part::HasMac, 1, 1)?;
            let any =
                if hook == Hook::Output { to_host } else { self.diagrams.or(to_host, by_link)? };
            all = self.diagrams.and(all, any)?;
        }
        Ok(all)
    }

    fn lengths(&mut self) -> Result<Region, TooLarge> {
        let header = if self.family == Family::Ipv6 { 40 } else { 20 };
        let most = u32::MAX.into();
        let length = Part::Field(Field::Length);
        let mut all = self.range(length, header, most)?;
        let whole = self.form(Form::Whole)?;
        for (protocol, least) in [(tcp::PROTOCOL, 20), (udp::PROTOCOL, 8)] {
            let of_protocol =
                self.range(Part::Field(Field::Protocol), protocol.into(), protocol.into())?;
            let shorter = self.range(length, 0, header + least - 1)?;
            let with_header = self.diagrams.and(whole, of_protocol)?;
            let impossible = self.diagrams.and(with_header, shorter)?;
            all = self.diagrams.without(all, impossible)?;
        }
        Ok(all)
    }

    /// Which forms packets have: none is a later fragment where they were put together, and what has no header has no
    /// protocol either, unless it is cut off, which nf_tables passes on.
    fn forms(&mut self) -> Result<Region, TooLarge> {
        let protocol = Part::Field(Field::Protocol);
        let whole = self.form(Form::Whole)?;
        let fragment = if self.tracks { Region::NONE } else { self.form(Form::LaterFragment)? };
        let with_protocol = self.diagrams.or(whole, fragment)?;
        let known = self.range(protocol, 0, NO_PROTOCOL - 1)?;
        let usual = self.diagrams.and(with_protocol, known)?;
        let first = if self.backend == Backend::Nft { 0 } else { NO_PROTOCOL };
        let last = if self.family == Family::Ipv6 { NO_PROTOCOL } else { NO_PROTOCOL - 1 };
        let bare = self.form(Form::Bare)?;
        let lacking = self.range(protocol, first, last)?;
        let bare = self.diagrams.and(bare, lacking)?;
        self.diagrams.or(usual, bare)
    }
}
