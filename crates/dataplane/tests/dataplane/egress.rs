//! A loop between two ports in memory, as in live code: frames are received on one, what leaves goes out through the
//! other, and the host's replies through the port that routes name. `lab`'s tests compare the bytes with the kernel's.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use conntrack::defrag::{Defrag, Defragged, Limits};
use conntrack::{self, Mode};
use dataplane::{
    Arrival, Config, DropReason, FinalVerdict, Handler, Leaves, Origin, Outcome, Path, Program,
};
use host::Host;
use packet::craft::{Addresses, Craft, Ethernet, Message};
use packet::tcp::Flags;
use packet::{Checksums, L4, Link, Packet, Read, checksum, icmpv4};
use pktio::{Burst, FrameMeta, MemoryPort, Pool, Port};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use rules::Iface;
use rules::model::Family;
use rules::save::{LoadOptions, load};

use crate::Nobody;

const NAMES: [&str; 2] = ["lan0", "wan0"];
const LINKS: &str = "2: lan0: <UP> mtu 1500\\    link/ether 02:00:00:00:00:02\n\
    3: wan0: <UP> mtu 1300\\    link/ether 02:00:00:00:00:03\n";
const ADDRESSES: &str = "2: lan0    inet 10.0.0.1/24 scope global lan0\n\
    2: lan0    inet6 fd00::1/64 scope global \n\
    3: wan0    inet 192.0.2.1/24 scope global wan0\n\
    3: wan0    inet6 2001:db8::1/64 scope global \n";
const ROUTES: &str = "default via 192.0.2.254 dev wan0\n\
    10.0.0.0/24 dev lan0 proto kernel scope link src 10.0.0.1\n\
    192.0.2.0/24 dev wan0 proto kernel scope link src 192.0.2.1\n\
    local 10.0.0.1 dev lan0 table local proto kernel scope host src 10.0.0.1\n\
    local 192.0.2.1 dev wan0 table local proto kernel scope host src 192.0.2.1\n\
    fd00::/64 dev lan0 proto kernel metric 256\n\
    2001:db8::/64 dev wan0 proto kernel metric 256\n\
    default via 2001:db8::fe dev wan0 metric 1024\n\
    local fd00::1 dev lan0 table local proto kernel metric 0\n\
    local 2001:db8::1 dev wan0 table local proto kernel metric 0\n";
const CLIENT: [&str; 2] = ["10.0.0.7", "fd00::7"];
const SERVER: [&str; 2] = ["198.51.100.9", "2001:db8:5::9"];
const NAT: &str = "*nat\n:POSTROUTING ACCEPT [0:0]\n\
    -A POSTROUTING -o wan0 -j MASQUERADE\nCOMMIT\n";
const TAGGED: Ethernet =
    Ethernet { source: [2, 0, 0, 0, 0, 9], destination: [2, 0, 0, 0, 0, 2], vlan: Some(5) };
/// Ethernet header and tag.
const LINK: usize = 18;

/// A router between two ports. Each has a queue of what comes in, and one of what went out.
struct Router {
    program: Program,
    handler: Handler,
    came: [MemoryPort; 2],
    went: [MemoryPort; 2],
    burst: Burst,
    number: u64,
    /// The verdict on the last frame.
    verdict: FinalVerdict,
}

fn program(text: &str) -> Program {
    let host = Host::read(|file| match file {
        "links.txt" => Some(LINKS.to_owned()),
        "addresses.txt" => Some(ADDRESSES.to_owned()),
        "routes.txt" => Some(ROUTES.to_owned()),
        _ => None,
    });
    let ct = conntrack::Config { mode: Mode::Kernel, ..conntrack::Config::default() };
    let config = Config { host: host.expect("a host"), ct, ..Config::default() };
    let rules = [Family::Ipv4, Family::Ipv6].map(|family| {
        let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
        Arc::new(load(text, &options).expect("rules").ruleset)
    });
    Program::new(rules, config)
}

impl Router {
    fn new(rules: &str) -> Self {
        let program = program(rules);
        let pool = Pool::new(2048, 4096, 64);
        let port = || MemoryPort::looped(&pool, 512, 32);
        Self {
            handler: Handler::new(&program).sending(),
            program,
            came: [port(), port()],
            went: [port(), port()],
            burst: Burst::new(),
            number: 0,
            verdict: FinalVerdict::Unknown,
        }
    }

    /// Takes all that waits at the ports on its way.
    fn run(&mut self) {
        let mut own = Vec::new();
        let mut out = [Burst::new(), Burst::new()];
        for (port, name) in self.came.iter_mut().zip(NAMES) {
            while port.rx_burst(&mut self.burst).unwrap() > 0 {
                for frame in self.burst.iter_mut() {
                    self.number += 1;
                    let arrival = arrived(self.number, Origin::Wire, name, frame.bytes);
                    let handler = &mut self.handler;
                    let egress = handler.handle(&self.program, frame.bytes, &arrival, &mut Nobody);
                    self.verdict = egress.outcome.end.verdict;
                    send(&mut out, &egress.outcome, egress.leaves, frame.bytes);
                    let Some(reply) = egress.reply else { continue };
                    own.clear();
                    own.extend_from_slice(reply.bytes);
                    let Iface::Named(output) = reply.output else { panic!("{reply:?}") };
                    let arrival = Arrival {
                        direction: pktio::Direction::Outbound,
                        link: Link::Raw,
                        ..arrived(self.number, Origin::Host, output, &own)
                    };
                    let egress = handler.handle(&self.program, &mut own, &arrival, &mut Nobody);
                    assert_eq!(egress.outcome.end.path, Some(Path::Output));
                    send(&mut out, &egress.outcome, egress.leaves, &own);
                }
            }
        }
        for (port, burst) in self.went.iter_mut().zip(&mut out) {
            let frames = burst.len();
            assert_eq!(port.tx_burst(burst).unwrap(), frames);
        }
    }

    /// What leaves through both ports for frames that a port receives.
    fn pass(&mut self, side: usize, frames: &[Vec<u8>]) -> [Vec<Vec<u8>>; 2] {
        let mut burst = Burst::new();
        frames.iter().for_each(|frame| burst.push(frame, FrameMeta::default()));
        self.came[side].tx_burst(&mut burst).unwrap();
        self.run();
        self.went.each_mut().map(|port| {
            let mut left = Vec::new();
            while port.rx_burst(&mut burst).unwrap() > 0 {
                left.extend(burst.iter().map(|frame| frame.bytes.to_vec()));
            }
            left
        })
    }
}

fn arrived<'a>(number: u64, origin: Origin, interface: &'a str, bytes: &[u8]) -> Arrival<'a> {
    Arrival {
        time: Some(number * 1_000),
        origin,
        interface: Some(interface),
        ..Arrival::new(number, Link::Ethernet, bytes.len())
    }
}

/// Puts what leaves into the burst of its output port.
fn send(out: &mut [Burst; 2], outcome: &Outcome<'_>, leaves: Leaves<'_>, bytes: &[u8]) {
    let Some(port) = NAMES.iter().position(|name| outcome.output == Iface::Named(name)) else {
        return;
    };
    match leaves {
        Leaves::Nothing => {}
        Leaves::InPlace(len) => out[port].push(&bytes[..len], FrameMeta::default()),
        Leaves::Others(frames) => {
            frames.iter().for_each(|frame| out[port].push(frame, FrameMeta::default()));
        }
    }
}

fn craft(ends: [&str; 2], message: Message) -> Craft {
    let [from, to] = ends.map(|text| text.parse().expect("an address"));
    let addresses = Addresses::new(from, to).expect("one family");
    Craft { ethernet: Some(TAGGED), payload_len: 30, ..Craft::new(addresses, message) }
}

fn family(v6: bool) -> usize {
    usize::from(v6)
}

/// Cuts a packet into fragments of `size` bytes of payload, a multiple of 8.
fn in_fragments(frame: &[u8], size: usize) -> Vec<Vec<u8>> {
    let is_v6 = frame[LINK] >> 4 == 6;
    let head = LINK + if is_v6 { 40 } else { 20 };
    let (before, payload) = frame.split_at(head);
    let parts = payload.chunks(size).enumerate();
    parts
        .map(|(index, part)| {
            let more = (index + 1) * size < payload.len();
            let mut bytes = before.to_vec();
            if is_v6 {
                bytes[LINK + 6] = 44;
                let field = (index * size) as u16 | u16::from(more);
                bytes.extend([frame[LINK + 6], 0]);
                bytes.extend(field.to_be_bytes());
                bytes.extend(99u32.to_be_bytes());
            }
            bytes.extend(part);
            let len = bytes.len() - LINK - if is_v6 { 40 } else { 0 };
            let at = LINK + if is_v6 { 4 } else { 2 };
            bytes[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
            if !is_v6 {
                let field = (index * size / 8) as u16 | u16::from(more) << 13;
                bytes[LINK + 6..LINK + 8].copy_from_slice(&field.to_be_bytes());
                bytes[LINK + 10..LINK + 12].fill(0);
                let sum = !checksum::sum(&bytes[LINK..LINK + 20]);
                bytes[LINK + 10..LINK + 12].copy_from_slice(&sum.to_be_bytes());
            }
            bytes
        })
        .collect()
}

/// Every fragment's payload at its offset.
fn plain_whole(fragments: &[Vec<u8>]) -> Vec<u8> {
    let mut parts = BTreeMap::new();
    for frame in fragments {
        let packet = &frame[LINK..];
        let word = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        match packet[0] >> 4 {
            4 => parts.insert(usize::from(word(6) & 0x1fff) * 8, &packet[20..]),
            _ => parts.insert(usize::from(word(42) & 0xfff8), &packet[48..]),
        };
    }
    parts.into_values().flatten().copied().collect()
}

/// The packet that our own reassembly makes of frames.
fn our_whole(frames: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut defrag = Defrag::new(Limits::default());
    frames.iter().find_map(|frame| {
        let (mut bytes, len) = (frame.clone(), frame.len());
        let packet = Packet::parse(&mut bytes, len, Link::Ethernet, Checksums::Verify);
        match defrag.push(&packet, 1, 0) {
            Defragged::Whole(whole) => Some(whole.frame),
            Defragged::Pass => Some(frame.clone()),
            other => {
                assert_eq!(other, Defragged::Held);
                None
            }
        }
    })
}

/// Asserts that lengths and checksums of a whole packet are right, and gives its upper-layer bytes.
fn checked(frame: &[u8], link: Link) -> Vec<u8> {
    let (mut bytes, len) = (frame.to_vec(), frame.len());
    let packet = Packet::parse(&mut bytes, len, link, Checksums::Verify);
    let headers = packet.headers();
    assert_eq!(headers.end, len, "the length");
    let L4::Upper(upper) = headers.l4 else { panic!("{headers:?}") };
    let body = packet.read_slice(upper.offset, len - upper.offset);
    let Read::Known(body) = body else { panic!("a body") };
    let at = headers.network;
    let addresses = match frame[at] >> 4 {
        4 if upper.protocol == icmpv4::PROTOCOL => 0,
        4 => checksum::sum(&frame[at + 12..at + 20]),
        _ => checksum::sum(&frame[at + 8..at + 40]),
    };
    let pseudo = match frame[at] >> 4 {
        4 if upper.protocol == icmpv4::PROTOCOL => 0,
        _ => checksum::add(addresses, checksum::add(upper.protocol.into(), body.len() as u16)),
    };
    assert_eq!(checksum::add(pseudo, checksum::sum(body)), 0xffff, "the checksum");
    body.to_vec()
}

#[test]
fn what_stays_as_long_as_it_is_leaves_in_place() {
    let mut router = Router::new(&format!("{NAT}*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"));
    for v6 in [false, true] {
        let ends = [CLIENT[family(v6)], SERVER[family(v6)]];
        let mut sent = craft(ends, Message::udp(1000, 53)).frame();
        sent.extend([0xee; 6]);
        let [back, on] = router.pass(0, slice::from_ref(&sent));
        let [left] = on.as_slice() else { panic!("{on:?}") };
        assert!(back.is_empty());
        assert_eq!(left.len(), sent.len() - 6, "without padding");
        assert_eq!(left[..LINK], sent[..LINK], "the link header and its tag");
        assert_eq!(
            checked(left, Link::Ethernet)[8..],
            checked(&sent[..left.len()], Link::Ethernet)[8..]
        );
        let source = if v6 { LINK + 8..LINK + 24 } else { LINK + 12..LINK + 16 };
        assert_ne!(left[source.clone()], sent[source], "translated");
    }
}

#[test]
fn a_handler_that_sends_nothing_makes_nothing() {
    let program = program("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j REJECT\nCOMMIT\n");
    let mut handler = Handler::new(&program);
    for message in [Message::udp(1, 2), Message::tcp(1, 2, Flags::SYN)] {
        let mut bytes = craft([CLIENT[0], SERVER[0]], message).frame();
        let arrival = arrived(1, Origin::Wire, NAMES[0], &bytes);
        let egress = handler.handle(&program, &mut bytes, &arrival, &mut Nobody);
        assert_eq!((egress.leaves, egress.reply), (Leaves::Nothing, None));
    }
}

#[test]
fn what_is_rejected_is_answered_by_the_port_it_came_by() {
    let rules = "*filter\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
        -A FORWARD -p tcp -j REJECT --reject-with tcp-reset\n-A FORWARD -p udp -j REJECT\n\
        -A OUTPUT -p udp -j DROP\nCOMMIT\n";
    let mut router = Router::new(rules);
    for v6 in [false, true] {
        let ends = [CLIENT[family(v6)], SERVER[family(v6)]];
        for message in [Message::tcp(1000, 80, Flags::SYN), Message::udp(1000, 80)] {
            let is_reset = matches!(message, Message::Tcp { .. });
            let [back, on] = router.pass(0, &[craft(ends, message).frame()]);
            assert!(on.is_empty());
            let [reply] = back.as_slice() else { panic!("{back:?}") };
            let body = checked(reply, Link::Raw);
            match (is_reset, v6) {
                (true, _) => assert_eq!(body[13], Flags::RST.union(Flags::ACK).0),
                (false, false) => assert_eq!(body[..2], [3, 3]),
                (false, true) => assert_eq!(body[..2], [1, 4]),
            }
        }
    }
}

#[test]
fn a_reply_walks_output_with_the_connection_of_what_it_answers() {
    for (state, replies) in [("RELATED", 0), ("INVALID", 1)] {
        let rules = format!(
            "{NAT}*filter\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
             -A FORWARD -p tcp -j REJECT --reject-with tcp-reset\n\
             -A OUTPUT -m conntrack --ctstate {state} -j DROP\nCOMMIT\n"
        );
        let mut router = Router::new(&rules);
        let syn = craft([CLIENT[0], SERVER[0]], Message::tcp(1000, 80, Flags::SYN)).frame();
        let [back, _] = router.pass(0, &[syn]);
        assert_eq!(back.len(), replies, "{state}");
    }
}

#[test]
fn the_reply_to_what_was_translated_comes_from_where_it_was_sent() {
    let rules = "*nat\n:PREROUTING ACCEPT [0:0]\n\
        -A PREROUTING -p udp -d 192.0.2.1/32 -j DNAT --to-destination 10.0.0.9:5353\nCOMMIT\n\
        *filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -j REJECT\nCOMMIT\n";
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    let ruleset = Arc::new(load(rules, &options).unwrap().ruleset);
    let config = program("*filter\nCOMMIT\n").config().clone();
    let mut router = Router::new("*filter\nCOMMIT\n");
    router.program = Program::new([ruleset], config);
    router.handler = Handler::new(&router.program).sending();
    let sent = craft(["198.51.100.9", "192.0.2.1"], Message::udp(1000, 53)).frame();
    let [near, far] = router.pass(1, slice::from_ref(&sent));
    let [reply] = far.as_slice() else { panic!("{near:?} {far:?}") };
    let body = checked(reply, Link::Raw);
    assert_eq!(reply[12..16], [192, 0, 2, 1], "from there");
    // The time to live was lowered, and with it the checksum of the header moved.
    let mut quoted = sent[LINK..].to_vec();
    quoted[8] = 63;
    quoted[10..12].copy_from_slice(&body[18..20]);
    assert_eq!(body[8..], quoted, "what its sender sent");
}

#[test]
fn the_host_answers_for_what_expires_and_for_what_is_too_long() {
    let mut router = Router::new("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
    for v6 in [false, true] {
        let ends = [CLIENT[family(v6)], SERVER[family(v6)]];
        let sent = craft(ends, Message::udp(1000, 53));
        let old = Craft { ttl: 1, ..sent.clone() }.frame();
        let long = Craft { payload_len: 1400, dont_fragment: true, ..sent }.frame();
        for (frame, reason) in [(old, DropReason::Ttl), (long, DropReason::TooBig)] {
            let [back, on] = router.pass(0, slice::from_ref(&frame));
            assert_eq!(router.verdict, FinalVerdict::Drop(reason));
            assert!(on.is_empty());
            let [reply] = back.as_slice() else { panic!("{back:?}") };
            let body = checked(reply, Link::Raw);
            let expected: ([u8; 2], u32) = match (reason, v6) {
                (DropReason::Ttl, false) => ([11, 0], 0),
                (DropReason::Ttl, true) => ([3, 0], 0),
                (_, false) => ([3, 4], 1300),
                (_, true) => ([2, 0], 1300),
            };
            assert_eq!(body[..2], expected.0);
            assert_eq!(body[4..8], expected.1.to_be_bytes());
            let quoted = &frame[LINK..];
            assert_eq!(body[8..], quoted[..body.len() - 8], "the packet as it came");
        }
    }
}

#[test]
fn what_may_be_fragmented_leaves_in_fragments_that_fit() {
    let mut router = Router::new("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
    let long = Craft { payload_len: 1460, ..craft([CLIENT[0], SERVER[0]], Message::udp(1, 53)) };
    let sent = long.frame();
    let [_, on] = router.pass(0, slice::from_ref(&sent));
    assert_eq!(on.iter().map(Vec::len).collect::<Vec<_>>(), [LINK + 1300, LINK + 20 + 188]);
    assert_eq!(plain_whole(&on), sent[LINK + 20..]);
    let whole = our_whole(&on).expect("a packet");
    assert_eq!(checked(&whole, Link::Ethernet), sent[LINK + 20..]);
}

/// A line of a control connection.
fn said(from: u32, text: &str) -> Vec<u8> {
    let message = Message::Tcp {
        source_port: 40_000,
        destination_port: 21,
        flags: Flags::ACK,
        sequence: from,
        acknowledgement: 501,
        window: 5000,
    };
    let mut bytes =
        Craft { payload_len: text.len(), ..craft([CLIENT[0], SERVER[0]], message) }.frame();
    let (at, end) = (LINK + 40, LINK + 36);
    let before = checksum::sum(&bytes[at..]);
    bytes[at..].copy_from_slice(text.as_bytes());
    let stored = u16::from_be_bytes([bytes[end], bytes[end + 1]]);
    let sum = checksum::update(stored, before, checksum::sum(&bytes[at..]));
    bytes[end..end + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

#[test]
fn what_a_helper_lengthens_leaves_with_all_its_bytes() {
    let rules = format!(
        "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp --dport 21 -j CT --helper ftp\n\
         COMMIT\n{NAT}"
    );
    let mut router = Router::new(&rules);
    let [client, server] = [CLIENT[0], SERVER[0]];
    let message = |from, to, flags, sequence, acknowledgement| Message::Tcp {
        source_port: from,
        destination_port: to,
        flags,
        sequence,
        acknowledgement,
        window: 5000,
    };
    let plain = |ends, message| Craft { payload_len: 0, ..craft(ends, message) }.frame();
    router.pass(0, &[plain([client, server], message(40_000, 21, Flags::SYN, 100, 0))]);
    let accepted = message(21, 40_000, Flags::SYN.union(Flags::ACK), 500, 101);
    let [back, _] = router.pass(1, &[plain([server, "192.0.2.1"], accepted)]);
    assert_eq!(back.len(), 1, "translated back");
    router.pass(0, &[said(101, "NOOP\r\n")]);
    let sent = said(107, "PORT 10,0,0,7,4,1\r\n");
    let [_, on] = router.pass(0, slice::from_ref(&sent));
    let [left] = on.as_slice() else { panic!("{on:?}") };
    assert_eq!(left[..LINK], sent[..LINK]);
    assert_eq!(checked(left, Link::Ethernet)[20..], *b"PORT 192,0,2,1,4,1\r\n");
}

/// Makes both checksums of a TCP segment over IPv4 right.
fn mend(frame: &mut [u8]) {
    let (ip, tcp) = frame[LINK..].split_at_mut(20);
    ip[10..12].fill(0);
    let header = !checksum::sum(ip);
    ip[10..12].copy_from_slice(&header.to_be_bytes());
    tcp[16..18].fill(0);
    let pseudo = checksum::add(checksum::sum(&ip[12..20]), checksum::add(6, tcp.len() as u16));
    let upper = !checksum::add(pseudo, checksum::sum(tcp));
    tcp[16..18].copy_from_slice(&upper.to_be_bytes());
}

#[test]
fn segment_sizes_are_clamped_to_the_way_there_and_back() {
    let rules = "*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN \
        -j TCPMSS --clamp-mss-to-pmtu\nCOMMIT\n";
    let mut router = Router::new(rules);
    let ends = [CLIENT[0], SERVER[0]];
    let bare = Craft { payload_len: 0, ..craft(ends, Message::tcp(1000, 80, Flags::SYN)) }.frame();
    let with = |option: &[u8]| {
        let mut frame = bare.clone();
        let tcp = LINK + 20;
        frame.extend_from_slice(option);
        frame[tcp + 12] += (option.len() as u8 / 4) << 4;
        let total = (frame.len() - LINK) as u16;
        frame[LINK + 2..LINK + 4].copy_from_slice(&total.to_be_bytes());
        mend(&mut frame);
        frame
    };
    let mut left = |frame: &[u8]| {
        let [_, on] = router.pass(0, &[frame.to_vec()]);
        let [left] = on.as_slice() else { panic!("{on:?}") };
        checked(left, Link::Ethernet)[20..].to_vec()
    };
    // The smaller link carries 1300 bytes.
    assert_eq!(left(&with(&[2, 4, 0x05, 0xb4])), [2, 4, 0x04, 0xec]);
    assert_eq!(left(&with(&[2, 4, 0x02, 0x00])), [2, 4, 0x02, 0x00], "never raised");
    assert_eq!(left(&bare), [2, 4, 0x02, 0x18], "what goes for none");
}

proptest! {
    #[test]
    fn what_came_in_fragments_leaves_in_them(
        v6 in any::<bool>(),
        // One piece alone leaves as no fragment.
        units in 4usize..125,
        len in 1000usize..5000,
        order in vec(any::<u32>(), 200),
        translates in any::<bool>(),
    ) {
        let nat = if translates { NAT } else { "" };
        let tracked = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m conntrack --ctstate NEW\nCOMMIT\n";
        let mut router = Router::new(&format!("{nat}{tracked}"));
        let ends = [CLIENT[family(v6)], SERVER[family(v6)]];
        let sent = Craft { payload_len: len, ..craft(ends, Message::udp(1000, 53)) }.frame();
        let mut fragments = in_fragments(&sent, units * 8);
        let expected: Vec<usize> = fragments.iter().map(Vec::len).collect();
        let mut keys = order.into_iter();
        fragments.sort_by_cached_key(|_| keys.next());
        let [back, on] = router.pass(0, &fragments);
        prop_assert!(back.is_empty());
        prop_assert_eq!(on.iter().map(Vec::len).collect::<Vec<_>>(), expected, "pieces as they were");
        let whole = our_whole(&on).expect("a packet");
        let upper = checked(&whole, Link::Ethernet);
        prop_assert_eq!(&upper[..], &plain_whole(&on)[..]);
        prop_assert_eq!(&upper[8..], &sent[sent.len() - len..]);
        for fragment in &on {
            prop_assert_eq!(&fragment[..LINK], &sent[..LINK]);
        }
    }
}
