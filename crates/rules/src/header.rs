//! [`Header`]: what a rule tests by itself, without an extension: addresses, interfaces, protocol, single fields.
//!
//! One form for every family; the text decides which of the tests a family has. [`HeaderTests`] has them side by side,
//! as a line of text is read; a rule keeps them packed, since there may be a hundred thousand rules: addresses with the
//! length of their prefix, and what few rules have in one place of its own.
//!
//! Source: iptables(8), arptables-nft(8), ebtables-nft(8).

use crate::family::Family;
use crate::value::{self, prefix_mask};

/// The tests that every rule of a family may hold without an extension, side by side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderTests {
    /// `-s`.
    pub source: Option<MaskedAddr>,
    /// `-d`.
    pub destination: Option<MaskedAddr>,
    /// `-i`.
    pub input: Option<IfaceTest>,
    /// `-o`.
    pub output: Option<IfaceTest>,
    /// `-p`.
    pub protocol: Option<ProtocolTest>,
    /// `-f`: `Some(true)` is `! -f`.
    pub fragment: Option<bool>,
    /// `--logical-in`: the bridge that the input interface belongs to.
    pub logical_input: Option<IfaceTest>,
    /// `--logical-out`.
    pub logical_output: Option<IfaceTest>,
    /// Tests of single fields.
    pub fields: Vec<FieldTest>,
}

/// The tests of [`HeaderTests`], packed as a rule keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    source: Option<Net>,
    destination: Option<Net>,
    protocol: Option<ProtocolTest>,
    fragment: Option<bool>,
    more: Option<Box<More>>,
}

/// An address test whose mask is mostly a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Net {
    addr: [u8; 16],
    /// Leading ones of the mask, or [`ODD`]: then the mask is in [`More::masks`].
    prefix: u8,
    invert: bool,
}

/// [`Net::prefix`] of a mask that is none.
const ODD: u8 = u8::MAX;

/// What most rules do not have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct More {
    input: Option<IfaceTest>,
    output: Option<IfaceTest>,
    logical_input: Option<IfaceTest>,
    logical_output: Option<IfaceTest>,
    fields: Vec<FieldTest>,
    /// Masks of source and destination that are no prefixes.
    masks: [[u8; 16]; 2],
}

impl Net {
    fn of(test: MaskedAddr, odd: &mut [u8; 16]) -> Self {
        let MaskedAddr { addr, mask, invert } = test;
        let prefix = u128::from_be_bytes(mask).leading_ones() as u8;
        if prefix_mask(prefix.into()) == mask {
            return Self { addr, prefix, invert };
        }
        *odd = mask;
        Self { addr, prefix: ODD, invert }
    }
}

impl From<HeaderTests> for Header {
    fn from(tests: HeaderTests) -> Self {
        let HeaderTests { source, destination, protocol, fragment, .. } = tests;
        let mut more = More {
            input: tests.input,
            output: tests.output,
            logical_input: tests.logical_input,
            logical_output: tests.logical_output,
            fields: tests.fields,
            masks: Default::default(),
        };
        let [of_source, of_destination] = &mut more.masks;
        let source = source.map(|test| Net::of(test, of_source));
        let destination = destination.map(|test| Net::of(test, of_destination));
        let more = (more != More::default()).then(|| Box::new(more));
        Self { source, destination, protocol, fragment, more }
    }
}

impl Header {
    /// `-s`.
    #[must_use]
    #[inline]
    pub fn source(&self) -> Option<MaskedAddr> {
        self.address(self.source?, 0)
    }

    /// `-d`.
    #[must_use]
    #[inline]
    pub fn destination(&self) -> Option<MaskedAddr> {
        self.address(self.destination?, 1)
    }

    #[inline]
    fn address(&self, net: Net, side: usize) -> Option<MaskedAddr> {
        let Net { addr, prefix, invert } = net;
        let mask = match &self.more {
            Some(more) if prefix == ODD => *more.masks.get(side)?,
            _ => prefix_mask(prefix.into()),
        };
        Some(MaskedAddr { addr, mask, invert })
    }

    /// `-i`.
    #[must_use]
    pub fn input(&self) -> Option<&IfaceTest> {
        self.more.as_ref()?.input.as_ref()
    }

    /// `-o`.
    #[must_use]
    pub fn output(&self) -> Option<&IfaceTest> {
        self.more.as_ref()?.output.as_ref()
    }

    /// `-p`.
    #[must_use]
    pub fn protocol(&self) -> Option<ProtocolTest> {
        self.protocol
    }

    /// `-f`: `Some(true)` is `! -f`.
    #[must_use]
    pub fn fragment(&self) -> Option<bool> {
        self.fragment
    }

    /// `--logical-in`: the bridge that the input interface belongs to.
    #[must_use]
    pub fn logical_input(&self) -> Option<&IfaceTest> {
        self.more.as_ref()?.logical_input.as_ref()
    }

    /// `--logical-out`.
    #[must_use]
    pub fn logical_output(&self) -> Option<&IfaceTest> {
        self.more.as_ref()?.logical_output.as_ref()
    }

    /// Tests of single fields.
    #[must_use]
    pub fn fields(&self) -> &[FieldTest] {
        self.more.as_ref().map_or(&[], |more| &more.fields)
    }

    /// Bytes that are allocated for what most rules do not have, without names and lists of fields.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.more.as_ref().map_or(0, |_| size_of::<More>())
    }

    /// Returns the tests, side by side.
    #[must_use]
    pub fn tests(&self) -> HeaderTests {
        HeaderTests {
            source: self.source(),
            destination: self.destination(),
            input: self.input().cloned(),
            output: self.output().cloned(),
            protocol: self.protocol,
            fragment: self.fragment,
            logical_input: self.logical_input().cloned(),
            logical_output: self.logical_output().cloned(),
            fields: self.fields().to_vec(),
        }
    }
}

/// A field of the link or network header that rules test by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// The EtherType: that of a VLAN tag where there is one, [`packet::LinkHeader::LLC`] for 802.3 frames.
    EtherType,
    /// ARP hardware type.
    HardwareType,
    /// ARP protocol type.
    ProtocolType,
    /// Bytes of an ARP hardware address.
    HardwareLen,
    /// ARP operation.
    Operation,
    /// ARP sender hardware address.
    SenderHardware,
    /// ARP target hardware address.
    TargetHardware,
}

/// A field test: `(field & mask) == value`, XOR `invert`. Fields of fewer than six bytes are the first ones,
/// in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldTest {
    /// Which field.
    pub field: Field,
    /// The value to compare, as written.
    pub value: [u8; 6],
    /// The bits of the value that count.
    pub mask: [u8; 6],
    /// `!`.
    pub invert: bool,
}

impl FieldTest {
    /// The test that a 16-bit field is this number.
    #[must_use]
    pub fn number(field: Field, number: u16, invert: bool) -> Self {
        let [high, low] = number.to_be_bytes();
        Self { field, value: [high, low, 0, 0, 0, 0], mask: [0xff, 0xff, 0, 0, 0, 0], invert }
    }

    /// Whether these bytes of the field pass.
    #[must_use]
    pub fn accepts(&self, bytes: &[u8]) -> bool {
        let same = |((byte, value), mask): ((&u8, &u8), &u8)| (byte ^ value) & mask == 0;
        bytes.iter().zip(&self.value).zip(&self.mask).all(same) != self.invert
    }

    /// The first two bytes of the value.
    #[must_use]
    pub fn value_u16(&self) -> u16 {
        u16::from_be_bytes([self.value[0], self.value[1]])
    }
}

/// An address test: `(packet & mask) == addr`, XOR `invert`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskedAddr {
    /// Address bytes in network order; IPv4 uses the first 4. Already masked.
    pub addr: [u8; 16],
    /// Mask bytes in network order.
    pub mask: [u8; 16],
    /// `!`.
    pub invert: bool,
}

/// An interface name test; a trailing `+` in the text makes it a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfaceTest {
    /// The name, without the `+`.
    pub name: Box<str>,
    /// Whether it is a prefix.
    pub prefix: bool,
    /// `!`.
    pub invert: bool,
}

/// A protocol test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolTest {
    /// IANA number; 0 means any.
    pub number: u8,
    /// `!`.
    pub invert: bool,
}

impl IfaceTest {
    /// Whether an interface of this name passes, `!` included.
    #[must_use]
    pub fn accepts(&self, name: &str) -> bool {
        let same = if self.prefix { name.starts_with(&*self.name) } else { name == &*self.name };
        same != self.invert
    }
}

impl MaskedAddr {
    /// Whether an address, of as many bytes as it has, passes.
    #[must_use]
    pub fn accepts(&self, addr: &[u8]) -> bool {
        let same = |((byte, value), mask): ((&u8, &u8), &u8)| (byte ^ value) & mask == 0;
        addr.iter().zip(&self.addr).zip(&self.mask).all(same) != self.invert
    }

    /// `address/prefix`, without the `!`.
    #[must_use]
    pub fn text(&self, family: Family) -> String {
        let len = family.addr_len();
        match family {
            Family::Bridge => value::masked_mac_name(&self.addr[..6], &self.mask[..6]),
            Family::Arp => value::short_network_text(&self.addr, &self.mask, len),
            Family::Ipv4 | Family::Ipv6 => value::network_text(&self.addr, &self.mask, len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(mask: [u8; 16]) -> MaskedAddr {
        MaskedAddr {
            addr: std::array::from_fn(|i| i as u8 & mask[i]),
            mask,
            invert: mask[0] & 1 == 0,
        }
    }

    #[test]
    fn what_is_packed_comes_out_as_it_was() {
        let masks = (0..=128).map(prefix_mask).chain([
            [0xff, 0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        ]);
        let name = || Some(IfaceTest { name: "eth0".into(), prefix: true, invert: false });
        for mask in masks {
            let (source, destination) = (Some(address(mask)), Some(address([0xfe; 16])));
            let field = FieldTest::number(Field::Operation, 1, true);
            for tests in [
                HeaderTests { source, ..HeaderTests::default() },
                HeaderTests { destination: source, fragment: Some(true), ..HeaderTests::default() },
                HeaderTests { source: destination, destination: source, ..HeaderTests::default() },
                HeaderTests { source, input: name(), ..HeaderTests::default() },
                HeaderTests { output: name(), logical_input: name(), ..HeaderTests::default() },
                HeaderTests {
                    logical_output: name(),
                    fields: vec![field],
                    ..HeaderTests::default()
                },
                HeaderTests {
                    protocol: Some(ProtocolTest { number: 6, invert: true }),
                    ..HeaderTests::default()
                },
            ] {
                assert_eq!(Header::from(tests.clone()).tests(), tests);
            }
        }
    }

    #[test]
    fn a_rule_of_addresses_needs_no_room_of_its_own() {
        let tests = HeaderTests { source: Some(address(prefix_mask(24))), ..Default::default() };
        assert_eq!(Header::from(tests).allocated(), 0);
        assert!(size_of::<Option<Header>>() <= 48, "{}", size_of::<Option<Header>>());
    }
}
