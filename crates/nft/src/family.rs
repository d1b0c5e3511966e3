//! Families of tables, and places in text.

/// A family of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
    /// Both.
    Inet,
    /// ARP.
    Arp,
    /// Frames on bridges.
    Bridge,
    /// Frames on devices.
    Netdev,
}

const FAMILIES: [(&str, Family); 6] = [
    ("ip", Family::Ip),
    ("ip6", Family::Ip6),
    ("inet", Family::Inet),
    ("arp", Family::Arp),
    ("bridge", Family::Bridge),
    ("netdev", Family::Netdev),
];

impl Family {
    /// Finds a family by its name.
    pub fn find(name: &str) -> Option<Self> {
        FAMILIES.iter().find(|family| family.0 == name).map(|family| family.1)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        FAMILIES[self as usize].0
    }
}

/// A place in text, from 1; 0 of a rule that came as JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column, in bytes.
    pub column: u32,
    /// The file: 0 is the first, others in the order of `include`.
    pub file: u16,
}
