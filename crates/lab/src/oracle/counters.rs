//! Packets and bytes of every rule, read from the kernel by getsockopt(2).
//!
//! The table comes as one run of entries. A user chain starts with an entry whose target is `ERROR` and
//! holds its name, and ends with an invisible RETURN; a built-in chain starts at its hook's offset and
//! ends with its policy. The run of entries ends with one more `ERROR`.
//!
//! Source: `linux/netfilter_ipv4/ip_tables.h`, `linux/netfilter_ipv6/ip6_tables.h`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rules::model::{Counters, Family, Hook};

use super::sys;

const SO_GET_INFO: i32 = 64;
const SO_GET_ENTRIES: i32 = 65;

const NAME_LEN: usize = 32;
/// `struct ipt_getinfo`.
const INFO_LEN: usize = 84;
const INFO_HOOK_ENTRY: usize = 36;
const INFO_SIZE: usize = 80;
/// Offset of the entries in `struct ipt_get_entries`.
const ENTRIES: usize = 40;
/// Hooks in the kernel's order.
const HOOKS: [Hook; 5] =
    [Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting];

/// Offsets in one family's entry.
struct Entry {
    target_offset: usize,
    next_offset: usize,
    counters: usize,
}

const ENTRY_V4: Entry = Entry { target_offset: 88, next_offset: 90, counters: 96 };
const ENTRY_V6: Entry = Entry { target_offset: 140, next_offset: 142, counters: 152 };

/// One chain's counters: its rules in order, then its policy (or a user chain's implicit return).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainCounters {
    /// Name of the chain.
    pub chain: String,
    /// Of each rule, and of the end of the chain last.
    pub entries: Vec<Counters>,
}

/// The socket through which tables of one family are read.
#[derive(Debug)]
pub struct Reader {
    socket: OwnedFd,
    ipv6: bool,
    buffer: Vec<u8>,
}

impl Reader {
    /// A reader of the calling thread's namespace.
    pub fn open(family: Family) -> io::Result<Self> {
        let ipv6 = family == Family::Ipv6;
        Ok(Self { socket: sys::raw_socket(ipv6)?, ipv6, buffer: Vec::new() })
    }

    /// Bytes of the blob in which the kernel holds a table; its counters are elsewhere.
    pub fn size(&self, table: &str) -> io::Result<usize> {
        Ok(u32_at(&self.info(table)?, INFO_SIZE) as usize)
    }

    fn level(&self) -> libc::c_int {
        if self.ipv6 { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP }
    }

    fn info(&self, table: &str) -> io::Result<[u8; INFO_LEN]> {
        let mut info = [0; INFO_LEN];
        info[..table.len()].copy_from_slice(table.as_bytes());
        sys::get_option(self.socket.as_fd(), self.level(), SO_GET_INFO, &mut info)?;
        Ok(info)
    }

    /// The counters of every chain of a table, in the kernel's order.
    pub fn read(&mut self, table: &str) -> io::Result<Vec<ChainCounters>> {
        let info = self.info(table)?;
        let size = u32_at(&info, INFO_SIZE) as usize;
        self.buffer.clear();
        self.buffer.resize(ENTRIES + size, 0);
        self.buffer[..table.len()].copy_from_slice(table.as_bytes());
        self.buffer[NAME_LEN..NAME_LEN + 4].copy_from_slice(&(size as u32).to_ne_bytes());
        sys::get_option(self.socket.as_fd(), self.level(), SO_GET_ENTRIES, &mut self.buffer)?;
        let entry = if self.ipv6 { &ENTRY_V6 } else { &ENTRY_V4 };
        chains(&info, &self.buffer[ENTRIES..], entry)
            .ok_or_else(|| io::Error::other(format!("table {table} makes no sense")))
    }
}

fn chains(info: &[u8], entries: &[u8], layout: &Entry) -> Option<Vec<ChainCounters>> {
    let mut chains: Vec<ChainCounters> = Vec::new();
    let mut at = 0;
    while at < entries.len() {
        let entry = entries.get(at..)?;
        let next = usize::from(u16_at(entry, layout.next_offset)?);
        let target = entry.get(usize::from(u16_at(entry, layout.target_offset)?)..next)?;
        if let Some(hook) = hook_at(info, at) {
            chains.push(ChainCounters { chain: hook.to_owned(), entries: Vec::new() });
        }
        if text_at(target, 2) == "ERROR" {
            chains.push(ChainCounters { chain: text_at(target, 32), entries: Vec::new() });
        } else {
            let packets = u64_at(entry, layout.counters)?;
            let bytes = u64_at(entry, layout.counters + 8)?;
            chains.last_mut()?.entries.push(Counters { packets, bytes });
        }
        at += next;
    }
    chains.pop();
    Some(chains)
}

/// Name of the built-in chain that starts at this offset. Hooks that a table lacks hold 0xffffffff.
fn hook_at(info: &[u8], offset: usize) -> Option<&'static str> {
    let valid = u32_at(info, NAME_LEN);
    (0..HOOKS.len())
        .find(|hook| {
            valid >> hook & 1 == 1 && u32_at(info, INFO_HOOK_ENTRY + 4 * hook) as usize == offset
        })
        .map(|hook| HOOKS[hook].chain_name())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_ne_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))
}

/// A C string of at most 30 bytes.
fn text_at(bytes: &[u8], at: usize) -> String {
    let text = bytes.get(at..).unwrap_or_default();
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
