//! Groups stay within their bound and say what they leave out.

use std::net::{IpAddr, Ipv4Addr};

use dataplane::{Disposition, DropReason, FinalVerdict, Skip};
use packet::FlowKey;

use super::*;
use crate::decider::Decider;
use crate::list::Lists;

fn flow(source: u32, port: u16) -> FlowKey {
    FlowKey {
        source: IpAddr::V4(Ipv4Addr::from(source)),
        destination: IpAddr::V4(Ipv4Addr::from(0x0a00_0001)),
        protocol: 17,
        source_port: 4000,
        destination_port: port,
    }
}

fn add(to: &mut Gathering, number: u64, flow: FlowKey, verdict: FinalVerdict) {
    let end = Disposition { verdict, bytes: 10, ..Disposition::skipped(Skip::Family) };
    let listed = to.lists(&end, false);
    let by = Decider::of(&end, None);
    let (time, flow) = (Some(number), Some(flow));
    to.add(&Grouped { number, time, end: &end, by, path: None, flow, listed });
}

const ACCEPT: FinalVerdict = FinalVerdict::Accept(None);
const DROP: FinalVerdict = FinalVerdict::Drop(DropReason::Ttl);

fn gathering(by: GroupBy, most: usize) -> Gathering {
    let mut gathering = Gathering::new(by, true, &Lists::refused());
    gathering.most = most;
    gathering
}

#[test]
fn both_directions_of_a_connection_are_one_group_with_all_its_verdicts() {
    let mut flows = gathering(GroupBy::Flow, 8);
    add(&mut flows, 1, flow(7, 53), ACCEPT);
    add(&mut flows, 2, flow(7, 53).reversed(), DROP);
    add(&mut flows, 3, flow(8, 53), ACCEPT);
    let found = flows.finish();
    let [group] = &found.groups[..] else { panic!("{found:?}") };
    assert_eq!(group.key.to_string(), "udp 0.0.0.7:4000 > 10.0.0.1:53");
    assert_eq!((group.verdicts.accept.packets, group.verdicts.drop.packets), (1, 1));
    assert_eq!((group.listed.packets, group.first, group.last), (1, Some(1), Some(2)));
    assert_eq!(group.example.map(|(frame, _)| frame), Some(2));
    assert!((found.listed, found.left_out, found.partial) == (1, 0, false));
}

#[test]
fn most_packets_first_and_of_as_many_the_earlier_one() {
    let mut ports = gathering(GroupBy::Port, 8);
    for (number, port) in [(1, 80), (2, 53), (3, 22), (4, 53)] {
        add(&mut ports, number, flow(7, port), DROP);
    }
    let found = ports.finish();
    let names: Vec<String> = found.groups.iter().map(|group| group.key.to_string()).collect();
    assert_eq!(names, ["udp 53", "udp 80", "udp 22"]);
}

#[test]
fn groups_without_a_listed_packet_make_room_and_what_finds_none_is_counted() {
    let mut sources = gathering(GroupBy::Source, 4);
    add(&mut sources, 1, flow(1, 53), DROP);
    for source in 2..100 {
        add(&mut sources, u64::from(source), flow(source, 53), ACCEPT);
        assert!(sources.groups.len() <= 4);
    }
    for source in 100..110 {
        add(&mut sources, u64::from(source), flow(source, 53), DROP);
        assert!(sources.groups.len() <= 4);
    }
    let found = sources.finish();
    assert_eq!(found.groups.len(), 4);
    assert_eq!((found.listed, found.left_out), (11, 7));
    assert!(found.partial);
}
