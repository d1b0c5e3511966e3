//! Packets as strings of bits, and sets of them as regions: what predicates hold for, what a hook sees, one packet of a
//! region, and a region in pieces.
//!
//! Every field of [`rules::predicate`] has its bits, and so have the connection's state, the interfaces (as far as rules
//! tell them apart) and the form of the packet. A test that can only be asked is a bit of its own, named by its text:
//! what is not said about packets by a region that holds with and without it depends on nothing unknown.

mod names;
mod pieces;
mod sample;

use std::collections::HashMap;

use conntrack::CtState;
use rules::Backend;
use rules::model::{Family, Hook, IfaceTest, Rule, Ruleset};
use rules::predicate::{Field, Form, NO_PROTOCOL, Predicate, Values};

use crate::diagram::{Diagrams, Region, TooLarge};

use names::Names;
pub(crate) use pieces::address;
pub use pieces::{Part, Piece, Pieces};
pub use sample::{Preferred, Sample};

/// Nodes that all regions of a space may have: 600 MiB.
const MOST_NODES: usize = 12_000_000;
/// Tests that can only be asked, which are as many levels.
const MOST_ASKED: u32 = 2_000;

/// Forms by their number.
const FORMS: [Form; 3] = [Form::Whole, Form::LaterFragment, Form::Bare];

/// A piece of the bits of a packet.
#[derive(Debug, Clone, Copy)]
struct Dimension {
    part: Part,
    start: u32,
    bits: u32,
}

impl Dimension {
    fn end(&self) -> u32 {
        self.start + self.bits
    }

    fn most(&self) -> u128 {
        (1 << self.bits) - 1
    }

    fn has_bit(&self, number: u128, level: u32) -> bool {
        number >> (self.end() - 1 - level) & 1 == 1
    }
}

/// Packets of a family under some rulesets.
#[derive(Debug)]
pub struct Space {
    family: Family,
    backend: Backend,
    /// Connections are tracked, and so packets are put together before any rule.
    tracks: bool,
    /// Where sets are made.
    pub diagrams: Diagrams,
    names: Names,
    dimensions: Vec<Dimension>,
    /// Tests that can only be asked, by name.
    asked: HashMap<String, u32>,
    asked_names: Vec<String>,
}

impl Space {
    /// The packets that these rulesets, of one family and implementation, tell apart.
    #[must_use]
    pub fn of(rulesets: &[&Ruleset]) -> Self {
        let family = rulesets.first().map_or(Family::Ipv4, |ruleset| ruleset.family);
        let backend = rulesets.first().map_or_else(Backend::default, |ruleset| ruleset.backend);
        let rules = || rulesets.iter().flat_map(|ruleset| rules_of(ruleset));
        let names = Names::of(rules().flat_map(interfaces));
        let tracks =
            !rulesets.is_empty() && rulesets.iter().all(|ruleset| rules_of(ruleset).any(tracks));
        let dimensions = dimensions(family, bits_for(names.count()));
        Self {
            family,
            backend,
            tracks,
            diagrams: Diagrams::of_most(MOST_NODES),
            names,
            dimensions,
            asked: HashMap::new(),
            asked_names: Vec::new(),
        }
    }

    /// The family of its packets.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    fn dimension(&self, part: Part) -> Dimension {
        let found = self.dimensions.iter().find(|dimension| dimension.part == part);
        *found.unwrap_or(&Dimension { part, start: 0, bits: 0 })
    }

    fn first_asked(&self) -> u32 {
        self.dimensions.last().map_or(0, Dimension::end)
    }

    /// What a test that can only be asked accepts: a bit of this name.
    ///
    /// # Errors
    /// There is no room.
    pub fn asked(&mut self, name: &str) -> Result<Region, TooLarge> {
        let next = self.asked_names.len() as u32;
        let number = match self.asked.get(name) {
            Some(number) => *number,
            None if next >= MOST_ASKED => return Err(TooLarge),
            None => {
                self.asked.insert(name.to_owned(), next);
                self.asked_names.push(name.to_owned());
                next
            }
        };
        self.diagrams.choice(self.first_asked() + number, Region::NONE, Region::ALL)
    }

    /// The region without what it says of tests that can only be asked: packets that are in it for some answers of them.
    ///
    /// # Errors
    /// There is no room.
    pub fn for_some_answers(&mut self, region: Region) -> Result<Region, TooLarge> {
        self.diagrams.whatever(region, self.first_asked()..u32::MAX - 1)
    }

    /// The packets that are in a region whatever the answers of tests that can only be asked.
    ///
    /// # Errors
    /// There is no room.
    pub fn for_all_answers(&mut self, region: Region) -> Result<Region, TooLarge> {
        let outside = self.diagrams.without(Region::ALL, region)?;
        let may_be_outside = self.for_some_answers(outside)?;
        self.diagrams.without(Region::ALL, may_be_outside)
    }

    /// The packets of a region with any state of their connections.
    ///
    /// # Errors
    /// There is no room.
    pub fn in_any_state(&mut self, region: Region) -> Result<Region, TooLarge> {
        let state = self.dimension(Part::State);
        let free = self.diagrams.whatever(region, state.start..state.end())?;
        let states = self.range(Part::State, 0, CtState::ALL.len() as u128 - 1)?;
        self.diagrams.and(free, states)
    }

    fn range(&mut self, part: Part, low: u128, high: u128) -> Result<Region, TooLarge> {
        let dimension = self.dimension(part);
        if low > high || low > dimension.most() {
            return Ok(Region::NONE);
        }
        let high = high.min(dimension.most());
        let (mut from, mut to) = (Region::ALL, Region::ALL);
        for level in (dimension.start..dimension.end()).rev() {
            from = match dimension.has_bit(low, level) {
                true => self.diagrams.choice(level, Region::NONE, from)?,
                false => self.diagrams.choice(level, from, Region::ALL)?,
            };
            to = match dimension.has_bit(high, level) {
                true => self.diagrams.choice(level, Region::ALL, to)?,
                false => self.diagrams.choice(level, to, Region::NONE)?,
            };
        }
        self.diagrams.and(from, to)
    }

    fn masked(&mut self, part: Part, value: u128, mask: u128) -> Result<Region, TooLarge> {
        let dimension = self.dimension(part);
        if value & !mask != 0 {
            return Ok(Region::NONE);
        }
        let mut same = Region::ALL;
        for level in (dimension.start..dimension.end()).rev() {
            if !dimension.has_bit(mask, level) {
                continue;
            }
            same = match dimension.has_bit(value, level) {
                true => self.diagrams.choice(level, Region::NONE, same)?,
                false => self.diagrams.choice(level, same, Region::NONE)?,
            };
        }
        Ok(same)
    }

    fn one_of(
        &mut self,
        part: Part,
        numbers: impl IntoIterator<Item = u128>,
    ) -> Result<Region, TooLarge> {
        let mut any = Region::NONE;
        for number in numbers {
            let one = self.range(part, number, number)?;
            any = self.diagrams.or(any, one)?;
        }
        Ok(any)
    }

    /// The packets that a predicate of a match holds for; `name` is its text.
    ///
    /// # Errors
    /// There is no room.
    pub fn of_match(&mut self, predicate: &Predicate, name: &str) -> Result<Region, TooLarge> {
        let holds = self.of_predicate(predicate)?;
        if self.backend == Backend::Legacy || !asks_for_header(predicate) {
            return Ok(holds);
        }
        // There a later fragment is read as if it had the header.
        let fragment = self.form(Form::LaterFragment)?;
        let asked = self.asked(name)?;
        let of_fragments = self.diagrams.and(fragment, asked)?;
        let of_others = self.diagrams.without(holds, fragment)?;
        self.diagrams.or(of_others, of_fragments)
    }

    /// The packets that a predicate holds for.
    ///
    /// # Errors
    /// There is no room.
    pub fn of_predicate(&mut self, predicate: &Predicate) -> Result<Region, TooLarge> {
        match predicate {
            Predicate::All(all) => all.iter().try_fold(Region::ALL, |both, one| {
                let one = self.of_predicate(one)?;
                self.diagrams.and(both, one)
            }),
            Predicate::Any(any) => any.iter().try_fold(Region::NONE, |either, one| {
                let one = self.of_predicate(one)?;
                self.diagrams.or(either, one)
            }),
            Predicate::Not(one) => {
                let one = self.of_predicate(one)?;
                self.diagrams.without(Region::ALL, one)
            }
            Predicate::Masked { field, value, mask } => {
                self.masked(Part::Field(*field), *value, *mask)
            }
            Predicate::Range { field, low, high } => self.range(Part::Field(*field), *low, *high),
            Predicate::Input(test) => {
                let accepted = self.names.accepted(test);
                self.one_of(Part::Input, accepted)
            }
            Predicate::Output(test) => {
                let accepted = self.names.accepted(test);
                self.one_of(Part::Output, accepted)
            }
            Predicate::State(states) => {
                let all = (0..).zip(CtState::ALL).filter(|(_, state)| states.may_be(*state));
                self.one_of(Part::State, all.map(|(number, _)| number))
            }
            Predicate::HasHeader => self.form(Form::Whole),
            Predicate::LaterFragment => self.form(Form::LaterFragment),
            Predicate::HasMac => self.range(Part::HasMac, 1, 1),
        }
    }

    /// The packets with these values, whatever tests say of them that can only be asked.
    ///
    /// # Errors
    /// There is no room.
    pub fn of_values(&mut self, values: &Values) -> Result<Region, TooLarge> {
        let mut all = Region::ALL;
        for Dimension { part, .. } in self.dimensions.clone() {
            let number = match part {
                Part::State => place(&CtState::ALL, values.state),
                Part::Input => self.names.number(&values.input),
                Part::Output => self.names.number(&values.output),
                Part::Form => place(&FORMS, values.form),
                Part::HasMac => values.has_mac.into(),
                Part::Field(field) => values.number(field),
            };
            let one = self.range(part, number, number)?;
            all = self.diagrams.and(all, one)?;
        }
        Ok(all)
    }

    fn form(&mut self, form: Form) -> Result<Region, TooLarge> {
        let number = place(&FORMS, form);
        self.range(Part::Form, number, number)
    }

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

/// In the order in which diagrams of rules stay small: addresses, which tell most rules apart, before ports.
fn dimensions(family: Family, for_names: u32) -> Vec<Dimension> {
    let field = |field: Field| (Part::Field(field), field.bits(family));
    let parts = [
        (Part::State, 3),
        (Part::Input, for_names),
        (Part::Output, for_names),
        field(Field::Source),
        (Part::HasMac, 1),
        field(Field::SourceMac),
        field(Field::Destination),
        (Part::Form, 2),
        field(Field::Protocol),
        field(Field::DestinationPort),
        field(Field::SourcePort),
        field(Field::TcpFlags),
        field(Field::IcmpType),
        field(Field::IcmpCode),
    ];
    let mut start = 0;
    let mut placed = |(part, bits)| {
        let dimension = Dimension { part, start, bits };
        start += bits;
        dimension
    };
    parts.into_iter().map(&mut placed).collect()
}

/// Where a value stands among all.
fn place<T: PartialEq>(all: &[T], value: T) -> u128 {
    all.iter().position(|one| *one == value).unwrap_or(0) as u128
}

/// Bits that so many numbers take.
fn bits_for(count: u128) -> u32 {
    (u128::BITS - count.saturating_sub(1).leading_zeros()).max(1)
}

fn rules_of(ruleset: &Ruleset) -> impl Iterator<Item = &Rule> {
    let chains = ruleset.tables.iter().flat_map(|table| &table.chains);
    chains.flat_map(|chain| &chain.rules).map(|rule| &**rule)
}

fn interfaces(rule: &Rule) -> impl Iterator<Item = &IfaceTest> {
    let of_header = rule.header.iter().flat_map(|header| [header.input(), header.output()]);
    of_header.flatten()
}

/// Whether a rule makes the kernel track connections.
fn tracks(rule: &Rule) -> bool {
    let target = match &rule.action {
        rules::model::Action::Target(target) => target.body.tracks() || target.body.translates(),
        _ => false,
    };
    target || rule.matches.iter().any(|used| used.body.tracks())
}

fn asks_for_header(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::All(several) | Predicate::Any(several) => several.iter().any(asks_for_header),
        Predicate::Not(one) => asks_for_header(one),
        Predicate::HasHeader => true,
        _ => false,
    }
}
