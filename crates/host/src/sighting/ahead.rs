//! [`Sightings`] reads frames ahead of their evaluation, and gives them back in order, each as what it is.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use super::alike::is_arrival;
use super::devices::Devices;
use super::frame::{Copied, Ends, Frame, JITTER, Seen, Sighting, Way};
use super::ports::{Bridged, Ports};
use super::print::{Keys, Print};
use super::proxied::Proxied;
use super::queued::Queued;
use super::remembered::{Entry, Families, NONE, Sightings};
use super::table::{MOST, Table, one_way};

/// `skb->pkt_type` of frames that are addressed to a group.
const BROADCAST: u8 = 1;

const MULTICAST: u8 = 2;

/// How a frame goes out that seemed to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    /// As a packet that came.
    On,
    /// The host sends it below all hooks.
    Below,
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
            resets: Table::default(),
            datagrams: Table::default(),
            heard: Table::default(),
            reassembly: Families::ALL,
            translation: Families::ALL,
            sends: Vec::new(),
            proxied: None,
            queued: None,
        }
    }

    /// On a host that puts fragments of these families together, because it tracks their connections, and passes on those
    /// of others as they came.
    #[must_use]
    pub fn with_reassembly(self, reassembly: Families) -> Self {
        Self { reassembly, ..self }
    }

    /// On a host that translates addresses and ports of these families alone.
    #[must_use]
    pub fn with_translation(self, translation: Families) -> Self {
        Self { translation, ..self }
    }

    /// On a host that opens connections in the place of clients, if so.
    #[must_use]
    pub fn with_proxy(self, proxies: bool) -> Self {
        Self { proxied: proxies.then(Proxied::default), ..self }
    }

    /// On a host whose rules hand packets that it passes on to programs, if so: those may change what they hold.
    #[must_use]
    pub fn with_queues(self, queues: bool) -> Self {
        Self { queued: queues.then(Queued::default), ..self }
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
        let goes = print.as_ref().and_then(|print| self.goes(print, frame, upper));
        let is_below = goes == Some(Goes::Below);
        let way = match frame.way {
            _ if goes.is_some() => Way::Out,
            Way::In if self.devices.is_of_no_vlan(frame.device, frame.headers.link.vlan) => {
                Way::OtherHost
            }
            way => way,
        };
        if way == Way::Out {
            self.sent(frame.device);
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
            is_guessed: goes == Some(Goes::On),
            quotes_unseen: false,
            may_have_come: false,
            copied: frame.copied,
            is_joined: frame.is_joined,
            port: upper.map_or(0, |_| frame.device),
            ports: Ports::default(),
            is_group: matches!(frame.headers.link.packet_type, Some(BROADCAST | MULTICAST)),
            to: print
                .as_ref()
                .filter(|_| upper.is_some() && way != Way::Out)
                .and_then(|print| self.port_of(frame, print.ends.destination)),
            is_given: false,
            of: NONE,
            print,
            next: NONE,
        });
        if !is_below {
            self.place(index, print.as_ref(), frame, way);
        }
        if let Some(print) = &print {
            if let Some(proxied) = &mut self.proxied
                && self.entries.back().is_some_and(|entry| entry.sighting == Sighting::Unknown)
            {
                proxied.see(print, way);
            }
            self.remember(index, print);
        }
        self.forget();
    }

    fn sent(&mut self, device: u32) {
        let place = device as usize;
        if place >= self.sends.len() {
            self.sends.resize(place + 1, false);
        }
        self.sends[place] = true;
    }

    fn has_sent(&self, device: u32) -> bool {
        self.sends.get(device as usize) == Some(&true)
    }

    /// Finds out what a frame is, by those before it.
    fn place(&mut self, index: u64, print: Option<&Print>, frame: &Frame<'_>, way: Way) {
        let Frame { time, device, copied, .. } = *frame;
        let is_loopback = frame.headers.link.loopback || self.devices.is_loopback(device);
        match (way, print) {
            (Way::Unknown, _) => {}
            _ if is_loopback => {
                self.by_loopback(index);
                self.quotes(index, frame);
            }
            (_, None) => {}
            (Way::In | Way::OtherHost, Some(print)) => self.came(index, print, time, device),
            (Way::Out, Some(print)) => self.went(index, print, device, copied),
        }
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
            quotes_unseen: false,
            may_have_come: false,
            copied: Copied::No,
            is_joined: false,
            port: 0,
            ports: Ports::default(),
            is_group: false,
            to: None,
            is_given: false,
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
                if entry.upper.is_some_and(|upper| self.has_sent(upper)) =>
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
        let (is_copy, may_have_come) = match sighting {
            Sighting::Own => self.copy_or_not(entry),
            _ => (false, false),
        };
        let Entry { left, quotes_unseen, is_joined, .. } = *entry;
        Some(Seen {
            sighting,
            left,
            device,
            is_fragment,
            bridged,
            quotes_unseen,
            is_copy,
            may_have_come,
            is_joined,
        })
    }

    /// Whether a frame goes out after all, which neither the capture nor its addresses tell.
    fn goes(&mut self, print: &Print, frame: &Frame<'_>, upper: Option<u32>) -> Option<Goes> {
        if !matches!(frame.way, Way::In | Way::OtherHost) {
            return None;
        }
        let is_told = frame.is_told;
        if upper.is_some() {
            if self.was_bridged(print, frame, upper) {
                return Some(Goes::On);
            } else if !is_told && self.is_reset_of_host(print, frame) {
                return Some(Goes::Below);
            } else if !is_told && self.is_sent_on(print, frame) {
                return Some(Goes::On);
            }
        }
        (!is_told && self.turned_back(print, frame)).then_some(Goes::On)
    }

    /// Whether a frame of a device without link addresses is a packet that arrived on it and leaves on it again, routed.
    fn turned_back(&self, print: &Print, frame: &Frame<'_>) -> bool {
        frame.way == Way::In
            && frame.headers.link.ethernet.is_none()
            && self.alike(print, false).take(MOST).any(|(_, came)| {
                came.device == frame.device
                    && is_arrival(came)
                    && !came.paired
                    && came.print.is_some_and(|came| came.ttl == print.ttl.wrapping_add(1))
                    && frame.time.abs_diff(came.time) <= JITTER
            })
    }

    /// Whether the same packet came in by another port of the same bridge: addresses do not tell that it goes out here.
    fn was_bridged(&self, print: &Print, frame: &Frame<'_>, upper: Option<u32>) -> bool {
        let twin = self.by_bytes.get(&one_way(print.bytes, false));
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
