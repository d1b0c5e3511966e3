//! Received frames, byte for byte, with their metadata, and only frames from outside.

use std::fs::File;
use std::time::{Duration, SystemTime};

use pktio::{
    AfPacketConfig, Burst, ChecksumState, Direction, Fanout, FanoutKind, LinkType, LiveMeta, Port,
    VlanTag,
};

use super::wire::{Wire, drain, frame, index, no_pool, number, plain, read, receive, rest, write};

#[test]
fn frames_come_and_go_byte_for_byte() {
    let Some(wire) = Wire::new() else { return };
    let config = AfPacketConfig { queue: 3, ..AfPacketConfig::new("e0") };
    let (mut port, peer) = (wire.port(&config, &no_pool()), wire.peer());
    let expected = (index(&wire.ours, "e0"), 3, ChecksumState::NotKnown);
    echoes_byte_for_byte(&mut port, &peer, expected, 0);
}

/// Frames of many lengths come in, with the expected metadata (interface, queue, checksum) and at least `headroom`
/// bytes before them, and go back as they came.
pub(crate) fn echoes_byte_for_byte(
    port: &mut impl Port,
    peer: &File,
    expected: (u32, u16, ChecksumState),
    headroom: usize,
) {
    let mut burst = Burst::with_capacity(0);
    for (count, length) in (1..).zip((60..70).chain([128, 1000, 1513, 1514])) {
        write(peer, &frame(count, length));
        while port.rx_burst(&mut burst).unwrap() == 0 {
            rest(port);
        }
        assert_eq!(burst.len(), 1);
        let received = burst.get(0).unwrap();
        assert!(received.bytes == frame(count, length), "{length} bytes");
        let meta = received.meta;
        assert_eq!((meta.number, meta.wire_length), (count.into(), length as u32));
        assert_eq!((meta.link_type, meta.direction), (LinkType::ETHERNET, Direction::Inbound));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let age = now.as_nanos() as i64 - meta.timestamp.unwrap().as_nanos();
        assert!((0..Duration::from_secs(20).as_nanos() as i64).contains(&age), "{age} ns");
        let live = *burst.live(0).unwrap();
        assert_eq!((live.ifindex.unwrap().get(), live.queue, live.checksum), expected);
        assert_eq!(live.vlan, None);
        assert!(burst.headroom(0) >= headroom, "{}", burst.headroom(0));
        assert_eq!(port.tx_burst(&mut burst).unwrap(), 1);
        assert!(burst.is_empty());
        assert!(read(peer) == frame(count, length), "{length} bytes");
    }
    let stats = port.stats();
    assert_eq!((stats.rx_frames, stats.tx_frames, stats.rx_lost), (14, 14, 0));
    assert_eq!(stats.rx_bytes, stats.tx_bytes);
}

/// Frames that other sockets and other ports of the host send through the interface.
#[test]
fn what_the_host_sends_does_not_come_back() {
    let Some(wire) = Wire::new() else { return };
    let fanout = Some(Fanout { group: Some(7), kind: FanoutKind::Flow });
    for fanout in [None, fanout] {
        let config = AfPacketConfig { fanout, ..AfPacketConfig::new("e0") };
        let (mut port, peer) = (wire.port(&config, &no_pool()), wire.peer());
        let other = plain(&wire.ours, "e0");
        let mut burst = Burst::new();
        burst.push(&frame(1, 60), pktio::FrameMeta::default());
        port.tx_burst(&mut burst).unwrap();
        write(&other, &frame(2, 60));
        write(&peer, &frame(3, 60));
        let numbers: Vec<u32> = drain(&mut port).iter().map(|bytes| number(bytes)).collect();
        assert_eq!(numbers, [3], "{fanout:?}");
        assert_eq!([read(&peer), read(&peer)].map(|bytes| number(&bytes)), [1, 2]);
    }
}

/// The kernel, or the device, takes the outer tag out on its way in.
#[test]
fn a_tag_is_told_and_put_back() {
    let Some(wire) = Wire::new() else { return };
    let config = AfPacketConfig::new("e0");
    let (mut port, peer) = (wire.port(&config, &no_pool()), wire.peer());
    let far = AfPacketConfig::new("p0");
    let mut far = super::wire::open(&wire.theirs, &far, &no_pool()).unwrap();
    for (count, tpid) in [(1, 0x8100_u16), (2, 0x88a8)] {
        let (plain, tci) = (frame(count, 70), 0xa005_u16);
        let mut tagged = plain.clone();
        tagged.splice(12..12, tpid.to_be_bytes().into_iter().chain(tci.to_be_bytes()));
        write(&peer, &tagged);
        let vlan = Some(VlanTag { tci, tpid });
        let mut burst = Burst::with_capacity(0);
        while port.rx_burst(&mut burst).unwrap() == 0 {
            rest(&port);
        }
        assert!(burst.get(0).unwrap().bytes == plain, "the tag is not among the bytes");
        assert_eq!(burst.live(0).unwrap().vlan, vlan);
        port.tx_burst(&mut burst).unwrap();
        let (bytes, live) = receive(&mut far, 1).pop().unwrap();
        assert!(bytes == plain);
        assert_eq!(LiveMeta { ifindex: None, ..live }, LiveMeta { vlan, ..LiveMeta::default() });
    }
}

#[test]
fn an_idle_link_s_frame_comes_after_the_time_out() {
    let Some(wire) = Wire::new() else { return };
    let config = AfPacketConfig { drain_us: 200_001, ..AfPacketConfig::new("e0") };
    let (mut port, peer) = (wire.port(&config, &no_pool()), wire.peer());
    assert_eq!(port.block_timeout(), Duration::from_millis(201));
    let config = AfPacketConfig { drain_us: 0, ..AfPacketConfig::new("e0") };
    assert_eq!(wire.port(&config, &no_pool()).block_timeout(), Duration::from_millis(1));
    let began = std::time::Instant::now();
    write(&peer, &frame(1, 60));
    receive(&mut port, 1);
    // The kernel's timer runs all the time: the frame comes within two of its turns.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
