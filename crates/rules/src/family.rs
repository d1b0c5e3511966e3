//! [`Family`] and [`Hook`], and what differs between families, as values: names, tables, hooks.
//!
//! Source: iptables(8) and ip6tables(8) "TABLES"; `NF_IP_PRI_*` in the kernel's
//! `include/uapi/linux/netfilter_ipv4.h` for the order of tables at a hook.

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

/// A table that a family knows.
#[derive(Debug)]
pub struct TableKind {
    /// Its name.
    pub name: &'static str,
    /// Hooks with a built-in chain, in the order in which the save tool prints them.
    pub hooks: &'static [Hook],
}

impl TableKind {
    /// Decides what passes.
    pub const FILTER: &str = "filter";
    /// Translates addresses.
    pub const NAT: &str = "nat";
    /// Before connection tracking.
    pub const RAW: &str = "raw";
    /// Changes packets.
    pub const MANGLE: &str = "mangle";
    /// Marks packets for mandatory access control.
    pub const SECURITY: &str = "security";
    /// Decides what a bridge routes instead.
    pub const BROUTE: &str = "broute";
}

use Hook::{Brouting, Forward, Input, Output, Postrouting, Prerouting};

/// Tables of IPv4 and IPv6 in the order in which they are walked at a hook. `nat` stands where
/// destination NAT does; at POSTROUTING and INPUT it comes last as well.
const IP_TABLES: &[TableKind] = &[
    TableKind { name: TableKind::RAW, hooks: &[Prerouting, Output] },
    TableKind {
        name: TableKind::MANGLE,
        hooks: &[Prerouting, Input, Forward, Output, Postrouting],
    },
    TableKind { name: TableKind::NAT, hooks: &[Prerouting, Input, Output, Postrouting] },
    TableKind { name: TableKind::FILTER, hooks: &[Input, Forward, Output] },
    TableKind { name: TableKind::SECURITY, hooks: &[Input, Forward, Output] },
];

/// Tables of ARP.
const ARP_TABLES: &[TableKind] =
    &[TableKind { name: TableKind::FILTER, hooks: &[Input, Output, Forward] }];

/// Tables of bridges, in the order in which they are walked.
const BRIDGE_TABLES: &[TableKind] = &[
    TableKind { name: TableKind::BROUTE, hooks: &[Brouting] },
    TableKind { name: TableKind::NAT, hooks: &[Prerouting, Output, Postrouting] },
    TableKind { name: TableKind::FILTER, hooks: &[Input, Forward, Output] },
];

impl Family {
    /// Every family.
    pub const ALL: [Self; 4] = [Self::Ipv4, Self::Ipv6, Self::Arp, Self::Bridge];

    /// Whether its packets are routed: they have connections, translations and a time to live.
    #[must_use]
    pub fn is_ip(self) -> bool {
        matches!(self, Self::Ipv4 | Self::Ipv6)
    }

    /// The tables of this family, in the order in which a hook walks them.
    #[must_use]
    pub fn tables(self) -> &'static [TableKind] {
        match self {
            Self::Ipv4 | Self::Ipv6 => IP_TABLES,
            Self::Arp => ARP_TABLES,
            Self::Bridge => BRIDGE_TABLES,
        }
    }

    /// The table of this name, if the family knows it.
    #[must_use]
    pub fn table(self, name: &str) -> Option<&'static TableKind> {
        self.tables().iter().find(|table| table.name == name)
    }

    /// The name as `--family` and the JSON spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "ip",
            Self::Ipv6 => "ip6",
            Self::Arp => "arp",
            Self::Bridge => "bridge",
        }
    }

    /// The family of this `--family` name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// The command whose save text this family reads.
    #[must_use]
    pub fn tool(self) -> &'static str {
        match self {
            Self::Ipv4 => "iptables",
            Self::Ipv6 => "ip6tables",
            Self::Arp => "arptables",
            Self::Bridge => "ebtables",
        }
    }

    /// Bytes of an address of `-s` and `-d`.
    #[must_use]
    pub fn addr_len(self) -> usize {
        match self {
            Self::Ipv4 | Self::Arp => 4,
            Self::Ipv6 => 16,
            Self::Bridge => 6,
        }
    }
}
