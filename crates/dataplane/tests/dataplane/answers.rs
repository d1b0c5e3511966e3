//! What the host sends for packets that it refuses, told as that when it is seen.

use std::net::IpAddr;
use std::sync::Arc;

use conntrack::Mode;
use dataplane::{Arrival, Config, Evaluator, FinalVerdict, Path, Program};
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use packet::{Link, checksum, icmpv4};
use rules::save::{LoadOptions, load};

use crate::Nobody;

fn addresses(source: &str, destination: &str) -> Addresses {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    Addresses::new(address(source), address(destination)).expect("one family")
}

/// A record of a segment at a hook, by its number in `linux/netfilter.h`, as NFLOG makes one.
fn record(hook: u8, source: (&str, u16), destination: (&str, u16), flags: Flags) -> Vec<u8> {
    let addresses = addresses(source.0, destination.0);
    let message = Message::Tcp {
        source_port: source.1,
        destination_port: destination.1,
        flags,
        sequence: 0,
        acknowledgement: 1,
        window: 0,
    };
    let packet = Craft { ethernet: None, ..Craft::new(addresses, message) }.frame();
    let mut record = vec![2, 0, 0, 5];
    for (kind, value) in [(1_u16, &[8, 0, hook, 0][..]), (9, &packet)] {
        record.extend((4 + value.len() as u16).to_le_bytes());
        record.extend(kind.to_le_bytes());
        record.extend(value);
        record.resize(record.len().next_multiple_of(4), 0);
    }
    record
}

/// Records have the time at which they were read, and the kernel hands them out once a second.
#[test]
fn an_answer_may_be_read_a_second_after_what_it_answers() {
    let text = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
        -A INPUT -p tcp -j REJECT --reject-with tcp-reset\n\
        -A OUTPUT -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n";
    let rules = Arc::new(load(text, &LoadOptions::default()).expect("rules").ruleset);
    let mut config = Config::default();
    config.ct.mode = Mode::Kernel;
    let (client, host) = (("10.0.0.9", 1000), ("10.0.0.1", 23));
    let reset = Flags(Flags::RST.0 | Flags::ACK.0);
    for (later, is_attached) in [(1_000, true), (1_200_000_000, true), (4_000_000_000, false)] {
        let program = Program::new([Arc::clone(&rules)], config.clone());
        let mut evaluator = Evaluator::new(&program);
        let mut becomes = |time: u64, mut bytes: Vec<u8>| {
            let number = time + 1;
            let arrival =
                Arrival { time: Some(time), ..Arrival::new(number, Link::Nflog, bytes.len()) };
            evaluator.handle(&mut bytes, &arrival, &mut Nobody).outcome.end.verdict
        };
        let refused = becomes(1, record(1, client, host, Flags::SYN));
        assert!(matches!(refused, FinalVerdict::Reject(_)), "{refused:?}");
        let answer = becomes(1 + later, record(3, host, client, reset));
        assert_eq!(matches!(answer, FinalVerdict::Accept(_)), is_attached, "{later}: {answer:?}");
    }
}

/// The error that the router sends about a packet.
fn time_exceeded(about: &[u8]) -> Vec<u8> {
    let quoted = &about[..28];
    let len = (20 + 8 + quoted.len()) as u16;
    let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, icmpv4::PROTOCOL, 0, 0];
    ip[2..4].copy_from_slice(&len.to_be_bytes());
    ip.extend([10, 0, 0, 1, 10, 0, 0, 9]);
    let sum = !checksum::sum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut message = [&[11, 0, 0, 0, 0, 0, 0, 0][..], quoted].concat();
    let sum = !checksum::sum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    [ip, message].concat()
}

/// Workers share such packets out: one may see the packet, and another the error about it.
#[test]
fn what_depends_on_no_other_packet_becomes_the_same_without_what_it_answers() {
    let config = Config::default();
    let rejecting = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
        -A FORWARD -p sctp -j REJECT\nCOMMIT\n";
    let forwarding = "*filter\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
        -A FORWARD -p udp -m udp --dport 8 -j DROP\nCOMMIT\n";
    let addresses = addresses("10.0.0.9", "198.51.100.7");
    let died =
        Craft { ethernet: None, ttl: 1, ..Craft::new(addresses, Message::udp(5, 6)) }.frame();
    let error = time_exceeded(&died);
    let path = |rules: &str, seen: &[&[u8]]| {
        let rules = Arc::new(load(rules, &LoadOptions::default()).expect("rules").ruleset);
        let program = Program::new([Arc::clone(&rules)], config.clone());
        let mut evaluator = Evaluator::new(&program);
        let becomes = |bytes: &&[u8]| {
            let mut bytes = bytes.to_vec();
            let arrival = Arrival { time: Some(1), ..Arrival::new(1, Link::Raw, bytes.len()) };
            evaluator.handle(&mut bytes, &arrival, &mut Nobody).outcome.end.path
        };
        seen.iter().map(becomes).last().expect("a packet")
    };
    assert_eq!(path(forwarding, &[&died, &error]), path(forwarding, &[&error]));
    assert_eq!(path(rejecting, &[&died, &error]), Some(Path::Output), "one worker sees both");
}
