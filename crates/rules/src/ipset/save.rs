//! [`Sets::save`]: what sets hold, as `ipset save` prints it and [`Sets::parse`] reads it.
//!
//! Contract: elements are copied out and printed after that, so that packets do not wait for the printing. They are in
//! the order of their addresses. Sizes of hashes, comments and what only the memory of the kernel concerns are not kept,
//! and so not printed.
//!
//! Source: the output of ipset 7.17 for each type.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::kind::Dim;
use super::store::{Entry, Extra, Store};
use super::{AllSets, Ifaces, Key, Set, Sets};
use crate::family::Family;
use crate::names::protocol_name;
use conntrack::SECOND;

/// A set as it is saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSet {
    /// The set's name.
    pub name: String,
    /// The set's type.
    pub kind: &'static str,
    /// What stands after the name in the line that creates it, type included.
    pub create: String,
    /// Number of elements, including timed-out elements that were not met yet.
    pub elements: usize,
    /// What stands after `add NAME` of some elements: all, if enough were asked for.
    pub some: Vec<String>,
}

impl Sets {
    /// Returns the sets as they are at a time in nanoseconds since the Unix epoch, or the set of this name; each with
    /// up to `most` of its elements.
    #[must_use]
    pub fn save(&self, name: Option<&str>, most: usize, time: u64) -> Vec<SavedSet> {
        let taken = self.look(|sets| sets.taken(name, most, time));
        taken.into_iter().map(Taken::saved).collect()
    }
}

impl SavedSet {
    /// The text that makes it.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { name, create, some, .. } = self;
        let mut text = format!("create {name} {create}\n");
        for element in some {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "add {name} {element}");
        }
        text
    }
}

/// What is printed of a set, copied out of it.
struct Taken {
    name: String,
    /// Without elements.
    set: Set,
    elements: usize,
    some: Vec<(Key, bool, Extra, Option<[u8; 6]>)>,
    members: Vec<(Box<str>, Extra)>,
    /// Nanoseconds since the sets were loaded.
    now: u64,
}

impl AllSets {
    fn taken(&self, name: Option<&str>, most: usize, time: u64) -> Vec<Taken> {
        let now = self.now(Some(time)).unwrap_or(0);
        let mut names: Vec<_> = self.names.iter().map(|(name, index)| (*index, name)).collect();
        names.sort_unstable();
        let named = |index: u32| names.get(index as usize).map(|(_, name)| (*name).clone());
        let wanted = names.iter().filter(|(_, own)| name.is_none_or(|name| name == &***own));
        let taken = wanted.map(|(index, name)| {
            let set = &self.sets[*index as usize];
            let members = set.members.iter().take(most);
            let members = members.filter_map(|member| Some((named(member.set)?, member.extra)));
            Taken {
                name: name.to_string(),
                set: set.hollow(),
                elements: if set.is_list() { set.members.len() } else { set.store.len() },
                some: set.some(most, now),
                members: members.collect(),
                now,
            }
        });
        taken.collect()
    }
}

impl Set {
    /// Returns the set without its elements.
    fn hollow(&self) -> Self {
        let empty = Store::new(false, false, [false; 2]);
        let mut ifaces = Ifaces::default();
        ifaces.numbers.clone_from(&self.ifaces.numbers);
        Self { store: empty, ifaces, macs: HashMap::new(), members: Vec::new(), ..*self }
    }

    /// Returns up to `most` elements that have not timed out.
    fn some(&self, most: usize, now: u64) -> Vec<(Key, bool, Extra, Option<[u8; 6]>)> {
        let whole = |(key, entry): (Key, Entry)| {
            let mac = self.macs.get(&key.first_word()).copied();
            (key, entry.nomatch, self.store.extra(entry), mac.filter(|_| self.kind.fills_mac()))
        };
        let all = self.store.iter().map(whole);
        all.filter(|(_, _, extra, _)| extra.expires >= now).take(most).collect()
    }

    /// What creates it, after its name.
    fn create(&self) -> String {
        let mut text = self.kind.name.to_owned();
        let mut add = |words: String| {
            text.push(' ');
            text.push_str(&words);
        };
        match self.family {
            Some(family) if !self.kind.is_bitmap => {
                add(format!("family {}", if family == Family::Ipv6 { "inet6" } else { "inet" }));
            }
            _ => {}
        }
        let (first, last) = self.range;
        match (self.kind.is_bitmap, self.is_list()) {
            (true, _) if self.kind.has(Dim::BarePort) => add(format!("range {first}-{last}")),
            (true, _) => add(format!("range {}-{}", Ipv4Addr::from(first), Ipv4Addr::from(last))),
            (false, true) => add(format!("size {}", self.max)),
            (false, false) => add(format!("maxelem {}", self.max)),
        }
        if let Some(seconds) = self.timeout {
            add(format!("timeout {seconds}"));
        }
        for (has, word) in [
            (self.has_counters, "counters"),
            (self.has_marks, "skbinfo"),
            (self.forces, "forceadd"),
        ] {
            if has {
                add(word.to_owned());
            }
        }
        if self.markmask != u32::MAX {
            add(format!("markmask {:#010x}", self.markmask));
        }
        if let Some(mask) = &self.mask {
            add(self.masked(mask));
        }
        text
    }

    /// A mask that is a prefix is a `netmask`.
    fn masked(&self, mask: &[u8; 16]) -> String {
        let all = u128::from_be_bytes(*mask);
        let ones = all.leading_ones();
        match (ones == all.count_ones(), self.family) {
            (true, _) => format!("netmask {ones}"),
            (false, Some(Family::Ipv6)) => format!("bitmask {}", Ipv6Addr::from(*mask)),
            (false, _) => {
                format!("bitmask {}", Ipv4Addr::from([mask[0], mask[1], mask[2], mask[3]]))
            }
        }
    }

    /// An address of a key, with its prefix length where that is not all of it.
    fn address(&self, key: &Key, index: usize, is_net: bool) -> String {
        let bytes = key.addr(index);
        let mut text = match self.family {
            Some(Family::Ipv6) => Ipv6Addr::from(bytes).to_string(),
            _ => Ipv4Addr::from([bytes[0], bytes[1], bytes[2], bytes[3]]).to_string(),
        };
        let bits = key.prefix(index);
        if is_net && bits != self.host_bits() {
            let _ = write!(text, "/{bits}");
        }
        text
    }

    fn element_text(&self, key: &Key, mac: Option<[u8; 6]>, names: &[&str]) -> String {
        let (mut parts, mut addresses) = (Vec::new(), 0);
        for dim in self.kind.dims {
            let part = match dim {
                Dim::Ip | Dim::Net => {
                    addresses += 1;
                    self.address(key, addresses - 1, *dim == Dim::Net)
                }
                Dim::Port => port(key),
                Dim::BarePort => key.port().to_string(),
                Dim::Iface => {
                    let (number, is_physical, _) = Ifaces::of_word(key.rest());
                    let name = names.get(number as usize).copied().unwrap_or_default();
                    format!("{}{name}", if is_physical { "physdev:" } else { "" })
                }
                Dim::Mac if self.kind.fills_mac() => match mac {
                    Some(mac) => hex(mac),
                    None => continue,
                },
                Dim::Mac => hex(key.mac()),
                Dim::Mark => format!("{:#010x}", key.rest()),
                Dim::Set => continue,
            };
            parts.push(part);
        }
        parts.join(",")
    }

    /// What stands after an element.
    fn extra_text(&self, extra: &Extra, now: u64) -> String {
        let mut text = String::new();
        if self.timeout.is_some() {
            let left = match extra.expires {
                u64::MAX => 0,
                expires => (expires.saturating_sub(now) / SECOND).max(1),
            };
            let _ = write!(text, " timeout {left}");
        }
        if self.has_counters {
            let _ = write!(text, " packets {} bytes {}", extra.packets, extra.bytes);
        }
        match extra.mark {
            _ if !self.has_marks => {}
            (0, 0) => {}
            (mark, u32::MAX) => _ = write!(text, " skbmark {mark:#x}"),
            (mark, mask) => _ = write!(text, " skbmark {mark:#x}/{mask:#x}"),
        }
        text
    }
}

impl Taken {
    fn saved(mut self) -> SavedSet {
        self.some.sort_unstable_by_key(|(key, ..)| key.0);
        let mut names = vec![""; self.set.ifaces.numbers.len() + 1];
        for (name, number) in &self.set.ifaces.numbers {
            names[*number as usize] = name;
        }
        let elements = self.some.iter().map(|(key, nomatch, extra, mac)| {
            let mut text = self.set.element_text(key, *mac, &names);
            if self.set.kind.has(Dim::Iface) && Ifaces::of_word(key.rest()).2 {
                text.push_str(" wildcard");
            }
            text.push_str(if *nomatch { " nomatch" } else { "" });
            text.push_str(&self.set.extra_text(extra, self.now));
            text
        });
        let members = self.members.iter();
        let members =
            members.map(|(name, extra)| format!("{name}{}", self.set.extra_text(extra, self.now)));
        SavedSet {
            kind: self.set.kind.name,
            create: self.set.create(),
            elements: self.elements,
            some: elements.chain(members).collect(),
            name: self.name,
        }
    }
}

/// `PROTOCOL:PORT`; ICMP has type and code.
fn port(key: &Key) -> String {
    let (protocol, port) = (key.protocol(), key.port());
    let name = protocol_name(protocol).map_or_else(|| protocol.to_string(), str::to_owned);
    match protocol {
        1 | 58 => {
            let [kind, code] = port.to_be_bytes();
            format!("{name}:{kind}/{code}")
        }
        _ => format!("{name}:{port}"),
    }
}

fn hex(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02X}")).join(":")
}
