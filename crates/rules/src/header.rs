//! [`Header`]: what a rule tests by itself, without an extension: addresses, interfaces, protocol, single fields.
//!
//! One form for every family; which of the tests a family has is a matter of its text.
//!
//! Source: iptables(8), arptables-nft(8), ebtables-nft(8).

use crate::family::Family;
use crate::value;

/// The tests that every rule of a family may hold without an extension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
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
    /// Its bytes, as written.
    pub value: [u8; 6],
    /// Those bits of them that count.
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
