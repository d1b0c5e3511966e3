//! What the host sends for packets that it refuses, against the kernel: resets and ICMP errors of REJECT, of time
//! exceeded, and of its own stack, to new and to known connections, translated or not. Needs root and the legacy
//! tools; without them it says so and passes.
//!
//! Every frame that leaves the kernel is shown to tamis as a capture would: what it forwarded is left out, everything
//! else is the host's own. Where nothing is translated, each answer equals, byte by byte, the one that
//! [`packet::reply`] makes. At the end the counters of all tables are compared; none may be in doubt.

use dataplane::{
    Arrival, Counters, Evaluator, FinalVerdict, Observer, Origin, Outcome, Path, Program,
};
use fastrand::Rng;
use lab::oracle::counters::Reader;
use lab::oracle::load::{lacking, restore};
use lab::oracle::netns::{in_fresh, ip};
use lab::oracle::tun::Tun;
use lab::scene::{LOCAL_V4, LOCAL_V6, Placement, Scene, Wire};
use packet::craft::{Addresses, Craft, Message};
use packet::reply::{Replier, Reply, Terms, reply};
use packet::tcp::Flags;
use packet::{Checksums, Link};
use rules::Transit;
use rules::eval::{self, RuleRef};
use rules::ext::Answer;
use rules::model::{Chain, Family, Ruleset};
use rules::save::{LoadOptions, load};
use std::sync::Arc;

use crate::setting;

const PACKETS: u64 = 80;

/// Where conversations go: `SERVER` and `FRONT`, which is translated to it.
struct Names {
    client: &'static str,
    server: &'static str,
    front: &'static str,
    own: &'static str,
    unreachable: &'static str,
}

const V4: Names = Names {
    client: "10.1.0.7",
    server: "10.2.0.9",
    front: "203.0.113.5",
    own: LOCAL_V4[0],
    unreachable: "icmp-admin-prohibited",
};
const V6: Names = Names {
    client: "fd01::7",
    server: "fd02::9",
    front: "2001:db8::5",
    own: LOCAL_V6[0],
    unreachable: "icmp6-adm-prohibited",
};

fn rules(names: &Names, translates: bool) -> String {
    let Names { server, front, unreachable, .. } = names;
    let mut text = String::new();
    for table in ["raw", "mangle"] {
        text += &format!("*{table}\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n");
        if table == "mangle" {
            text += ":POSTROUTING ACCEPT [0:0]\n";
        }
        for chain in ["OUTPUT", "POSTROUTING"] {
            if table == "mangle" || chain == "OUTPUT" {
                for state in ["RELATED", "INVALID", "NEW", "ESTABLISHED"] {
                    text += &format!("-A {chain} -m conntrack --ctstate {state}\n");
                }
                for way in ["ORIGINAL", "REPLY"] {
                    text += &format!(
                        "-A {chain} -m conntrack --ctstate RELATED --ctdir {way} -s {server}\n"
                    );
                }
            }
        }
        text += "COMMIT\n";
    }
    text += "*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n";
    if translates {
        text += &format!("-A PREROUTING -d {front} -j DNAT --to-destination {server}\n");
        let to = if server.contains(':') { "2001:db8::101" } else { "203.0.113.101" };
        text += &format!("-A POSTROUTING -o t1 -p tcp -j SNAT --to-source {to}\n");
    }
    text += "COMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n";
    for chain in ["FORWARD", "INPUT"] {
        text += &format!("-A {chain} -p tcp -m tcp --dport 81 -j REJECT --reject-with tcp-reset\n");
        text += &format!("-A {chain} -p tcp -m tcp --dport 82 -j REJECT\n");
        text +=
            &format!("-A {chain} -p udp -m udp --dport 81 -j REJECT --reject-with {unreachable}\n");
        text += &format!(
            "-A {chain} -p tcp -m tos --tos 0x10/0xff -j REJECT --reject-with tcp-reset\n"
        );
        text += &format!("-A {chain} -p udp -m tos --tos 0x10/0xff -j REJECT\n");
    }
    text += &format!("-A OUTPUT -s {server}\n-A OUTPUT -p tcp -m conntrack --ctstate RELATED\n");
    // Which of the host's addresses an answer was made with.
    for own in if server.contains(':') { LOCAL_V6 } else { LOCAL_V4 } {
        text += &format!("-A OUTPUT -s {own}\n");
    }
    text + "-A OUTPUT -m conntrack --ctstate INVALID\nCOMMIT\n"
}

/// Counters, and how many hits were in doubt.
struct Hits(Counters, u64);

impl eval::Observer for Hits {
    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        self.1 += u64::from(!certain);
        self.0.hit_rule(at, certain, transit.packet.len() as u64, transit.time);
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.0.hit_policy(table, chain, certain, transit.packet.len() as u64, transit.time);
    }
}

impl Observer for Hits {}

#[test]
fn answers_carry_the_connection_of_what_they_answer() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    for number in 0..setting("TAMIS_ANSWER_RUNS", 24) {
        let family = if number % 3 == 2 { Family::Ipv6 } else { Family::Ipv4 };
        let mut rng = Rng::with_seed(number);
        let told = in_fresh(|| trial(family, number % 2 == 1, &mut rng));
        told.unwrap().unwrap_or_else(|story| panic!("run {number}:\n{story}"));
    }
}

/// What differs, with everything that happened before.
fn trial(family: Family, translates: bool, rng: &mut Rng) -> std::io::Result<Result<(), String>> {
    let names = if family == Family::Ipv6 { V6 } else { V4 };
    let mut tun = Tun::new(&Scene::new(family, Wire::Tun, Placement::Forward))?;
    ip("route add 10.1.0.0/16 dev t0\nroute add fd01::/16 dev t0\n")?;
    std::thread::sleep(std::time::Duration::from_millis(30));
    let text = rules(&names, translates);
    restore(family, &text).map_err(|e| std::io::Error::other(format!("{e}\n{text}")))?;
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    let ruleset = Arc::new(load(&text, &options).expect("rules").ruleset);
    let mut reader = Reader::open(family)?;
    let config = super::two_devices();
    let program = Program::new([Arc::clone(&ruleset)], config);
    let mut evaluator = Evaluator::new(&program);
    let mut hits = Hits(Counters::of(&ruleset), 0);
    let (mut story, mut number) = (text.clone(), 0);
    let mut forwarded: Vec<Vec<u8>> = Vec::new();
    let mut compared = 0;
    for _ in 0..PACKETS {
        let (from_far, sent) = draw(&names, &forwarded, rng);
        if from_far { tun.send_far(&sent) } else { tun.send(&sent) }?;
        let left = drain(&mut tun)?;
        let came_by = if from_far { "t1" } else { "t0" };
        number += 1;
        let arrival = Arrival {
            time: Some(1_000_000_000 + number * 1_000),
            origin: Origin::Wire,
            interface: Some(came_by),
            ..Arrival::new(number, Link::Raw, sent.len())
        };
        let mut bytes = sent.clone();
        let outcome = evaluator.handle(&mut bytes, &arrival, &mut hits).outcome;
        story += &format!("\n{number} {:?} {outcome:?}\n  {}", arrival.interface, show(&sent));
        if outcome.end.verdict == FinalVerdict::Unknown {
            return Ok(Err(story));
        }
        let goes_on = matches!(outcome.end.verdict, FinalVerdict::Accept(_))
            && outcome.end.path == Some(Path::Forward);
        for (interface, frame) in left {
            story += &format!("\n  kernel {interface} {}", show(&frame));
            if goes_on {
                if frame != bytes {
                    return Ok(Err(story));
                }
                // What no connection translated is answered by nobody: an error about such an answer would be RELATED to
                // the connection that the answer is the inverse of, which is not modelled.
                if !translates || is_translated(&frame, &names) {
                    forwarded.push(frame);
                }
                continue;
            }
            if let Some(ours) = made(&outcome, &bytes, &names, came_by, interface, &frame)
                && !translates
            {
                compared += 1;
                if ours != frame {
                    return Ok(Err(format!("{story}\n  ours {ours:02x?}\n  theirs {frame:02x?}")));
                }
            }
            number += 1;
            let arrival = Arrival {
                time: Some(1_000_000_000 + number * 1_000),
                origin: Origin::Host,
                direction: pktio::Direction::Outbound,
                interface: Some(interface),
                ..Arrival::new(number, Link::Raw, frame.len())
            };
            let mut own = frame.clone();
            let outcome = evaluator.handle(&mut own, &arrival, &mut hits).outcome;
            story += &format!("\n  {number} own {outcome:?}");
            if hits.1 > 0 || own != frame || outcome.end.verdict == FinalVerdict::Unknown {
                return Ok(Err(format!("{story}\n  leaves as {}", show(&own))));
            }
        }
    }
    assert!(translates || compared > 5, "{compared} answers were compared, byte by byte");
    Ok(match differs(&mut reader, &ruleset, &hits.0) {
        Some(what) => Err(format!("{story}\n{what}")),
        None => Ok(()),
    })
}

/// The answer that we would send for a refused packet, beside that of the kernel, whose identification and flow label it takes.
fn made(
    outcome: &Outcome<'_>,
    refused: &[u8],
    names: &Names,
    came_by: &str,
    back: &str,
    kernel: &[u8],
) -> Option<Vec<u8>> {
    let what = match outcome.answer? {
        Answer::Reset => Reply::Reset,
        Answer::Icmp { kind, code } => Reply::Error { kind, code, rest: 0 },
    };
    let (mut bytes, len) = (refused.to_vec(), refused.len());
    let packet = packet::Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let flow = packet::FlowKey::of(&packet).known()?;
    let locals = if flow.source.is_ipv6() { LOCAL_V6 } else { LOCAL_V4 };
    // Its own address where it was the destination; else that of the device by which the error leaves, and of
    // IPv6 that of the device by which the packet came (`icmp6_send`, "a more meaningful saddr").
    let device = if flow.source.is_ipv6() { came_by } else { back };
    let at = usize::from(device == "t1");
    let own = if flow.destination.to_string() == names.own { names.own } else { locals[at] };
    let terms = Terms {
        replier: Replier::Host(own.parse().expect("an address")),
        hop_limit: 64,
        id: u16::from_be_bytes([kernel[4], kernel[5]]),
        verify: true,
    };
    let mut to = Vec::new();
    reply(&packet, what, &terms, &mut to).ok()?;
    // A flow label that the kernel hashes from a secret of its own (`net.ipv6.auto_flowlabels`).
    if what != Reply::Reset && own.contains(':') {
        to[1..4].copy_from_slice(&kernel[1..4]);
    }
    Some(to)
}

/// Whether a packet from the client has the ends that the rules give to each.
fn is_translated(frame: &[u8], names: &Names) -> bool {
    let (mut bytes, len) = (frame.to_vec(), frame.len());
    let packet = packet::Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    packet::FlowKey::of(&packet).known().is_some_and(|flow| {
        let is_clients = flow.protocol == 6 && flow.source.to_string() == names.client;
        !is_clients && flow.destination.to_string() != names.front
    })
}

/// A packet, and whether it comes from the far side.
fn draw(names: &Names, forwarded: &[Vec<u8>], rng: &mut Rng) -> (bool, Vec<u8>) {
    let ports = [80, 81, 82];
    if !forwarded.is_empty() && rng.u8(..4) == 0 {
        return (true, answer(&forwarded[rng.usize(..forwarded.len())], rng));
    }
    let to = [names.server, names.server, names.front, names.own][rng.usize(..4)];
    // What is translated to the server must not clash with what is sent there: the kernel would draw a port.
    let from = if to == names.front { 5000 } else { 4000 };
    let (from, port) = (from + rng.u16(..3), ports[rng.usize(..3)]);
    let message = match rng.u8(..3) {
        0 => Message::udp(from, port),
        _ => Message::tcp(
            from,
            port,
            [Flags::SYN, Flags::SYN, Flags::ACK, Flags::RST][rng.usize(..4)],
        ),
    };
    let address = |text: &str| text.parse().expect("an address");
    let addresses = Addresses::new(address(names.client), address(to)).expect("one family");
    let mut craft = Craft::new(addresses, message);
    craft.ethernet = None;
    craft.ttl = if rng.u8(..6) == 0 { 1 } else { 64 };
    craft.tos = if rng.u8(..5) == 0 { 0x10 } else { 0 };
    craft.payload_len = rng.usize(..20);
    // Some come by the other device: what answers them leaves by this one.
    (rng.u8(..6) == 0, craft.frame())
}

/// An answer of the far side to what came out there.
fn answer(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let len = bytes.len();
    let packet = packet::Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let key = packet::FlowKey::of(&packet).known().expect("a whole packet");
    let addresses = Addresses::new(key.destination, key.source).expect("one family");
    let message = match key.protocol {
        17 => Message::udp(key.destination_port, key.source_port),
        _ => Message::tcp(key.destination_port, key.source_port, Flags::SYN.union(Flags::ACK)),
    };
    let mut craft = Craft::new(addresses, message);
    craft.ethernet = None;
    craft.ttl = if rng.u8(..4) == 0 { 1 } else { 64 };
    craft.tos = if rng.u8(..3) == 0 { 0x10 } else { 0 };
    craft.frame()
}

/// What left the kernel, and by which device.
fn drain(tun: &mut Tun) -> std::io::Result<Vec<(&'static str, Vec<u8>)>> {
    let mut buffer = vec![0; 1 << 16];
    let mut left = Vec::new();
    while let Some(len) = tun.receive_near(&mut buffer)? {
        left.push(("t0", buffer[..len].to_vec()));
    }
    while let Some(len) = tun.receive(&mut buffer)? {
        left.push(("t1", buffer[..len].to_vec()));
    }
    // The host itself says which groups it listens to.
    left.retain(|(_, bytes)| bytes.get(8..24) != Some(&[0; 16]));
    Ok(left)
}

fn differs(reader: &mut Reader, ruleset: &Ruleset, ours: &Counters) -> Option<String> {
    let mut all = String::new();
    for (table, t) in ruleset.tables.iter().zip(0..) {
        for chain in reader.read(&table.name).expect("counters") {
            let known = |known: &Chain| *known.name == *chain.chain;
            // The kernel has built-in chains that the text does not name.
            let Some(c) = table.chains.iter().position(known) else { continue };
            for (index, kernel) in chain.entries.iter().enumerate() {
                let hits = match index == table.chains[c].rules.len() {
                    true => ours.policy(t, c as u32),
                    false => ours.rule(RuleRef { table: t, chain: c as u32, rule: index as u32 }),
                };
                if hits.packets != kernel.packets || hits.maybe > 0 {
                    let place = format!("{} {} {}", table.name, chain.chain, index + 1);
                    all += &format!("{place}: kernel {kernel:?}, tamis {hits:?}\n");
                }
            }
        }
    }
    (!all.is_empty()).then_some(all)
}

fn show(bytes: &[u8]) -> String {
    let mut bytes = bytes.to_vec();
    let len = bytes.len();
    packet::Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore).to_string()
}
