//! Flows that are written before a restart and go on after it, and flows that are picked up without having been
//! written.

use std::sync::Arc;

use conntrack::steer::{Key, Shard};
use conntrack::{Config, CtState, Helper, Listing, Mode, Proto, Status, Tracker};
use packet::craft::{Addresses, Message};
use proptest::prelude::*;

use super::any;
use super::net::*;
use super::other_protocols::{chunks, init};

/// What a tracker's flows are read as once they were written; each of them has to be.
fn written(tracker: &mut Tracker) -> Listing {
    let (listing, refused) = Listing::parse_kept(&tracker.listing().to_string()).unwrap();
    assert_eq!(refused, []);
    listing
}

/// A net whose new tracker has only what the old one wrote.
fn restarted(mut net: Net) -> Net {
    let start = Some(Arc::new(written(&mut net.tracker)));
    let config = net.tracker.config().clone();
    Net { tracker: Tracker::starting(config, start), ..net }
}

/// A net whose tracker starts with these flows.
fn listed(listing: Listing) -> Net {
    Net { tracker: Tracker::starting(kernel(), Some(Arc::new(listing))), ..Net::kernel() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_written_is_read_and_written_the_same(
        kind in 0u8..8, steps in prop::collection::vec(any::step(), 0..120),
    ) {
        let mut tracker = Tracker::new(any::config(kind));
        let mut now = 5 * SECOND / 2;
        for (number, step) in steps.iter().enumerate() {
            now += step.wait * SECOND;
            any::run(&mut tracker, step, &any::visit(step, now, number as u64 + 1));
        }
        let listing = tracker.listing();
        prop_assert_eq!(&written(&mut tracker), &listing);
        let start = Some(Arc::new(listing.clone()));
        let mut later = Tracker::starting(any::config(kind), start);
        prop_assert_eq!(later.listing().to_string(), listing.to_string());
    }
}

#[test]
fn a_connection_goes_on_and_the_time_between_counts() {
    let mut net = Net::kernel();
    let line = Line::new(V4);
    open(&mut net, line);
    let udp = |ports: [u16; 2]| Message::udp(ports[0], ports[1]);
    net.pass(V4, udp([7, 53]));
    net.pass(back(V4), udp([53, 7]));
    let written = restarted(Net { ..net }).tracker.listing().to_string();
    assert!(written.starts_with("# tamis connections/1 at=1.000000000\n"), "{written}");
    let tcp = written.lines().find(|line| line.contains("tcp")).unwrap();
    assert!(
        tcp.starts_with("ipv4     2 tcp      6 432000 ESTABLISHED src=10.0.0.1 dst=10.0.0.2"),
        "{tcp}"
    );
}

#[test]
fn segments_after_a_restart_are_established_whatever_their_window() {
    let mut net = Net::kernel();
    let line = Line::new(V4);
    open(&mut net, line);
    net.wait(3600);
    let mut net = restarted(net);
    // Far out of the window that was seen: frames may have passed by another way.
    assert_eq!(line.back(ACK, 900_000, 1001).payload(100).pass(&mut net), Some(Established));
    assert_eq!(line.there(ACK, 1001, 900_100).pass(&mut net), Some(Established));
    let flow = net.flow();
    assert!(flow.status().contains(Status::ASSURED) && !flow.is_listed());
    assert_eq!(flow.counters(conntrack::Direction::Reply).packets, 2, "those of before count");
    assert!(matches!(flow.proto(), Proto::Tcp(_)));
}

#[test]
fn flows_die_of_the_time_between() {
    for (waits, expected) in [(28, Established), (32, New)] {
        let mut net = Net::kernel();
        net.pass(V4, Message::udp(7, 53));
        net.pass(back(V4), Message::udp(53, 7));
        let mut net = restarted(net);
        net.wait(waits);
        assert_eq!(net.pass(V4, Message::udp(7, 53)), Some(expected), "after {waits} s");
    }
}

#[test]
fn what_is_left_counts_from_the_last_packet_and_not_from_the_next() {
    let mut net = Net::kernel();
    net.pass(V4, Message::udp(7, 53));
    let mut net = restarted(net);
    net.wait(20);
    net.pass(V4, Message::udp(8, 53));
    net.wait(11);
    assert_eq!(net.tracker.living(net.now).count(), 1, "30 s have passed for the first one");
}

#[test]
fn an_association_keeps_its_tags() {
    let mut net = Net::kernel();
    let say = |net: &mut Net, is_back: bool, tag: u32, chunk: &[u8]| {
        let way = if is_back { back(V4) } else { V4 };
        net.pass_frame(&chunks(way, is_back, tag, &[chunk])).state()
    };
    let (data, cookie) = ([0, 3, 0, 4], [10, 0, 0, 4]);
    say(&mut net, false, 0, &init(1, 100));
    say(&mut net, true, 100, &init(2, 200));
    say(&mut net, false, 200, &cookie);
    say(&mut net, true, 100, &[11, 0, 0, 4]);
    let mut net = restarted(net);
    assert_eq!(say(&mut net, true, 100, &data), Some(Established));
    assert_eq!(say(&mut net, true, 101, &data), Some(Invalid));
}

#[test]
fn other_protocols_go_on_where_they_were() {
    let mut net = Net::kernel();
    for _ in 0..2 {
        net.pass(V4, Message::udp(7, 53));
        net.pass(back(V4), Message::udp(53, 7));
        net.wait(3);
    }
    let echo = |kind| Message::Icmp { kind, code: 0, id: 9, sequence: 1 };
    net.pass(V4, echo(8));
    let mut net = restarted(net);
    assert_eq!(net.pass(back(V4), echo(0)), Some(Established));
    net.wait(100);
    // A stream by now, so it lives that long.
    assert_eq!(net.pass(V4, Message::udp(7, 53)), Some(Established));
    assert_eq!(net.tracker.living(net.now).count(), 1);
}

#[test]
fn a_line_that_is_no_flow_is_told_and_left_out() {
    let mut net = Net::kernel();
    net.pass(V4, Message::udp(7, 53));
    net.pass(V4, Message::udp(8, 53));
    let text = net.tracker.listing().to_string().replace("sport=8 ", "sport=eight ");
    let (listing, refused) = Listing::parse_kept(&text).unwrap();
    assert_eq!(listing.len(), 1);
    let refused: Vec<_> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(refused, ["3:53: expected sport=PORT, found \"sport=eight\""]);
    let error = Listing::parse_kept("udp 17 9 src=10.0.0.1").unwrap_err().to_string();
    assert_eq!(error, "1:1: expected # tamis connections/1 at=SECONDS, found \"udp\"");
}

#[test]
fn listings_of_several_workers_are_one_as_of_the_last_packet() {
    let mut nets = [0, 10].map(|waits| {
        let mut net = Net::kernel();
        net.wait(waits);
        net
    });
    nets[0].pass(V4, Message::udp(7, 53));
    nets[1].pass(V6, Message::udp(7, 53));
    let [early, late] = nets.each_mut().map(|net| net.tracker.listing());
    let both = early.and(late);
    let text = both.to_string();
    assert!(text.starts_with("# tamis connections/1 at=11.000000000\n"), "{text}");
    let left = |family: &str| {
        let line = text.lines().find(|line| line.starts_with(family)).unwrap();
        line.split_whitespace().nth(4).unwrap().to_owned()
    };
    assert_eq!([left("ipv4"), left("ipv6")], ["20", "30"]);
    let both = Arc::new(both);
    for (is_ipv6, family) in [(false, "ipv4"), (true, "ipv6")] {
        let own = both.of_family(is_ipv6).to_string();
        let own: Vec<_> = own.lines().skip(1).map(|line| &line[..4]).collect();
        assert_eq!(own, [family]);
    }
}

fn grace(seconds: u64) -> Net {
    Net::new(Config { grace: seconds * SECOND, ..kernel() })
}

fn first(net: &mut Net) -> [Option<CtState>; 3] {
    let line = Line::new(V4);
    let segment = line.back(ACK, 5001, 1001).payload(10).pass(net);
    let datagram = net.pass(back(V4), Message::udp(53, 7));
    [segment, datagram, Line { ports: [1, 2], ..line }.there(SYN, 1, 0).pass(net)]
}

#[test]
fn during_grace_what_nobody_knows_is_established() {
    assert_eq!(first(&mut grace(0)), [Some(New), Some(New), Some(New)]);
    let mut net = grace(30);
    assert_eq!(first(&mut net), [Some(Established), Some(Established), Some(New)]);
    // Once the time is over, the flows that were picked up stay what they are, and no other is picked up.
    net.wait(30);
    let line = Line::new(V4);
    assert_eq!(line.there(ACK, 1001, 5011).pass(&mut net), Some(Established));
    let other = Line { ports: [40_001, 80], ..line };
    assert_eq!(other.back(ACK, 5001, 1001).payload(10).pass(&mut net), Some(New));
}

#[test]
fn what_is_picked_up_lives_no_longer_than_any_flow_without_an_answer() {
    let mut net = grace(30);
    let line = Line::new(V4);
    line.back(ACK, 5001, 1001).payload(10).pass(&mut net);
    line.back(ACK, 5011, 1001).payload(10).pass(&mut net);
    let flow = net.flow();
    assert!(flow.is_picked_up() && !flow.status().contains(Status::ASSURED));
    assert_eq!(flow.expires_in(net.now), 300 * SECOND);
}

/// Starts two workers from one listing, each with its own flows.
fn shards(listing: &Listing) -> [Tracker; 2] {
    let start = Arc::new(listing.clone());
    [0, 1].map(|number| {
        let shard = Shard { number, of: 2, key: Key::Addresses, max: 1000 };
        Tracker::starting(kernel().of_shard(shard), Some(Arc::clone(&start)))
    })
}

#[test]
fn each_worker_goes_on_with_its_own_flows() {
    let mut net = Net::kernel();
    for last in 1..=20 {
        let way = Addresses::V4 { source: [10, 0, 0, last], destination: [10, 9, 9, 9] };
        net.pass(way, Message::udp(7, 53));
    }
    let listing = written(&mut net.tracker);
    let parts = shards(&listing).map(|mut tracker| tracker.listing().len());
    assert!(parts.iter().all(|part| *part > 0), "{parts:?}");
    assert_eq!(parts.iter().sum::<usize>(), 20);
}

/// What a helper expects may be another worker's.
#[test]
fn a_flow_with_a_helper_concerns_other_workers() {
    for (helper, crosses) in [(Helper::None, false), (Helper::Ftp, true)] {
        let mut net = Net::kernel();
        net.template.helper = helper;
        open(&mut net, Line::new(V4));
        let mut parts = shards(&written(&mut net.tracker));
        parts.iter_mut().for_each(|tracker| drop(tracker.listing()));
        assert_eq!(parts.iter().any(Tracker::crosses), crosses);
    }
}

/// When a packet may have been recorded, in nanoseconds since the Unix epoch: in 2020.
const RECORDED: u64 = 1_600_000_000_000_000_000;

#[test]
fn the_end_of_a_flow_that_no_list_has_begins_none() {
    let nothing = Some(Arc::new(Listing::default()));
    let later = Some(Arc::new(Listing::default().printed_at("4102444800.5")));
    for (start, flows) in [(None, 1), (nothing, 0), (later, 1)] {
        let midstream = Config { mode: Mode::Midstream, ..kernel() };
        let mut net = Net { tracker: Tracker::starting(midstream, start), ..Net::kernel() };
        net.tracker.begin(RECORDED);
        Line::new(V4).there(FIN_ACK, 1001, 5001).pass(&mut net);
        assert_eq!(net.tracker.len(), flows);
    }
}

#[test]
fn windows_are_not_enforced_of_what_was_not_seen() {
    let mut net = Net::kernel();
    let line = Line::new(V4);
    open(&mut net, line);
    let mut net = restarted(net);
    line.there(ACK, 1001, 5001).pass(&mut net);
    line.back(ACK, 5001, 1001).pass(&mut net);
    let scaled = line.there(ACK, 1001 + 100_000, 5001).payload(100);
    assert_eq!(scaled.pass(&mut net), Some(Established));
}

/// What `conntrack -L` lists says how a flow is translated by its two tuples alone.
#[test]
fn a_listed_flow_is_translated_at_the_ends_that_differ() {
    let line = "udp 17 29 src=10.0.0.1 dst=10.0.0.2 sport=7 dport=53";
    for (reply, source, destination) in [
        ("src=10.0.0.2 dst=10.0.0.1 sport=53 dport=7", false, false),
        ("src=10.0.0.2 dst=192.0.2.1 sport=53 dport=7", true, false),
        ("src=10.0.0.2 dst=10.0.0.1 sport=53 dport=8", true, false),
        ("src=10.0.0.9 dst=10.0.0.1 sport=53 dport=7", false, true),
        ("src=10.0.0.9 dst=192.0.2.1 sport=53 dport=8", true, true),
    ] {
        let listing = Listing::parse(&format!("{line} {reply} mark=0\n")).unwrap();
        let mut net = listed(listing);
        net.tracker.begin(net.now);
        let status = net.flow().status();
        let ends = [Status::SRC_NAT, Status::DST_NAT].map(|end| status.contains(end));
        assert_eq!(ends, [source, destination], "{reply}");
        assert_eq!(net.tracker.keeps_ports(), !reply.ends_with("dport=8"), "{reply}");
    }
}

/// An answered datagram's flow is assured from its second second on, and a list does not say how old it is.
#[test]
fn a_listed_flow_may_have_been_assured_since() {
    let udp = "udp 17 29 src=10.0.0.1 dst=10.0.0.2 sport=7 dport=53";
    let back = "src=10.0.0.2 dst=10.0.0.1 sport=53 dport=7";
    let icmp = "icmp 1 29 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=9 \
                src=10.0.0.2 dst=10.0.0.1 type=0 code=0 id=9";
    for (line, may_be) in [
        (format!("{udp} {back} mark=0"), true),
        (format!("{udp} [UNREPLIED] {back} mark=0"), false),
        (format!("{udp} {back} [ASSURED] mark=0"), false),
        (format!("{icmp} mark=0"), false),
    ] {
        let listing = Listing::parse(&line).unwrap();
        let mut net = listed(listing);
        net.tracker.begin(net.now);
        assert_eq!(net.flow().may_be_assured(), may_be, "{line}");
    }
    let mut net = Net::kernel();
    net.pass(V4, Message::udp(7, 53));
    net.pass(super::net::back(V4), Message::udp(53, 7));
    assert!(!net.flow().may_be_assured(), "its beginning was seen");
}
