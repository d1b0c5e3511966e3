//! Flows that are listed and ended while packets pass.

use conntrack::{Alive, Certainty, Direction, Part, Prefix, Wanted};
use packet::craft::Message;
use packet::tcp::Flags;

use super::net::*;

const ALL: Wanted = Wanted {
    protocol: None,
    source: None,
    destination: None,
    source_port: None,
    destination_port: None,
    reply_source: None,
    reply_destination: None,
    mark: None,
};

/// Returns a net with this many flows of UDP, from ports 1, 2, ….
fn net(flows: u16) -> Net {
    let mut net = Net::kernel();
    for port in 1..=flows {
        net.pass(V4, Message::udp(port, 53));
    }
    net
}

/// All parts of a table, until a part is the last.
fn parts(mut part: impl FnMut(usize) -> Part) -> Vec<Part> {
    let mut parts = vec![part(0)];
    while let Some(from) = parts.last().and_then(|part| part.next) {
        parts.push(part(from));
    }
    parts
}

fn ports(parts: Vec<Part>) -> Vec<u16> {
    let flows = parts.into_iter().flat_map(|part| part.flows.into_flows());
    flows.map(|flow| flow.tuple(Direction::Original).source_part()).collect()
}

#[test]
fn parts_make_the_whole() {
    let mut net = net(100);
    let now = net.now;
    for slots in [1, 7, 99, 100, 1000] {
        let parts = parts(|from| net.tracker.part(from, slots, &ALL, now));
        assert_eq!(parts.len(), 100_usize.div_ceil(slots));
        assert_eq!(ports(parts), (1..=100).collect::<Vec<_>>());
    }
    let some = Wanted { source_port: Some(40), ..ALL };
    assert_eq!(ports(vec![net.tracker.part(0, 1000, &some, now)]), [40]);
    assert_eq!(ports(vec![net.tracker.part(usize::MAX, 5, &ALL, now)]), []);
    // Half a minute without a reply, and nobody is there any more.
    assert_eq!(ports(vec![net.tracker.part(0, 1000, &ALL, now + 30 * SECOND)]), []);
    let line = net.tracker.part(0, 1, &ALL, now).flows.to_string();
    assert_eq!(
        line,
        "ipv4     2 udp      17 30 src=10.0.0.1 dst=10.0.0.2 sport=1 dport=53 packets=1 bytes=28 \
         [UNREPLIED] src=10.0.0.2 dst=10.0.0.1 sport=53 dport=1 packets=0 bytes=0 mark=0\n"
    );
}

/// As the kernel's lists name them, and their sum is that of the listing.
#[test]
fn flows_are_counted_by_state() {
    let mut net = net(10);
    for port in 1..=4 {
        net.pass(back(V4), Message::udp(53, port));
    }
    net.pass(V4, Message::tcp(4000, 80, Flags::SYN));
    let now = net.now;
    let mut counts = std::collections::BTreeMap::new();
    let mut from = Some(0);
    while let Some(slot) = from {
        let part = net.tracker.states_of_part(slot, 3, now);
        part.counts.into_iter().for_each(|(of, count)| *counts.entry(of).or_insert(0) += count);
        from = part.next;
    }
    let expected = [(("tcp", "SYN_SENT"), 1), (("udp", "REPLIED"), 4), (("udp", "UNREPLIED"), 6)];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
    assert!(net.tracker.states_of_part(0, 100, now + 200 * SECOND).counts.is_empty());
}

#[test]
fn what_is_ended_begins_anew_and_the_others_go_on() {
    let mut net = net(10);
    let now = net.now;
    for port in 1..=10 {
        net.pass(back(V4), Message::udp(53, port));
    }
    let odd = Wanted { source_port: Some(3), source: Prefix::parse("10.0.0.0/24"), ..ALL };
    let nobody = Wanted { source: Prefix::parse("10.0.0.2"), ..odd };
    assert_eq!(ports(parts(|from| net.tracker.end_part(from, 4, &nobody, now))), []);
    assert_eq!(ports(parts(|from| net.tracker.end_part(from, 4, &odd, now))), [3]);
    assert_eq!((net.tracker.flows(), net.tracker.stats().created), (9, 10));
    assert_eq!(net.pass(V4, Message::udp(3, 53)), Some(New));
    assert_eq!(net.pass(V4, Message::udp(4, 53)), Some(Established));
    assert_eq!(net.tracker.flows(), 10);

    assert_eq!(ports(parts(|from| net.tracker.end_part(from, 4, &ALL, now))).len(), 10);
    assert_eq!(net.tracker.flows(), 0);
    // The reply to a flow that was ended begins one the other way round.
    assert_eq!(net.pass(back(V4), Message::udp(53, 4)), Some(New));
    let flow = net.tracker.part(0, 64, &ALL, now).flows.into_flows().remove(0);
    assert_eq!(flow.tuple(Direction::Original).source_part(), 53);
    assert!(!flow.is_replied() && flow.mark() == 0 && flow.state().is_none());
}

/// Workers that count a flow know that it has ended as soon as it was ended.
#[test]
fn who_counts_a_flow_is_told_of_its_end() {
    let mut net = Net::kernel();
    net.tracker.tells();
    net.pass(V4, Message::udp(1, 53));
    let flow = net.tracker.part(0, 64, &ALL, net.now).flows.into_flows().remove(0);
    let life = net.tracker.life(flow.tuple(Direction::Original)).unwrap();
    net.pass(V4, Message::udp(1, 53));
    let now = net.now;
    assert_ne!(life.at(now), conntrack::Alive::No);
    net.tracker.end_part(0, 64, &ALL, now);
    assert_eq!(life.at(now), conntrack::Alive::No);
}

/// `connlimit` counts the open connections that other workers hold.
#[test]
fn who_counts_a_connection_is_told_whether_it_is_over_or_open() {
    let mut net = Net::kernel();
    let line = Line::new(V4);
    net.tracker.tells();
    let mut lives = None;
    let mut told = |net: &mut Net, segment: Segment, certainty| {
        net.with_frame(&segment.frame(), usize::MAX, |net, packet, view| {
            let original =
                *net.tracker.flow(view.flow.unwrap()).unwrap().tuple(Direction::Original);
            let life = lives.get_or_insert_with(|| net.tracker.life(&original).unwrap());
            net.tracker.confirm(packet, &view, net.now, certainty);
            net.tracker.tell(net.tracker.telling(view.flow).unwrap());
            [life.at(net.now), life.at(net.now + 500_000 * SECOND)]
        })
    };
    let sure = Certainty::Certain;
    assert_eq!(told(&mut net, line.there(SYN, 1000, 0), sure), [Alive::Yes, Alive::No]);
    told(&mut net, line.back(SYN_ACK, 5000, 1001), sure);
    assert_eq!(told(&mut net, line.there(ACK, 1001, 5001), sure), [Alive::Yes, Alive::No]);
    assert_eq!(told(&mut net, line.there(RST, 1001, 0), sure), [Alive::Over, Alive::No]);
    net.wait(11);
    let again = told(&mut net, line.there(SYN, 1000, 0), Certainty::Maybe);
    assert_eq!(again, [Alive::Maybe; 2], "its first packet may have been dropped");
}

#[test]
fn a_flow_is_shown_with_what_it_counted_and_how_sure_it_is() {
    let mut net = net(1);
    net.with_frame(&frame(V4, Message::udp(2, 53), 0), usize::MAX, |net, packet, view| {
        net.tracker.confirm(packet, &view, net.now, Certainty::Maybe);
    });
    let part = net.tracker.part(0, 64, &ALL, net.now);
    assert_eq!(part.flows.len(), 2);
    let doubtful = |line: &str| line.contains("doubt");
    let text = part.flows.to_string();
    assert_eq!(text.lines().map(doubtful).collect::<Vec<_>>(), [false, true], "{text}");
    let flow = part.flows.into_flows().remove(0);
    let counted = flow.counters(Direction::Original).map(|sent| (sent.packets, sent.bytes));
    assert_eq!(counted, Some((1, 28)));
}
