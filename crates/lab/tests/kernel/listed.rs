//! A table that is listed in the middle of conversations: what tamis makes of the packets that follow, from the listing
//! alone, against the kernel's rewrites and counters. Needs root and the legacy tools; without them it says so and
//! passes.

use std::process::Command;
use std::sync::Arc;

use conntrack::{self, Listing, Mode};
use dataplane::{Arrival, Config, Counters, Evaluator, FinalVerdict, Observer, Program, Start};
use host::{Host, Network};
use lab::oracle::counters::Reader;
use lab::oracle::load::{lacking, restore};
use lab::oracle::netns::{in_fresh, ip};
use lab::oracle::tun::Tun;
use lab::scene::{LOCAL_V4, Placement, Scene, Wire};
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link};
use rules::Transit;
use rules::eval::{self, RuleRef};
use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, load};

const CLIENT: [u8; 4] = [10, 1, 0, 5];
const SERVER: [u8; 4] = [198, 51, 100, 7];
const STRANGER: [u8; 4] = [203, 0, 113, 9];

fn rules_text() -> String {
    let own = LOCAL_V4[1];
    let filter: String = [
        "-m conntrack --ctstate INVALID",
        "-m conntrack --ctstate NEW",
        "-m conntrack --ctstate ESTABLISHED --ctdir ORIGINAL",
        "-m conntrack --ctstate ESTABLISHED --ctdir REPLY",
        "-m conntrack --ctstatus ASSURED",
        "-m conntrack --ctstate SNAT",
        "-m conntrack --ctstate DNAT",
        "-m connmark --mark 0x7",
        "-m conntrack --ctstate INVALID -j DROP",
    ]
    .into_iter()
    .map(|rule| format!("-A FORWARD {rule}\n"))
    .collect();
    format!(
        "*mangle\n-A FORWARD -p udp -m udp --dport 53 -j CONNMARK --set-xmark 0x7/0xffffffff\nCOMMIT\n\
         *nat\n-A PREROUTING -d {own}/32 -p udp -j DNAT --to-destination 10.1.0.9\n\
         -A POSTROUTING -s 10.1.0.0/16 -j SNAT --to-source {own}\nCOMMIT\n\
         *filter\n:FORWARD ACCEPT [0:0]\n{filter}COMMIT\n"
    )
}

struct Hits(Counters);

impl eval::Observer for Hits {
    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        self.0.hit_rule(at, certain, transit.packet.len() as u64, transit.time);
    }
}

impl Observer for Hits {}

/// A packet: whether it comes by `t0`, and its bytes.
type Sent = (bool, Vec<u8>);

fn frame(source: [u8; 4], destination: [u8; 4], message: Message) -> Vec<u8> {
    let addresses = Addresses::V4 { source, destination };
    Craft { ethernet: None, payload_len: 8, ..Craft::new(addresses, message) }.frame()
}

fn tcp(ports: [u16; 2], flags: Flags, sequence: u32, acknowledgement: u32) -> Message {
    let [source_port, destination_port] = ports;
    Message::Tcp { source_port, destination_port, flags, sequence, acknowledgement, window: 9000 }
}

const SYN_ACK: Flags = Flags::SYN.union(Flags::ACK);

fn own() -> [u8; 4] {
    let address: std::net::Ipv4Addr = LOCAL_V4[1].parse().expect("an address");
    address.octets()
}

/// What makes the table: answered and not, of three protocols, translated at either end.
fn before() -> Vec<Sent> {
    vec![
        (true, frame(CLIENT, SERVER, Message::udp(1000, 53))),
        (false, frame(SERVER, own(), Message::udp(53, 1000))),
        (true, frame(CLIENT, SERVER, Message::udp(1001, 53))),
        (false, frame(STRANGER, own(), Message::udp(4000, 8053))),
        (true, frame(CLIENT, SERVER, tcp([2000, 80], Flags::SYN, 1000, 0))),
        (false, frame(SERVER, own(), tcp([80, 2000], SYN_ACK, 5000, 1009))),
        (true, frame(CLIENT, SERVER, tcp([2000, 80], Flags::ACK, 1009, 5009))),
        (true, frame(CLIENT, SERVER, tcp([2001, 80], Flags::SYN, 1000, 0))),
        (true, frame(CLIENT, SERVER, Message::Icmp { kind: 8, code: 0, id: 7, sequence: 1 })),
        (false, frame(SERVER, own(), Message::Icmp { kind: 0, code: 0, id: 7, sequence: 1 })),
    ]
}

/// What follows.
fn after() -> Vec<Sent> {
    vec![
        (false, frame(SERVER, own(), Message::udp(53, 1000))),
        (true, frame(CLIENT, SERVER, Message::udp(1000, 53))),
        (true, frame(CLIENT, SERVER, Message::udp(1001, 53))),
        (false, frame(SERVER, own(), Message::udp(53, 1001))),
        (true, frame([10, 1, 0, 9], STRANGER, Message::udp(8053, 4000))),
        (false, frame(SERVER, own(), tcp([80, 2000], Flags::ACK, 5009, 1017))),
        (true, frame(CLIENT, SERVER, tcp([2000, 80], Flags::ACK, 1017, 5017))),
        (false, frame(SERVER, own(), tcp([80, 2001], SYN_ACK, 7000, 1009))),
        (true, frame(CLIENT, SERVER, tcp([2001, 80], Flags::ACK, 1009, 7009))),
        (true, frame(CLIENT, SERVER, tcp([2000, 80], Flags::FIN.union(Flags::ACK), 1025, 5017))),
        (true, frame(CLIENT, SERVER, Message::Icmp { kind: 8, code: 0, id: 7, sequence: 2 })),
        (false, frame(SERVER, own(), Message::Icmp { kind: 0, code: 0, id: 7, sequence: 2 })),
        (true, frame(CLIENT, SERVER, Message::udp(1002, 53))),
        (true, frame(CLIENT, SERVER, tcp([2002, 80], Flags::ACK, 1, 1))),
        (true, frame(CLIENT, SERVER, tcp([2003, 80], Flags::RST, 1, 1))),
    ]
}

#[test]
fn a_listed_table_goes_on_as_the_kernel_does() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    in_fresh(|| {
        let mut tun = Tun::new(&Scene::new(Family::Ipv4, Wire::Tun, Placement::Forward))?;
        ip("route add 10.1.0.0/16 dev t0\n")?;
        std::thread::sleep(std::time::Duration::from_millis(30));
        restore(Family::Ipv4, &rules_text()).expect("restored");
        let mut reader = Reader::open(Family::Ipv4)?;
        for sent in before() {
            pass(&mut tun, &sent);
        }
        let listings = listings();
        let (start, mut left) = (read(&mut reader), Vec::new());
        for sent in after() {
            left.push(pass(&mut tun, &sent));
        }
        let end = read(&mut reader);
        let kernel: Vec<u64> = end.iter().zip(&start).map(|(end, start)| end - start).collect();
        for (how, text) in listings {
            for mode in [Mode::Kernel, Mode::Midstream] {
                compare(&how, &text, mode, &left, &kernel);
            }
        }
        Ok(())
    })
    .expect("a namespace");
}

/// The table, in every way that there is here.
fn listings() -> Vec<(String, String)> {
    let ways: [&[&str]; 3] = [
        &["cat", "/proc/net/nf_conntrack"],
        &["conntrack", "-L"],
        &["conntrack", "-L", "-o", "extended"],
    ];
    let mut listings = Vec::new();
    for way in ways {
        let (how, done) = (way.join(" "), Command::new(way[0]).args(&way[1..]).output());
        match done {
            Ok(done) if done.status.success() => {
                listings.push((how, String::from_utf8(done.stdout).expect("text")));
            }
            _ => eprintln!("SKIPPED: {how} is not there"),
        }
    }
    assert!(!listings.is_empty());
    listings
}

/// What leaves the kernel.
fn pass(tun: &mut Tun, (from_client, bytes): &Sent) -> Vec<Vec<u8>> {
    if *from_client { tun.send(bytes) } else { tun.send_far(bytes) }.expect("sent");
    let mut buffer = vec![0; 1 << 16];
    let mut left = Vec::new();
    while let Some(len) = tun.receive_near(&mut buffer).expect("read") {
        left.push(buffer[..len].to_vec());
    }
    while let Some(len) = tun.receive(&mut buffer).expect("read") {
        left.push(buffer[..len].to_vec());
    }
    left.retain(|bytes| bytes[0] >> 4 == 4);
    left
}

/// The packets of each rule, table after table.
fn read(reader: &mut Reader) -> Vec<u64> {
    let mut packets = Vec::new();
    for (table, chains) in [
        ("mangle", &["FORWARD"][..]),
        ("nat", &["PREROUTING", "POSTROUTING"]),
        ("filter", &["FORWARD"]),
    ] {
        let found = reader.read(table).expect("counters");
        for chain in chains {
            let entries =
                &found.iter().find(|known| *known.chain == **chain).expect("a chain").entries;
            packets.extend(entries[..entries.len() - 1].iter().map(|entry| entry.packets));
        }
    }
    packets
}

fn ours(ruleset: &Ruleset, counters: &Counters) -> Vec<[u64; 2]> {
    let mut packets = Vec::new();
    for (table, chains) in [
        ("mangle", &["FORWARD"][..]),
        ("nat", &["PREROUTING", "POSTROUTING"]),
        ("filter", &["FORWARD"]),
    ] {
        let t = ruleset.tables.iter().position(|known| known.name == table).expect("a table");
        for chain in chains {
            let c = ruleset.tables[t].chains.iter().position(|known| *known.name == **chain);
            let c = c.expect("a chain");
            for rule in 0..ruleset.tables[t].chains[c].rules.len() {
                let at = RuleRef { table: t as u32, chain: c as u32, rule: rule as u32 };
                let hits = counters.rule(at);
                packets.push([hits.packets, hits.packets + hits.maybe]);
            }
        }
    }
    packets
}

fn compare(how: &str, text: &str, mode: Mode, left: &[Vec<Vec<u8>>], kernel: &[u64]) {
    let listing = Listing::parse(text).unwrap_or_else(|error| panic!("{how}: {error}\n{text}"));
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    let ruleset = Arc::new(load(&rules_text(), &options).expect("rules").ruleset);
    let start = Start { connections: Some(Arc::new(listing)), ..Start::default() };
    let program = Program::starting([Arc::clone(&ruleset)], config(mode), start);
    let mut evaluator = Evaluator::new(&program);
    let mut hits = Hits(Counters::of(&ruleset));
    for (number, ((from_client, sent), left)) in (1..).zip(after().into_iter().zip(left)) {
        let mut bytes = sent;
        let arrival = Arrival {
            time: Some(1_000_000_000 + number * 1000),
            input: Some(if from_client { "t0" } else { "t1" }),
            ..Arrival::new(number, Link::Raw, bytes.len())
        };
        let end = evaluator.handle(&mut bytes, &arrival, &mut hits).outcome;
        let egress = matches!(end.end.verdict, FinalVerdict::Accept(_)).then_some(bytes);
        assert_eq!(
            egress.as_ref(),
            left.first(),
            "{how}, {mode:?}, packet {number}: {end:?}\n{text}"
        );
    }
    let ours = ours(&ruleset, &hits.0);
    let mut open = 0;
    for (place, (ours, kernel)) in ours.iter().zip(kernel).enumerate() {
        let [least, most] = *ours;
        let is_within = (least..=most).contains(kernel);
        assert!(is_within, "{how}, {mode:?}, rule {place}: {ours:?}, kernel {kernel}\n{text}");
        // How old a flow of UDP is decides whether it is assured.
        open += usize::from(least != most);
    }
    assert!(open <= 1, "{how}, {mode:?}: {ours:?}");
}

fn config(mode: Mode) -> Config {
    let net = |text: &str| Network::parse(text).expect("a network");
    Config {
        nets: vec![("t0".to_owned(), net("10.1.0.0/16")), ("t1".to_owned(), net("0.0.0.0/0"))],
        checksums: Checksums::Verify,
        ct: conntrack::Config {
            mode,
            checksums: Checksums::Verify,
            ..conntrack::Config::default()
        },
        host: Host {
            local: Some(LOCAL_V4.iter().map(|text| net(text)).collect()),
            ..Host::default()
        },
        ..Config::default()
    }
}
