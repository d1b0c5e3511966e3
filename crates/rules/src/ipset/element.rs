//! Reads the element of an `add` line into keys: one, or several where it names ranges.

use smallvec::{SmallVec, smallvec};

use super::kind::Dim;
use super::{Ifaces, Key, Set, number};
use crate::error::What;
use crate::family::Family;
use crate::value;

/// Most keys that ranges may add to a file in all.
pub(super) const MAX_EXPANDED: u64 = 1 << 22;

/// Names of interfaces start with this where they are ports of a bridge.
const PHYSICAL: &str = "physdev:";

/// Nearly always one.
pub(super) type Keys = SmallVec<[Key; 1]>;

/// An element that was read.
#[derive(Debug, Default)]
pub(super) struct Element {
    /// The keys that its ranges make.
    pub(super) keys: Keys,
    pub(super) mac: Option<[u8; 6]>,
}

/// One dimension as read.
enum Part {
    /// Every address from the first to the last, one by one.
    Addresses(u32, u32),
    /// One address and the number of its bits that count.
    Network([u8; 16], u8),
    /// Protocol, first and last port.
    Ports(u8, u16, u16),
    Mac([u8; 6]),
    Word(u32),
}

impl Set {
    /// Reads an element at a column.
    pub(super) fn element(
        &mut self,
        text: &str,
        column: u32,
        is_wildcard: bool,
    ) -> Result<Element, What> {
        let wrong = |what: &str| What::new(column, format!("{what}, found \"{text}\""));
        let mut element = Element::default();
        let mut keys: Keys = smallvec![Key::default()];
        let (mut addresses, mut rest) = (0, Some(text));
        for dim in self.kind.dims {
            let Some(part) = rest else {
                // Only a bitmap's MAC address may be missing.
                if *dim == Dim::Mac && self.kind.fills_mac() {
                    break;
                }
                return Err(wrong(&format!("an element of type {}", self.kind.name)));
            };
            let (part, after) = match part.split_once(',') {
                Some((part, after)) => (part, Some(after)),
                None => (part, None),
            };
            rest = after;
            let part = self.part(*dim, part, is_wildcard).ok_or_else(|| wrong(&expected(*dim)))?;
            if let Part::Mac(mac) = part {
                element.mac = Some(mac);
            }
            spread(&mut keys, &part, addresses)
                .ok_or_else(|| wrong(&format!("at most {MAX_EXPANDED} elements in a range")))?;
            addresses += usize::from(matches!(dim, Dim::Ip | Dim::Net));
        }
        if rest.is_some() {
            return Err(wrong(&format!("an element of type {}", self.kind.name)));
        }
        for key in &mut keys {
            self.settle(key).ok_or_else(|| wrong("an element in the range of its set"))?;
        }
        element.keys = keys;
        Ok(element)
    }

    fn part(&mut self, dim: Dim, text: &str, is_wildcard: bool) -> Option<Part> {
        let family = self.family.unwrap_or(Family::Ipv4);
        Some(match dim {
            Dim::Ip if family == Family::Ipv6 => Part::Network(number::address(text, family)?, 0),
            Dim::Ip => {
                let (first, last) = number::addresses_v4(text)?;
                Part::Addresses(first, last)
            }
            Dim::Net => {
                let host = self.host_bits();
                let (addr, bits) = match text.split_once('/') {
                    Some((addr, bits)) => (addr, bits.parse().ok().filter(|bits| *bits <= host)?),
                    None => (text, host),
                };
                Part::Network(number::address(addr, family)?, bits)
            }
            Dim::Port => {
                let (protocol, first, last) = number::ports(text)?;
                Part::Ports(protocol, first, last)
            }
            Dim::BarePort => {
                let (first, last) = number::bare_ports(text)?;
                Part::Ports(0, first, last)
            }
            Dim::Mac => Part::Mac(value::mac(text)?),
            Dim::Mark => Part::Word(number::number(text, u32::MAX.into())? as u32 & self.markmask),
            Dim::Iface => {
                let (name, is_physical) = match text.strip_prefix(PHYSICAL) {
                    Some(name) => (name, true),
                    None => (text, false),
                };
                if name.is_empty() || name.len() > 15 {
                    return None;
                }
                self.ifaces.has_wildcards |= is_wildcard;
                let number = self.ifaces.number_of_new(name);
                Part::Word(Ifaces::word(number, is_physical, is_wildcard))
            }
            Dim::Set => return None,
        })
    }

    /// Brings a key into the form in which packets look for it; `None` where the set cannot hold it.
    fn settle(&self, key: &mut Key) -> Option<()> {
        if let Some(mask) = &self.mask {
            key.mask_addr(0, mask);
            key.mask_addr(1, mask);
        }
        for (index, is_net) in Self::nets(self.kind).into_iter().enumerate() {
            if is_net {
                key.set_prefix(index, key.prefix(index));
            }
        }
        if self.kind.fills_mac() {
            key.set_mac([0; 6]);
        }
        let value = match self.kind.has(Dim::BarePort) {
            true => key.port().into(),
            false => key.first_word(),
        };
        let inside = !self.kind.is_bitmap || (self.range.0..=self.range.1).contains(&value);
        inside.then_some(())
    }
}

/// Writes a dimension into every key, and multiplies them where it is a range.
fn spread(keys: &mut Keys, part: &Part, index: usize) -> Option<()> {
    match part {
        Part::Network(addr, bits) => keys.iter_mut().for_each(|key| {
            key.set_addr(index, addr);
            if *bits > 0 {
                key.set_prefix(index, *bits);
            }
        }),
        Part::Mac(mac) => keys.iter_mut().for_each(|key| key.set_mac(*mac)),
        Part::Word(word) => keys.iter_mut().for_each(|key| key.set_rest(*word)),
        Part::Addresses(first, last) => multiply(keys, *first, *last, |key, addr| {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&addr.to_be_bytes());
            key.set_addr(index, &bytes);
        })?,
        Part::Ports(protocol, first, last) => {
            multiply(keys, u32::from(*first), u32::from(*last), |key, port| {
                key.set_port(*protocol, port as u16);
            })?;
        }
    }
    Some(())
}

fn multiply(keys: &mut Keys, first: u32, last: u32, write: impl Fn(&mut Key, u32)) -> Option<()> {
    if first == last {
        keys.iter_mut().for_each(|key| write(key, first));
        return Some(());
    }
    let count = (u64::from(last - first) + 1).checked_mul(keys.len() as u64)?;
    if count > MAX_EXPANDED {
        return None;
    }
    let spread = keys.iter().flat_map(|key| {
        (first..=last).map(|value| {
            let mut key = *key;
            write(&mut key, value);
            key
        })
    });
    *keys = spread.collect();
    Some(())
}

fn expected(dim: Dim) -> String {
    let what = match dim {
        Dim::Ip => "an address of the set's family",
        Dim::Net => "a network of the set's family",
        Dim::Port => "[PROTOCOL:]PORT",
        Dim::BarePort => "a port",
        Dim::Iface => "an interface name",
        Dim::Mac => "a MAC address",
        Dim::Mark => "a mark",
        Dim::Set => "a set",
    };
    what.to_owned()
}
