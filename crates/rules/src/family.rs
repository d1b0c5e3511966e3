//! [`Family`] and [`Hook`], and what differs between families, as values: names, tables, where those are attached.
//!
//! Source: iptables(8) and ip6tables(8) "TABLES"; for priorities `NF_IP_PRI_*` in the kernel's
//! `include/uapi/linux/netfilter_ipv4.h` and `NF_BR_PRI_*` in `netfilter_bridge.h`.

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
    /// Every hook.
    pub const ALL: [Self; 6] = [
        Self::Prerouting,
        Self::Input,
        Self::Forward,
        Self::Output,
        Self::Postrouting,
        Self::Brouting,
    ];

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
    /// The table's name.
    pub name: &'static str,
    /// What it is for.
    pub role: Role,
    /// The built-in chains, in the order in which the save tool prints them.
    pub attachments: &'static [Attachment],
}

/// What a table is for, as far as a walk treats it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What it accepts counts most.
    Filter,
    /// The table's chains decide once for each flow, which is then translated here. What they accept says nothing.
    Translate,
    /// Own packets that the table's chains change are routed again.
    Mangle,
    /// The table gives a bridge's frames other addresses. What it accepts says nothing either.
    Readdress,
    /// The table's chains see every packet, and walks treat it in no special way.
    Other,
}

/// A place where a table's chain sees packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attachment {
    /// The hook, which names the chain.
    pub hook: Hook,
    /// The priority at the hook: lower ones come first.
    pub priority: i32,
}

/// Where connections are tracked (`NF_IP_PRI_CONNTRACK`): what is attached before it sees packets without one.
pub const CONNTRACK: i32 = -200;

/// Where fragments are put together (`NF_IP_PRI_CONNTRACK_DEFRAG`): what is attached before it sees each by itself.
pub const DEFRAG: i32 = -400;

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

    /// The hooks that it is attached to.
    pub fn hooks(&self) -> impl Iterator<Item = Hook> + use<> {
        self.attachments.iter().map(|attachment| attachment.hook)
    }

    /// Returns the table's priority at a hook; `None` where it is not attached.
    #[must_use]
    pub fn priority(&self, hook: Hook) -> Option<i32> {
        self.attachments.iter().find(|at| at.hook == hook).map(|at| at.priority)
    }
}

use Hook::{Brouting, Forward, Input, Output, Postrouting, Prerouting};

const fn at(hook: Hook, priority: i32) -> Attachment {
    Attachment { hook, priority }
}

/// Tables of IPv4 and IPv6.
const IP_TABLES: &[TableKind] = &[
    TableKind {
        name: TableKind::RAW,
        role: Role::Other,
        attachments: &[at(Prerouting, -300), at(Output, -300)],
    },
    TableKind {
        name: TableKind::MANGLE,
        role: Role::Mangle,
        attachments: &[
            at(Prerouting, -150),
            at(Input, -150),
            at(Forward, -150),
            at(Output, -150),
            at(Postrouting, -150),
        ],
    },
    // Destinations are translated before the filter, sources after it.
    TableKind {
        name: TableKind::NAT,
        role: Role::Translate,
        attachments: &[
            at(Prerouting, -100),
            at(Input, 100),
            at(Output, -100),
            at(Postrouting, 100),
        ],
    },
    TableKind {
        name: TableKind::FILTER,
        role: Role::Filter,
        attachments: &[at(Input, 0), at(Forward, 0), at(Output, 0)],
    },
    TableKind {
        name: TableKind::SECURITY,
        role: Role::Other,
        attachments: &[at(Input, 50), at(Forward, 50), at(Output, 50)],
    },
];

/// Tables of ARP.
const ARP_TABLES: &[TableKind] = &[TableKind {
    name: TableKind::FILTER,
    role: Role::Filter,
    attachments: &[at(Input, 0), at(Output, 0), at(Forward, 0)],
}];

/// Tables of bridges.
const BRIDGE_TABLES: &[TableKind] = &[
    TableKind {
        name: TableKind::BROUTE,
        role: Role::Other,
        attachments: &[at(Brouting, i32::MIN)],
    },
    TableKind {
        name: TableKind::NAT,
        role: Role::Readdress,
        attachments: &[at(Prerouting, -300), at(Output, 100), at(Postrouting, 300)],
    },
    TableKind {
        name: TableKind::FILTER,
        role: Role::Filter,
        attachments: &[at(Input, -200), at(Forward, -200), at(Output, 200)],
    },
];

impl Family {
    /// Every family.
    pub const ALL: [Self; 4] = [Self::Ipv4, Self::Ipv6, Self::Arp, Self::Bridge];

    /// Whether its packets are routed: they have connections, translations and a time to live.
    #[must_use]
    pub fn is_ip(self) -> bool {
        matches!(self, Self::Ipv4 | Self::Ipv6)
    }

    /// The tables of this family, in the order of the save tool.
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
