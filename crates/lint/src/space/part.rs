//! [`Part`]: what a packet consists of, and where the bits of each part lie ([`Dimension`]).

use rules::model::Family;
use rules::predicate::{Field, Form};

/// A part of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The state of its connection.
    State,
    /// The input interface.
    Input,
    /// The output interface.
    Output,
    /// Where its own destination would send it: 0 to this host, 1 on.
    Way,
    /// Whether it has its upper-layer header.
    Form,
    /// Whether it has an Ethernet header.
    HasMac,
    /// A field.
    Field(Field),
}

impl Part {
    /// Whether a part is a field of the upper-layer header.
    pub(super) fn is_of_header(self) -> bool {
        use Field::{DestinationPort, IcmpCode, IcmpType, SourcePort, TcpFlags};
        let fields = [DestinationPort, SourcePort, TcpFlags, IcmpType, IcmpCode];
        matches!(self, Self::Field(field) if fields.contains(&field))
    }

    /// The name of the part in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Input => "in",
            Self::Output => "out",
            Self::Way => "way",
            Self::Form => "form",
            Self::HasMac => "ethernet",
            Self::Field(field) => match field {
                Field::Source => "source",
                Field::Destination => "destination",
                Field::Protocol => "protocol",
                Field::SourcePort => "sport",
                Field::DestinationPort => "dport",
                Field::TcpFlags => "flags",
                Field::IcmpType => "icmp-type",
                Field::IcmpCode => "icmp-code",
                Field::SourceMac => "mac",
                Field::SourceType => "source-type",
                Field::DestinationType => "destination-type",
                Field::PacketType => "packet-type",
                Field::Mark => "mark",
                Field::ConnMark => "connmark",
                Field::Translated => "translated",
                Field::Length => "length",
                Field::Ttl => "ttl",
                Field::Tos => "tos",
            },
        }
    }
}

/// Forms by their number.
pub(super) const FORMS: [Form; 3] = [Form::Whole, Form::LaterFragment, Form::Bare];

/// A piece of the bits of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dimension {
    pub(super) part: Part,
    pub(super) start: u32,
    pub(super) bits: u32,
}

impl Dimension {
    pub(super) fn end(&self) -> u32 {
        self.start + self.bits
    }

    pub(super) fn most(&self) -> u128 {
        if self.bits >= u128::BITS { u128::MAX } else { (1 << self.bits) - 1 }
    }

    pub(super) fn has_bit(&self, number: u128, level: u32) -> bool {
        number >> (self.end() - 1 - level) & 1 == 1
    }
}

/// The dimensions, in an order in which diagrams of rules stay small: addresses, which distinguish most rules, before
/// ports.
pub(super) fn dimensions(family: Family, for_names: u32) -> Vec<Dimension> {
    let field = |field: Field| (Part::Field(field), field.bits(family));
    let parts = [
        (Part::State, 3),
        (Part::Input, for_names),
        (Part::Output, for_names),
        (Part::Way, 1),
        field(Field::Mark),
        field(Field::ConnMark),
        field(Field::Translated),
        field(Field::SourceType),
        field(Field::DestinationType),
        field(Field::PacketType),
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
        field(Field::Tos),
        field(Field::Ttl),
        field(Field::Length),
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
pub(super) fn place<T: PartialEq>(all: &[T], value: T) -> u128 {
    all.iter().position(|one| *one == value).unwrap_or(0) as u128
}
