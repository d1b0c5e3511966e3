//! Joined packets, held to a rule that is as slow as it is plain, and to the cutter: what was joined is cut into the
//! same packets again.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use packet::tcp::Flags;
use packet::{
    Checksums, Joined, JoinedKind, Link, Offload, Superframe, checksum, ipv4, ipv6, parse, tcp, udp,
};
use proptest::prelude::*;

const ACK: u8 = Flags::ACK.0;
const PSH: u8 = Flags::PSH.0;

/// A packet as its sender thinks of it.
#[derive(Debug, Clone, PartialEq)]
struct Sent {
    is_v4: bool,
    is_tcp: bool,
    /// Last byte of the source address; port of the source.
    flow: (u8, u16),
    /// TOS, or traffic class.
    tos: u8,
    /// Flow label; not of IPv4.
    label: u8,
    ttl: u8,
    /// Flags and offset; not of IPv6.
    fragment: u16,
    id: u16,
    sequence: u32,
    acknowledgement: u32,
    window: u16,
    urgent: u16,
    flags: u8,
    options: Vec<u8>,
    payload: Vec<u8>,
    fault: Option<Fault>,
}

/// What is wrong with its bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    HeaderChecksum,
    Checksum,
    NoChecksum,
    Padding,
    Length,
    UpperLength,
    IpOptions,
    Reserved,
}

impl Sent {
    fn bytes(&self) -> Vec<u8> {
        let mut upper = if self.is_tcp { self.tcp() } else { self.udp() };
        let protocol = if self.is_tcp { tcp::PROTOCOL } else { udp::PROTOCOL };
        let at = if self.is_tcp { tcp::CHECKSUM } else { udp::CHECKSUM };
        let len = upper.len();
        let mut header = if self.is_v4 { self.v4(len, protocol) } else { self.v6(len, protocol) };
        let pseudo = if self.is_v4 {
            let address = |at: usize| *header[at..].first_chunk().unwrap();
            checksum::pseudo_v4(address(12), address(16), protocol, len as u16)
        } else {
            let address = |at: usize| *header[at..].first_chunk().unwrap();
            checksum::pseudo_v6(address(8), address(24), protocol, len as u32)
        };
        let sum = match !checksum::add(pseudo, checksum::sum(&upper)) {
            0 if !self.is_tcp => u16::MAX,
            sum => sum,
        };
        let sum = match self.fault {
            Some(Fault::Checksum) => sum.wrapping_add(1).max(1),
            Some(Fault::NoChecksum) => 0,
            _ => sum,
        };
        upper[at].copy_from_slice(&sum.to_be_bytes());
        header.extend(upper);
        match self.fault {
            Some(Fault::HeaderChecksum) if self.is_v4 => header[11] ^= 1,
            Some(Fault::Padding) => header.push(0),
            Some(Fault::Length) => drop(header.pop()),
            _ => {}
        }
        header
    }

    fn v4(&self, len: usize, protocol: u8) -> Vec<u8> {
        let mut header = vec![0x45, self.tos];
        header.extend(((20 + len) as u16).to_be_bytes());
        header.extend(self.id.to_be_bytes());
        header.extend(self.fragment.to_be_bytes());
        header.extend([self.ttl, protocol, 0, 0, 10, 0, 0, self.flow.0, 10, 0, 0, 200]);
        if self.fault == Some(Fault::IpOptions) {
            header[0] = 0x46;
            header[2..4].copy_from_slice(&((24 + len) as u16).to_be_bytes());
            header.extend([1, 1, 1, 0]);
        }
        let sum = !checksum::sum(&header);
        header[ipv4::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        header
    }

    fn v6(&self, len: usize, protocol: u8) -> Vec<u8> {
        let mut header = vec![0x60 | self.tos >> 4, self.tos << 4, 0, self.label];
        header.extend((len as u16).to_be_bytes());
        header.extend([protocol, self.ttl]);
        for host in [self.flow.0, 200] {
            header.extend([0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        assert_eq!(header.len(), ipv6::HEADER_LEN);
        header
    }

    fn tcp(&self) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend(self.flow.1.to_be_bytes());
        header.extend(80_u16.to_be_bytes());
        header.extend(self.sequence.to_be_bytes());
        header.extend(self.acknowledgement.to_be_bytes());
        let reserved = u8::from(self.fault == Some(Fault::Reserved));
        header.extend([(20 + self.options.len() as u8) << 2 | reserved, self.flags]);
        header.extend(self.window.to_be_bytes());
        header.extend([0, 0]);
        header.extend(self.urgent.to_be_bytes());
        [header, self.options.clone(), self.payload.clone()].concat()
    }

    fn udp(&self) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend(self.flow.1.to_be_bytes());
        header.extend(53_u16.to_be_bytes());
        let len = 8 + self.payload.len() - usize::from(self.fault == Some(Fault::UpperLength));
        header.extend((len as u16).to_be_bytes());
        header.extend([0, 0]);
        [header, self.payload.clone()].concat()
    }

    /// Returns the description without the values that its bytes have no place for.
    fn shown(self) -> Self {
        let network = match self.is_v4 {
            true => Self { label: 0, ..self },
            false => Self { fragment: 0, id: 0, ..self },
        };
        match network.is_tcp {
            true => network,
            false => Self {
                sequence: 0,
                acknowledgement: 0,
                window: 0,
                urgent: 0,
                flags: 0,
                options: Vec::new(),
                ..network
            },
        }
    }

    /// The rule for one packet.
    fn can_be_joined(&self) -> bool {
        let is_faulty = match self.fault {
            None => false,
            Some(Fault::HeaderChecksum | Fault::IpOptions) => self.is_v4,
            // A checksum that is 0 is wrong but where it happens to be right.
            Some(Fault::NoChecksum) => {
                !self.is_tcp || Self { fault: None, ..self.clone() }.bytes() != self.bytes()
            }
            Some(Fault::Reserved) => self.is_tcp,
            Some(Fault::UpperLength) => !self.is_tcp,
            Some(Fault::Checksum | Fault::Padding | Fault::Length) => true,
        };
        let is_fragment = self.is_v4 && self.fragment & !ipv4::DONT_FRAGMENT != 0;
        let is_plain = !self.is_tcp || self.flags == ACK || self.flags == ACK | PSH;
        !is_faulty && !is_fragment && is_plain && !self.payload.is_empty()
    }

    /// Whether both are of one flow, or nobody can tell because one of them shows no ports.
    fn may_be_of_flow(&self, other: &Self) -> bool {
        let has_ports = |of: &Self| {
            let is_later = of.fragment & ipv4::OFFSET_MASK != 0;
            !of.is_v4 || !(is_later || of.fault == Some(Fault::IpOptions))
        };
        (self.is_v4, self.is_tcp, self.flow.0) == (other.is_v4, other.is_tcp, other.flow.0)
            && (self.flow.1 == other.flow.1 || !has_ports(self) || !has_ports(other))
    }

    /// Whether the packet continues the joined ones.
    fn follows(&self, joined: &[Self]) -> bool {
        let (first, last) = (&joined[0], &joined[joined.len() - 1]);
        let carried: usize = joined.iter().map(|one| one.payload.len()).sum();
        let header = first.bytes().len() - first.payload.len();
        let sequence = first.sequence.wrapping_add(carried as u32);
        let expected = Self {
            id: self.id,
            sequence: if self.is_tcp { sequence } else { 0 },
            flags: self.flags,
            payload: self.payload.clone(),
            fault: self.fault,
            ..first.clone()
        };
        let counts = joined
            .iter()
            .chain([self])
            .zip(0..)
            .all(|(one, at)| one.id == first.id.wrapping_add(at));
        let is_fixed =
            self.fragment & ipv4::DONT_FRAGMENT != 0 && joined.iter().all(|one| one.id == self.id);
        *self == expected
            && self.can_be_joined()
            && (!self.is_v4 || counts || is_fixed)
            && self.payload.len() <= first.payload.len()
            && last.payload.len() == first.payload.len()
            && (!self.is_tcp || last.flags & PSH == 0)
            && (self.is_tcp || joined.len() < 64)
            && header + carried + self.payload.len() <= 65_535
    }
}

/// Returns the expected groups: packets that are joined, each with those that directly follow it.
fn groups(sent: &[Sent]) -> Vec<Vec<Sent>> {
    let mut groups: Vec<Vec<Sent>> = Vec::new();
    for one in sent {
        match groups.last_mut() {
            Some(group)
                if one.may_be_of_flow(&group[0])
                    && group[0].can_be_joined()
                    && one.follows(group) =>
            {
                group.push(one.clone());
            }
            _ => groups.push(vec![one.clone()]),
        }
    }
    groups
}

/// What is being joined, with its bytes.
struct Open {
    joined: Joined,
    frame: Vec<u8>,
}

/// A frame that came out, and what is left to do to it.
type Out = (Vec<u8>, Option<Offload>);

/// What the joiner makes of them, driven as its caller does.
fn join(sent: &[Sent]) -> Vec<Out> {
    let mut outs: Vec<Out> = Vec::new();
    let mut open: Option<Open> = None;
    let close = |outs: &mut Vec<Out>, Open { joined, mut frame }| {
        assert_eq!(joined.len(), frame.len());
        let before = (joined.count() == 1).then(|| frame.clone());
        let offload = joined.finish(&mut frame);
        assert!(before.is_none_or(|before| before == frame && offload.is_none()));
        outs.push((frame, offload));
    };
    for packet in sent.iter().map(Sent::bytes) {
        if let Some(one) = &mut open
            && let Some(payload) = one.joined.take(&packet)
        {
            one.frame.extend_from_slice(&packet[payload]);
            continue;
        }
        open.take().into_iter().for_each(|one| close(&mut outs, one));
        match Joined::new(&packet) {
            Some(joined) => open = Some(Open { joined, frame: packet }),
            None => outs.push((packet, None)),
        }
    }
    open.into_iter().for_each(|one| close(&mut outs, one));
    outs
}

/// The packets that a frame stands for.
fn cut((frame, offload): &Out) -> Vec<Vec<u8>> {
    let Some(Offload { size, kind, start, offset }) = *offload else { return vec![frame.clone()] };
    // A device finds what the frame says of itself.
    let mut finished = frame.clone();
    assert!(checksum::complete(&mut finished, start.into(), offset.into()));
    let headers = parse(Link::Raw, &finished, finished.len(), Checksums::Verify);
    let found = parse(Link::Raw, frame, frame.len(), Checksums::Ignore);
    assert_eq!((headers.l3, headers.l4, headers.end), (found.l3, found.l4, frame.len()));
    let is_v4 = frame[0] == 0x45;
    let expected = match (found.l4, is_v4) {
        (packet::L4::Upper(upper), _) if upper.protocol == udp::PROTOCOL => JoinedKind::Udp,
        (_, true) => JoinedKind::TcpV4,
        (_, false) => JoinedKind::TcpV6,
    };
    assert_eq!(kind, expected);
    if kind == JoinedKind::Udp {
        let length = (frame.len() - usize::from(start)) as u16;
        assert_eq!(frame[usize::from(start)..][udp::LENGTH], length.to_be_bytes());
    }
    let superframe = Superframe::new(frame, &found, size).unwrap();
    let piece = |index| {
        let mut room = vec![0; superframe.piece_len(index).unwrap()];
        superframe.write(index, &mut room).unwrap();
        room
    };
    (0..superframe.count()).map(piece).collect()
}

/// The packets of a group as they come out of the cutter: fixed identifications count up.
fn expected(group: &[Sent]) -> Vec<Vec<u8>> {
    let first = group[0].id;
    let numbered = group.iter().zip(0..).map(|(one, at)| Sent {
        id: if group.len() > 1 { first.wrapping_add(at) } else { one.id },
        ..one.clone()
    });
    numbered.map(|one| one.bytes()).collect()
}

fn check(sent: &[Sent]) -> Result<(), TestCaseError> {
    let outs: Vec<_> = join(sent).iter().map(cut).collect();
    let groups: Vec<_> = groups(sent).iter().map(|group| expected(group)).collect();
    prop_assert_eq!(outs, groups);
    Ok(())
}

/// How a packet differs from the next one of its flow.
#[derive(Debug, Clone)]
enum Change {
    None,
    Tos(u8),
    Label(u8),
    Ttl(u8),
    Fragment(u16),
    Id(u16),
    /// Added to the identification, from which its flow counts on.
    IdBy(i16),
    Sequence(u32),
    Acknowledgement(u32),
    Window(u16),
    Urgent(u16),
    Flags(u8),
    Options(Vec<u8>),
    Len(usize),
    Fault(Fault),
}

fn changes() -> impl Strategy<Value = Change> {
    let options = proptest::collection::vec(any::<u8>(), 0..=10)
        .prop_map(|words| words.iter().flat_map(|word| [*word; 4]).collect());
    let fault = prop_oneof![
        Just(Fault::HeaderChecksum),
        Just(Fault::Checksum),
        Just(Fault::NoChecksum),
        Just(Fault::Padding),
        Just(Fault::Length),
        Just(Fault::UpperLength),
        Just(Fault::IpOptions),
        Just(Fault::Reserved),
    ];
    prop_oneof![
        20 => Just(Change::None),
        1 => any::<u8>().prop_map(Change::Tos),
        1 => any::<u8>().prop_map(Change::Label),
        1 => any::<u8>().prop_map(Change::Ttl),
        1 => prop_oneof![Just(0x4000), Just(0), Just(0x2000), Just(0x8000), Just(7)]
            .prop_map(Change::Fragment),
        1 => any::<u16>().prop_map(Change::Id),
        3 => (-3..4_i16).prop_map(Change::IdBy),
        1 => (0..3_u32).prop_map(Change::Sequence),
        1 => any::<u32>().prop_map(Change::Acknowledgement),
        1 => any::<u16>().prop_map(Change::Window),
        1 => any::<u16>().prop_map(Change::Urgent),
        2 => prop_oneof![3 => Just(ACK | PSH), 1 => any::<u8>()].prop_map(Change::Flags),
        1 => options.prop_map(Change::Options),
        2 => (0..40_usize).prop_map(Change::Len),
        2 => fault.prop_map(Change::Fault),
    ]
}

fn first(flow: usize, len: usize) -> Sent {
    Sent {
        is_v4: flow & 1 == 0,
        is_tcp: flow & 2 == 0,
        flow: [(1, 4000), (1, 4001), (2, 4000)][flow >> 2],
        tos: 0x2e,
        label: 9,
        ttl: 64,
        fragment: ipv4::DONT_FRAGMENT,
        id: 0xfffd,
        sequence: u32::MAX - 50,
        acknowledgement: 7,
        window: 500,
        urgent: 0,
        flags: ACK,
        options: vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        payload: payload(len, flow),
        fault: None,
    }
}

fn payload(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + seed * 13) as u8).collect()
}

/// Packets of flows that take turns; each goes on with its flow but for its change, which lasts where it can.
fn streams(steps: Vec<(usize, Change)>, len: usize, has_fixed_ids: bool) -> Vec<Sent> {
    let mut next: Vec<Sent> = (0..12).map(|flow| first(flow, len)).collect();
    let step = |(number, (flow, change)): (usize, (usize, Change))| {
        let mut one = next[flow].clone();
        one.payload = payload(len, number);
        match change {
            Change::None => {}
            Change::Tos(tos) => one.tos = tos,
            Change::Label(label) => one.label = label,
            Change::Ttl(ttl) => one.ttl = ttl,
            Change::Fragment(fragment) => one.fragment = fragment,
            Change::Id(id) => one.id = id,
            Change::IdBy(by) => one.id = one.id.wrapping_add_signed(by),
            Change::Sequence(by) => one.sequence = one.sequence.wrapping_add(by),
            Change::Acknowledgement(number) => one.acknowledgement = number,
            Change::Window(window) => one.window = window,
            Change::Urgent(urgent) => one.urgent = urgent,
            Change::Flags(flags) => one.flags = flags,
            Change::Options(options) => one.options = options,
            Change::Len(len) => one.payload = payload(len, number),
            Change::Fault(fault) => one.fault = Some(fault),
        }
        let sequence = one.sequence.wrapping_add(one.payload.len() as u32);
        let id = one.id.wrapping_add(u16::from(!has_fixed_ids));
        next[flow] = Sent { sequence, id, flags: ACK, fault: None, ..one.clone() };
        // A datagram with a length of its own that is none.
        let is_short = one.payload.is_empty() && one.fault == Some(Fault::UpperLength);
        Sent { fault: one.fault.filter(|_| !is_short), ..one }.shown()
    };
    steps.into_iter().enumerate().map(step).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn flows_that_take_turns_are_joined_as_the_rule_says(
        steps in proptest::collection::vec((0..12_usize, changes()), 1..60),
        len in 1..40_usize,
        has_fixed_ids: bool,
    ) {
        check(&streams(steps, len, has_fixed_ids))?;
    }

    #[test]
    fn one_flow_is_joined_as_the_rule_says(
        flow in 0..4_usize,
        changes in proptest::collection::vec(changes(), 1..90),
        len in 1..40_usize,
        has_fixed_ids: bool,
    ) {
        let steps = changes.into_iter().map(|change| (flow, change)).collect();
        check(&streams(steps, len, has_fixed_ids))?;
    }

    #[test]
    fn no_bytes_panic(
        mut one in proptest::collection::vec(any::<u8>(), 0..90),
        mut other in proptest::collection::vec(any::<u8>(), 0..90),
        flow in 0..4_usize,
        cut in 0..90_usize,
    ) {
        for first in [0x45, 0x60] {
            for byte in [&mut one, &mut other].into_iter().filter_map(|bytes| bytes.first_mut()) {
                *byte = first;
            }
            for bytes in [&one, &other] {
                let _ = Joined::new(bytes);
                let good = self::first(flow, 20).bytes();
                let mut joined = Joined::new(&good).unwrap();
                let _ = joined.take(bytes);
                let cut = &good[..cut.min(good.len())];
                let _ = (Joined::new(cut), joined.take(cut), joined.finish(&mut bytes.clone()));
            }
        }
    }
}

/// As many as there may be.
#[test]
fn a_frame_ends_where_its_length_field_does() {
    for flow in 0..4 {
        for len in [1000, 1448, 8000, 33_000] {
            let sent = streams(vec![(flow, Change::None); 140], len, false);
            check(&sent).unwrap();
            let outs = join(&sent);
            let longest = outs.iter().map(|out| out.0.len()).max().unwrap();
            assert!(longest > 65_535 - len - 60 || longest > 64 * len, "{longest}");
        }
    }
}

#[test]
fn sixty_four_datagrams_are_the_most_and_segments_may_be_more() {
    for (flow, most) in [(0, 100), (1, 100), (2, 64), (3, 64)] {
        let sent = streams(vec![(flow, Change::None); 100], 9, false);
        let counts: Vec<_> = join(&sent).iter().map(|out| cut(out).len()).collect();
        assert_eq!(counts[0], most);
    }
}

/// Bytes after a packet whose checksum is right with them, too.
#[test]
fn padding_is_no_payload() {
    for flow in [0, 1] {
        let sent = streams(vec![(flow, Change::None); 2], 30, false);
        let [first, second] = [0, 1].map(|at| [sent[at].bytes(), vec![0xff, 0xfd]].concat());
        assert!(Joined::new(&first).is_none());
        assert_eq!(Joined::new(&sent[0].bytes()).unwrap().take(&second), None);
    }
}

/// A datagram without a checksum whose sum is that of one with it.
#[test]
fn no_checksum_is_none_that_is_right() {
    for flow in [2, 3] {
        let datagram = |word: u16| {
            let sent = Sent { payload: word.to_be_bytes().to_vec(), ..first(flow, 2) };
            let at = sent.bytes().len() - 10 + udp::CHECKSUM.start;
            (sent.bytes(), at)
        };
        let is_odd = |(bytes, at): &(Vec<u8>, usize)| bytes[*at..at + 2] == [0xff, 0xff];
        let (mut bytes, at) = (0..=u16::MAX).map(datagram).find(is_odd).unwrap();
        assert!(Joined::new(&bytes).is_some());
        bytes[at..at + 2].fill(0);
        assert!(Joined::new(&bytes).is_none());
    }
}

/// An IPv4 header with options, after whose first 20 bytes stands what could be a datagram.
#[test]
fn options_are_no_ports() {
    let sent = first(2, 40);
    let mut bytes = sent.v4(52, udp::PROTOCOL);
    bytes[0] = 0x46;
    bytes[10..12].fill(0);
    let sum = !checksum::sum(&bytes);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    // Options that end at once, ports that are length and checksum of that datagram.
    bytes.extend([0, 0, 0, 0, 0, 52, 0, 0]);
    bytes.extend(payload(44, 1));
    let address = |at: usize| *bytes[at..].first_chunk().unwrap();
    let pseudo = checksum::pseudo_v4(address(12), address(16), udp::PROTOCOL, 52);
    let sum = !checksum::add(pseudo, checksum::sum(&bytes[20..]));
    bytes[26..28].copy_from_slice(&sum.to_be_bytes());
    assert!(Joined::new(&bytes).is_none());
    bytes[0] = 0x45;
    let sum = !checksum::sum(&[&bytes[..10], &bytes[12..20]].concat());
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    assert!(Joined::new(&bytes).is_some(), "it is one without them");
}

/// One packet, or a frame that is another, stays as it is.
#[test]
fn what_was_not_joined_is_left_alone() {
    let sent = streams(vec![(0, Change::None); 2], 30, false);
    let [first, second] = [sent[0].bytes(), sent[1].bytes()];
    let mut joined = Joined::new(&first).unwrap();
    let mut alone = first.clone();
    assert_eq!((joined.clone().finish(&mut alone), &alone), (None, &first));
    let payload = joined.take(&second).unwrap();
    assert_eq!((joined.len(), joined.count()), (first.len() + 30, 2));
    assert_eq!((joined.clone().finish(&mut alone), &alone), (None, &first));
    alone.extend_from_slice(&second[payload]);
    let offload = Offload { size: 30, kind: JoinedKind::TcpV4, start: 20, offset: 16 };
    assert_eq!(joined.finish(&mut alone), Some(offload));
}
