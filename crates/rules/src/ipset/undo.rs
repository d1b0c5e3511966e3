//! What is done to sets by one request, each step with what undoes it: all of the request or nothing is done.

use std::collections::HashMap;

use super::kind::Dim;
use super::store::{Extra, Store};
use super::{AllSets, Ifaces, Key, Member, Set};

/// What a step has replaced.
pub(super) enum Undo {
    /// An element, with what it was before if it was there.
    Element { set: u32, key: Key, old: Option<Old> },
    /// The members of a list.
    Members { set: u32, members: Vec<Member> },
    /// All elements of a set.
    Elements { set: u32, elements: Box<Elements> },
    /// Two sets are in each other's place.
    Swapped(u32, u32),
}

/// An element as it was.
#[derive(Clone, Copy)]
pub(super) struct Old {
    pub(super) nomatch: bool,
    pub(super) extra: Extra,
    pub(super) mac: Option<[u8; 6]>,
}

/// All that a set holds.
pub(super) struct Elements {
    store: Store,
    networks: HashMap<Key, u32>,
    macs: HashMap<u32, [u8; 6]>,
    members: Vec<Member>,
    indeterminate: bool,
}

impl AllSets {
    /// Undoes steps, the last one first.
    pub(super) fn undo(&mut self, steps: Vec<Undo>) {
        for step in steps.into_iter().rev() {
            match step {
                Undo::Element { set, key, old } => self.sets[set as usize].set_back(&key, old),
                Undo::Members { set, members } => self.sets[set as usize].members = members,
                Undo::Elements { set, elements } => self.sets[set as usize].fill(*elements),
                Undo::Swapped(one, other) => self.sets.swap(one as usize, other as usize),
            }
        }
    }
}

impl Set {
    /// An element as it is.
    pub(super) fn old(&self, key: &Key) -> Option<Old> {
        let entry = self.store.get(key)?;
        let mac = self.macs.get(&key.first_word()).copied().filter(|_| self.kind.fills_mac());
        Some(Old { nomatch: entry.nomatch, extra: self.store.extra(entry), mac })
    }

    /// The key by which an element is there: to delete it, nobody says whether its name is a `wildcard`.
    pub(super) fn held(&self, key: &Key) -> Key {
        let mut wildcard = *key;
        wildcard.set_rest(key.rest() | 1);
        let is_wildcard = self.kind.has(Dim::Iface) && self.store.get(key).is_none();
        if is_wildcard && self.store.get(&wildcard).is_some() { wildcard } else { *key }
    }

    /// Puts an element in, or in the place of the one with its key.
    pub(super) fn put_element(&mut self, key: &Key, new: Old) {
        if self.kind.fills_mac() {
            match new.mac {
                Some(mac) => self.macs.insert(key.first_word(), mac),
                None => self.macs.remove(&key.first_word()),
            };
        }
        if self.store.put(key, new.nomatch, new.extra) {
            self.note_iface(key, Ifaces::note);
        }
    }

    /// Takes an element out.
    pub(super) fn take_element(&mut self, key: &Key) {
        if self.store.remove(key) {
            self.note_iface(key, Ifaces::forget);
        }
        if self.kind.fills_mac() {
            self.macs.remove(&key.first_word());
        }
    }

    fn note_iface(&mut self, key: &Key, note: fn(&mut Ifaces, &Key)) {
        if self.kind.has(Dim::Iface) {
            note(&mut self.ifaces, key);
        }
    }

    fn set_back(&mut self, key: &Key, old: Option<Old>) {
        match old {
            Some(old) => self.put_element(key, old),
            None => self.take_element(key),
        }
    }

    /// Empties it: what it held. What is in it is known from then on.
    pub(super) fn empty(&mut self) -> Elements {
        let empty = Store::new(self.host_bits() == 128, self.has_extras(), Self::nets(self.kind));
        Elements {
            store: std::mem::replace(&mut self.store, empty),
            networks: std::mem::take(&mut self.ifaces.networks),
            macs: std::mem::take(&mut self.macs),
            members: std::mem::take(&mut self.members),
            indeterminate: std::mem::replace(&mut self.indeterminate, false),
        }
    }

    fn fill(&mut self, elements: Elements) {
        let Elements { store, networks, macs, members, indeterminate } = elements;
        (self.store, self.ifaces.networks, self.macs) = (store, networks, macs);
        (self.members, self.indeterminate) = (members, indeterminate);
    }
}
