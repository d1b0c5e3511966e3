//! Lines of other programs: a capture's lines are one conversation, with times and numbers; text from anywhere is no
//! danger.

use std::fmt::Write;

use conntrack::Mode;
use dataplane::Config;
use host::Host;
use proptest::prelude::*;
use replay::spec::parse;
use replay::walk::Setup;
use replay::why::{of_conversation, of_lines};

use crate::described::{decisions, judged, on, router, rules};

/// Whatever is not ESTABLISHED, nor a SYN, is dropped.
const TRACKED: &str = "\
*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A FORWARD -p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN -m conntrack --ctstate NEW -j REJECT
COMMIT
";

/// As tcpdump prints a conversation: after the SYN, numbers count from the first ones.
const CONVERSATION: &str = "\
12:00:00.00 IP 1.2.3.4.1000 > 5.6.7.8.22: Flags [S], seq 3000000000, win 64240, options [mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 7], length 0
12:00:00.01 IP 5.6.7.8.22 > 1.2.3.4.1000: Flags [S.], seq 900000000, ack 3000000001, win 65160, options [mss 1460,sackOK,TS val 1 ecr 1,nop,wscale 7], length 0
12:00:00.02 IP 1.2.3.4.1000 > 5.6.7.8.22: Flags [.], ack 1, win 502, options [nop,nop,TS val 1 ecr 1], length 0
12:00:00.03 IP 1.2.3.4.1000 > 5.6.7.8.22: Flags [P.], seq 1:22, ack 1, win 502, options [nop,nop,TS val 1 ecr 1], length 21
12:00:00.04 IP 5.6.7.8.22 > 1.2.3.4.1000: Flags [.], ack 22, win 509, options [nop,nop,TS val 1 ecr 1], length 0
12:00:00.05 IP 5.6.7.8.22 > 1.2.3.4.1000: Flags [.], seq 1:1449, ack 22, win 509, options [nop,nop,TS val 1 ecr 1], length 1448
12:00:00.06 IP 5.6.7.8.22 > 1.2.3.4.1000: Flags [P.], seq 1449:2000, ack 22, win 509, options [nop,nop,TS val 1 ecr 1], length 551
12:00:00.07 IP 1.2.3.4.1000 > 5.6.7.8.22: Flags [.], ack 2000, win 501, options [nop,nop,TS val 1 ecr 1], length 0
12:00:00.08 IP 1.2.3.4.1000 > 5.6.7.8.22: Flags [F.], seq 22, ack 2000, win 501, options [nop,nop,TS val 1 ecr 1], length 0
12:00:00.09 IP 5.6.7.8.22 > 1.2.3.4.1000: Flags [F.], seq 2000, ack 23, win 509, options [nop,nop,TS val 1 ecr 1], length 0
12:00:00.10 IP 1.2.3.4.1000 > 5.6.7.8.22: Flags [.], ack 2001, win 501, options [nop,nop,TS val 1 ecr 1], length 0
";

fn between() -> Setup {
    let (input, output) = (Some("eth0".to_owned()), Some("eth1".to_owned()));
    Config { input, output, ..on(Host::default()).config }.into()
}

#[test]
fn a_conversation_of_tcpdump_lines_is_established_to_its_end() {
    let judged = judged(&rules(TRACKED), &between(), CONVERSATION);
    for (at, decision) in decisions(&judged) {
        let wanted = if at == 1 { "policy ACCEPT" } else { "ACCEPT by L4" };
        assert!(decision.contains(wanted), "line {at}: {decision}");
    }
}

/// What is sent again takes no room of the window.
#[test]
fn what_is_sent_again_is_established() {
    let handshake: Vec<&str> = CONVERSATION.lines().take(3).collect();
    let mut lines =
        handshake.join("\n").replace(",nop,wscale 7", "").replace("win 65160", "win 4344");
    for time in 3..9 {
        for (start, end) in [(1, 1449), (1449, 2897), (2897, 4345)] {
            let _ = write!(
                lines,
                "\n12:00:0{time}.00 IP 1.2.3.4.1000 > 5.6.7.8.22: Flags [.], seq {start}:{end}, ack 1, win 502, options \
                 [nop,nop,TS val 1 ecr 1], length 1448"
            );
        }
    }
    let judged = judged(&rules(TRACKED), &between(), &lines);
    for (at, decision) in decisions(&judged) {
        let wanted = if at == 1 { "policy ACCEPT" } else { "ACCEPT by L4" };
        assert!(decision.contains(wanted), "line {at}: {decision}");
    }
}

/// A capture may have begun later, and numbers that no line gives do not make a packet INVALID.
#[test]
fn numbers_that_no_line_gives_make_no_packet_invalid() {
    let lines: Vec<&str> = CONVERSATION.lines().collect();
    for start in 1..lines.len() {
        let rest = lines[start..].join("\n");
        let judged = judged(&rules(TRACKED), &between(), &rest);
        for (at, decision) in decisions(&judged) {
            assert!(!decision.contains("L3"), "from {start}, line {at}: {decision}");
        }
    }
}

/// The options that a batch prints for its first packet that is not accepted give that packet's verdict.
#[test]
fn the_command_that_is_printed_gives_the_verdict_of_the_batch() {
    let lines: Vec<&str> = CONVERSATION.lines().take(7).collect();
    let rules = rules(&TRACKED.replace("ESTABLISHED -j ACCEPT", "ESTABLISHED -j DROP"));
    let setup = between();
    for first in 0..lines.len() {
        let judged = judged(&rules, &setup, &lines[first..].join("\n"));
        let example = judged.example().unwrap();
        let mut specs: Vec<_> = example
            .split(" --packet ")
            .skip(1)
            .map(|packet| parse(packet.split('\'').nth(1).unwrap()).unwrap())
            .collect();
        let last = specs.pop().unwrap();
        let mut setup = setup.clone();
        setup.config.ct.mode = Mode::Midstream;
        let told = of_conversation(&rules, &setup, &specs, &last, None);
        let line = first + specs.len();
        let batch = &judged.json()["packets"][specs.len()];
        assert_eq!(told.json()["verdict"], batch["verdict"], "line {line}: {example}");
        assert!(told.text(false).contains(batch["decision"].as_str().unwrap()), "{example}");
    }
}

/// With `-tttt` the day stands before the clock: a day later the entry of a UDP flow has expired.
#[test]
fn days_between_lines_count() {
    let line = |day: &str, from: &str, to: &str| {
        format!("2026-11-{day} 12:00:00.000001 IP {from} > {to}: UDP, length 9\n")
    };
    let (client, server) = ("10.0.0.5.4000", "192.0.2.9.5000");
    for (day, wanted) in [("26", "L3"), ("27", "policy DROP")] {
        let lines = line("26", client, server) + &line(day, server, client);
        let rules = rules(
            "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
             -A FORWARD -p udp -m udp --dport 5000 -j ACCEPT\nCOMMIT\n",
        );
        let judged = judged(&rules, &between(), &lines);
        let decision = &decisions(&judged)[1].1;
        assert!(decision.contains(wanted), "{day}: {decision}");
        assert_eq!(judged.example().unwrap().contains("after=86400"), day == "27");
    }
}

/// Only what `tcpdump -v` cuts in two is one line.
#[test]
fn a_line_that_ends_with_a_bracket_swallows_no_other() {
    let judged = judged(
        &rules(TRACKED),
        &between(),
        "Nov 26 10:00:00 gate something happened (twice)\n\
         \x20 udp 10.0.0.1:1 > 10.0.0.2:2\n\
         12:00:00.5 IP 10.0.0.1.6001 > 10.0.0.2.53: 12345+ [1au] A? example.org. (40)\n\
         \x20 udp 10.0.0.1:1 > 10.0.0.2:3\n\
         12:00:01.5 IP (tos 0x0, ttl 63, id 1, offset 0, flags [DF], proto UDP (17), length 37)\n\
         \x20   10.0.0.1.5 > 10.0.0.2.6: UDP, length 9\n\
         12:00:02.5 02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype IPv4 (0x0800), length 51: (tos 0x0, ttl 63, \
         id 2, offset 0, flags [DF], proto UDP (17), length 37)\n\
         \x20   10.0.0.1.5 > 10.0.0.2.7: UDP, length 9\n\
         12:00:03.5 IP (tos 0x0, ttl 63, id 3, offset 0, flags [DF], proto UDP (17), length 37)\n\
         \x20 udp 10.0.0.1:1 > 10.0.0.2:4\n",
    );
    let at: Vec<u64> = decisions(&judged).into_iter().map(|(at, _)| at).collect();
    assert_eq!(
        (at, judged.json()["lines"].as_u64()),
        (vec![2, 3, 4, 5, 7, 10], Some(10)),
        "{}",
        judged.text()
    );
}

/// A line of the target TRACE; the packet's destination is translated on its way.
fn traced(id: u32, place: &str, to: &str) -> String {
    format!(
        "Nov 26 10:00:00 gate kernel: [1.5] TRACE: {place} IN=lan0 OUT= SRC=10.0.0.5 {to} LEN=60 TOS=0x00 PREC=0x00 \
         TTL=64 ID={id} DF PROTO=TCP SPT=1 DPT=443 SEQ=5 ACK=0 SYN\n"
    )
}

#[test]
fn a_traced_packet_stays_one_when_its_destination_is_translated() {
    let lines = traced(7, "nat:PREROUTING:rule:1", "DST=192.0.2.9")
        + &traced(7, "filter:FORWARD:policy:2", "DST=10.0.9.9");
    let judged = judged(&rules(TRACKED), &on(Host::default()), &lines);
    let packets = judged.json()["packets"].clone();
    assert_eq!(packets.as_array().unwrap().len(), 1);
    assert!(packets[0]["packet"].as_str().unwrap().contains("> 192.0.2.9:443"), "{packets}");
}

/// Where more packets are under way than are kept, the oldest is judged, and the lines of the others are theirs still.
#[test]
fn of_too_many_traces_the_oldest_are_judged() {
    const MOST: u32 = 1 << 14;
    let mut lines = String::new();
    for id in 0..MOST + 5 {
        lines += &traced(id, "raw:PREROUTING:policy:2", "DST=192.0.2.9");
    }
    for id in 5..MOST + 5 {
        lines += &traced(id, "filter:FORWARD:policy:2", "DST=192.0.2.9");
    }
    let judged = judged(&[], &on(Host::default()), &lines);
    assert_eq!(judged.packets(), u64::from(MOST) + 5);
}

/// The work that a line costs does not grow with those before it.
#[test]
fn a_trace_of_many_places_is_one_packet() {
    let mut lines = String::new();
    for place in 0..100_000 {
        let _ = writeln!(
            lines,
            "trace id 1 ip t c{place} packet: iif \"lan0\" ip saddr 10.0.0.5 ip daddr 192.0.2.9 ip protocol 47"
        );
    }
    assert_eq!(judged(&[], &on(Host::default()), &lines).packets(), 1);
}

/// An error has its column in the line, and a bounded length.
#[test]
fn an_error_points_into_the_line() {
    let long = "x".repeat(5000);
    let line =
        format!("IN=eth0 OUT= SRC=10.0.0.1 DST=10.0.0.2 PROTO=ICMP TYPE=8 CODE=0 MARK={long}");
    let judged = judged(&[], &on(router()), &line);
    let (_, error) = judged.refusal().unwrap();
    assert_eq!(line[error.column - 1..], long);
    assert!(error.what.contains("for mark") && error.what.len() < 300, "{}", error.what);
}

/// Numbers that no packet has.
const HOSTILE: [&str; 8] = [
    "IN=eth0 OUT= SRC=10.0.0.1 DST=10.0.0.2 LEN=4294967295 TTL=63 ID=7 MF FRAG:536870912 PROTO=UDP ",
    "trace id 1 ip6 t c packet: oif \"eth0\" ip6 saddr 2001:db8::1 ip6 daddr 2001:db8::2 ip6 nexthdr tcp ip6 length \
     18446744073709551615",
    "IP 10.0.0.1.5 > 10.0.0.2.6: Flags [.], ack 1, win 1, length 18446744073709551615",
    "IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 18446744073709551615",
    "IP 10.0.0.1.5 > 10.0.0.2.53: 12345+ A? example.org. (18446744073709551615)",
    "IP 10.0.0.1 > 10.0.0.2: ESP(spi=0x1,seq=0x1), length 18446744073709551615",
    "IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 1, seq 1, length 18446744073709551615",
    "18446744072.5 IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 1\n1.5 IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 2\n\
     18446744073.5 IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 3\n18446744073 IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 4",
];

#[test]
fn numbers_that_no_packet_has_are_no_danger() {
    for line in HOSTILE {
        let _ = parse(line);
        let _ = judged(&[], &between(), line);
    }
}

proptest! {
    /// Whatever numbers stand in lines of any kind.
    #[test]
    fn no_number_in_a_line_is_a_danger(
        line in prop::sample::select([&HOSTILE[..], &SAMPLES[..]].concat()),
        numbers in prop::collection::vec(
            prop_oneof![
                Just(u64::MAX.to_string()), Just("4294967295".to_owned()), Just("65535".to_owned()),
                Just("65536".to_owned()), Just("0".to_owned()), Just("-1".to_owned()), any::<u64>().prop_map(|n| n.to_string()),
                any::<u8>().prop_map(|n| n.to_string()), Just(String::new()),
            ],
            1..4,
        ),
        at in prop::collection::vec(0usize..40, 1..4),
    ) {
        let is_edge = |c: char, next: char| c.is_ascii_digit() != next.is_ascii_digit();
        let mut parts = vec![String::new()];
        let mut last = ' ';
        for c in line.chars() {
            if is_edge(last, c) {
                parts.push(String::new());
            }
            parts.last_mut().unwrap().push(c);
            last = c;
        }
        let places: Vec<usize> = (0..parts.len())
            .filter(|at| parts[*at].starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        for (at, number) in at.iter().zip(numbers) {
            parts[places[at % places.len()]] = number;
        }
        let line = parts.concat();
        let _ = parse(&line);
        let _ = judged(&[], &between(), &format!("{line}\n{line}\n"));
    }
}

/// What lines are made of.
const PIECES: [&str; 20] = [
    " ", "  ", "\n", "\n    ", "(", ")", "[", "]", "=", ":", ".", ",", " > ", "IN=", "OUT=",
    "TRACE: ", "IP ", "IP (tos ", "é", "\u{0}",
];

proptest! {
    /// Text that is cut, joined and changed anywhere, and bytes of any kind.
    #[test]
    fn no_text_is_a_danger(
        lines in prop::collection::vec(prop::sample::select([&HOSTILE[..], &SAMPLES[..]].concat()), 1..4),
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0usize..40, prop_oneof![
                prop::sample::select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
                prop::collection::vec(any::<u8>(), 0..4),
                prop::sample::select(&SAMPLES[..]).prop_map(|line| line.as_bytes().to_vec()),
            ]),
            0..6,
        ),
    ) {
        let mut text = lines.join("\n").into_bytes();
        for (at, cut, piece) in changes {
            let at = at.index(text.len() + 1);
            text.splice(at..(at + cut).min(text.len()), piece);
        }
        let _ = parse(&String::from_utf8_lossy(&text));
        let (rules, setup) = (rules(TRACKED), between());
        let judged = of_lines(&rules, &setup, Mode::Midstream, &*text).unwrap();
        let _ = (judged.text(), judged.json(), judged.example());
        for line in String::from_utf8_lossy(&text).lines() {
            if let Err(error) = parse(line) {
                prop_assert!((1..=line.len() + 1).contains(&error.column), "{line}: {error}");
            }
        }
    }
}

/// Lines as programs print them.
const SAMPLES: [&str; 8] = [
    "Nov 26 10:00:00 gate kernel: [12345.678901] x IN=eth0 OUT=eth1 MAC=02:00:00:00:00:01:02:00:00:00:00:02:08:00 \
     SRC=198.51.100.7 DST=192.0.2.1 LEN=60 TOS=0x10 PREC=0x20 TTL=52 ID=1 DF PROTO=TCP SPT=51200 DPT=22 SEQ=1 ACK=2 \
     WINDOW=64240 RES=0x00 SYN URGP=0 OPT (020405B4) MARK=0x5",
    "IN=eth0 OUT= SRC=2001:db8::1 DST=2001:db8::2 LEN=104 TC=0 HOPLIMIT=64 FLOWLBL=1 PROTO=ICMPv6 TYPE=128 CODE=0 ID=1 SEQ=1",
    "trace id 5dd2c64a ip filter input packet: iif \"eth0\" ip saddr 10.0.0.1 ip daddr 10.0.0.2 ip dscp af41 ip ecn ce ip ttl \
     64 ip id 1 ip protocol tcp ip length 60 tcp sport 51200 tcp dport 22 tcp flags == 0x12 tcp window 64240",
    "tcp      6 431999 ESTABLISHED src=10.0.0.1 dst=192.0.2.9 sport=51200 dport=443 src=192.0.2.9 dst=198.51.100.2 \
     sport=443 dport=51200 [ASSURED] mark=0 use=1",
    "2026-11-26 12:00:01.5 IP (tos 0x10, ttl 63, id 1, offset 8, flags [+], proto TCP (6), length 60) 10.0.0.1.51200 > \
     10.0.0.2.22: Flags [S.], seq 1, ack 1, win 502, options [mss 1460,sackOK,TS val 9 ecr 0,nop,wscale 7], length 8",
    "1764151200.5 IP 10.0.0.1.5 > 10.0.0.2.53: 12345+ A? example.org. (29)",
    "IP 10.0.0.1 > 10.0.0.2: ESP(spi=0x1,seq=0x1), length 100",
    "in=eth0 tcp 10.0.0.1:5 > 10.0.0.2:6 syn len=60 ttl=3 frag=8+ after=1.5 options=mss:1460,ts:1:2 mark=1/2",
];
