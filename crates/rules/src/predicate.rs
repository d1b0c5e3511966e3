//! [`Predicate`]: what a test asks of a packet, as data: fields and their values, ready to be combined without a packet.
//!
//! Contract: a predicate says of every packet with whole headers, and of every later fragment, what the test's
//! `evaluate` says of it. Packets that end inside a header are no part of it: to the legacy implementation they are hot
//! drops of whichever rule asks first. A test that has no predicate can only be asked.
//!
//! Under nf_tables a later fragment is read as if it had the header ([`crate::Backend`]): there predicates of matches
//! hold for packets that are no fragments.

use conntrack::{CtState, States};

use crate::family::Family;
use crate::header::{Header, IfaceTest, MaskedAddr};

/// A field that predicates name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// Source address.
    Source,
    /// Destination address.
    Destination,
    /// Protocol of the upper layer; [`NO_PROTOCOL`] for a packet that has none.
    Protocol,
    /// First two bytes of the upper-layer header.
    SourcePort,
    /// The two after them.
    DestinationPort,
    /// The byte of TCP's flags.
    TcpFlags,
    /// First byte of an ICMP or ICMPv6 header.
    IcmpType,
    /// Second byte of it.
    IcmpCode,
    /// Source address of an Ethernet header.
    SourceMac,
    /// What the source address is to this host: the number of its type in `addrtype`, UNSPEC 0, UNICAST 1, and so on;
    /// for IPv6, the type that the route to it gives, UNICAST where the route gives no other.
    SourceType,
    /// What the destination address is to this host, numbered alike.
    DestinationType,
    /// Whom the link layer addressed: 0 this host, 1 all, 2 a group, 3 another host.
    PacketType,
    /// Mark of the packet.
    Mark,
    /// Mark of its connection.
    ConnMark,
    /// What was translated of its connection: 1 the source, 2 the destination.
    Translated,
    /// Bytes of the IP packet.
    Length,
    /// Time to live or hop limit.
    Ttl,
    /// Type of service or traffic class.
    Tos,
}

/// [`Field::Protocol`] of a packet without an upper layer, as IPv6 has.
pub const NO_PROTOCOL: u128 = 256;

impl Field {
    /// Every field.
    pub const ALL: [Self; 18] = [
        Self::Source,
        Self::Destination,
        Self::Protocol,
        Self::SourcePort,
        Self::DestinationPort,
        Self::TcpFlags,
        Self::IcmpType,
        Self::IcmpCode,
        Self::SourceMac,
        Self::SourceType,
        Self::DestinationType,
        Self::PacketType,
        Self::Mark,
        Self::ConnMark,
        Self::Translated,
        Self::Length,
        Self::Ttl,
        Self::Tos,
    ];

    /// Returns the field's width in bits.
    #[must_use]
    pub fn bits(self, family: Family) -> u32 {
        match self {
            Self::Source | Self::Destination => family.addr_len() as u32 * 8,
            Self::Protocol => 9,
            Self::SourcePort | Self::DestinationPort => 16,
            Self::TcpFlags | Self::IcmpType | Self::IcmpCode | Self::Ttl | Self::Tos => 8,
            Self::SourceMac => 48,
            Self::SourceType | Self::DestinationType => 4,
            Self::PacketType | Self::Translated => 2,
            Self::Mark | Self::ConnMark | Self::Length => 32,
        }
    }
}

/// What a test asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicate {
    /// All of them hold; of none, it always does.
    All(Vec<Self>),
    /// One of them holds; of none, it never does.
    Any(Vec<Self>),
    /// The predicate does not hold.
    Not(Box<Self>),
    /// `(field & mask) == value`.
    Masked {
        /// The field.
        field: Field,
        /// The value to compare with.
        value: u128,
        /// The bits that count.
        mask: u128,
    },
    /// `low <= field <= high`; never where `high` is less.
    Range {
        /// The field.
        field: Field,
        /// Lowest value.
        low: u128,
        /// Highest value.
        high: u128,
    },
    /// The name of the input interface; empty where there is none.
    Input(IfaceTest),
    /// The name of the output interface; empty where there is none.
    Output(IfaceTest),
    /// The connection's state is one of these.
    State(States),
    /// The packet has an upper-layer header.
    HasHeader,
    /// The packet is a fragment that does not start its packet.
    LaterFragment,
    /// The packet came in an Ethernet frame.
    HasMac,
}

/// The types of addresses by their numbers in [`Field::SourceType`] and [`Field::DestinationType`].
pub use crate::ext::address_types::{
    NAMES as ADDRESS_TYPES, TypeRange, possible_types, type_ranges,
};

/// What becomes of a bit of a field under a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bit {
    /// The bit has this value.
    Is(bool),
    /// The bit equals that bit of a field, counted from the least; or its contrary.
    Of {
        /// The field.
        field: Field,
        /// The bit of the field.
        bit: u32,
        /// The contrary.
        inverted: bool,
    },
    /// The bit is not known.
    Lost,
}

/// A bit that a target changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The field.
    pub field: Field,
    /// The bit, counted from the least.
    pub bit: u32,
    /// What becomes of it.
    pub to: Bit,
    /// Whether the bit belongs to the connection; packets without a connection then keep what they have.
    pub of_connection: bool,
}

impl Change {
    /// A bit of the packet's own.
    #[must_use]
    pub fn new(field: Field, bit: u32, to: Bit) -> Self {
        Self { field, bit, to, of_connection: false }
    }

    /// Returns changes that make the lowest `bits` bits of a field unknown.
    #[must_use]
    pub fn lost(field: Field, bits: u32) -> Vec<Self> {
        (0..bits).map(|bit| Self::new(field, bit, Bit::Lost)).collect()
    }

    /// `field = (field & !mask) ^ value`.
    #[must_use]
    pub fn masked(field: Field, bits: u32, value: u128, mask: u128) -> Vec<Self> {
        let changes = (0..bits).filter_map(|bit| {
            let is_one = value >> bit & 1 == 1;
            let to = match mask >> bit & 1 {
                1 => Bit::Is(is_one),
                _ if is_one => Bit::Of { field, bit, inverted: true },
                _ => return None,
            };
            Some(Self::new(field, bit, to))
        });
        changes.collect()
    }
}

impl Predicate {
    /// Holds for every packet.
    pub const ALWAYS: Self = Self::All(Vec::new());
    /// Holds for none.
    pub const NEVER: Self = Self::Any(Vec::new());

    /// Returns the predicate, or its contrary.
    #[must_use]
    pub fn inverted(self, invert: bool) -> Self {
        if invert { Self::Not(Box::new(self)) } else { self }
    }

    /// A range of a field with both ends, or all that is outside it.
    #[must_use]
    pub fn range(field: Field, (low, high): (u16, u16), invert: bool) -> Self {
        Self::Range { field, low: low.into(), high: high.into() }.inverted(invert)
    }

    /// One value of a field.
    #[must_use]
    pub fn is(field: Field, value: u128) -> Self {
        Self::Range { field, low: value, high: value }
    }

    /// The packet has a connection.
    #[must_use]
    pub fn has_connection() -> Self {
        let states = [CtState::New, CtState::Established, CtState::Related];
        let states = states.into_iter().map(States::of).reduce(States::or);
        states.map_or(Self::NEVER, Self::State)
    }

    /// Some bits of a byte.
    #[must_use]
    pub fn byte(field: Field, value: u8, mask: u8) -> Self {
        Self::Masked { field, value: value.into(), mask: mask.into() }
    }

    /// Asks for the upper-layer header, so that no packet without one passes, and for these tests.
    #[must_use]
    pub fn of_header(tests: impl IntoIterator<Item = Self>) -> Self {
        Self::All([Self::HasHeader].into_iter().chain(tests).collect())
    }

    /// Whether it holds for a packet with these values.
    #[must_use]
    pub fn holds(&self, packet: &Values) -> bool {
        match self {
            Self::All(all) => all.iter().all(|one| one.holds(packet)),
            Self::Any(any) => any.iter().any(|one| one.holds(packet)),
            Self::Not(one) => !one.holds(packet),
            Self::Masked { field, value, mask } => packet.number(*field) & mask == *value,
            Self::Range { field, low, high } => (low..=high).contains(&&packet.number(*field)),
            Self::Input(test) => test.accepts(&packet.input),
            Self::Output(test) => test.accepts(&packet.output),
            Self::State(states) => states.may_be(packet.state),
            Self::HasHeader => packet.form == Form::Whole,
            Self::LaterFragment => packet.form == Form::LaterFragment,
            Self::HasMac => packet.has_mac,
        }
    }
}

/// What there is of a packet's upper layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The header.
    Whole,
    /// A piece of a packet whose header is in another one.
    LaterFragment,
    /// Nothing.
    Bare,
}

/// A packet's values, as predicates ask for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    numbers: [u128; Field::ALL.len()],
    /// Name of the input interface, empty where there is none.
    pub input: String,
    /// Name of the output interface, likewise.
    pub output: String,
    /// The state of its connection.
    pub state: CtState,
    /// What there is of its upper layer.
    pub form: Form,
    /// Whether the packet has an Ethernet header.
    pub has_mac: bool,
    /// What its connection is said to be, mark and translation, counts.
    pub has_flow: bool,
}

impl Default for Values {
    /// A whole packet that begins a connection, all else zero.
    fn default() -> Self {
        Self {
            numbers: [0; Field::ALL.len()],
            input: String::new(),
            output: String::new(),
            state: CtState::New,
            form: Form::Whole,
            has_mac: true,
            has_flow: false,
        }
    }
}

impl Values {
    /// The value of a field.
    #[must_use]
    pub fn number(&self, field: Field) -> u128 {
        self.numbers[field as usize]
    }

    /// Sets the value of a field.
    pub fn set(&mut self, field: Field, value: u128) {
        self.numbers[field as usize] = value;
    }
}

impl Header {
    /// Each of its tests; `None` where one of them can only be asked.
    #[must_use]
    pub fn predicate(&self, family: Family) -> Option<Predicate> {
        let has_more = self.logical_input().is_some() || self.logical_output().is_some();
        if !family.is_ip() || has_more || !self.fields().is_empty() {
            return None;
        }
        let source = self.source().map(|test| test.predicate(Field::Source, family));
        let destination = self.destination().map(|test| test.predicate(Field::Destination, family));
        let protocol = self.protocol().map(|test| {
            let same = Predicate::byte_of_protocol(test.number);
            // A packet without a protocol has none that is another, either.
            let any = Predicate::Range { field: Field::Protocol, low: 0, high: 255 };
            Predicate::All(vec![any, same.inverted(test.invert)])
        });
        let input = self.input().cloned().map(Predicate::Input);
        let output = self.output().cloned().map(Predicate::Output);
        let fragment = self.fragment().map(|invert| Predicate::LaterFragment.inverted(invert));
        let tests = [source, destination, input, output, protocol, fragment];
        Some(Predicate::All(tests.into_iter().flatten().collect()))
    }
}

impl Predicate {
    fn byte_of_protocol(number: u8) -> Self {
        let number = number.into();
        Self::Range { field: Field::Protocol, low: number, high: number }
    }
}

impl MaskedAddr {
    fn predicate(&self, field: Field, family: Family) -> Predicate {
        let len = family.addr_len();
        let (value, mask) = (number(&self.addr[..len]), number(&self.mask[..len]));
        Predicate::Masked { field, value, mask }.inverted(self.invert)
    }
}

/// Bytes in network order as a number.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}
