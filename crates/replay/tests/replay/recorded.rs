//! Recordings of hosts: what no tap shows, and what leaves it open whether a rule was hit.

use dataplane::Config;
use host::{Host, Links};
use packet::craft::{Addresses, Craft, Ethernet, Message};
use packet::tcp::Flags;
use pktio::pcap_file::NgWriter;
use pktio::{Direction, Frame, FrameMeta, Interface, LinkType, Timestamp};
use replay::report::{Report, Style};
use replay::run::{self, List, Wanted};
use replay::{RulesFile, spec, why};
use rules::save::LoadOptions;

fn file(text: &str) -> [RulesFile; 1] {
    [RulesFile::from_text("rules.v4", text.to_owned(), &LoadOptions::default()).unwrap()]
}

/// A host with this one link next to `lo`, which no capture needs to show.
fn config() -> Config {
    let links = "2: eth0: <BROADCAST,UP> mtu 1500\\    link/ether 02:00:00:00:00:01\n";
    Config {
        host: Host { links: Links::parse(links).unwrap(), ..Host::default() },
        ..Config::default()
    }
}

/// The replay of a SYN by `eth0` to each of these ports, from or to the host.
fn replayed(text: &str, direction: Direction, ports: &[u16]) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("eth0.pcapng");
    let mut writer = NgWriter::new(Vec::new()).unwrap();
    let link_type = LinkType::ETHERNET;
    let interface = Interface { name: Some("eth0".into()), link_type, snaplen: 0 };
    writer.add_interface(&interface).unwrap();
    for (number, port) in (1..).zip(ports) {
        let ends = ["192.0.2.1", "198.51.100.7"].map(|end| end.parse().unwrap());
        let addresses = Addresses::new(ends[0], ends[1]).unwrap();
        let ethernet =
            Some(Ethernet { source: [2, 0, 0, 0, 0, 1], destination: [2; 6], vlan: None });
        let message = Message::tcp(4000 + number, *port, Flags::SYN);
        let bytes = Craft { ethernet, ..Craft::new(addresses, message) }.frame();
        let nanos = 1_795_255_200_000_000_000 + i64::from(number) * 1_000_000_000;
        let timestamp = Some(Timestamp::from_nanos(nanos));
        let wire_length = bytes.len() as u32;
        let meta =
            FrameMeta { timestamp, wire_length, direction, link_type, ..FrameMeta::default() };
        writer.write(0, Frame { bytes: &bytes, meta: &meta }, None).unwrap();
    }
    std::fs::write(&path, writer.finish().unwrap()).unwrap();
    let captures = [path.display().to_string()];
    let mut wanted =
        Wanted { list: Some((List::Never.into(), 20)), page: true, ..Wanted::default() };
    run::replay(&file(text), &captures, &config().into(), &mut wanted).unwrap()
}

#[test]
fn own_packets_that_were_dropped_before_any_tap_may_have_hit_what_came_before() {
    let rules = |postrouting: &str, output: &str| {
        format!(
            "*mangle\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
             -A POSTROUTING -d 203.0.113.9/32 {postrouting}\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
             -A INPUT -s 203.0.113.9/32 -j ACCEPT\n-A OUTPUT -d 203.0.113.9/32 {output}\nCOMMIT\n"
        )
    };
    let never = |postrouting, output| {
        let report = replayed(&rules(postrouting, output), Direction::Outbound, &[80]);
        let text = report.text(Style::default());
        let list = text.split("LIST never").nth(1).unwrap().to_owned();
        [4, 9, 10].map(|line| {
            let line = format!("  L{line:<5} ");
            let words = list.split(&line).nth(1).unwrap().split(':').next().unwrap();
            words.to_owned()
        })
    };
    let (met, unmet, unreached) =
        ("maybe hit by own packets that were dropped", "reached, not matched", "not reached");
    assert_eq!(never("-j ACCEPT", "-j ACCEPT"), [unmet, unreached, unmet]);
    // What POSTROUTING drops has passed OUTPUT.
    assert_eq!(never("-j DROP", "-j ACCEPT"), [met, unreached, met]);
    assert_eq!(never("-j ACCEPT", "-j DROP"), [unmet, unreached, met]);
}

#[test]
fn the_story_of_a_superframe_that_a_program_had_is_that_of_one_packet() {
    let rules = file(
        "*mangle\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -p tcp\nCOMMIT\n*filter\n:FORWARD ACCEPT [0:0]\n\
         -A FORWARD -j NFQUEUE --queue-num 1\nCOMMIT\n",
    );
    let told = |len: u32| {
        let text = format!("in=eth0 tcp 192.0.2.1:4000 > 198.51.100.7:80 ack len={len}");
        let packet = spec::parse(&text).unwrap();
        let config = Config { path: Some(dataplane::Path::Forward), ..Config::default() };
        why::of_conversation(&rules, &config.clone().into(), &[], &packet, None)
            .text(true)
            .lines()
            .count()
    };
    assert_eq!(told(60_000), told(1000));
    assert!(told(60_000) < 24);
}

/// One rule leaves it open by itself, and the rules behind it by it; where a rule only counts, its own test does.
#[test]
fn what_leaves_a_hit_open_is_told_with_the_first_packet() {
    let text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -m tcp --dport 25 -m geoip --source-country DE -j DROP\n\
        -A INPUT -p tcp\n-A INPUT -p tcp -m tcp --dport 80 -m geoip --source-country FR\nCOMMIT\n";
    let report = replayed(text, Direction::Inbound, &[80, 25, 25]);
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let because = |at: usize| {
        let hit = &json["hits"][at];
        let because = &hit["maybe_because"];
        let text = |member: &str| because[member].as_str().unwrap_or_default().to_owned();
        let [what, command] = ["what", "command"].map(text);
        let [maybe, line, frame] =
            [&hit["maybe"], &because["line"], &because["example_frame"]].map(|n| n.as_u64());
        (maybe, line, frame, what.starts_with("-m geoip"), command)
    };
    let command = |number: u64| {
        let found = because(0).4;
        let (before, _) = found.rsplit_once(' ').unwrap();
        assert!(before.starts_with("tamis why rules.v4 ") && before.ends_with(" --packet"));
        format!("{before} {number}")
    };
    assert_eq!(because(0), (Some(2), Some(3), Some(2), true, command(2)));
    assert_eq!(because(1), (Some(2), Some(3), Some(2), true, command(2)));
    assert_eq!(because(2), (Some(1), Some(5), Some(1), true, command(1)));
    let text = report.text(Style::default());
    let section = text.split("MAYBE HIT").nth(1).unwrap();
    let rows: Vec<&str> = section.lines().skip(1).take(4).collect();
    for (row, (line, why)) in rows.iter().zip([(3, 3), (4, 3), (5, 5)]) {
        assert!(row.starts_with(&format!("  L{line}     by L{why} -m geoip")), "{row}");
    }
    assert!(
        rows[0].ends_with("           2   #2") && rows[2].ends_with("           1   #1"),
        "{text}"
    );
    assert_eq!(rows[3], format!("  to see it: {}", command(2)));
    let page = report.html("replay");
    assert!(page.contains("packets that may have hit by L3 -m geoip"), "{page}");
    // Where all is certain nothing is said.
    let certain = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -j ACCEPT\nCOMMIT\n";
    let report = replayed(certain, Direction::Inbound, &[80]);
    assert!(!report.text(Style::default()).contains("MAYBE"));
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    assert!(!String::from_utf8(json).unwrap().contains("maybe_because"));
}
