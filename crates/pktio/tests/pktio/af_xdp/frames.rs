//! Frames in and out, byte for byte, with what is known of them, natively and by the stack.

use pktio::{
    AfPacketConfig, AfXdpConfig, Burst, ChecksumState, FrameMeta, Pool, Port, VlanTag, XdpMode,
};

use super::port::{MODES, moved, open, small, umem_for};
use crate::af_packet::frames::echoes_byte_for_byte;
use crate::af_packet::wire::{self, Wire, frame, index, number, read, receive, rest, write};

#[test]
fn frames_come_and_go_byte_for_byte() {
    for mode in MODES {
        let Some(wire) = Wire::new() else { return };
        let config = small("e0", mode);
        let umem = umem_for(&config, 1);
        let (mut port, peer) = (open(&wire.ours, &config, &umem).unwrap(), wire.peer());
        let expected = (index(&wire.ours, "e0"), 0, ChecksumState::MaybeUnfinished);
        echoes_byte_for_byte(&mut port, &peer, expected, 64);
        assert_eq!(port.stats().tx_copied, 0);
        assert_eq!((port.attached().mode, port.attached().is_zero_copy), (mode, false));
    }
}

/// Frames of a burst's own buffer, of a pool and of the UMEM in one burst.
#[test]
fn frames_of_any_memory_are_sent_in_order() {
    let Some(wire) = Wire::new() else { return };
    let config = small("e0", XdpMode::Native);
    let umem = umem_for(&config, 1);
    let (mut port, peer) = (open(&wire.ours, &config, &umem).unwrap(), wire.peer());
    let pool = Pool::new(2, 2048, 0);
    let mut burst = Burst::new();
    write(&peer, &frame(0, 64));
    while port.rx_burst(&mut burst).unwrap() == 0 {
        rest(&port);
    }
    burst.push(&frame(1, 64), FrameMeta::default());
    let mut pooled = pool.take().unwrap();
    assert!(pooled.extend(&frame(2, 64)));
    burst.push_frame(pooled);
    for count in 3..60 {
        burst.push(&frame(count, 64), FrameMeta::default());
    }
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 60);
    for count in 0..60 {
        assert_eq!(number(&read(&peer)), count);
    }
    assert_eq!((port.stats().tx_frames, port.stats().tx_copied, pool.free()), (60, 59, 2));
    assert_eq!(umem.lent(), 0);
}

/// Ports of two interfaces with one UMEM copy nothing; with two, each frame once.
#[test]
fn frames_cross_between_two_interfaces() {
    for shared in [true, false] {
        let Some(wire) = Wire::new() else { return };
        let Some(other) = Wire::new() else { return };
        let config = small("e0", XdpMode::Native);
        let umem = umem_for(&config, 2);
        let second = if shared { umem.clone() } else { umem_for(&config, 1) };
        let mut from = open(&wire.ours, &config, &umem).unwrap();
        let mut to = open(&other.ours, &config, &second).unwrap();
        let (near, far) = (wire.peer(), other.peer());
        let mut burst = Burst::with_capacity(0);
        for count in 0..1000 {
            write(&near, &frame(count, 60 + count as usize % 1400));
            while from.rx_burst(&mut burst).unwrap() == 0 {
                rest(&from);
            }
            assert_eq!(to.tx_burst(&mut burst).unwrap(), 1);
            assert_eq!(number(&read(&far)), count);
            assert_eq!(to.rx_burst(&mut burst).unwrap(), 0);
        }
        let stats = to.stats();
        assert_eq!((stats.tx_frames, stats.tx_copied), (1000, if shared { 0 } else { 1000 }));
        assert_eq!(umem.lent(), 0);
        assert_eq!(from.losses(), Default::default());
    }
}

/// A tag that another port took out goes back in, in place and in a copy.
#[test]
fn a_tag_is_put_back() {
    let Some(wire) = Wire::new() else { return };
    let config = small("e0", XdpMode::Native);
    let umem = umem_for(&config, 1);
    let (mut port, peer) = (open(&wire.ours, &config, &umem).unwrap(), wire.peer());
    let no_pool = Pool::new(0, 0, 0);
    let mut far = wire::open(&wire.theirs, &AfPacketConfig::new("p0"), &no_pool).unwrap();
    let vlan = Some(VlanTag { tci: 0x6005, tpid: 0x8100 });
    let mut burst = Burst::new();
    write(&peer, &frame(0, 64));
    while port.rx_burst(&mut burst).unwrap() == 0 {
        rest(&port);
    }
    let mut pooled = Pool::new(1, 2048, 0).take().unwrap();
    assert!(pooled.extend(&frame(1, 64)));
    burst.push_frame(pooled);
    for at in 0..2 {
        burst.live_mut(at).unwrap().vlan = vlan;
    }
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 2);
    for (count, (bytes, live)) in (0..).zip(wire::receive(&mut far, 2)) {
        assert_eq!((number(&bytes), live.vlan), (count, vlan));
    }
    assert_eq!(port.stats().tx_bytes, 2 * 68);
}

#[test]
fn readiness_tells_that_frames_came() {
    let Some(wire) = Wire::new() else { return };
    let config = small("e0", XdpMode::Native);
    let umem = umem_for(&config, 1);
    let (mut port, peer) = (open(&wire.ours, &config, &umem).unwrap(), wire.peer());
    assert!(!rest(&port), "nothing came");
    write(&peer, &frame(1, 60));
    assert!((0..100).any(|_| rest(&port)), "a frame came");
    assert_eq!(number(&receive(&mut port, 1)[0].0), 1);
    assert!(!rest(&port), "it was taken");
}

/// Two queues, as one port and as two.
#[test]
fn queues_are_received_together_or_apart() {
    let Some(wire) = Wire::new() else { return };
    let channels = |namespace: &crate::tun::namespace::Namespace, device: &str| {
        namespace.command(&format!("ethtool -L {device} rx 2 tx 2"));
    };
    channels(&wire.ours, "e0");
    channels(&wire.theirs, "p0");
    let config = AfXdpConfig { queues: 4, ..small("e0", XdpMode::Native) };
    let umem = umem_for(&config, 1);
    let mut port = open(&wire.ours, &config, &umem).unwrap();
    assert_eq!((port.attached().queues, port.attached().channels), (2, 2));
    assert!(!rest(&port), "nothing came");
    let peer = wire.peer();
    for count in 0..10 {
        write(&peer, &frame(count, 60));
    }
    assert!((0..100).any(|_| rest(&port)), "frames came");
    let came = receive(&mut port, 10);
    assert_eq!(came.len(), 10);
    let mut ports = port.into_parts(2).unwrap();
    assert_eq!(ports.len(), 2);
    write(&peer, &frame(10, 60));
    let mut burst = Burst::with_capacity(0);
    let found = (0..1000).any(|_| {
        ports.iter_mut().any(|port| rest(port) && port.rx_burst(&mut burst).unwrap() == 1)
    });
    assert!(found, "it came by one of them");
    assert!(moved(&mut burst).all(|frame| number(frame.bytes()) == 10));
}
