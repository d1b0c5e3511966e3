//! [`Spotter`]: says of each frame what it is, so that packets are evaluated once and with what the frame that left tells
//! of them.
//!
//! Contract: it sees batches in order of time, some of them before it tells of the oldest; who holds them back is
//! `source`. A capture in which nothing tells which way a frame went need not be held back at all, and costs nothing.

use dataplane::Config;
use host::sighting::{Devices, Frame, Link, Reassembly, Seen, Sightings, Way};
use host::{Host, LinkKind};
use packet::{Checksums, Headers, parse};
use pktio::{Direction, Frame as Captured, Interface};
use rules::model::Family;

use crate::batch::{Arrived, Batch, Names};
use crate::rules_file::RulesFile;
use dataplane::link_of;

/// `skb->pkt_type` of cooked captures.
const OTHER_HOST: u8 = 3;
const OUTGOING: u8 = 4;

/// What the frames of batches that wait were seen to be.
pub(crate) struct Spotter<'h> {
    host: &'h Host,
    /// What frames that left tell of packets is wanted.
    pairs: bool,
    sightings: Sightings,
    /// The latest time seen.
    newest: u64,
    /// Devices of the captures' interfaces, by their place in a batch.
    interfaces: Vec<u32>,
    /// Some frame told which way it went.
    is_told: bool,
    /// Some frame went out.
    shows_out: bool,
    /// Links of the host tell by their addresses.
    knows_macs: bool,
    /// Names of the devices so far.
    names: Names,
}

impl<'h> Spotter<'h> {
    /// For captures of this host under these rules.
    pub(crate) fn new(files: &[RulesFile], config: &'h Config) -> Self {
        let host = &config.host;
        let links = host.links().all().iter().map(|link| Link {
            index: (link.index > 0).then_some(link.index),
            name: &link.name,
            master: link.master.as_deref().filter(|name| is_fed(host, name)),
            vlan: match link.kind {
                LinkKind::Vlan { id } => link.parent.as_deref().zip(id),
                _ => None,
            },
            is_loopback: link.kind == LinkKind::Loopback,
        });
        Self {
            host,
            pairs: config.pair,
            sightings: Sightings::new(Devices::of(links))
                .with_reassembly(reassembly(files))
                .with_proxy(files.iter().any(|file| file.ruleset.proxies())),
            newest: 0,
            interfaces: Vec::new(),
            is_told: false,
            shows_out: false,
            knows_macs: !host.links().is_empty(),
            names: Names::default(),
        }
    }

    /// Sees the next batch.
    pub(crate) fn see(&mut self, batch: &Batch) {
        if batch.tells || self.knows_macs {
            self.see_all(batch);
        } else {
            self.sightings.see_others(batch.arrived.iter().map(|arrived| arrived.number));
        }
        let last = batch.arrived.last().and_then(|arrived| arrived.time);
        self.newest = self.newest.max(last.unwrap_or(0));
    }

    /// Sees every frame of a batch.
    fn see_all(&mut self, batch: &Batch) {
        for (frame, arrived) in batch.burst.iter().zip(&batch.arrived) {
            self.newest = self.newest.max(arrived.time.unwrap_or(0));
            let interface = batch.stream.interfaces.get(frame.meta.interface as usize);
            if !self.see_frame(frame, *arrived, interface) {
                self.sightings.see_other(arrived.number);
            }
        }
    }

    /// Sees a frame; false where nothing tells which way it went.
    fn see_frame(&mut self, frame: Captured<'_>, arrived: Arrived, on: Option<&Interface>) -> bool {
        let Some(link) = link_of(frame.meta.link_type) else { return false };
        let is_cooked = matches!(link, packet::Link::Sll | packet::Link::Sll2);
        let direction = frame.meta.direction;
        if !is_cooked && direction == Direction::Unknown && !self.knows_macs {
            return false;
        }
        let wire_len = frame.meta.wire_length as usize;
        let headers = parse(link, frame.bytes, wire_len, Checksums::Ignore);
        let way = self.way(direction, frame.bytes, &headers);
        if way == Way::Unknown {
            return false;
        }
        self.is_told = true;
        self.shows_out |= way == Way::Out;
        let device = self.device(frame.meta.interface, on, &headers.link);
        self.sightings.see(&Frame {
            number: arrived.number,
            time: arrived.time.unwrap_or(self.newest),
            bytes: frame.bytes,
            headers: &headers,
            way,
            is_told: is_cooked || direction != Direction::Unknown,
            device,
        });
        true
    }

    /// Whether nothing more is to be learned of a batch from those that come within a time after it, in nanoseconds.
    pub(crate) fn is_ripe(&self, batch: &Batch, nanos: u64) -> bool {
        let last = batch.arrived.last().and_then(|arrived| arrived.time).unwrap_or(0);
        !self.is_told || self.newest.saturating_sub(last) > nanos
    }

    /// Tells what the frames of the oldest batch are that it did not tell of.
    pub(crate) fn tell(&mut self, to: &mut Batch) {
        to.seen.clear();
        if self.is_told {
            let Self { sightings, pairs, .. } = self;
            to.seen.extend(to.arrived.iter().map(|_| {
                let seen = sightings.take().unwrap_or_default();
                Seen { left: seen.left.filter(|_| *pairs), ..seen }
            }));
        } else {
            self.sightings.pass(to.arrived.len());
        }
        to.stream.one_sided = self.is_told && !self.shows_out;
        to.stream.devices = self.names();
    }

    /// Names of all devices, by number.
    fn names(&mut self) -> Names {
        let devices = self.sightings.devices();
        if self.names.all().len() != devices.len() {
            self.names = devices.all().map(|device| device.name.clone()).collect();
        }
        self.names.clone()
    }

    /// Which way a frame went: as the capture says, then as the addresses of own links do.
    fn way(&self, direction: Direction, bytes: &[u8], headers: &Headers) -> Way {
        let kind = headers.link.packet_type;
        let is_cooked = headers.link.ethernet.is_none() && kind.is_some();
        match (direction, kind) {
            (Direction::Outbound, _) => Way::Out,
            (_, Some(OUTGOING)) if is_cooked => Way::Out,
            (_, Some(OTHER_HOST)) if is_cooked => Way::OtherHost,
            (_, Some(_)) if is_cooked => Way::In,
            (Direction::Inbound, _) => Way::In,
            _ => headers.link.ethernet.map_or(Way::Unknown, |at| self.way_by_mac(bytes, at)),
        }
    }

    fn way_by_mac(&self, bytes: &[u8], at: usize) -> Way {
        let mac = |at: usize| -> Option<[u8; 6]> { bytes.get(at..at + 6)?.try_into().ok() };
        let (Some(destination), Some(source)) = (mac(at), mac(at + 6)) else { return Way::Unknown };
        if self.host.is_own_mac(source) {
            Way::Out
        } else if destination[0] & 1 == 1 || self.host.is_own_mac(destination) {
            Way::In
        } else {
            Way::OtherHost
        }
    }

    /// The device that showed a frame.
    fn device(
        &mut self,
        number: u32,
        interface: Option<&Interface>,
        link: &packet::LinkHeader,
    ) -> u32 {
        if let Some(index) = link.ifindex {
            return self.sightings.devices_mut().at(index);
        }
        let place = number as usize;
        while self.interfaces.len() <= place {
            self.interfaces.push(0);
        }
        if self.interfaces[place] == 0
            && let Some(name) = interface.and_then(|interface| interface.name.as_deref())
            && name != "any"
        {
            self.interfaces[place] = self.sightings.devices_mut().named(name);
        }
        self.interfaces[place]
    }
}

/// Families whose fragments are put together on arrival: those whose rules make the kernel track connections.
fn reassembly(files: &[RulesFile]) -> Reassembly {
    let tracks =
        |family| files.iter().any(|file| file.ruleset.family == family && file.ruleset.tracks());
    Reassembly { v4: tracks(Family::Ipv4), v6: tracks(Family::Ipv6) }
}

/// Whether a device gets all that its parts get: those of a routing domain keep it.
fn is_fed(host: &Host, master: &str) -> bool {
    let kind = host.links().named(master).map(|link| link.kind);
    matches!(kind, Some(LinkKind::Bridge | LinkKind::Bond))
}
