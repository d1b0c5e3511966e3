//! `-j SET`: what adds a packet to a set and removes it from one.
//!
//! Source: kernel `ip_set_add`, `ip_set_del`, `mtype_add` and `mtype_del` of `ip_set_hash_gen.h` and
//! `ip_set_bitmap_gen.h`, `list_set_kadd`, `list_set_kdel`.

use super::look::{Looked, Miss};
use super::store::Extra;
use super::{AllSets, Ifaces, Key, Set};
use crate::transit::Transit;
use conntrack::SECOND;

/// Longest timeout in seconds.
const MAX_TIMEOUT: u64 = (u32::MAX as u64) / 1000;

/// How an element is added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addition<'q> {
    /// For each dimension: the source side of the packet, not the destination.
    pub(crate) by_source: &'q [bool],
    /// Whether an existing element is added again (`--exist`).
    pub(crate) exist: bool,
    /// Seconds that it stays; 0 is for ever, `None` as long as the set says.
    pub(crate) timeout: Option<u32>,
}

/// Result of a change: a list goes on to its next member unless it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Yes,
    No,
    Unknown,
}

impl AllSets {
    /// Adds the packet to the set of this name.
    pub(super) fn add(&mut self, name: &str, how: &Addition<'_>, transit: &Transit<'_, '_>) {
        self.change(name, transit, &mut |set, now| set.add(how, transit, now));
    }

    /// Removes the packet from the set of this name.
    pub(super) fn remove(&mut self, name: &str, by_source: &[bool], transit: &Transit<'_, '_>) {
        self.change(name, transit, &mut |set, now| set.remove(by_source, transit, now));
    }

    /// Changes the set, or the first member of a list that lets itself be changed. What may have been
    /// changed is indeterminate.
    fn change(
        &mut self,
        name: &str,
        transit: &Transit<'_, '_>,
        change: &mut dyn FnMut(&mut Set, Option<u64>) -> Done,
    ) {
        let now = self.now(transit.time);
        let Some(index) = self.index(name) else { return };
        let targets: Vec<u32> = match self.sets[index as usize].is_list() {
            true => self.sets[index as usize].members.iter().map(|member| member.set).collect(),
            false => vec![index],
        };
        let certain = transit.certain && !self.sets[index as usize].indeterminate;
        let mut sure = certain;
        for target in targets {
            let set = &mut self.sets[target as usize];
            if !sure || set.indeterminate {
                (set.indeterminate, sure) = (true, false);
                continue;
            }
            match change(set, now) {
                Done::Yes => return,
                Done::No => {}
                Done::Unknown => (set.indeterminate, sure) = (true, false),
            }
        }
    }
}

impl Set {
    fn add(&mut self, how: &Addition<'_>, transit: &Transit<'_, '_>, now: Option<u64>) -> Done {
        let looked = match self.looked(transit, how.by_source) {
            Ok(looked) => looked,
            Err(Miss::No) => return Done::No,
            Err(Miss::Unknown) => return Done::Unknown,
        };
        let key = self.own_key(&looked);
        if self.timeout.is_some() && now.is_none() {
            return Done::Unknown;
        }
        let now = now.unwrap_or(0);
        let old = self.store.get(&key);
        let is_there = old.is_some_and(|entry| self.store.extra(entry).expires >= now);
        if self.kind.fills_mac() {
            return self.add_filling(&looked, is_there, how, transit, now);
        }
        if is_there && !how.exist {
            return Done::No;
        }
        if old.is_none() && !self.make_room(now) {
            // A place that an element left in the same bucket is filled even where the set is full.
            return if self.forces || self.has_gaps { Done::Unknown } else { Done::No };
        }
        self.insert(&looked, how, transit, now);
        Done::Yes
    }

    fn insert(
        &mut self,
        looked: &Looked<'_>,
        how: &Addition<'_>,
        transit: &Transit<'_, '_>,
        now: u64,
    ) {
        let mut key = self.own_key(looked);
        if let Some(name) = looked.iface {
            key.set_rest(Ifaces::word(self.ifaces.number_of_new(name), false, false));
        }
        let len = transit.packet.len() as u64;
        let extra =
            Extra { expires: self.expiry(how.timeout, now), packets: 1, bytes: len, mark: (0, 0) };
        if self.store.put(&key, false, extra) && looked.iface.is_some() {
            self.ifaces.note(&key);
        }
    }

    fn expiry(&self, timeout: Option<u32>, now: u64) -> u64 {
        let Some(default) = self.timeout else { return u64::MAX };
        match timeout.map_or(default, u64::from).min(MAX_TIMEOUT) {
            0 => u64::MAX,
            seconds => now.saturating_add(seconds * SECOND),
        }
    }

    /// An address that is there with a MAC address is not added again, but with `exist` it takes the new one.
    fn add_filling(
        &mut self,
        looked: &Looked<'_>,
        is_there: bool,
        how: &Addition<'_>,
        transit: &Transit<'_, '_>,
        now: u64,
    ) -> Done {
        let addr = looked.key.first_word();
        let is_filled = is_there && self.macs.contains_key(&addr);
        if is_filled && !how.exist {
            return Done::No;
        }
        self.insert(looked, how, transit, now);
        self.macs.insert(addr, looked.mac);
        Done::Yes
    }

    /// Whether one more element fits.
    pub(super) fn make_room(&mut self, now: u64) -> bool {
        let is_full = |set: &Self| !set.kind.is_bitmap && set.store.len() as u64 >= set.max;
        if is_full(self) && self.timeout.is_some() {
            let gone = self.store.purge(now);
            self.has_gaps |= !gone.is_empty();
            gone.iter().for_each(|key| self.ifaces.forget(key));
        }
        !is_full(self)
    }

    fn remove(&mut self, by_source: &[bool], transit: &Transit<'_, '_>, now: Option<u64>) -> Done {
        let looked = match self.looked(transit, by_source) {
            Ok(looked) => looked,
            Err(Miss::No) => return Done::No,
            Err(Miss::Unknown) => return Done::Unknown,
        };
        let key = self.own_key(&looked);
        let Some(entry) = self.store.get(&key) else { return Done::No };
        let expires = self.store.extra(entry).expires;
        let is_gone = match now {
            Some(now) => expires < now,
            None if expires == u64::MAX => false,
            None => return Done::Unknown,
        };
        if self.kind.fills_mac() {
            self.macs.remove(&looked.key.first_word());
        }
        self.store.remove(&key);
        self.has_gaps = true;
        self.ifaces.forget(&key);
        if is_gone { Done::No } else { Done::Yes }
    }

    /// What a packet adds or removes: its networks are as large as the smallest that the set has.
    fn looked<'p>(
        &self,
        transit: &Transit<'p, '_>,
        by_source: &[bool],
    ) -> Result<Looked<'p>, Miss> {
        let mut looked = self.look(transit, by_source)?;
        for (index, prefixes) in self.store.prefixes.iter().enumerate() {
            if Self::nets(self.kind)[index]
                && let Some((bits, _)) = prefixes.first()
            {
                looked.key.set_prefix(index, *bits);
            }
        }
        Ok(looked)
    }

    /// The key under which the element lies.
    fn own_key(&self, looked: &Looked<'_>) -> Key {
        let mut key = looked.key;
        if let Some(name) = looked.iface {
            let number = self.ifaces.numbers.get(name).copied().unwrap_or(0);
            key.set_rest(Ifaces::word(number, false, false));
        }
        key
    }
}
