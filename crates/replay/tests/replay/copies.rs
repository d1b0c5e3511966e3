//! Recordings of a host with two uplinks whose rules copy packets: which frames are copies.

use std::net::IpAddr;

use host::Host;
use packet::craft::{Addresses, Craft, Ethernet, Message};
use pktio::pcap_file::NgWriter;
use pktio::{Frame, FrameMeta, Interface, LinkType, Timestamp};
use replay::run::{self, Wanted};

use crate::described::{on, rules, with_rule};

const RULES: &str = "*mangle\n:PREROUTING ACCEPT\n-A PREROUTING -p tcp -j TEE --gateway 203.0.113.9\n\
                     COMMIT\n*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n\
                     -A FORWARD -p udp -j ACCEPT\n-A OUTPUT -o wan1 -j ACCEPT\nCOMMIT\n";

/// A client's packets, each as it came and as it left on the second uplink.
fn capture() -> Vec<u8> {
    let ends = ["10.0.0.77", "192.0.2.5"].map(|addr| addr.parse::<IpAddr>().unwrap());
    let [client, link, next] = [9, 3, 2].map(|last| [2, 0, 0, 0, 0, last]);
    let mut writer = NgWriter::new(Vec::new()).unwrap();
    for name in ["lan0", "wan1"] {
        let name = Some(name.to_owned());
        let link_type = LinkType::ETHERNET;
        writer.add_interface(&Interface { name, link_type, snaplen: 0 }).unwrap();
    }
    for number in 0..5 {
        let sides = [(client, link, 64), (next, [2, 0, 0, 0, 0, 10], 63)];
        for (interface, (source, destination, ttl)) in (0..).zip(sides) {
            let ethernet = Some(Ethernet { source, destination, vlan: None });
            let addresses = Addresses::new(ends[0], ends[1]).unwrap();
            let message = Message::udp(4000, 53);
            let craft = Craft { id: number, payload_len: 20, ..Craft::new(addresses, message) };
            let bytes = Craft { ethernet, ttl, ..craft }.frame();
            let nanos = 1_795_255_200_000_000_000 + i64::from(number) * 1_000_000_000;
            let timestamp = Some(Timestamp::from_nanos(nanos + i64::from(interface) * 50_000));
            let wire_length = bytes.len() as u32;
            let meta = FrameMeta { timestamp, wire_length, ..FrameMeta::default() };
            writer.write(interface, Frame { bytes: &bytes, meta: &meta }, None).unwrap();
        }
    }
    writer.finish().unwrap()
}

/// What FORWARD and OUTPUT count, and packets that are unknown.
fn counted(host: Host) -> [u64; 3] {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcapng");
    std::fs::write(&path, capture()).unwrap();
    let (rules, config) = (rules(RULES), on(host));
    let captures = [path.display().to_string()];
    let report = run::replay(&rules, &captures, &config, &mut Wanted::default()).unwrap();
    let saved = report.saved_counters(0);
    let of = |chain: &str| {
        let line = saved.lines().find(|line| line.contains(&format!("-A {chain} "))).unwrap();
        line[1..].split_once(':').unwrap().0.parse::<u64>().unwrap()
    };
    let unknown = report.unknown_reasons().iter().map(|(.., packets)| packets).sum();
    [of("FORWARD"), of("OUTPUT"), unknown]
}

#[test]
fn policy_rules_tell_what_they_lead_to_a_copies_device_from_copies() {
    let routed = |rule: &str| counted(with_rule(rule));
    assert_eq!(routed("from 10.0.0.77 lookup 102"), [5, 0, 0], "its own packets");
    assert_eq!(routed("from 10.0.0.99 lookup 102"), [5, 5, 0], "they go out on the first uplink");
    assert_eq!(routed("from all iif lan0 lookup 102"), [5, 0, 5], "a frame does not say");
}
