//! [`Arrival`]: what is given of a frame besides its bytes.

use std::net::IpAddr;
use std::sync::Arc;

use conntrack::CtState;
use host::sighting::Ports;
use packet::{Headers, Link};
use rules::Iface;
use rules::model::Hook;

use crate::config::Config;
use crate::path::Path;
use crate::wires::Crossing;

/// A frame that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Its number in the captures, from 1.
    pub number: u64,
    /// How its first byte is to be read.
    pub link: Link,
    /// Its length on the wire in bytes.
    pub wire_len: usize,
    /// When, in nanoseconds since the Unix epoch.
    pub time: Option<u64>,
    /// Which way, if the capture says so.
    pub direction: pktio::Direction,
    /// The interface that captured it.
    pub interface: Option<&'a str>,
    /// The interfaces it is given to pass, before anything else names them.
    pub input: Option<&'a str>,
    /// See `input`.
    pub output: Option<&'a str>,
    /// It crosses a wire like this, from `input` to `output`: it is forwarded whatever its addresses, and nothing
    /// routes it.
    pub wire: Option<&'a Crossing>,
    /// Bytes of the longest packet that it stands for, if it stands for several.
    pub segment: Option<u32>,
    /// Where it comes from, if the capture tells.
    pub origin: Origin,
    /// The capture shows no packet of the host's own.
    pub one_sided: bool,
    /// What is known of its way over a bridge.
    pub bridge: Bridge<'a>,
    /// It was seen leaving under these rules, and is the host's own: none of them dropped it.
    pub was_let_go: bool,
    /// How the same packet was seen leaving, if it was.
    pub left: Option<Left<'a>>,
    /// When the first frame of all came, in nanoseconds since the Unix epoch; `None`: the first that a handler sees.
    pub began: Option<u64>,
    /// Where it was recorded, if not at the beginning of its way.
    pub at: Option<Hooked>,
    /// The way that it is on, if that is given: its addresses say nothing of it then.
    pub path: Option<Path>,
    /// Its mark on arrival.
    pub mark: u32,
    /// The state of its connection, if that is given and not for tracking to find.
    pub ctstate: Option<CtState>,
    /// Its headers, if they were found before: by [`find_headers`](crate::find_headers) in the same bytes, under the
    /// same program.
    pub headers: Option<&'a Headers>,
}

/// Where a packet comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// Its addresses tell, as far as they can.
    #[default]
    Addresses,
    /// It came in by an interface.
    Wire,
    /// The host made it.
    Host,
}

/// A packet as it was seen leaving: translated, and by which interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left<'a> {
    /// Number of that frame.
    pub number: u64,
    /// The interface that it left by.
    pub interface: Option<&'a str>,
    /// Its source, translated.
    pub source: IpAddr,
    /// Its destination, translated.
    pub destination: IpAddr,
    /// Its ports, or the identifier of an ICMP request twice; none where it has none, or they were not captured.
    pub ports: Option<[u16; 2]>,
    /// A bridge passed it on: it was not routed.
    pub bridged: bool,
    /// It is to be walked under the rules that let it go, which so are known not to have dropped it.
    pub let_go: bool,
}

impl Arrival<'_> {
    /// A frame of which nothing else is given.
    #[must_use]
    pub fn new(number: u64, link: Link, wire_len: usize) -> Self {
        Self {
            number,
            link,
            wire_len,
            time: None,
            direction: pktio::Direction::Unknown,
            interface: None,
            input: None,
            output: None,
            wire: None,
            segment: None,
            origin: Origin::default(),
            one_sided: false,
            bridge: Bridge::default(),
            was_let_go: false,
            left: None,
            began: None,
            at: None,
            path: None,
            mark: 0,
            ctstate: None,
            headers: None,
        }
    }

    /// The smaller MTU of both ports of its wire.
    pub(crate) fn path_mtu(&self) -> Option<u32> {
        let Crossing { mtu, mtu_back, .. } = self.wire?;
        Some((*mtu)?.min((*mtu_back)?))
    }

    /// The path that it takes, if something else than its addresses says so.
    pub(crate) fn given_path(&self, config: &Config) -> Option<Path> {
        let recorded = self.at.map(|at| at.path);
        let forward = self.wire.map(|_| Path::Forward);
        recorded.or(forward).or(self.path).or(config.path)
    }
}

/// Where a packet was recorded, if not at the beginning of its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hooked {
    /// The hook at which the rule stands.
    pub hook: Hook,
    /// The way that it is on there.
    pub path: Path,
}

/// A packet's way over a bridge, as far as it is known; by default nothing is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bridge<'a> {
    /// The port that it came in by.
    pub port: Option<&'a str>,
    /// Ports by which it was seen leaving.
    pub ports: Ports,
    /// Names of devices, by their numbers from 1.
    pub names: &'a [Option<Arc<str>>],
    /// By how many more ports it may have been passed on, unseen.
    pub more: u8,
    /// It was passed on between ports, and not given to the host.
    pub is_passed_on: bool,
}

/// A packet as a bridge passes it on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed<'a> {
    /// The port that it leaves by.
    pub(crate) port: Iface<'a>,
    /// It was seen leaving.
    pub(crate) is_seen: bool,
}

impl<'a> Bridge<'a> {
    /// What was passed on, and then what may have been.
    pub(crate) fn copies(self) -> impl Iterator<Item = Passed<'a>> {
        let name = move |device: u32| {
            let place = (device as usize).checked_sub(1)?;
            self.names.get(place)?.as_deref()
        };
        let named = move |device| name(device).map_or(Iface::Unknown, Iface::Named);
        let seen = self.ports.iter().map(move |at| Passed { port: named(at), is_seen: true });
        let unseen = Passed { port: Iface::Unknown, is_seen: false };
        seen.chain((0..self.more).map(move |_| unseen))
    }
}
