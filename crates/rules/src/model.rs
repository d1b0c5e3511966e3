//! The ruleset as a person edits it: tables, chains and rules in file order.
//!
//! One form for every family; what differs between families is a value ([`Family`] and the tables in
//! [`crate::TableKind`]). Nothing in here evaluates: see [`crate::eval`].
//!
//! Source: iptables(8), ip6tables(8), iptables-save(8).

use std::fmt;
use std::sync::Arc;

use crate::ext::kit::value;
use crate::ext::{MatchUse, TargetUse};
use crate::semantics::Semantics;

/// Protocol family of a ruleset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4 (iptables).
    Ipv4,
    /// IPv6 (ip6tables).
    Ipv6,
    /// ARP (arptables).
    Arp,
    /// Ethernet bridge (ebtables).
    Bridge,
}

/// A place in the stack at which built-in chains are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hook {
    /// On arrival, before any routing decision.
    Prerouting,
    /// To this host.
    Input,
    /// Through this host.
    Forward,
    /// From this host.
    Output,
    /// On departure, after routing.
    Postrouting,
    /// Bridge only: before the decision to bridge.
    Brouting,
}

/// What happens to a packet that falls off a built-in chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Go on to the next hook.
    Accept,
    /// Drop silently.
    Drop,
}

/// Packets and bytes of a rule or policy, as `iptables-save -c` prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets.
    pub packets: u64,
    /// Bytes, as the kernel counts them for the family.
    pub bytes: u64,
}

/// A whole ruleset of one family.
#[derive(Debug)]
pub struct Ruleset {
    /// Its family.
    pub family: Family,
    /// What carries it out: what its text says, until someone says otherwise.
    pub semantics: Semantics,
    /// Tables in file order.
    pub tables: Vec<Table>,
}

/// One table: a set of chains that jump to each other only.
#[derive(Debug)]
pub struct Table {
    /// `filter`, `nat`, …
    pub name: &'static str,
    /// Chains in file order.
    pub chains: Vec<Chain>,
}

/// One chain.
#[derive(Debug)]
pub struct Chain {
    /// Its name, at most 28 bytes (`XT_EXTENSION_MAXNAMELEN` - 1).
    pub name: Box<str>,
    /// The hook of a built-in chain; `None` for a user chain.
    pub base: Option<Base>,
    /// What the end of a user chain does.
    pub end: End,
    /// Rules in order; rule numbers as users write them start at 1. Layouts of the chain share them.
    pub rules: Vec<Arc<Rule>>,
    /// Line of the file that declared it, from 1; 0 if nothing did.
    pub line: u32,
}

/// What becomes of a packet at the end of a user chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum End {
    /// It goes back to the rule that jumped here.
    #[default]
    Return,
    /// The chain has a policy of its own.
    Policy(Policy),
}

/// What makes a chain built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// Where it is attached.
    pub hook: Hook,
    /// What it does with packets that fall off its end.
    pub policy: Policy,
    /// Counters of the policy as the file gave them.
    pub counters: Counters,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// The family's own tests (`-s -d -i -o -p -f`); `None` when the rule has none of them.
    pub header: Option<Box<Header>>,
    /// Matches in the order they are evaluated.
    pub matches: Vec<MatchUse>,
    /// What happens when all of them match.
    pub action: Action,
    /// Counters as the file gave them.
    pub counters: Counters,
    /// Line of the file, from 1.
    pub line: u32,
    /// Where its counters stand in a worker's array; stays with the rule through every update.
    pub slot: u32,
}

/// What a rule does with a packet that it matches.
#[derive(Debug)]
pub enum Action {
    /// No `-j`: count and go on.
    None,
    /// `-j ACCEPT`.
    Accept,
    /// `-j DROP`.
    Drop,
    /// `-j RETURN`.
    Return,
    /// `-j CHAIN`, by index in [`Table::chains`].
    Jump(u32),
    /// `-g CHAIN`, by index in [`Table::chains`].
    Goto(u32),
    /// `-j TARGET` of an extension.
    Target(TargetUse),
}

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

impl Ruleset {
    /// The table of this name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Number of chains in all tables.
    #[must_use]
    pub fn chain_count(&self) -> usize {
        self.tables.iter().map(|table| table.chains.len()).sum()
    }

    /// Number of rules in all chains.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.tables.iter().flat_map(|table| &table.chains).map(|chain| chain.rules.len()).sum()
    }
}

impl Table {
    /// Index of the chain of this name.
    #[must_use]
    pub fn chain_index(&self, name: &str) -> Option<usize> {
        self.chains.iter().position(|chain| &*chain.name == name)
    }

    /// Index of the built-in chain at this hook.
    #[must_use]
    pub fn base_chain(&self, hook: Hook) -> Option<usize> {
        self.chains.iter().position(|chain| chain.base.is_some_and(|base| base.hook == hook))
    }
}

impl Hook {
    /// The name of the built-in chain at this hook.
    #[must_use]
    pub fn chain_name(self) -> &'static str {
        match self {
            Self::Prerouting => "PREROUTING",
            Self::Input => "INPUT",
            Self::Forward => "FORWARD",
            Self::Output => "OUTPUT",
            Self::Postrouting => "POSTROUTING",
            Self::Brouting => "BROUTING",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accept => "ACCEPT",
            Self::Drop => "DROP",
        })
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}:{}]", self.packets, self.bytes)
    }
}
