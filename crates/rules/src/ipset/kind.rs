//! The types of sets: what each dimension of an element is.
//!
//! Source: ipset(8) "SET TYPES"; the dimensions of `ip_set_hash_*.c`, `ip_set_bitmap_*.c` and
//! `ip_set_list_set.c` in the kernel's `net/netfilter/ipset`.

/// What one dimension of an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dim {
    /// One address, or one network of a size that the set fixes.
    Ip,
    /// A network of any size.
    Net,
    /// A protocol and a port, or an ICMP type and code.
    Port,
    /// A TCP or UDP port alone.
    BarePort,
    /// An interface name.
    Iface,
    /// An Ethernet address.
    Mac,
    /// The packet mark.
    Mark,
    /// Another set.
    Set,
}

/// A type of set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// The type's name after `create SET`.
    pub(super) name: &'static str,
    /// The type's dimensions.
    pub(super) dims: &'static [Dim],
    /// Elements lie in a range that the set names.
    pub(super) is_bitmap: bool,
}

const fn hash(name: &'static str, dims: &'static [Dim]) -> Kind {
    Kind { name, dims, is_bitmap: false }
}

const fn bitmap(name: &'static str, dims: &'static [Dim]) -> Kind {
    Kind { name, dims, is_bitmap: true }
}

use Dim::{BarePort, Iface, Ip, Mac, Mark, Net, Port, Set};

/// Every type.
pub(super) static KINDS: &[Kind] = &[
    hash("hash:ip", &[Ip]),
    hash("hash:net", &[Net]),
    hash("hash:ip,port", &[Ip, Port]),
    hash("hash:ip,port,ip", &[Ip, Port, Ip]),
    hash("hash:ip,port,net", &[Ip, Port, Net]),
    hash("hash:net,port", &[Net, Port]),
    hash("hash:net,iface", &[Net, Iface]),
    hash("hash:net,net", &[Net, Net]),
    hash("hash:net,port,net", &[Net, Port, Net]),
    hash("hash:mac", &[Mac]),
    hash("hash:ip,mac", &[Ip, Mac]),
    hash("hash:ip,mark", &[Ip, Mark]),
    bitmap("bitmap:ip", &[Ip]),
    bitmap("bitmap:ip,mac", &[Ip, Mac]),
    bitmap("bitmap:port", &[BarePort]),
    hash("list:set", &[Set]),
];

impl Kind {
    /// The type of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Whether a dimension is of this sort.
    pub(super) fn has(&self, dim: Dim) -> bool {
        self.dims.contains(&dim)
    }

    /// Whether its elements hold addresses, and so are of one family.
    pub(super) fn has_family(&self) -> bool {
        self.has(Ip) || self.has(Net)
    }

    /// An element may lack its MAC address, which the first packet then fills in.
    pub(super) fn fills_mac(&self) -> bool {
        self.is_bitmap && self.has(Mac)
    }
}
