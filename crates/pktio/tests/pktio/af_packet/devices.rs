//! Interfaces that go down, go away, are not there or are no Ethernet; their mode; and several ports of one.

use std::collections::HashMap;

use pktio::{
    AfPacketConfig, AfPacketPort, Burst, Fanout, FanoutKind, FrameMeta, InProcess, Port, PortError,
};

use super::wire::{Wire, drain, frame, no_pool, number, open, receive, rest, write};
use crate::tun::namespace::Namespace;

#[test]
fn an_interface_that_is_down_is_an_error_and_one_that_is_up_again_goes_on() {
    let Some(wire) = Wire::new() else { return };
    let mut port = wire.port(&AfPacketConfig::new("e0"), &no_pool());
    let mut burst = Burst::new();
    wire.ours.command("ip link set e0 down");
    let error = port.rx_burst(&mut burst).unwrap_err().to_string();
    assert!(error.starts_with("e0: Network is down"), "{error}");
    assert_eq!(port.rx_burst(&mut burst).unwrap(), 0, "it was said");
    burst.push(&frame(1, 60), FrameMeta::default());
    let error = port.tx_burst(&mut burst).unwrap_err().to_string();
    assert!(error.starts_with("e0: Network is down"), "{error}");
    assert_eq!((burst.len(), port.stats().tx_full), (1, 1));
    wire.ours.command("ip link set e0 up");
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 1);
    write(&wire.peer(), &frame(2, 60));
    assert_eq!(number(&receive(&mut port, 1)[0].0), 2);
}

#[test]
fn an_interface_that_is_gone_is_an_error_with_its_name() {
    let Some(wire) = Wire::new() else { return };
    let mut port = wire.port(&AfPacketConfig::new("e0"), &no_pool());
    write(&wire.peer(), &frame(1, 60));
    rest(&port);
    wire.ours.command("ip link del e0");
    assert_eq!(number(&receive(&mut port, 1)[0].0), 1, "what came before is received");
    let mut burst = Burst::new();
    for _ in 0..2 {
        let error = port.rx_burst(&mut burst).unwrap_err();
        assert!(matches!(&error, PortError::Gone { name } if name == "e0"), "{error:?}");
    }
    burst.push(&frame(1, 60), FrameMeta::default());
    let error = port.tx_burst(&mut burst).unwrap_err();
    assert!(matches!(&error, PortError::Gone { name } if name == "e0"), "{error:?}");
    assert_eq!(burst.len(), 1);
}

#[test]
fn what_cannot_be_opened_says_why() {
    let Some(wire) = Wire::new() else { return };
    let usual = AfPacketConfig::new("e0");
    let refused = |config| open(&wire.ours, &config, &no_pool()).unwrap_err().to_string();
    let missing = refused(AfPacketConfig::new("e9"));
    assert!(missing.starts_with("e9: No such device"), "{missing}");
    let odd = refused(AfPacketConfig { block_bytes: 5000, ..usual.clone() });
    assert!(odd.starts_with("e0: Invalid argument"), "{odd}");
    let short = refused(AfPacketConfig { blocks: 1, ..usual.clone() });
    assert_eq!(short, "e0: a ring has two blocks or more");
    let huge = AfPacketConfig { blocks: u32::MAX, block_bytes: 1 << 31, ..usual };
    assert!(refused(huge).starts_with("e0: "));
    wire.ours.command("ip tuntap add dev t0 mode tun");
    assert_eq!(refused(AfPacketConfig::new("t0")), "t0: not an Ethernet interface");
}

fn promiscuity(namespace: &Namespace) -> String {
    let said = namespace.command("ip -d link show dev e0");
    let mut words = said.split_whitespace().skip_while(|word| *word != "promiscuity");
    words.nth(1).unwrap().to_string()
}

/// Even while a frame keeps the socket's ring.
#[test]
fn promiscuous_mode_ends_with_the_port() {
    let Some(wire) = Wire::new() else { return };
    let mut port = wire.port(&AfPacketConfig::new("e0"), &no_pool());
    assert_eq!(promiscuity(&wire.ours), "1");
    write(&wire.peer(), &frame(1, 60));
    let mut burst = Burst::with_capacity(0);
    while port.rx_burst(&mut burst).unwrap() == 0 {
        rest(&port);
    }
    drop(port);
    assert_eq!(promiscuity(&wire.ours), "0");
    assert_eq!(number(burst.get(0).unwrap().bytes), 1, "its memory is still there");
    let config = AfPacketConfig { promiscuous: false, ..AfPacketConfig::new("e0") };
    let _port = wire.port(&config, &no_pool());
    assert_eq!(promiscuity(&wire.ours), "0");
}

/// An IPv4 datagram of UDP, to this port.
fn datagram(flow: u16) -> Vec<u8> {
    let mut bytes = frame(0, 60);
    bytes[12..14].copy_from_slice(&[0x08, 0]);
    let ip = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    bytes[14..34].copy_from_slice(&ip);
    bytes[34..42].copy_from_slice(&[0x30, 0x39, 0, 0, 0, 26, 0, 0]);
    bytes[36..38].copy_from_slice(&flow.to_be_bytes());
    bytes
}

#[test]
fn a_group_shares_flows_out_and_each_frame_goes_to_one_port() {
    let Some(wire) = Wire::new() else { return };
    let fanout = Some(Fanout { group: Some(9), kind: FanoutKind::Flow });
    let config = |queue| AfPacketConfig { queue, fanout, ..AfPacketConfig::new("e0") };
    let open = |queue| wire.port(&config(queue), &no_pool());
    let mut ports = [0, 1, 2].map(open);
    let peer = wire.peer();
    let sent: Vec<_> = (0..64).map(datagram).collect();
    for _ in 0..4 {
        sent.iter().for_each(|bytes| write(&peer, bytes));
    }
    let mut of_flow: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (at, port) in ports.iter_mut().enumerate() {
        let came = drain(port);
        assert!(!came.is_empty(), "queue {at} has its share");
        came.into_iter().for_each(|bytes| of_flow.entry(bytes).or_default().push(at));
    }
    assert_eq!(of_flow.len(), sent.len());
    for ports in of_flow.values() {
        assert!(ports.len() == 4 && ports.iter().all(|port| port == &ports[0]), "{ports:?}");
    }
}

#[test]
fn queues_are_a_group_of_their_own() {
    let Some(wire) = Wire::new() else { return };
    let open = || {
        let config = AfPacketConfig { burst_frames: 8, ..AfPacketConfig::new("e0") };
        wire.ours
            .run(move || AfPacketPort::open_queues(&InProcess, &config, 3, &no_pool()))
            .unwrap()
    };
    // Two groups, each of which receives everything once.
    let mut groups = [open(), open()];
    let peer = wire.peer();
    (0..64).for_each(|flow| write(&peer, &datagram(flow)));
    for ports in &mut groups {
        let came = ports.iter_mut().map(drain).collect::<Vec<_>>();
        assert!(came.iter().all(|came| !came.is_empty()), "each queue has its share");
        let mut came = came.concat();
        came.sort();
        assert_eq!(came, (0..64).map(datagram).collect::<Vec<_>>());
    }
}

/// What steers them can only be told on machines with several processors or queues; that they receive, anywhere.
#[test]
fn other_ways_of_sharing_receive_each_frame_once() {
    let Some(wire) = Wire::new() else { return };
    for (group, kind) in [(1, FanoutKind::Processor), (2, FanoutKind::Queue)] {
        let fanout = Some(Fanout { group: Some(group), kind });
        let config = AfPacketConfig { fanout, ..AfPacketConfig::new("e0") };
        let mut ports = [(), ()].map(|()| wire.port(&config, &no_pool()));
        let peer = wire.peer();
        (0..50).for_each(|count| write(&peer, &frame(count, 60)));
        let came = ports.each_mut().map(drain);
        let mut numbers: Vec<u32> = came.iter().flatten().map(|bytes| number(bytes)).collect();
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..50), "{kind:?}: {numbers:?}");
    }
}
