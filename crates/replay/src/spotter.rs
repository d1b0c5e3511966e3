//! [`Spotter`]: says of each frame what it is, so that packets are evaluated once and with what the frame that left tells
//! of them.
//!
//! Contract: it sees batches in order of time, some of them before it tells of the oldest; who holds them back is
//! `source`. A capture in which nothing tells which way a frame went need not be held back at all, and costs nothing.

use std::net::IpAddr;

use dataplane::Config;
use host::sighting::{Copied, Devices, Families, Frame, Link, Seen, Sightings, Way};
use host::{Host, LinkKind, Outgoing, Routed};
use packet::{Checksums, Headers, L3, ipv4, ipv6, parse};
use pktio::{Direction, Frame as Captured, Interface};
use rules::model::{Family, Ruleset};

use crate::batch::{Arrived, Batch, Names};
use crate::recorded::Recorded;
use crate::reports::Joined;
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
    /// Devices on which copies (TEE) of packets leave.
    copies: Vec<(u32, Box<str>)>,
    joined: Joined,
    recorded: Recorded<'h>,
    /// How many of the captures' interfaces were noted.
    interfaces_noted: usize,
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
            parent: link.parent.as_deref().filter(|_| link.kind == LinkKind::Macvlan),
            is_loopback: link.kind == LinkKind::Loopback,
        });
        let mut sightings = Sightings::new(Devices::of(links))
            .with_reassembly(families(files, Ruleset::tracks))
            .with_translation(translated(files, host))
            .with_queues(files.iter().any(|file| file.ruleset.queues()))
            .with_proxy(files.iter().any(|file| file.ruleset.proxies()));
        let has_bridge_rules = files.iter().any(|file| file.ruleset.family == Family::Bridge);
        let copies = copied(files, host);
        let copies = copies.map(|name| (sightings.devices_mut().named(name), name.into()));
        Self {
            host,
            pairs: config.pair,
            copies: copies.collect(),
            joined: Joined::default(),
            sightings,
            newest: 0,
            interfaces: Vec::new(),
            is_told: false,
            shows_out: false,
            knows_macs: !host.links().is_empty(),
            names: Names::default(),
            recorded: Recorded::of(host, has_bridge_rules),
            interfaces_noted: 0,
        }
    }

    /// Captures are to come that were taken on the link of this name.
    pub(crate) fn expect(&mut self, interface: &str) {
        self.recorded.note(interface);
    }

    /// Links that are up and that no capture was taken on.
    pub(crate) fn unrecorded(&self) -> Vec<String> {
        if self.is_told { self.recorded.missing() } else { Vec::new() }
    }

    /// What is worth a warning of what the captures do not show.
    pub(crate) fn warnings(&self) -> Vec<String> {
        if self.is_told { self.recorded.warnings() } else { Vec::new() }
    }

    /// Whether frames are as taps saw them, which packets that OUTPUT drops never come to.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Sees the next batch.
    pub(crate) fn see(&mut self, batch: &Batch) {
        let interfaces = batch.stream.interfaces.get(self.interfaces_noted..).unwrap_or_default();
        interfaces.iter().for_each(|interface| self.recorded.note_interface(interface));
        self.interfaces_noted += interfaces.len();
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
        let device = self.device(frame.meta.interface, on, &headers.link);
        let way = match (self.way(direction, frame.bytes, &headers), link) {
            (Way::Unknown, packet::Link::Raw) => on
                .and_then(|on| on.name.as_deref())
                .map_or(Way::Unknown, |name| self.way_by_routes(name, frame.bytes, &headers)),
            (way, _) if self.sightings.devices().is_parent(device) => {
                self.way_at_parent(way, frame.bytes, &headers)
            }
            (way, _) => way,
        };
        if let (Some(at), None) = (headers.link.ethernet, on.and_then(|on| on.name.as_deref())) {
            self.note_macs(frame.bytes, at);
        }
        if way == Way::Unknown {
            return false;
        }
        self.is_told = true;
        self.shows_out |= way == Way::Out;
        if way == Way::Out {
            let host = self.host;
            self.joined.note(device, frame.bytes, &headers, || sends(host, frame.bytes, &headers));
        }
        self.sightings.see(&Frame {
            number: arrived.number,
            time: arrived.time.unwrap_or(self.newest),
            bytes: frame.bytes,
            headers: &headers,
            way,
            is_told: is_cooked || direction != Direction::Unknown,
            device,
            copied: match way {
                Way::Out => self.copied(device, frame.bytes, &headers),
                _ => Copied::No,
            },
            is_joined: way == Way::In && self.is_joined(device, frame.bytes, &headers),
        });
        true
    }

    /// Whether a rule had the host send it: it left by a device for copies, where no route leads its packet.
    fn copied(&self, device: u32, bytes: &[u8], headers: &Headers) -> Copied {
        let Some((_, name)) = self.copies.iter().find(|(number, _)| *number == device) else {
            return Copied::No;
        };
        let ends = addresses(bytes, headers);
        match ends.and_then(|[source, to]| self.host.leaves_by(source, to)) {
            Some(output) if *output == **name => Copied::No,
            Some(_) => Copied::Yes,
            None => Copied::Maybe,
        }
    }

    /// Whether it is for a group that the host was seen joining there.
    fn is_joined(&self, device: u32, bytes: &[u8], headers: &Headers) -> bool {
        !self.joined.is_empty()
            && addresses(bytes, headers).is_some_and(|[_, to]| self.joined.contains(device, to))
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
        to.stream.unrecorded = self.is_told && self.recorded.lacks_some();
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

    /// Which way a frame without link addresses went, as a TUN device shows it: what has an address of the host's own
    /// tells, and what goes on left by the device that its destination is routed to.
    fn way_by_routes(&self, device: &str, bytes: &[u8], headers: &Headers) -> Way {
        let Some([source, to]) = addresses(bytes, headers) else { return Way::Unknown };
        let is_local = |addr| self.host.is_local(addr) == Some(true);
        let is_by = |from, to| self.host.leaves_by(from, to).map(|output| output == device);
        if is_local(source) {
            Way::Out
        } else if is_local(to) || to.is_multicast() {
            Way::In
        } else {
            match (is_by(source, to), is_by(to, source)) {
                // From one behind it to another: it came, and went back.
                (Some(false), _) | (Some(true), Some(true)) => Way::In,
                (Some(true), _) => Way::Out,
                (None, _) => Way::Unknown,
            }
        }
    }

    /// The same at a device that bears others of their own address (macvlan): what goes out with the address of no own link is of
    /// one in another namespace, and what is for such a one with an own address is the host's.
    fn way_at_parent(&self, way: Way, bytes: &[u8], headers: &Headers) -> Way {
        let source = headers.link.source_mac.and_then(|at| bytes.get(at..at + 6)?.try_into().ok());
        match (way, source.map(|mac| self.host.is_own_mac(mac))) {
            (Way::Out, Some(false)) => Way::OtherHost,
            (Way::OtherHost, Some(true)) => Way::Out,
            _ => way,
        }
    }

    /// Of a capture that names no interface, its link addresses tell.
    fn note_macs(&mut self, bytes: &[u8], at: usize) {
        for mac in macs(bytes, at).into_iter().flatten() {
            if self.host.is_own_mac(mac) {
                self.recorded.note_mac(mac);
            }
        }
    }

    fn way_by_mac(&self, bytes: &[u8], at: usize) -> Way {
        let Some([destination, source]) = macs(bytes, at) else { return Way::Unknown };
        let is_own = self.host.is_own_mac(source);
        // What a switch, or a bridge's port whose hairpin is on, sends back to its sender comes in.
        if is_own && source == destination {
            Way::In
        } else if is_own {
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

/// Destination and source of an Ethernet frame.
fn macs(bytes: &[u8], at: usize) -> Option<[[u8; 6]; 2]> {
    let mac = |at: usize| -> Option<[u8; 6]> { bytes.get(at..at + 6)?.try_into().ok() };
    Some([mac(at)?, mac(at + 6)?])
}

/// Families that some rules say this of.
fn families(files: &[RulesFile], says: impl Fn(&Ruleset) -> bool) -> Families {
    let says =
        |family| files.iter().any(|file| file.ruleset.family == family && says(&file.ruleset));
    Families { v4: says(Family::Ipv4), v6: says(Family::Ipv6) }
}

/// Devices that rules send copies of packets out by.
fn copied<'h>(files: &'h [RulesFile], host: &'h Host) -> impl Iterator<Item = &'h str> {
    let all = files.iter().flat_map(|file| file.ruleset.copies_to());
    all.filter_map(
        |(gateway, named)| {
            if named.is_empty() { output(host, gateway) } else { Some(named) }
        },
    )
}

/// The device that a destination is routed out by, as far as it alone tells.
fn output(host: &Host, destination: IpAddr) -> Option<&str> {
    match host.route_out(&Outgoing::to(destination)) {
        Routed::Forward { output, .. } => output,
        _ => None,
    }
}

/// Whether a packet has an address of the host as its source, or none yet.
fn sends(host: &Host, bytes: &[u8], headers: &Headers) -> bool {
    addresses(bytes, headers)
        .is_some_and(|[source, _]| source.is_unspecified() || host.is_local(source) != Some(false))
}

/// Source and destination of a packet.
fn addresses(bytes: &[u8], headers: &Headers) -> Option<[IpAddr; 2]> {
    let network = bytes.get(headers.network..)?;
    match headers.l3 {
        L3::Ipv4 { .. } => {
            let header = ipv4::Header::new_checked(network)?;
            Some([header.source().into(), header.destination().into()])
        }
        L3::Ipv6 => {
            let address = |range| Some(<[u8; 16]>::try_from(network.get(range)?).ok()?.into());
            Some([address(ipv6::SOURCE)?, address(ipv6::DESTINATION)?])
        }
        _ => None,
    }
}

/// Families whose addresses rules translate, or chains that are not evaluated may.
fn translated(files: &[RulesFile], host: &Host) -> Families {
    match host.foreign.met().next() {
        None => families(files, Ruleset::translates),
        Some(_) => Families::ALL,
    }
}

/// Whether a device gets all that its parts get: those of a routing domain keep it.
fn is_fed(host: &Host, master: &str) -> bool {
    let kind = host.links().named(master).map(|link| link.kind);
    matches!(kind, Some(LinkKind::Bridge | LinkKind::Bond))
}
