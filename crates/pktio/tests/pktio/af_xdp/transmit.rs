//! Frames that this link, or any link, cannot send. The frames around them are sent, in order.

use pktio::{Burst, ChecksumState, FrameMeta, Port, XdpMode};

use super::port::{open, small, umem_for};
use crate::af_packet::transmit::refuses_what_does_not_fit;
use crate::af_packet::wire::{Wire, frame, number, read};

#[test]
fn what_is_too_long_or_no_frame_is_counted_and_the_rest_is_sent() {
    let Some(wire) = Wire::new() else { return };
    let config = small("e0", XdpMode::Native);
    let umem = umem_for(&config, 1);
    let (mut port, peer) = (open(&wire.ours, &config, &umem).unwrap(), wire.peer());
    refuses_what_does_not_fit(&mut port, &peer);
}

/// Nobody would finish it on the way.
#[test]
fn an_unfinished_checksum_is_refused_and_its_chunk_comes_back() {
    let Some(wire) = Wire::new() else { return };
    let config = small("e0", XdpMode::Native);
    let umem = umem_for(&config, 1);
    let (mut port, peer) = (open(&wire.ours, &config, &umem).unwrap(), wire.peer());
    let mut burst = Burst::new();
    for count in 0..2 {
        let mut one = umem.take().unwrap();
        assert!(one.extend(&frame(count, 100)));
        if count == 0 {
            one.live_mut().checksum = ChecksumState::Unfinished { start: 34, offset: 16 };
        }
        burst.push_frame(one);
    }
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 2);
    assert_eq!((port.stats().tx_refused, port.stats().tx_frames), (1, 1));
    assert_eq!(number(&read(&peer)), 1);
    assert_eq!(umem.lent(), 0);
}

/// The kernel takes 32 frames at a time; one call sends all frames of a burst.
#[test]
fn a_long_burst_is_sent_at_once() {
    let Some(wire) = Wire::new() else { return };
    let config = pktio::AfXdpConfig { ring_frames: 256, ..small("e0", XdpMode::Native) };
    let umem = umem_for(&config, 1);
    let (mut port, peer) = (open(&wire.ours, &config, &umem).unwrap(), wire.peer());
    let mut burst = Burst::new();
    (0..200).for_each(|count| burst.push(&frame(count, 60), FrameMeta::default()));
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 200);
    for count in 0..200 {
        assert_eq!(number(&read(&peer)), count);
    }
}
