//! Sets as ipset keeps them: what `-m set` and `-j SET` look packets up in and change.
//!
//! [`Sets::parse`] reads `ipset save` text. A search walks nothing but the prefix lengths in use; what it
//! found is changed afterwards, so that explanations can search without counting.
//!
//! Contract: a search that depends on bytes, names or times that are not known is unknown. A set that a rule may
//! or may not have changed is indeterminate: every later search of it is unknown. Times count from the first packet:
//! the sets are taken as saved when the capture began.
//!
//! [`Sets::restore`] changes them from outside, [`Sets::save`] says what they are.
//!
//! [`Sets`] belong to one worker, or to all workers (`whose`).
//!
//! Source: ipset(8); kernel `net/netfilter/ipset/ip_set_core.c`, `ip_set_hash_gen.h`, `ip_set_bitmap_gen.h`,
//! `ip_set_list_set.c`; measured with ipset 7.17 on Linux 6.18.

mod change;
mod edit;
mod element;
mod key;
mod kind;
mod look;
mod number;
mod predicate;
mod save;
mod search;
mod store;
mod text;
mod undo;
mod whose;

use std::collections::HashMap;
use std::sync::Arc;

use crossbeam_utils::sync::ShardedLock;
use key::Key;
use kind::Kind;
use store::Store;

use crate::family::Family;

pub(crate) use change::Addition;
pub use edit::{EditError, Edited, MOST_ELEMENTS};
pub use save::SavedSet;
pub(crate) use search::{CounterTest, Query, Touched};

/// All the sets of a host, by name. Those of all workers are cloned for each of them, and stay one.
#[derive(Debug, Clone, Default)]
pub struct Sets {
    whose: Whose,
    /// The clock was set, by whomever.
    begun: bool,
}

#[derive(Debug, Clone)]
enum Whose {
    Own(AllSets),
    Shared(Arc<ShardedLock<AllSets>>),
}

/// All the sets, by name.
#[derive(Debug, Clone, Default)]
struct AllSets {
    sets: Vec<Set>,
    names: HashMap<Box<str>, u32>,
    /// Time of the first packet.
    start: Option<u64>,
}

/// One set.
#[derive(Debug, Clone)]
struct Set {
    kind: &'static Kind,
    /// The family of its addresses; `None` if it has none.
    family: Option<Family>,
    /// Most elements.
    max: u64,
    /// When full, adding one removes another.
    forces: bool,
    /// Elements were removed: whether a full set takes another one depends on the hash that the kernel drew.
    has_gaps: bool,
    /// Seconds that new elements stay by default, if elements time out at all; 0 is for ever.
    timeout: Option<u64>,
    has_counters: bool,
    has_marks: bool,
    /// Bits of addresses that count, of `hash:` types with `netmask` or `bitmask`, and of `bitmap:ip`.
    mask: Option<[u8; 16]>,
    /// Bits of marks that count.
    markmask: u32,
    /// First and last address or port of a bitmap.
    range: (u32, u32),
    store: Store,
    ifaces: Ifaces,
    /// MAC addresses of a `bitmap:ip,mac` by address; an element without one is not filled in.
    macs: HashMap<u32, [u8; 6]>,
    /// Members of a `list:set`, with the place of what they carry.
    members: Vec<Member>,
    indeterminate: bool,
}

/// Interface names of a `hash:net,iface`.
#[derive(Debug, Clone, Default)]
struct Ifaces {
    /// Numbers from 1, by name.
    numbers: HashMap<Box<str>, u32>,
    /// Elements that have a network, whatever their interface.
    networks: HashMap<Key, u32>,
    /// Some name is a prefix of names.
    has_wildcards: bool,
}

/// A member of a list.
#[derive(Debug, Clone, Copy)]
struct Member {
    set: u32,
    extra: store::Extra,
}

impl AllSets {
    fn elements(&self, name: &str) -> Option<usize> {
        let set = &self.sets[self.index(name)? as usize];
        Some(if set.is_list() { set.members.len() } else { set.store.len() })
    }

    fn change_by_themselves(&self) -> bool {
        self.sets.iter().any(|set| set.has_counters || set.timeout.is_some())
    }

    fn make_indeterminate(&mut self) {
        for set in &mut self.sets {
            set.indeterminate = true;
        }
    }

    fn index(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// Nanoseconds since the sets were loaded.
    fn now(&self, time: Option<u64>) -> Option<u64> {
        Some(time?.saturating_sub(self.start?))
    }
}

impl Set {
    fn is_list(&self) -> bool {
        self.kind.has(kind::Dim::Set)
    }

    fn has_extras(&self) -> bool {
        self.timeout.is_some() || self.has_counters || self.has_marks
    }

    /// Prefix length of one address.
    fn host_bits(&self) -> u8 {
        if self.family == Some(Family::Ipv6) { 128 } else { 32 }
    }

    /// Which of the two addresses are networks of any size.
    fn nets(kind: &Kind) -> [bool; 2] {
        let mut addresses =
            kind.dims.iter().filter(|dim| matches!(dim, kind::Dim::Ip | kind::Dim::Net));
        std::array::from_fn(|_| addresses.next() == Some(&kind::Dim::Net))
    }
}

impl Ifaces {
    /// The last word of keys with this interface: its number, and what sort of name it is.
    fn word(number: u32, is_physical: bool, is_wildcard: bool) -> u32 {
        number << 2 | u32::from(is_physical) << 1 | u32::from(is_wildcard)
    }

    /// The number, and what sort of name it is, of [`Ifaces::word`].
    fn of_word(word: u32) -> (u32, bool, bool) {
        (word >> 2, word & 2 != 0, word & 1 != 0)
    }

    /// An element of this key came.
    fn note(&mut self, key: &Key) {
        *self.networks.entry(key.without_rest()).or_default() += 1;
    }

    /// An element of this key went.
    fn forget(&mut self, key: &Key) {
        let network = key.without_rest();
        let Some(count) = self.networks.get_mut(&network) else { return };
        *count -= 1;
        if *count == 0 {
            self.networks.remove(&network);
        }
    }

    fn number_of_new(&mut self, name: &str) -> u32 {
        let next = self.numbers.len() as u32 + 1;
        *self.numbers.entry(name.into()).or_insert(next)
    }
}
