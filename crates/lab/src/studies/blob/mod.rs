//! Translators from and to the kernel's own form of a table of iptables, ip6tables and arptables, in which programs get it and set it,
//! as the third study wants besides its one format: for programs of 64 bits, and of 32.
//!
//! A table is a run of entries: of each chain its rules and a last one, the policy or an invisible RETURN; a user chain
//! begins with an entry `ERROR` that holds its name, and one more ends the run. An entry is the family's header, matches,
//! and a target; a jump holds the offset of the entry that comes next, a verdict a negative number.
//!
//! Contract: what one side has and the other cannot say is an error, never left out; but for counters of the invisible
//! RETURN, which text does not have. `comefrom` is what the kernel works out: the hooks from which an entry is reached.
//! Extensions: `CODECS` of `extensions.rs`.
//! Source: `linux/netfilter/x_tables.h`, `linux/netfilter_ipv4/ip_tables.h`, `linux/netfilter_ipv6/ip6_tables.h`, `linux/netfilter_arp/arp_tables.h`; the
//! order of bits by the kernel's `mark_source_chains`.

mod arp;
mod bytes;
mod extensions;
mod header;
mod options;
mod read;
mod tracked;
mod write;

use rules::model::{Family, Hook};

pub use read::read;
pub use write::write;

/// The programs that a table is laid out for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Of this machine's own kind.
    Bits64,
    /// Of 32 bits: what holds 8 bytes begins at 4, and pointers have 4 (`compat`).
    Bits32,
}

/// A table as programs get it from the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// For which programs.
    pub width: Width,
    /// IPv4, IPv6 or ARP.
    pub family: Family,
    /// The table's name.
    pub table: String,
    /// Where the chain of each hook begins, and its policy's entry.
    pub hooks: Vec<(Hook, u32, u32)>,
    /// Entries, the last one included.
    pub count: u32,
    /// Their bytes.
    pub entries: Vec<u8>,
}

/// Hooks in the kernel's order, of iptables and ip6tables.
const HOOKS: [Hook; 5] =
    [Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting];
/// Of arptables.
const ARP_HOOKS: [Hook; 3] = [Hook::Input, Hook::Output, Hook::Forward];

/// A family's hooks in the kernel's order.
#[must_use]
pub fn hooks(family: Family) -> &'static [Hook] {
    if family == Family::Arp { &ARP_HOOKS } else { &HOOKS }
}

/// The target of a verdict or a jump, which has no name, and that of a chain's head.
const STANDARD: &str = "";
const ERROR: &str = "ERROR";
/// Bytes of `struct xt_entry_match` and `xt_entry_target`: size, name, revision.
const USE: usize = 32;
const USE_NAME: usize = 29;
const REVISION: usize = 31;

/// Verdicts as the kernel numbers them.
const DROP: i32 = -1;
const ACCEPT: i32 = -2;
const RETURN: i32 = -5;

/// Where the fields of a family's entry are.
struct Shape {
    /// Bytes of the family's header.
    header: usize,
    target: usize,
    next: usize,
    comefrom: usize,
    counters: usize,
    len: usize,
}

impl Width {
    /// What begins with 8 bytes begins at a multiple of this.
    fn align(self) -> usize {
        if self == Self::Bits64 { 8 } else { 4 }
    }

    fn aligned(self, len: usize) -> usize {
        len.next_multiple_of(self.align())
    }

    fn shape(self, family: Family) -> Shape {
        // What ARP has no room for is `nfcache`.
        let (header, target) = match family {
            Family::Ipv6 => (136, 140),
            Family::Arp => (arp::LEN, arp::LEN),
            _ => (84, 88),
        };
        let comefrom = target + 4;
        let counters = self.aligned(comefrom + 4);
        let len = counters + 16;
        Shape { header, target, next: target + 2, comefrom, counters, len }
    }
}

#[cfg(test)]
mod tests;
