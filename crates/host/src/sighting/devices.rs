//! [`Devices`]: the links of a host as small numbers, and which of them feeds which.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Devices that stand on each other.
const MOST_ON_EACH_OTHER: usize = 8;

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Device {
    /// Its name, if it is known.
    pub name: Option<Arc<str>>,
    /// Its index on the host, if it is known.
    pub index: Option<u32>,
    /// The device that it feeds with all it has: its bridge or bond.
    pub upper: Option<u32>,
    /// It is `lo`.
    pub is_loopback: bool,
}

/// A link as the host tells of it.
#[derive(Debug, Clone, Copy)]
pub struct Link<'a> {
    /// Its index.
    pub index: Option<u32>,
    /// Its name.
    pub name: &'a str,
    /// The bridge or bond that it is a part of.
    pub master: Option<&'a str>,
    /// Of a VLAN the link that carries it, and its identifier.
    pub vlan: Option<(&'a str, u16)>,
    /// Of a link of its own address on another one (macvlan, ipvlan), that one.
    pub parent: Option<&'a str>,
    /// It is `lo`.
    pub is_loopback: bool,
}

/// The links of a host. Number 0 is a link that is not known.
#[derive(Debug, Clone, Default)]
pub struct Devices {
    list: Vec<Device>,
    by_index: BTreeMap<u32, u32>,
    /// VLANs by the link that carries them and their identifier.
    vlans: HashMap<(u32, u16), u32>,
    /// Bridges and bonds.
    fed: BTreeSet<u32>,
    /// Pairs of a parent and a link of its own address on it (macvlan, ipvlan).
    children: BTreeSet<(u32, u32)>,
    /// The host told of all its links, and so which feeds which.
    is_complete: bool,
}

impl Devices {
    /// All links of a host.
    #[must_use]
    pub fn of<'a>(links: impl IntoIterator<Item = Link<'a>>) -> Self {
        let mut devices = Self::default();
        let links: Vec<Link<'a>> = links.into_iter().collect();
        for link in &links {
            let name = Some(link.name.into());
            let is_loopback = link.is_loopback;
            devices.add(Device { name, index: link.index, upper: None, is_loopback });
        }
        for (number, link) in (1..).zip(&links) {
            let master = link.master.and_then(|name| devices.find(name));
            if let Some(device) = devices.list.get_mut(number as usize - 1) {
                device.upper = master.filter(|upper| *upper != number);
                devices.fed.extend(device.upper);
            }
            if let Some((parent, vlan)) = link.vlan
                && let Some(parent) = devices.find(parent)
            {
                devices.vlans.insert((parent, vlan), number);
            }
            let parent = link.parent.and_then(|name| devices.find(name));
            devices.children.extend(parent.map(|parent| (parent, number)));
        }
        devices.is_complete = !links.is_empty();
        devices
    }

    fn add(&mut self, device: Device) -> u32 {
        let number = self.list.len() as u32 + 1;
        self.by_index.extend(device.index.map(|index| (index, number)));
        self.list.push(device);
        number
    }

    fn find(&self, name: &str) -> Option<u32> {
        let named = |device: &Device| device.name.as_deref() == Some(name);
        self.list.iter().position(named).map(|place| place as u32 + 1)
    }

    /// The device of this name; it is new where no link has it.
    pub fn named(&mut self, name: &str) -> u32 {
        self.find(name).unwrap_or_else(|| {
            let is_loopback = name == "lo";
            self.add(Device { name: Some(name.into()), index: None, upper: None, is_loopback })
        })
    }

    /// The device of this index; it is new where no link has it.
    pub fn at(&mut self, index: u32) -> u32 {
        self.by_index
            .get(&index)
            .copied()
            .unwrap_or_else(|| self.add(Device { index: Some(index), ..Device::default() }))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Every device, from number 1 on.
    pub fn all(&self) -> impl Iterator<Item = &Device> {
        self.list.iter()
    }

    /// A device.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Device> {
        self.list.get((number as usize).checked_sub(1)?)
    }

    /// How many devices feed this one with all they have.
    #[must_use]
    pub fn ports(&self, number: u32) -> usize {
        self.list.iter().filter(|device| device.upper == Some(number)).count()
    }

    /// Whether other devices feed this one with all they have.
    #[must_use]
    pub fn is_fed(&self, number: u32) -> bool {
        !self.fed.is_empty() && self.fed.contains(&number)
    }

    /// Whether a tag is that of a VLAN which the host has no link for: its kernel takes such a frame for another host's.
    #[must_use]
    pub fn is_of_no_vlan(&self, number: u32, tag: Option<u16>) -> bool {
        let id = tag.map_or(0, |tag| tag & 0xfff);
        let is_alone = || self.get(number).is_some_and(|device| device.upper.is_none());
        id != 0 && self.is_complete && is_alone() && !self.vlans.contains_key(&(number, id))
    }

    /// Whether links of their own address (macvlan) stand on a device that is no part of a bridge.
    #[must_use]
    pub fn is_parent(&self, number: u32) -> bool {
        !self.children.is_empty()
            && self.children.range((number, 0)..=(number, u32::MAX)).next().is_some()
            && self.get(number).is_some_and(|device| device.upper.is_none())
    }

    /// Whether a device is `lo`.
    #[must_use]
    pub fn is_loopback(&self, number: u32) -> bool {
        self.get(number).is_some_and(|device| device.is_loopback)
    }

    /// The device that this one feeds with frames that have this VLAN tag, or none.
    #[must_use]
    pub fn upper(&self, number: u32, vlan: Option<u16>) -> Option<u32> {
        let vlan = vlan.and_then(|tag| self.vlans.get(&(number, tag & 0xfff)));
        vlan.copied().or_else(|| self.get(number)?.upper)
    }

    /// Whether a frame at `below`, which feeds `upper`, may be the same packet as one at `above`: as the links say,
    /// else any two.
    pub(super) fn may_feed(&self, below: u32, upper: Option<u32>, above: u32) -> bool {
        if !self.is_complete {
            return below != above || below == 0;
        }
        let mut at = upper;
        // No more than a few devices stand on each other; links that go round in a circle do not hold it up.
        for _ in 0..MOST_ON_EACH_OTHER {
            match at {
                Some(upper) if upper == above => return true,
                Some(upper) => at = self.upper(upper, None),
                // A card may have taken the tag off before the tap.
                None => {
                    return self.children.contains(&(below, above))
                        || self.vlans.iter().any(|((on, _), vlan)| *on == below && *vlan == above);
                }
            }
        }
        false
    }

    /// Whether the links say that `below`, which feeds `upper`, stands below another device.
    pub(super) fn is_below(&self, below: u32, upper: Option<u32>, above: u32) -> bool {
        self.is_complete && self.may_feed(below, upper, above)
    }

    /// How far two frames of one packet at devices that stand on each other may lie apart, in nanoseconds. Where nobody
    /// says which devices do, equal packets may be two.
    pub(super) fn apart(&self) -> u64 {
        if self.is_complete { 1_000_000_000 } else { super::frame::JITTER }
    }

    /// The topmost device that one feeds, which feeds `upper` itself.
    pub(super) fn top(&self, number: u32, upper: Option<u32>) -> u32 {
        let mut at = upper.unwrap_or(number);
        for _ in 0..MOST_ON_EACH_OTHER {
            let Some(above) = self.upper(at, None) else { break };
            at = above;
        }
        at
    }
}
