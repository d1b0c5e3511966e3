//! [`Arrival`]: what is known of a frame besides its bytes.

use std::net::IpAddr;
use std::sync::Arc;

use conntrack::CtState;
use host::sighting::Ports;
use packet::{Gaps, Headers, Link, Mark};
use rules::Iface;
use rules::model::Hook;

use crate::config::Config;
use crate::routing::path::Path;
use crate::wires::Crossing;

/// A frame that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The frame's number in the captures, from 1.
    pub number: u64,
    /// How the first byte is to be read.
    pub link: Link,
    /// The frame's length on the wire in bytes.
    pub wire_len: usize,
    /// Time of arrival, in nanoseconds since the Unix epoch.
    pub time: Option<u64>,
    /// Inbound or outbound, if the capture says so.
    pub direction: pktio::Direction,
    /// The interface that captured the frame.
    pub interface: Option<&'a str>,
    /// The given input interface, which takes precedence over any other source.
    pub input: Option<&'a str>,
    /// The given output interface; see `input`.
    pub output: Option<&'a str>,
    /// How the frame crosses a wire from `input` to `output`: it is forwarded whatever its addresses, and nothing
    /// routes it.
    pub wire: Option<&'a Crossing>,
    /// Bytes of the longest packet that the frame stands for, if it stands for several.
    pub segment: Option<u32>,
    /// Where the packet comes from, if the capture says so.
    pub origin: Origin,
    /// Whether the capture shows no packet of the host's own.
    pub one_sided: bool,
    /// Whether packets may have passed on links that were not captured.
    pub unrecorded: bool,
    /// What is known of the packet's way over a bridge.
    pub bridge: Bridge<'a>,
    /// The packet is the host's own and was seen leaving under these rules: none of them dropped it.
    pub was_let_go: bool,
    /// The packet is an ICMP error that the host sent itself, about a packet that no capture shows.
    pub quotes_unseen: bool,
    /// The packet is for a group that the host was seen joining, whatever its list of groups says.
    pub is_joined: bool,
    /// How the same packet was seen leaving, if it was.
    pub left: Option<Left<'a>>,
    /// When the first frame of all came, in nanoseconds since the Unix epoch; `None` takes the first that a handler
    /// sees.
    pub began: Option<u64>,
    /// Where the packet was recorded, if not at the beginning of its way.
    pub at: Option<Hooked>,
    /// The packet's path, if that is given: its addresses do not decide it then.
    pub path: Option<Path>,
    /// The packet's mark on arrival.
    pub mark: u32,
    /// Whether the mark is given, 0 included: a capture has none, and an own packet may have one of its socket.
    pub mark_given: bool,
    /// The state of the packet's connection, if that is given and not for tracking to find.
    pub ctstate: Option<CtState>,
    /// What is not known of the packet, if it was not captured but described.
    pub gaps: Option<&'a Gaps>,
    /// The frame's headers, if they were found before: by [`find_headers`](crate::find_headers) in the same bytes,
    /// under the same program.
    pub headers: Option<&'a Headers>,
}

/// Where a packet comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// The packet's addresses decide, as far as they can.
    #[default]
    Addresses,
    /// The packet was received on an interface.
    Wire,
    /// The host made the packet.
    Host,
}

/// A packet as it was seen leaving: its translated addresses, and the output interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left<'a> {
    /// Number of the frame that showed it leaving.
    pub number: u64,
    /// The output interface.
    pub interface: Option<&'a str>,
    /// The packet's source, translated.
    pub source: IpAddr,
    /// The packet's destination, translated.
    pub destination: IpAddr,
    /// The packet's ports, or the identifier of an ICMP request twice; none where it has none, or they were not
    /// captured.
    pub ports: Option<[u16; 2]>,
    /// Whether a bridge passed the packet on: it was not routed.
    pub bridged: bool,
    /// Whether it is walked under the rules that let it out, which therefore did not drop it.
    pub let_go: bool,
}

impl Arrival<'_> {
    /// A frame with no other facts given.
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
            unrecorded: false,
            bridge: Bridge::default(),
            was_let_go: false,
            quotes_unseen: false,
            is_joined: false,
            left: None,
            began: None,
            at: None,
            path: None,
            mark: 0,
            mark_given: false,
            ctstate: None,
            gaps: None,
            headers: None,
        }
    }

    /// The smaller MTU of both ports of the wire.
    pub(crate) fn path_mtu(&self) -> Option<u32> {
        let Crossing { mtu, mtu_back, .. } = self.wire?;
        Some((*mtu)?.min((*mtu_back)?))
    }

    /// The mark with which the packet came.
    pub(crate) fn came_with(&self) -> Mark {
        Mark { value: self.mark, unknown: 0 }
    }

    /// The packet's path, if something other than its addresses decides it.
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
    /// The packet's path there.
    pub path: Path,
}

/// A packet's way over a bridge, as far as it is known; by default nothing is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bridge<'a> {
    /// The port on which the bridge received the packet.
    pub port: Option<&'a str>,
    /// Ports on which the packet was seen leaving.
    pub ports: Ports,
    /// Names of devices, by their numbers from 1.
    pub names: &'a [Option<Arc<str>>],
    /// The number of further ports on which it may have left unseen.
    pub more: u8,
    /// The bridge passed the packet on between ports, and not to the host.
    pub is_passed_on: bool,
}

/// A packet as a bridge passes it on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed<'a> {
    /// The output port.
    pub(crate) port: Iface<'a>,
    /// Whether the packet was seen leaving.
    pub(crate) is_seen: bool,
}

impl<'a> Bridge<'a> {
    /// The copies that were seen leaving, and then the copies that may have left unseen.
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
