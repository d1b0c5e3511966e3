//! What each captured frame is: the one place that decides it.
//!
//! A capture on all interfaces, or one on each, shows a forwarded packet several times: as it came, as it left, and
//! at the devices below either ([`Sighting`]). [`Sightings`] reads frames ahead of their evaluation and pairs
//! what belongs together, so that a packet is evaluated once, and with what the frame that left tells of it ([`Left`]):
//! which address and port translation drew, and that it was let go.
//!
//! The capture's own words come first (packet type, direction flag, interface), then the addresses of own links.
//! What pairs is what translation leaves alone ([`print`](mod@print)); among equal packets the one with more ends
//! alike, then the first; where several with other ends remain, the pair teaches nothing.
//!
//! Contract: frames come in order of time and leave in the same order; memory is bounded ([`KEPT`] frames besides those
//! that wait). Hashes are keyed at random and what is answered does not depend on the key. No clock.
//!
//! Source: `semantics.md`'s rules were measured on Linux 6.18: taps of packet sockets (`net/core/dev.c`,
//! `net/packet/af_packet.c`), bridges (`net/bridge/br_input.c`, `br_netfilter_hooks.c`).

mod bridged;
mod devices;
mod pair;
pub mod print;
mod proxied;
#[cfg(test)]
mod tests;

use bridged::Heard;
pub use bridged::{Bridged, Ports};
pub use devices::{Device, Devices, Link};

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::net::{IpAddr, Ipv4Addr};

use self::print::{Keys, Print};
use self::proxied::Proxied;
use packet::Headers;

/// Frames that are remembered after they were taken, so that a late second sighting is still known as one.
pub const KEPT: usize = 65_536;
/// A frame that left may be recorded so much before the arrival that it explains, and a device so much from the one
/// above it, in nanoseconds.
const JITTER: u64 = 10_000_000;
/// A packet does not wait longer in the host, in nanoseconds.
const LONGEST: u64 = 4_000_000_000;
/// Flows, datagrams in fragments, and stations at bridges, that are remembered.
const REMEMBERED: usize = 65_536;
/// `skb->pkt_type` of frames that are addressed to a group.
const BROADCAST: u8 = 1;
const MULTICAST: u8 = 2;

/// Which way a frame passed its device, as the capture says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Way {
    /// Nothing says.
    #[default]
    Unknown,
    /// It came in, for this host or for all.
    In,
    /// It came in with another host's link address.
    OtherHost,
    /// The host sent it.
    Out,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sighting {
    /// Nothing tells; its addresses have to.
    #[default]
    Unknown,
    /// A packet as it came in.
    Arrival,
    /// A packet of the host's own.
    Own,
    /// A packet that another frame showed before: it left, or came in by `lo`.
    Second {
        /// That frame's number; none where it is not remembered which.
        of: Option<u64>,
    },
    /// A packet at a device below the one that shows it, too.
    Lower {
        /// The frame of the device above; none where nothing above did send it, as what a bridge sends by itself and
        /// what a packet socket sends.
        of: Option<u64>,
    },
    /// Another host's: nothing here looks at it.
    OtherHost,
}

impl Sighting {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Arrival => "arrival",
            Self::Own => "own",
            Self::Second { .. } => "second",
            Self::Lower { .. } => "lower",
            Self::OtherHost => "other_host",
        }
    }
}

/// Addresses and ports of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ends {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Upper-layer protocol.
    pub protocol: u8,
    /// Ports, or the identifier of an ICMP query twice; none where it has none, or they were not captured.
    pub ports: Option<[u16; 2]>,
}

impl Ends {
    /// Those of what goes the other way.
    fn turned(self) -> Self {
        let Self { source, destination, ports, .. } = self;
        let ports = ports.map(|[one, other]| [other, one]);
        Self { source: destination, destination: source, ports, ..self }
    }
}

/// A packet as it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Number of that frame.
    pub number: u64,
    /// The device by which it left, as the rules see it.
    pub device: u32,
    /// Its ends then.
    pub ends: Ends,
    /// Its time to live is what it came with: a bridge passed it on.
    pub bridged: bool,
}

/// What became known of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// What it is.
    pub sighting: Sighting,
    /// How the packet left, where another frame showed that and no other packet may be meant.
    pub left: Option<Left>,
    /// The device as the rules see it, which may be one above that which showed it; 0 is not known.
    pub device: u32,
    /// It is a fragment.
    pub is_fragment: bool,
    /// What a bridge did with it.
    pub bridged: Bridged,
}

/// A frame that was read.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Its number in the captures.
    pub number: u64,
    /// When, in nanoseconds.
    pub time: u64,
    /// Captured bytes.
    pub bytes: &'a [u8],
    /// Where its headers are.
    pub headers: &'a Headers,
    /// Which way it went.
    pub way: Way,
    /// The capture says that, not the addresses of own links.
    pub is_told: bool,
    /// The device that showed it ([`Devices::named`], [`Devices::at`]); 0 is not known.
    pub device: u32,
}

/// Keys are hashed already.
#[derive(Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

type Table<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

/// No entry.
const NONE: u64 = u64::MAX;

/// A frame that is remembered.
#[derive(Debug)]
struct Entry {
    number: u64,
    time: u64,
    device: u32,
    /// The device that this one feeds with the frame.
    upper: Option<u32>,
    way: Way,
    sighting: Sighting,
    left: Option<Left>,
    /// How it left is known, be it told or not.
    paired: bool,
    /// That it went out is told by another port alone, which showed it before.
    is_guessed: bool,
    /// The port of a bridge that it came by; 0 is not known.
    port: u32,
    /// Ports of its bridge by which it left.
    ports: Ports,
    /// Its frame is addressed to a group.
    is_group: bool,
    /// The port of the bridge at which its destination was heard.
    to: Option<u32>,
    /// The entry of the packet that it shows leaving.
    of: u64,
    print: Option<Print>,
    /// The next entry whose content is the same.
    next: u64,
}

/// First and last entry with the same content.
#[derive(Debug, Clone, Copy)]
struct Chain {
    first: u64,
    last: u64,
}

/// A datagram that came, or left, in fragments.
#[derive(Debug, Default)]
struct Datagram {
    /// What its first fragment was found to be.
    sighting: Sighting,
    /// How it left, where it came.
    left: Option<Left>,
    /// Fragments that came.
    members: Vec<u64>,
}

/// Reads frames ahead and tells what each is.
#[derive(Debug)]
pub struct Sightings {
    devices: Devices,
    keys: Keys,
    /// Frames ahead of the first entry of which nothing can be read.
    others: usize,
    entries: VecDeque<Entry>,
    /// Index of the first entry, and of the next one to be taken.
    base: u64,
    taken: u64,
    /// By what translation leaves alone, one for each way; those that are paired, or too old, leave from the front.
    by_content: Table<Chain>,
    /// The last that came with the same content and ends.
    by_ends: Table<u64>,
    /// The last frame with the same bytes from the network header on, one for each way.
    by_bytes: Table<u64>,
    /// Arrived segments by family, acknowledgement and first byte, where they may leave in parts.
    segments: BTreeMap<(bool, u32, u32), u64>,
    /// Flows as they left, and as they came.
    flows: Table<u64>,
    datagrams: Table<Datagram>,
    /// Where a station was last heard at a bridge, by its address: a cooked capture does not tell the link address of
    /// whom a frame is for.
    heard: Table<Heard>,
    /// Devices that showed frames going out.
    sends: HashSet<u32>,
    reassembly: Reassembly,
    /// Connections that it opens in the place of clients, where its rules have it do so.
    proxied: Option<Proxied>,
}

/// Families whose packets the host puts together on arrival, because it tracks their connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reassembly {
    /// IPv4.
    pub v4: bool,
    /// IPv6.
    pub v6: bool,
}

impl Default for Reassembly {
    fn default() -> Self {
        Self { v4: true, v6: true }
    }
}

impl Sightings {
    /// Of captures on a host with these devices.
    #[must_use]
    pub fn new(devices: Devices) -> Self {
        Self {
            devices,
            keys: Keys::random(),
            others: 0,
            entries: VecDeque::new(),
            base: 0,
            taken: 0,
            by_content: Table::default(),
            by_ends: Table::default(),
            by_bytes: Table::default(),
            segments: BTreeMap::new(),
            flows: Table::default(),
            datagrams: Table::default(),
            heard: Table::default(),
            reassembly: Reassembly::default(),
            sends: HashSet::new(),
            proxied: None,
        }
    }

    /// On a host that puts fragments of these families together, and passes on those of others as they came.
    #[must_use]
    pub fn with_reassembly(self, reassembly: Reassembly) -> Self {
        Self { reassembly, ..self }
    }

    /// On a host that opens connections in the place of clients, if so.
    #[must_use]
    pub fn with_proxy(self, proxies: bool) -> Self {
        Self { proxied: proxies.then(Proxied::default), ..self }
    }

    /// The devices.
    #[must_use]
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// The devices, to name one that was not known.
    pub fn devices_mut(&mut self) -> &mut Devices {
        &mut self.devices
    }

    /// Frames that were seen and not taken.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.others + (self.base + self.entries.len() as u64 - self.taken) as usize
    }

    /// Sees the next frame in order of time.
    pub fn see(&mut self, frame: &Frame<'_>) {
        let index = self.base + self.entries.len() as u64;
        let print = Print::of(frame.bytes, frame.headers, &self.keys, |ends, segment| {
            self.proxied.as_ref().map_or(segment, |all| all.unmoved(ends, segment, frame.way))
        });
        let upper = self.devices.upper(frame.device, frame.headers.link.vlan);
        let was_bridged = print.is_some_and(|print| self.was_bridged(&print, frame, upper));
        let is_below =
            !was_bridged && print.is_some_and(|print| self.is_reset_of_host(&print, frame, upper));
        let way = if was_bridged || is_below { Way::Out } else { frame.way };
        if way == Way::Out {
            self.sends.insert(frame.device);
        }
        self.entries.push_back(Entry {
            number: frame.number,
            time: frame.time,
            device: frame.device,
            upper,
            way,
            sighting: if is_below { Sighting::Lower { of: None } } else { Sighting::Unknown },
            left: None,
            paired: false,
            is_guessed: was_bridged,
            port: upper.map_or(0, |_| frame.device),
            ports: Ports::default(),
            is_group: matches!(frame.headers.link.packet_type, Some(BROADCAST | MULTICAST)),
            to: print
                .filter(|_| upper.is_some())
                .and_then(|print| self.port_of(frame, print.ends.destination)),
            of: NONE,
            print,
            next: NONE,
        });
        let is_loopback = frame.headers.link.loopback || self.devices.is_loopback(frame.device);
        match way {
            Way::Unknown => {}
            _ if is_below => {}
            _ if is_loopback => self.by_loopback(index),
            Way::In | Way::OtherHost => self.came(index),
            Way::Out => self.went(index),
        }
        if let (Some(proxied), Some(print)) = (&mut self.proxied, &print)
            && self.entries.back().is_some_and(|entry| entry.sighting == Sighting::Unknown)
        {
            proxied.see(print, way);
        }
        self.remember(index);
        self.forget();
    }

    /// Sees a frame of which nothing can be read.
    pub fn see_other(&mut self, number: u64) {
        // In a capture that tells nothing of any frame they need not be remembered.
        if self.entries.is_empty() {
            self.others += 1;
            return;
        }
        self.entries.push_back(Entry {
            number,
            time: self.entries.back().map_or(0, |entry| entry.time),
            device: 0,
            upper: None,
            way: Way::Unknown,
            sighting: Sighting::Unknown,
            left: None,
            paired: false,
            is_guessed: false,
            port: 0,
            ports: Ports::default(),
            is_group: false,
            to: None,
            of: NONE,
            print: None,
            next: NONE,
        });
        self.forget();
    }

    /// Sees frames of which nothing can be read, of these numbers.
    pub fn see_others(&mut self, numbers: impl ExactSizeIterator<Item = u64>) {
        // In a capture that tells nothing of any frame they need not be remembered.
        match self.entries.is_empty() {
            true => self.others += numbers.len(),
            false => numbers.for_each(|number| self.see_other(number)),
        }
    }

    /// Takes the oldest frames that were not taken, of which nothing could be read: nothing was ever read of any.
    pub fn pass(&mut self, frames: usize) {
        self.others = self.others.saturating_sub(frames);
    }

    /// What the oldest frame is that was not taken.
    pub fn take(&mut self) -> Option<Seen> {
        if self.others > 0 {
            self.others -= 1;
            return Some(Seen::default());
        }
        let place = (self.taken - self.base) as usize;
        let entry = self.entries.get(place)?;
        self.taken += 1;
        // Of a device below one that did not show it: what the rules see, they see above.
        let device = self.devices.top(entry.device, entry.upper);
        let sighting = match (entry.sighting, entry.way) {
            // What the host sends by a bridge, the bridge shows; what that sends by itself passes no hook.
            (Sighting::Unknown, Way::Out)
                if entry.upper.is_some_and(|upper| self.sends.contains(&upper)) =>
            {
                Sighting::Lower { of: None }
            }
            // A DHCP client that has no address yet sends below all hooks, by a packet socket.
            (Sighting::Unknown, Way::Out) if entry.print.is_some_and(|print| is_raw(&print)) => {
                Sighting::Lower { of: None }
            }
            (Sighting::Unknown, Way::Out) => Sighting::Own,
            (Sighting::Unknown, Way::In) => Sighting::Arrival,
            // At a port of a bridge, be it known as one or not, that passed it on.
            (Sighting::Unknown, Way::OtherHost) if entry.upper.is_some() || entry.paired => {
                Sighting::Arrival
            }
            (Sighting::Unknown, Way::OtherHost) => Sighting::OtherHost,
            (sighting, _) => sighting,
        };
        let is_fragment = entry.print.is_some_and(|print| print.datagram.is_some());
        let bridged = match sighting {
            Sighting::Arrival => self.bridged(entry, device),
            _ => Bridged::default(),
        };
        Some(Seen { sighting, left: entry.left, device, is_fragment, bridged })
    }

    fn entry(&self, index: u64) -> Option<&Entry> {
        self.entries.get(index.checked_sub(self.base)? as usize)
    }

    fn entry_mut(&mut self, index: u64) -> Option<&mut Entry> {
        self.entries.get_mut(index.checked_sub(self.base)? as usize)
    }

    /// Whether the same packet came in by another port of the same bridge: addresses do not tell that it goes out here.
    fn was_bridged(&self, print: &Print, frame: &Frame<'_>, upper: Option<u32>) -> bool {
        let twin = self.by_bytes.get(&one_way(print.bytes, false)).filter(|_| upper.is_some());
        let twin = twin.filter(|_| matches!(frame.way, Way::In | Way::OtherHost));
        twin.and_then(|twin| self.entry(*twin)).is_some_and(|twin| {
            twin.upper == upper
                && twin.device != frame.device
                && frame.time.abs_diff(twin.time) <= JITTER
        })
    }

    /// What the host sends to itself goes out by `lo` and comes in by it.
    fn by_loopback(&mut self, index: u64) {
        let Some(entry) = self.entry(index) else { return };
        let sighting = match entry.way {
            Way::Out => Sighting::Own,
            _ => match self.twin(index, true).and_then(|twin| self.entry(twin)) {
                Some(twin) => Sighting::Second { of: Some(twin.number) },
                // One that was captured coming in alone.
                None => Sighting::Own,
            },
        };
        if let Some(entry) = self.entry_mut(index) {
            entry.sighting = sighting;
        }
    }

    /// The last frame before this one with the same bytes, not long ago, among those that went out or the others.
    fn twin(&self, index: u64, is_out: bool) -> Option<u64> {
        let entry = self.entry(index)?;
        let twin = *self.by_bytes.get(&one_way(entry.print.as_ref()?.bytes, is_out))?;
        let other = self.entry(twin)?;
        (entry.time.abs_diff(other.time) <= self.devices.apart()).then_some(twin)
    }

    /// Enters a frame into the tables.
    fn remember(&mut self, index: u64) {
        let Some(entry) = self.entry(index) else { return };
        // What a bridge that listens to everything shows of others' frames, its ports show.
        if entry.sighting == Sighting::OtherHost {
            return;
        }
        let (Some(print), is_out) = (entry.print, entry.way == Way::Out) else { return };
        if !is_out {
            self.hear(index, &print);
        }
        self.by_bytes.insert(one_way(print.bytes, is_out), index);
        if !is_out {
            self.by_ends.insert(self.keys.packet(&print), index);
        }
        let chain = self.by_content.entry(one_way(print.content, is_out));
        let chain = chain.or_insert(Chain { first: index, last: index });
        let before = chain.last;
        chain.last = index;
        if before != index
            && let Some(entry) = self.entry_mut(before)
        {
            entry.next = index;
        }
    }

    /// Takes the first entry out of its chain.
    fn unchain(&mut self, content: u64, index: u64, next: u64) {
        match self.by_content.get_mut(&content) {
            Some(chain) if chain.first == index && next == NONE => {
                self.by_content.remove(&content);
            }
            Some(chain) if chain.first == index => chain.first = next,
            _ => {}
        }
    }

    /// Drops what is older than need be.
    fn forget(&mut self) {
        while self.taken - self.base > KEPT as u64 {
            let Some(entry) = self.entries.pop_front() else { return };
            let index = self.base;
            self.base += 1;
            let Some(print) = entry.print else { continue };
            let is_out = entry.way == Way::Out;
            let bytes = one_way(print.bytes, is_out);
            if self.by_bytes.get(&bytes) == Some(&index) {
                self.by_bytes.remove(&bytes);
            }
            let packet = self.keys.packet(&print);
            if self.by_ends.get(&packet) == Some(&index) {
                self.by_ends.remove(&packet);
            }
            self.unchain(one_way(print.content, is_out), index, entry.next);
            if let Some(segment) = print.segment {
                let key = segment.key(print.ends.source.is_ipv6());
                if self.segments.get(&key) == Some(&index) {
                    self.segments.remove(&key);
                }
            }
        }
        if self.flows.len() > REMEMBERED {
            self.flows.clear();
        }
        if self.datagrams.len() > REMEMBERED {
            self.datagrams.clear();
        }
        if self.heard.len() > REMEMBERED {
            self.heard.clear();
        }
    }
}

/// Whether it is the request of a DHCP client that has no address: only packet sockets send from 0.0.0.0.
fn is_raw(print: &Print) -> bool {
    const CLIENT: u16 = 68;
    const SERVER: u16 = 67;
    let Ends { source, protocol, ports, .. } = print.ends;
    source == IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        && protocol == packet::udp::PROTOCOL
        && ports == Some([CLIENT, SERVER])
}

/// A key of frames that went out, or of the others.
fn one_way(key: u64, is_out: bool) -> u64 {
    if is_out { !key } else { key }
}
