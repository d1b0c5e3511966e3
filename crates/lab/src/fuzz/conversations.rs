//! Packets of connections, under rules that translate and limit them: replies, errors that quote them, and damaged ones.
//!
//! What is asked of each packet: rules as they are read and as they are packed say the same; the table holds no more than it may; what answers a
//! translated packet, and is let through as part of its connection, leaves as an answer to what it was before.

use std::net::IpAddr;

use conntrack::CtState;
use dataplane::{Arrival, Config, Event, Events, FinalVerdict, Handler, Program};
use host::{Host, Network};
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use packet::{Checksums, FlowKey, Link, Packet, icmpv4, tcp, udp};
use rules::Entropy;
use rules::save::{LoadOptions, load};

/// Rules by their tables; a byte of the input names one.
const RULES: [(&str, &str); 24] = [
    (
        "nat",
        "PREROUTING -d 192.0.2.1/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.0.2:8080",
    ),
    ("nat", "PREROUTING -p udp -m udp --dport 53 -j REDIRECT --to-ports 5353"),
    ("nat", "PREROUTING -d 10.9.0.0/16 -j NETMAP --to 10.0.0.0/16"),
    ("nat", "PREROUTING -p udp -m udp --dport 7 -j DNAT --to-destination 10.0.0.1-10.0.0.3:7-9"),
    ("nat", "PREROUTING -p udp -m udp --dport 1:9 -j DNAT --to-destination 10.0.0.2:101-109/1"),
    ("nat", "PREROUTING -p icmp -j DNAT --to-destination 10.0.0.3"),
    ("nat", "POSTROUTING -o wan -j MASQUERADE"),
    ("nat", "POSTROUTING -o wan -p udp -j MASQUERADE --random"),
    ("nat", "POSTROUTING -s 10.0.0.0/8 -o wan -j SNAT --to-source 192.0.2.1-192.0.2.3"),
    ("nat", "POSTROUTING -p tcp -j SNAT --to-source 192.0.2.1:1024-1027"),
    ("nat", "POSTROUTING -p udp -j SNAT --to-source 192.0.2.1:7-8"),
    ("nat", "POSTROUTING -s 10.0.0.1/32 -j ACCEPT"),
    ("mangle", "PREROUTING -j CONNMARK --restore-mark"),
    ("mangle", "POSTROUTING -p tcp -j CONNMARK --set-xmark 0x5/0xff"),
    ("mangle", "PREROUTING -m mark --mark 0x5 -j DSCP --set-dscp 0x03"),
    ("filter", "FORWARD -m conntrack --ctstate INVALID -j DROP"),
    ("filter", "FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"),
    ("filter", "FORWARD -m conntrack --ctstate DNAT -j ACCEPT"),
    ("filter", "FORWARD -p tcp -m tcp --dport 2 -j REJECT --reject-with tcp-reset"),
    (
        "filter",
        "FORWARD -p tcp -m connlimit --connlimit-above 2 --connlimit-mask 32 --connlimit-saddr -j DROP",
    ),
    (
        "filter",
        "FORWARD -m connbytes --connbytes 3 --connbytes-mode packets --connbytes-dir reply -j DROP",
    ),
    ("filter", "FORWARD -m conntrack --ctstatus ASSURED -j ACCEPT"),
    ("filter", "FORWARD -m conntrack --ctdir REPLY -j ACCEPT"),
    ("filter", "INPUT -m conntrack --ctstate NEW -p udp -m udp --dport 9 -j DROP"),
];

/// Addresses of packets: two clients, two servers beyond, the host's own on both sides.
const ENDS: [[u8; 4]; 8] = [
    [10, 0, 0, 1],
    [10, 0, 0, 2],
    [10, 9, 0, 2],
    [20, 0, 0, 1],
    [20, 0, 0, 2],
    [192, 0, 2, 1],
    [192, 0, 2, 2],
    [20, 0, 0, 3],
];

/// Ports of packets: few, so that connections want the same.
const PORTS: [u16; 8] = [2, 7, 8, 9, 53, 80, 1024, 4000];

/// Steps of an input, and rules of it, at most.
const STEPS: usize = 96;
const MOST_RULES: usize = 12;

/// No connection but one of TCP ends within this, in nanoseconds.
const ALIVE: u64 = 9_000_000_000;

/// A byte: room of the table and what is drawn; one with the number of rules, and those; then steps, five bytes each:
/// what it is, its ends, its ports, its flags, and how long nothing came before it.
pub(super) fn conversations(data: &[u8]) {
    let [room, count, rest @ ..] = data else { return };
    let (rules, steps) = rest.split_at(rest.len().min(usize::from(*count) % (MOST_RULES + 1)));
    let is_small = room & 1 == 1;
    let max = if is_small { 1 + usize::from(room >> 1 & 7) } else { 4096 };
    let text = text(rules);
    let mut talk = Talk {
        ends: [true, false].map(|reference| {
            let config = config(reference, max, *room);
            let loaded = load(&text, &LoadOptions::default()).expect("rules");
            let program = Program::new([loaded.ruleset], config);
            (Handler::new(&program), program)
        }),
        max,
        now: 1_700_000_000_000_000_000,
        past: Vec::new(),
        is_last: false,
    };
    for step in steps.as_chunks::<5>().0.iter().take(STEPS) {
        talk.step(*step, is_small);
    }
}

fn text(rules: &[u8]) -> String {
    let table = |name: &str| {
        let chosen = rules.iter().map(|byte| RULES[usize::from(*byte) % RULES.len()]);
        let lines =
            chosen.filter(|(table, _)| *table == name).map(|(_, rule)| format!("-A {rule}\n"));
        format!("*{name}\n{}COMMIT\n", lines.collect::<String>())
    };
    ["mangle", "nat", "filter"].map(table).concat()
}

fn config(reference: bool, max: usize, seed: u8) -> Config {
    let network = |text| Network::parse(text).expect("a network");
    let local = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(network);
    let entropy = Entropy::Seed(seed.into());
    let ct = conntrack::Config {
        mode: conntrack::Mode::Kernel,
        max,
        entropy,
        seed: Some(1),
        ..conntrack::Config::default()
    };
    Config {
        reference,
        nets: vec![
            ("lan".to_owned(), network("10.0.0.0/8")),
            ("wan".to_owned(), network("0.0.0.0/0")),
        ],
        ct,
        entropy,
        host: Host {
            addresses: vec![("wan".to_owned(), local[0].addr)],
            local: Some(local.to_vec()),
            ..Host::default()
        },
        ..Config::default()
    }
}

/// A packet that left.
struct Sent {
    bytes: Vec<u8>,
    before: FlowKey,
    after: FlowKey,
    at: u64,
}

/// Two handlers that have to say the same, and what they let through.
struct Talk {
    ends: [(Handler, Program); 2],
    max: usize,
    now: u64,
    past: Vec<Sent>,
    /// The last step's packet left, and is the last of the past.
    is_last: bool,
}

/// What one handler says.
#[derive(Debug, PartialEq)]
struct Said {
    outcome: String,
    bytes: Vec<u8>,
    /// Its addresses and ports after translation, if it certainly passed.
    passed: Option<FlowKey>,
    /// It certainly is part of a connection, or begins one.
    state: Option<CtState>,
}

impl Talk {
    fn step(&mut self, [kind, ends, ports, flags, pause]: [u8; 5], is_small: bool) {
        self.now += u64::from(pause).pow(4) * 1_000;
        let back = usize::from(kind >> 2) % self.past.len().max(1);
        let is_last = back == 0 && std::mem::take(&mut self.is_last);
        let earlier = self.past.len().checked_sub(1 + back).map(|at| &self.past[at]);
        let (bytes, answers) = match (kind & 3, earlier) {
            (1, Some(sent)) => {
                // A connection of TCP may end, and leave its place to another one, by any packet.
                let is_there = is_last || sent.before.protocol != tcp::PROTOCOL;
                let is_there = is_there && self.now - sent.at < ALIVE && !is_small;
                (answer(sent.after, flags), Some(sent.before).filter(|_| is_there))
            }
            (2, Some(sent)) => (error(sent, ENDS[usize::from(ends & 7)], flags), None),
            (3, Some(sent)) => (damaged(&sent.bytes, ends, ports), None),
            _ => (fresh(ends, ports, flags), None),
        };
        let now = self.now;
        let number = self.past.len() as u64 + 1;
        let [slow, fast] = self.ends.each_mut().map(|end| said(end, &bytes, number, now));
        assert_eq!(slow, fast);
        for (handler, _) in &mut self.ends {
            assert!(handler.connections().len() <= self.max);
        }
        let (Some(after), Some(state)) = (fast.passed, fast.state) else { return };
        if let Some(before) = answers.filter(|_| state == CtState::Established) {
            assert_eq!(after, before.reversed(), "an answer leaves as one to what was sent");
        }
        if let Some(before) = key(&bytes) {
            self.past.push(Sent { bytes: fast.bytes, before, after, at: self.now });
            self.is_last = true;
        }
    }
}

fn said((handler, program): &mut (Handler, Program), bytes: &[u8], number: u64, now: u64) -> Said {
    let mut bytes = bytes.to_vec();
    let arrival = Arrival { time: Some(now), ..Arrival::new(number, Link::Raw, bytes.len()) };
    let mut state = None;
    let mut observer = Events(|event: Event<'_>| {
        if let Event::Tracked { states, .. } = event {
            let is_own = |state: &CtState| matches!(state, CtState::New | CtState::Established);
            state = states.only().filter(is_own);
        }
    });
    let outcome = handler.handle(program, &mut bytes, &arrival, &mut observer).outcome;
    let is_through = matches!(outcome.end.verdict, FinalVerdict::Accept(_));
    Said {
        outcome: format!("{outcome:?}"),
        passed: outcome.tuple.filter(|_| is_through),
        state,
        bytes,
    }
}

fn key(bytes: &[u8]) -> Option<FlowKey> {
    let mut bytes = bytes.to_vec();
    let len = bytes.len();
    FlowKey::of(&Packet::parse(&mut bytes, len, Link::Raw, Checksums::Verify)).known()
}

/// One that nothing is known of.
fn fresh(ends: u8, ports: u8, flags: u8) -> Vec<u8> {
    let [from, to] = [ports & 7, ports >> 3 & 7].map(|at| PORTS[usize::from(at)]);
    let message = match ports >> 6 {
        0 => Message::udp(from, to),
        1 => Message::Icmp { kind: icmpv4::ECHO_REQUEST, code: 0, id: from, sequence: 1 },
        _ => Message::tcp(from, to, Flags(if flags & 1 == 0 { Flags::SYN.0 } else { flags })),
    };
    let [source, destination] = [ends & 7, ends >> 3 & 7].map(|at| ENDS[usize::from(at)]);
    packet(source.into(), destination.into(), message)
}

/// One from where that went to where it came from.
fn answer(sent: FlowKey, flags: u8) -> Vec<u8> {
    let back = sent.reversed();
    let message = match sent.protocol {
        tcp::PROTOCOL if flags & 1 == 0 => Message::Tcp {
            source_port: back.source_port,
            destination_port: back.destination_port,
            flags: Flags(Flags::SYN.0 | Flags::ACK.0),
            sequence: 1,
            acknowledgement: 2,
            window: u16::MAX,
        },
        tcp::PROTOCOL => Message::tcp(back.source_port, back.destination_port, Flags(flags)),
        udp::PROTOCOL => Message::udp(back.source_port, back.destination_port),
        _ => Message::Icmp { kind: icmpv4::ECHO_REPLY, code: 0, id: back.source_port, sequence: 1 },
    };
    packet(back.source, back.destination, message)
}

/// An error by somebody on its way, or who has it.
fn error(sent: &Sent, by: [u8; 4], flags: u8) -> Vec<u8> {
    let kind = [3, 11, 12, 5][usize::from(flags & 3)];
    let mut upper = vec![kind, flags >> 2, 0, 0, 0, 0, 0, 0];
    upper.extend(sent.bytes.iter().take(28 + usize::from(flags >> 4)));
    let sum = !packet::checksum::sum(&upper);
    upper[2..4].copy_from_slice(&sum.to_be_bytes());
    packet(
        by.into(),
        sent.after.source,
        Message::Other { protocol: icmpv4::PROTOCOL, header: upper },
    )
}

fn damaged(bytes: &[u8], at: u8, byte: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = usize::from(at) % bytes.len().max(1);
    bytes.iter_mut().skip(at).take(1).for_each(|it| *it = byte);
    bytes
}

fn packet(source: IpAddr, destination: IpAddr, message: Message) -> Vec<u8> {
    let addresses = Addresses::new(source, destination).expect("one family");
    Craft { ethernet: None, ..Craft::new(addresses, message) }.frame()
}
