//! Packets and bytes of every rule, and whole tables, read from the kernel by getsockopt(2).
//!
//! The table comes as one run of entries. A user chain starts with an entry whose target is `ERROR` and
//! holds its name, and ends with an invisible RETURN; a built-in chain starts at its hook's offset and
//! ends with its policy. The run of entries ends with one more `ERROR`.
//!
//! Source: `linux/netfilter_ipv4/ip_tables.h`, `linux/netfilter_ipv6/ip6_tables.h`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rules::model::{Counters, Family, Hook};

use super::sys;
use crate::studies::blob::{Blob, Width, hooks};

const SO_GET_INFO: i32 = 64;
/// Likewise of arptables.
const SO_GET_ARP_INFO: i32 = 96;

const NAME_LEN: usize = 32;
/// Where offsets of hooks begin in `struct ipt_getinfo`; offsets of their ends, the number of entries and their size follow.
const INFO_HOOK_ENTRY: usize = 36;
/// Offset of the entries in `struct ipt_get_entries`.
const ENTRIES: usize = 40;
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
    family: Family,
    buffer: Vec<u8>,
}

impl Reader {
    /// A reader of the calling thread's namespace.
    pub fn open(family: Family) -> io::Result<Self> {
        let socket = sys::raw_socket(family == Family::Ipv6)?;
        Ok(Self { socket, family, buffer: Vec::new() })
    }

    /// Bytes of the blob in which the kernel holds a table; its counters are elsewhere.
    pub fn size(&self, table: &str) -> io::Result<usize> {
        Ok(self.info(table, Width::Bits64)?.size())
    }

    fn level(&self) -> libc::c_int {
        if self.family == Family::Ipv6 { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP }
    }

    /// What asks about a table; what asks for its entries is the next one.
    fn option(&self) -> libc::c_int {
        if self.family == Family::Arp { SO_GET_ARP_INFO } else { SO_GET_INFO }
    }

    fn info(&self, table: &str, width: Width) -> io::Result<Info> {
        let hooks = hooks(self.family);
        let mut bytes = vec![0; INFO_HOOK_ENTRY + 8 * hooks.len() + 8];
        bytes[..table.len()].copy_from_slice(table.as_bytes());
        get(self.socket.as_fd(), self.level(), self.option(), &mut bytes, width)?;
        Ok(Info { bytes, hooks })
    }

    /// The counters of every chain of a table, in the kernel's order.
    pub fn read(&mut self, table: &str) -> io::Result<Vec<ChainCounters>> {
        let info = self.fetch(table, Width::Bits64)?;
        let entry = if self.family == Family::Ipv6 { &ENTRY_V6 } else { &ENTRY_V4 };
        chains(&info, &self.buffer[ENTRIES..], entry)
            .ok_or_else(|| io::Error::other(format!("table {table} makes no sense")))
    }

    /// A whole table as the kernel gives it to programs of a width.
    pub fn blob(&mut self, table: &str, width: Width) -> io::Result<Blob> {
        let info = self.fetch(table, width)?;
        Ok(Blob {
            width,
            family: self.family,
            table: table.to_owned(),
            hooks: info.begun().collect(),
            count: info.after_hooks(0),
            entries: self.buffer[entries(width)..].to_vec(),
        })
    }

    /// Reads a table's entries into the buffer; what the kernel says of the table.
    fn fetch(&mut self, table: &str, width: Width) -> io::Result<Info> {
        let info = self.info(table, width)?;
        let size = info.size();
        self.buffer.clear();
        self.buffer.resize(entries(width) + size, 0);
        self.buffer[..table.len()].copy_from_slice(table.as_bytes());
        self.buffer[NAME_LEN..NAME_LEN + 4].copy_from_slice(&(size as u32).to_ne_bytes());
        get(self.socket.as_fd(), self.level(), self.option() + 1, &mut self.buffer, width)?;
        Ok(info)
    }
}

/// Offset of the entries in `struct ipt_get_entries`, which begin where 8 bytes may.
fn entries(width: Width) -> usize {
    if width == Width::Bits64 { ENTRIES } else { NAME_LEN + 4 }
}

/// Asks as a program of a width does.
fn get(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    buffer: &mut [u8],
    width: Width,
) -> io::Result<()> {
    match width {
        Width::Bits64 => sys::get_option(fd, level, name, buffer).map(drop),
        #[cfg(target_arch = "x86_64")]
        Width::Bits32 => sys::get_option_32(fd, level, name, buffer),
        #[cfg(not(target_arch = "x86_64"))]
        Width::Bits32 => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// What the kernel says of a table: `struct ipt_getinfo`, or that of arptables.
struct Info {
    bytes: Vec<u8>,
    hooks: &'static [Hook],
}

impl Info {
    /// Hooks that the table has, where their chains begin, and their last entries.
    fn begun(&self) -> impl Iterator<Item = (Hook, u32, u32)> {
        let at = |word: usize| u32_at(&self.bytes, INFO_HOOK_ENTRY + 4 * word);
        let all = self.hooks.iter().enumerate();
        // Of others the offset is 0xffffffff, or 0.
        all.filter(|(hook, _)| u32_at(&self.bytes, NAME_LEN) >> hook & 1 == 1)
            .map(move |(hook, name)| (*name, at(hook), at(self.hooks.len() + hook)))
    }

    /// The number of entries, and their bytes.
    fn after_hooks(&self, word: usize) -> u32 {
        u32_at(&self.bytes, INFO_HOOK_ENTRY + 8 * self.hooks.len() + 4 * word)
    }

    fn size(&self) -> usize {
        self.after_hooks(1) as usize
    }
}

fn chains(info: &Info, entries: &[u8], layout: &Entry) -> Option<Vec<ChainCounters>> {
    let mut chains: Vec<ChainCounters> = Vec::new();
    let mut at = 0;
    while at < entries.len() {
        let entry = entries.get(at..)?;
        let next = usize::from(u16_at(entry, layout.next_offset)?);
        let target = entry.get(usize::from(u16_at(entry, layout.target_offset)?)..next)?;
        if let Some((hook, ..)) = info.begun().find(|(_, start, _)| *start as usize == at) {
            let chain = hook.chain_name().to_owned();
            chains.push(ChainCounters { chain, entries: Vec::new() });
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
