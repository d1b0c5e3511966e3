//! [`Net`]: a tracker, a clock, and two hosts that talk through it.

use conntrack::{
    Certainty, Config, Confirmation, CtState, CtView, Flow, Mode, Template, Tracker, Visit,
};
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link, Packet};

pub(crate) use CtState::{Established, Invalid, New, Related, Untracked};
pub(crate) use conntrack::SECOND;

/// IPv4 between client and server.
pub(crate) const V4: Addresses =
    Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
/// The two hosts' addresses in IPv6.
pub(crate) const V6: Addresses = Addresses::V6 { source: [0x20; 16], destination: [0x21; 16] };

/// The way back.
pub(crate) fn back(addresses: Addresses) -> Addresses {
    match addresses {
        Addresses::V4 { source, destination } => {
            Addresses::V4 { source: destination, destination: source }
        }
        Addresses::V6 { source, destination } => {
            Addresses::V6 { source: destination, destination: source }
        }
    }
}

pub(crate) fn kernel() -> Config {
    Config { mode: Mode::Kernel, checksums: Checksums::Verify, ..Config::default() }
}

pub(crate) struct Net {
    pub(crate) tracker: Tracker,
    pub(crate) now: u64,
    pub(crate) frame: u64,
    pub(crate) template: Template,
}

impl Net {
    pub(crate) fn new(config: Config) -> Self {
        let template = Template::default();
        Self { tracker: Tracker::new(config), now: SECOND, frame: 0, template }
    }

    pub(crate) fn kernel() -> Self {
        Self::new(kernel())
    }

    pub(crate) fn wait(&mut self, seconds: u64) {
        self.now += seconds * SECOND;
    }

    pub(crate) fn visit(&self) -> Visit {
        Visit { now: self.now, frame: self.frame, template: self.template, ..Visit::default() }
    }

    /// Tracks a frame of which `captured` bytes are known, and hands it on.
    pub(crate) fn with_frame<T>(
        &mut self,
        frame: &[u8],
        captured: usize,
        then: impl FnOnce(&mut Self, &Packet<'_>, CtView) -> T,
    ) -> T {
        self.frame += 1;
        let mut bytes = frame.get(..captured).unwrap_or(frame).to_vec();
        let packet = Packet::parse(&mut bytes, frame.len(), Link::Raw, Checksums::Ignore);
        let visit = self.visit();
        let view = self.tracker.track(&packet, &visit);
        then(self, &packet, view)
    }

    /// A frame that passes.
    pub(crate) fn pass_frame(&mut self, frame: &[u8]) -> CtView {
        self.with_frame(frame, usize::MAX, |net, packet, view| {
            let end = net.tracker.confirm(packet, &view, net.now, Certainty::Certain);
            assert_eq!(end, Confirmation::Pass);
            view
        })
    }

    /// A frame that passes, with more of its visit given.
    pub(crate) fn visit_frame(&mut self, frame: &[u8], more: impl Fn(Visit) -> Visit) -> CtView {
        self.frame += 1;
        let mut bytes = frame.to_vec();
        let packet = Packet::parse(&mut bytes, frame.len(), Link::Raw, Checksums::Ignore);
        let visit = more(self.visit());
        let view = self.tracker.track(&packet, &visit);
        self.tracker.confirm(&packet, &view, self.now, Certainty::Certain);
        view
    }

    /// A packet that passes, and its state.
    pub(crate) fn pass(&mut self, addresses: Addresses, message: Message) -> Option<CtState> {
        self.pass_frame(&frame(addresses, message, 0)).state()
    }

    /// A packet that the rules drop, and its state.
    pub(crate) fn drop(&mut self, addresses: Addresses, message: Message) -> Option<CtState> {
        self.with_frame(&frame(addresses, message, 0), usize::MAX, |net, _, view| {
            net.tracker.discard(&view);
            view.state()
        })
    }

    /// The one living flow.
    pub(crate) fn flow(&self) -> &Flow {
        let mut living = self.tracker.living(self.now);
        let flow = living.next().unwrap();
        assert!(living.next().is_none(), "more than one flow");
        flow
    }
}

/// A bare IP packet.
pub(crate) fn frame(addresses: Addresses, message: Message, payload_len: usize) -> Vec<u8> {
    Craft { ethernet: None, payload_len, ..Craft::new(addresses, message) }.frame()
}

/// A bare IP packet with this payload.
pub(crate) fn with_payload(addresses: Addresses, message: Message, payload: &[u8]) -> Vec<u8> {
    let mut bytes = frame(addresses, message, payload.len());
    let start = bytes.len() - payload.len();
    bytes[start..].copy_from_slice(payload);
    bytes
}

pub(crate) const SYN: Flags = Flags::SYN;
pub(crate) const ACK: Flags = Flags::ACK;
pub(crate) const RST: Flags = Flags::RST;
pub(crate) const SYN_ACK: Flags = Flags::SYN.union(Flags::ACK);
pub(crate) const FIN_ACK: Flags = Flags::FIN.union(Flags::ACK);
pub(crate) const RST_ACK: Flags = Flags::RST.union(Flags::ACK);

/// A TCP connection's two sides: who speaks, and the ports.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    pub(crate) addresses: Addresses,
    pub(crate) ports: [u16; 2],
}

impl Line {
    pub(crate) fn new(addresses: Addresses) -> Self {
        Self { addresses, ports: [40_000, 80] }
    }

    /// A segment of the client with a window of 10,000 bytes.
    pub(crate) fn there(&self, flags: Flags, sequence: u32, acknowledgement: u32) -> Segment {
        Segment {
            addresses: self.addresses,
            ports: self.ports,
            flags,
            sequence,
            acknowledgement,
            window: 10_000,
            payload_len: 0,
            options: Vec::new(),
        }
    }

    /// One of the server.
    pub(crate) fn back(&self, flags: Flags, sequence: u32, acknowledgement: u32) -> Segment {
        let [client, server] = self.ports;
        let turned = Self { addresses: back(self.addresses), ports: [server, client] };
        turned.there(flags, sequence, acknowledgement)
    }
}

/// A TCP segment to build, options included.
#[derive(Clone)]
pub(crate) struct Segment {
    pub(crate) addresses: Addresses,
    pub(crate) ports: [u16; 2],
    pub(crate) flags: Flags,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) window: u16,
    pub(crate) payload_len: usize,
    pub(crate) options: Vec<u8>,
}

impl Segment {
    pub(crate) fn payload(self, payload_len: usize) -> Self {
        Self { payload_len, ..self }
    }

    pub(crate) fn window(self, window: u16) -> Self {
        Self { window, ..self }
    }

    pub(crate) fn options(self, options: &[u8]) -> Self {
        assert!(options.len().is_multiple_of(4));
        Self { options: options.to_vec(), ..self }
    }

    /// The bare IP packet, checksums correct.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let [source, destination] = self.ports;
        let mut header = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        header.extend_from_slice(&self.sequence.to_be_bytes());
        header.extend_from_slice(&self.acknowledgement.to_be_bytes());
        header.extend_from_slice(&[((20 + self.options.len()) * 4) as u8, self.flags.0]);
        header.extend_from_slice(&self.window.to_be_bytes());
        header.extend_from_slice(&[0; 4]);
        header.extend_from_slice(&self.options);
        let message = Message::Other { protocol: 6, header };
        let mut bytes = frame(self.addresses, message, self.payload_len);
        let network = if matches!(self.addresses, Addresses::V4 { .. }) { 20 } else { 40 };
        let upper = &mut bytes[network..];
        let len = upper.len();
        let pseudo = match self.addresses {
            Addresses::V4 { source, destination } => {
                packet::checksum::pseudo_v4(source, destination, 6, len as u16)
            }
            Addresses::V6 { source, destination } => {
                packet::checksum::pseudo_v6(source, destination, 6, len as u32)
            }
        };
        let sum = !packet::checksum::add(packet::checksum::sum(upper), pseudo);
        upper[16..18].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Sends it, lets it pass, and tells its state.
    pub(crate) fn pass(&self, net: &mut Net) -> Option<CtState> {
        net.pass_frame(&self.frame()).state()
    }
}

/// Client at 1000, server at 5000: SYN, answer, acknowledgement.
pub(crate) fn open(net: &mut Net, line: Line) {
    assert_eq!(line.there(SYN, 1000, 0).pass(net), Some(New));
    assert_eq!(line.back(SYN_ACK, 5000, 1001).pass(net), Some(Established));
    assert_eq!(line.there(ACK, 1001, 5001).pass(net), Some(Established));
}
