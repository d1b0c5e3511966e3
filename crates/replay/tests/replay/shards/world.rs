//! A small world in which connections through NAT meet: few hosts and ports, replies and errors as each side sees them,
//! what the host itself sends, and frames that show what was drawn.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::craft::{Addresses, Craft, Fragment, Message};
use packet::tcp::Flags;
use pktio::pcap_file::NgWriter;
use pktio::{Frame, FrameMeta, Interface, LinkType, Timestamp};
use proptest::prelude::*;

/// Packets of one capture, and so of one batch.
const EACH: usize = 12;
const PORTS: [u16; 6] = [1000, 1001, 53, 80, 8080, 22];
/// Bytes that are left of a packet that is cut.
const SNAP: usize = 34;

/// Where hosts are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Net {
    Lan,
    Wan,
    /// The host itself.
    Own,
    /// Mapped to the lan by NETMAP.
    Mapped,
}

/// An address of the world.
pub(crate) fn address(net: Net, host: u8, v6: bool) -> IpAddr {
    let (four, six) = match net {
        Net::Lan => ([10, 0, 0], 0x10),
        Net::Wan => ([20, 0, 0], 0x20),
        Net::Own => ([192, 0, 2], 0x92),
        Net::Mapped => ([30, 0, 0], 0x30),
    };
    let [a, b, c] = four;
    match v6 {
        false => Ipv4Addr::new(a, b, c, host).into(),
        true => Ipv6Addr::new(0x2000 | six, 0, 0, 0, 0, 0, 0, host.into()).into(),
    }
}

/// Two ends that talk, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Talk {
    client: u8,
    server: u8,
    ports: [u16; 2],
    protocol: u8,
}

/// A packet of a talk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Which talk's, in turn.
    talk: usize,
    /// Whose packet it is, and what it looks like to them.
    act: u8,
    flags: u8,
    /// Cut, a fragment, or shown as it left.
    odd: u8,
    /// Milliseconds after the one before.
    after: u32,
}

/// What is recorded.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) v6: bool,
    /// On all interfaces, which says what the host sent.
    any: bool,
    /// Some packets are cut, or fragments.
    is_odd: bool,
    /// The first talks of TCP are listed, as connections from before.
    is_listed: bool,
    talks: Vec<Talk>,
    steps: Vec<Step>,
}

/// Source and destination, with their ports.
#[derive(Debug, Clone, Copy)]
struct Ends([(IpAddr, u16); 2]);

impl Ends {
    fn back(self) -> Self {
        let [source, destination] = self.0;
        Self([destination, source])
    }
}

pub(crate) fn worlds() -> impl Strategy<Value = World> {
    let port = || prop::sample::select(&PORTS[..]);
    let talk = (0u8..3, 0u8..6, [port(), port()], 0u8..8)
        .prop_map(|(client, server, ports, protocol)| Talk { client, server, ports, protocol });
    let after = prop_oneof![8 => 0u32..400, 1 => 20_000u32..200_000];
    let step = (0usize..72, 0u8..14, any::<u8>(), any::<u8>(), after)
        .prop_map(|(talk, act, flags, odd, after)| Step { talk, act, flags, odd, after });
    let odd = prop::bool::weighted;
    let shape = (odd(0.25), odd(0.3), odd(0.2), odd(0.2));
    let of = (shape, prop::collection::vec(talk, 2..9), prop::collection::vec(step, 1..130));
    of.prop_map(|((v6, any, is_odd, is_listed), talks, steps)| World {
        v6,
        any,
        is_odd,
        is_listed,
        talks,
        steps,
    })
}

impl Talk {
    /// What the client sends, as it sends it.
    fn sent(self, v6: bool) -> Ends {
        let server = match self.server {
            0..3 => address(Net::Wan, 1 + self.server % 2, v6),
            3 | 4 => address(Net::Own, 1, v6),
            _ => address(Net::Mapped, 9, v6),
        };
        let client = match self.server {
            3 | 4 => address(Net::Wan, 1 + self.client, v6),
            _ => address(Net::Lan, 1 + self.client, v6),
        };
        Ends([(client, self.ports[0]), (server, self.ports[1])])
    }
}

impl Step {
    /// One or two frames, and whether the host sends each.
    fn frames(&self, world: &World, number: usize) -> Vec<(Vec<u8>, bool)> {
        let v6 = world.v6;
        let talk = world.talks[self.talk % world.talks.len()];
        let sent = talk.sent(v6);
        let [client, server] = sent.0;
        let own = (address(Net::Own, 1, v6), client.1);
        let inner = (address(Net::Lan, 9, v6), [server.1, 80, 8080][usize::from(self.flags) % 3]);
        let router = (address(Net::Wan, 254, v6), 0);
        let kind = Kind { talk, flags: self.flags, v6, number };
        let frame = |ends: Ends, is_reply: bool| self.odd(kind.craft(ends, is_reply), world);
        let error = |from, to, about: Ends| kind.error(from, to, about);
        let translated = Ends([own, server]);
        match self.act {
            0..4 if world.any && self.odd > 100 => {
                let drawn = (own.0, own.1 + u16::from(self.odd > 180));
                let mut left = kind.craft(Ends([drawn, server]), false);
                left.ttl -= 1;
                vec![(frame(sent, false), false), (left.frame(), true)]
            }
            0..4 => vec![(frame(sent, false), false)],
            4 => vec![(frame(sent.back(), true), false)],
            5 => vec![(frame(translated.back(), true), false)],
            // To the next port, which is often the drawn one.
            6 => vec![(frame(Ends([server, (own.0, own.1 + 1)]), true), false)],
            7 => vec![(frame(Ends([inner, client]), true), false)],
            8 => vec![(error(router, own, translated), false)],
            9 => vec![(error(router, client, sent), world.any && self.odd > 128)],
            10 => vec![(error(inner, client, Ends([client, inner])), false)],
            11 => vec![(frame(Ends([server, (own.0, client.1)]), false), false)],
            12 => vec![(frame(translated, false), world.any)],
            // The host's answer to what it rejected.
            _ if self.flags.is_multiple_of(2) => vec![(error(own, client, sent), world.any)],
            _ => {
                let reset = Kind { flags: 3, ..kind };
                vec![(reset.craft(sent.back(), true).frame(), world.any)]
            }
        }
    }

    /// The bytes of a frame, at times cut off or of a fragment.
    fn odd(&self, mut craft: Craft, world: &World) -> Vec<u8> {
        if world.is_odd && self.odd == 0 && !world.v6 {
            craft.fragment = Some(Fragment { offset: 0, more: true });
        }
        let mut bytes = craft.frame();
        if world.is_odd && self.odd == 1 {
            bytes.truncate(SNAP);
        }
        bytes
    }
}

/// What packets of a step are made of.
#[derive(Clone, Copy)]
struct Kind {
    talk: Talk,
    flags: u8,
    v6: bool,
    number: usize,
}

impl Kind {
    fn craft(self, Ends([source, destination]): Ends, is_reply: bool) -> Craft {
        let addresses = Addresses::new(source.0, destination.0).unwrap();
        let echo = match (self.v6, is_reply) {
            (false, false) => 8,
            (false, true) => 0,
            (true, is_reply) => 128 + u8::from(is_reply),
        };
        let flags = match (self.flags % 6, is_reply) {
            (3, _) => Flags::RST,
            (4, _) => Flags::ACK,
            (_, false) => Flags::SYN,
            (_, true) => Flags::SYN.union(Flags::ACK),
        };
        let id = if is_reply { destination.1 } else { source.1 };
        let message = match self.talk.protocol {
            0..3 => Message::tcp(source.1, destination.1, flags),
            3 | 4 => Message::udp(source.1, destination.1),
            5 => Message::Icmp { kind: echo, code: 0, id, sequence: 1 },
            6 => Message::Other { protocol: 47, header: vec![0; 4] },
            _ => Message::Other { protocol: 50, header: vec![0, 0, 0, 1, 0, 0, 0, 1] },
        };
        let mut craft = Craft::new(addresses, message);
        craft.ethernet = None;
        (craft.id, craft.payload_len) = (self.number as u32, 8 + self.number % 40);
        craft
    }

    fn error(self, from: (IpAddr, u16), to: (IpAddr, u16), about: Ends) -> Vec<u8> {
        let quoted = self.craft(about, false).frame();
        let (protocol, kind) = if self.v6 { (58, 1) } else { (1, 3) };
        let header = [&[kind, 3, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
        let addresses = Addresses::new(from.0, to.0).unwrap();
        let mut craft = Craft::new(addresses, Message::Other { protocol, header });
        craft.ethernet = None;
        craft.id = self.number as u32;
        craft.frame()
    }
}

impl World {
    /// TCP connections of these clients, servers and ports, and of each of them these acts.
    pub(crate) fn of(talks: &[(u8, u8, [u16; 2])], acts: &[u8]) -> Self {
        let talk = |(client, server, ports): &(u8, u8, [u16; 2])| Talk {
            client: *client,
            server: *server,
            ports: *ports,
            protocol: 0,
        };
        let step = |(talk, act): (usize, &u8)| Step { talk, act: *act, flags: 1, odd: 2, after: 1 };
        let steps = acts.iter().flat_map(|act| (0..talks.len()).map(move |talk| (talk, act)));
        Self {
            v6: false,
            any: false,
            is_odd: false,
            is_listed: false,
            talks: talks.iter().map(talk).collect(),
            steps: steps.map(step).collect(),
        }
    }

    /// Connections as `conntrack -L` lists them, where they are given: through masquerading, one of them from another
    /// port.
    pub(crate) fn listing(&self) -> Option<String> {
        let listed = self.talks.iter().filter(|talk| talk.protocol < 3 && talk.server < 3).take(3);
        let own = address(Net::Own, 1, false);
        let line = |(nth, talk): (usize, &Talk)| {
            let [(client, from), (server, to)] = talk.sent(false).0;
            let moved = from + u16::from(nth == 2);
            format!(
                "tcp      6 4319 ESTABLISHED src={client} dst={server} sport={from} dport={to} \
                 src={server} dst={own} sport={to} dport={moved} [ASSURED] mark=0 use=1\n"
            )
        };
        let is_given = self.is_listed && !self.v6;
        is_given.then(|| listed.enumerate().map(line).collect())
    }

    /// Captures of it, each a batch of its own.
    pub(crate) fn captures(&self) -> Vec<Vec<u8>> {
        let mut now = 1_795_255_200_000_000_000_i64;
        let mut numbered = 0..;
        let mut frames = Vec::new();
        for step in &self.steps {
            now += i64::from(step.after) * 1_000_000;
            let number = numbered.next().unwrap_or_default();
            frames.extend(step.frames(self, number).into_iter().map(|(bytes, is_sent)| {
                now += 1000;
                (self.linked(bytes, is_sent), now)
            }));
        }
        frames.chunks(EACH).map(|frames| self.capture(frames)).collect()
    }

    fn linked(&self, bytes: Vec<u8>, is_sent: bool) -> Vec<u8> {
        if !self.any {
            return bytes;
        }
        let ethertype: [u8; 2] = if self.v6 { [0x86, 0xdd] } else { [8, 0] };
        let outgoing = if is_sent { 4 } else { 0 };
        let cooked = [&[0, outgoing, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &ethertype];
        [cooked.concat(), bytes].concat()
    }

    fn capture(&self, frames: &[(Vec<u8>, i64)]) -> Vec<u8> {
        let mut writer = NgWriter::new(Vec::new()).unwrap();
        let link_type = if self.any { LinkType::LINUX_SLL } else { LinkType::RAW };
        let name = self.any.then(|| "any".to_owned());
        writer.add_interface(&Interface { name, link_type, snaplen: 0 }).unwrap();
        for (bytes, now) in frames {
            let meta = FrameMeta {
                timestamp: Some(Timestamp::from_nanos(*now)),
                wire_length: self.wire_length(bytes),
                ..FrameMeta::default()
            };
            writer.write(0, Frame { bytes, meta: &meta }, None).unwrap();
        }
        writer.finish().unwrap()
    }

    /// A packet that is cut says in its header how long it was.
    fn wire_length(&self, bytes: &[u8]) -> u32 {
        let link = if self.any { 16 } else { 0 };
        let at = |at: usize| bytes.get(link + at).copied().map_or(0, usize::from);
        let len = if self.v6 { 40 + at(4) * 256 + at(5) } else { at(2) * 256 + at(3) };
        (link + len).max(bytes.len()) as u32
    }
}
