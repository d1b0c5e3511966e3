//! The elements of one set: a hash table, the prefix lengths in use, and what elements carry besides.
//!
//! Contract: memory grows with the number of elements only: 24 bytes for one of IPv4, 48 for one of IPv6,
//! and 40 more where the set keeps timeouts, counters or marks, before what a hash table leaves free.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::hash::Hash;

use super::key::{Key, Narrow};

/// What an element carries besides its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extra {
    /// When it times out, in nanoseconds since the set was loaded; `u64::MAX` is never.
    pub(super) expires: u64,
    /// Packets that matched it.
    pub(super) packets: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// `skbmark` and its mask.
    pub(super) mark: (u32, u32),
}

impl Extra {
    /// Nothing of all that.
    pub(super) const NONE: Self =
        Self { expires: u64::MAX, packets: 0, bytes: 0, mark: (0, u32::MAX) };
}

/// An element as the table holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Place of its [`Extra`], if the set keeps any.
    pub(super) extra: u32,
    /// An exception: a packet that it matches is not in the set.
    pub(super) nomatch: bool,
}

#[derive(Debug, Clone)]
enum Table {
    Narrow(HashMap<Narrow, Entry>),
    Wide(HashMap<[u32; 10], Entry>),
}

/// Prefix lengths in use, longest first, each with the number of elements that have it.
pub(super) type Prefixes = Vec<(u8, u32)>;

/// Elements.
#[derive(Debug, Clone)]
pub(super) struct Store {
    table: Table,
    extras: Vec<Extra>,
    /// Places in `extras` that are free.
    free: Vec<u32>,
    has_extras: bool,
    /// Which of the two addresses are networks of any size.
    nets: [bool; 2],
    /// Prefix lengths of the first and the second address.
    pub(super) prefixes: [Prefixes; 2],
}

impl Store {
    /// No elements; `is_wide` for IPv6, `nets` says which addresses are networks of any size.
    pub(super) fn new(is_wide: bool, has_extras: bool, nets: [bool; 2]) -> Self {
        let table = match is_wide {
            true => Table::Wide(HashMap::new()),
            false => Table::Narrow(HashMap::new()),
        };
        let prefixes = Default::default();
        Self { table, extras: Vec::new(), free: Vec::new(), has_extras, nets, prefixes }
    }

    /// Number of elements.
    pub(super) fn len(&self) -> usize {
        match &self.table {
            Table::Narrow(table) => table.len(),
            Table::Wide(table) => table.len(),
        }
    }

    /// Each element, in no order.
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = (Key, Entry)> + '_> {
        match &self.table {
            Table::Narrow(table) => Box::new(table.iter().map(|(key, e)| (Key::wide(*key), *e))),
            Table::Wide(table) => Box::new(table.iter().map(|(key, e)| (Key(*key), *e))),
        }
    }

    /// The element of this key.
    pub(super) fn get(&self, key: &Key) -> Option<Entry> {
        match &self.table {
            Table::Narrow(table) => table.get(&key.narrow()).copied(),
            Table::Wide(table) => table.get(&key.0).copied(),
        }
    }

    /// What the element carries.
    pub(super) fn extra(&self, entry: Entry) -> Extra {
        self.extras.get(entry.extra as usize).copied().unwrap_or(Extra::NONE)
    }

    /// Returns what the element at a place carries, to be changed.
    pub(super) fn extra_mut(&mut self, place: u32) -> Option<&mut Extra> {
        self.extras.get_mut(place as usize)
    }

    /// Adds an element, or puts it in the place of the one with its key; whether it is new.
    pub(super) fn put(&mut self, key: &Key, nomatch: bool, extra: Extra) -> bool {
        let place = match self.has_extras {
            true => self.free.last().copied().unwrap_or(self.extras.len() as u32),
            false => 0,
        };
        let entry = Entry { extra: place, nomatch };
        let old = match &mut self.table {
            Table::Narrow(table) => insert(table, key.narrow(), entry),
            Table::Wide(table) => insert(table, key.0, entry),
        };
        if self.has_extras {
            match self.extras.get_mut(old.unwrap_or(place) as usize) {
                Some(known) => *known = extra,
                None => self.extras.push(extra),
            }
            if old.is_none() {
                self.free.pop();
            }
        }
        if old.is_none() {
            self.count_prefixes(key);
        }
        old.is_none()
    }

    /// Removes an element; whether there was one.
    pub(super) fn remove(&mut self, key: &Key) -> bool {
        let removed = match &mut self.table {
            Table::Narrow(table) => table.remove(&key.narrow()),
            Table::Wide(table) => table.remove(&key.0),
        };
        let Some(entry) = removed else { return false };
        if self.has_extras {
            self.free.push(entry.extra);
        }
        for (index, prefixes) in self.prefixes.iter_mut().enumerate().filter(|(i, _)| self.nets[*i])
        {
            let bits = key.prefix(index);
            if let Some(at) = prefixes.iter().position(|(known, _)| *known == bits) {
                prefixes[at].1 -= 1;
                if prefixes[at].1 == 0 {
                    prefixes.remove(at);
                }
            }
        }
        true
    }

    fn count_prefixes(&mut self, key: &Key) {
        for (index, prefixes) in self.prefixes.iter_mut().enumerate().filter(|(i, _)| self.nets[*i])
        {
            let bits = key.prefix(index);
            match prefixes.binary_search_by(|(known, _)| bits.cmp(known)) {
                Ok(at) => prefixes[at].1 += 1,
                Err(at) => prefixes.insert(at, (bits, 1)),
            }
        }
    }

    /// Removes what has timed out, and says what that was.
    pub(super) fn purge(&mut self, now: u64) -> Vec<Key> {
        let is_old = |entry: &Entry| self.extra(*entry).expires < now;
        let old: Vec<Key> = match &self.table {
            Table::Narrow(table) => {
                table.iter().filter(|(_, e)| is_old(e)).map(|(key, _)| Key::wide(*key)).collect()
            }
            Table::Wide(table) => {
                table.iter().filter(|(_, e)| is_old(e)).map(|(key, _)| Key(*key)).collect()
            }
        };
        for key in &old {
            self.remove(key);
        }
        old
    }
}

/// Inserts an entry; an existing entry keeps its place, which is returned.
fn insert<K: Eq + Hash>(table: &mut HashMap<K, Entry>, key: K, entry: Entry) -> Option<u32> {
    match table.entry(key) {
        MapEntry::Occupied(mut old) => {
            old.get_mut().nomatch = entry.nomatch;
            Some(old.get().extra)
        }
        MapEntry::Vacant(place) => {
            place.insert(entry);
            None
        }
    }
}
