//! What a real sender leaves to its device: the frame arrives unfinished, and its checksum value shows it.

use std::net::UdpSocket;

use packet::{Checksums, L4, Link, checksum, parse, unfinished};
use pktio::ChecksumState;

use super::port::{MODES, open, small, umem_for};
use crate::af_packet::wire::{Wire, receive};

/// The sum of a datagram with its pseudo header: 0xffff if its checksum is right.
fn sum_of(frame: &[u8]) -> u16 {
    let headers = parse(Link::Ethernet, frame, frame.len(), Checksums::Verify);
    let L4::Upper(upper) = headers.l4 else { panic!("{headers:?}") };
    let datagram = &frame[upper.offset..headers.end];
    let address = |at: usize| *frame[headers.network + at..].first_chunk().unwrap();
    let len = datagram.len() as u16;
    let pseudo = checksum::pseudo_v4(address(12), address(16), upper.protocol, len);
    checksum::add(pseudo, checksum::sum(datagram))
}

#[test]
fn a_real_senders_checksum_is_completed() {
    for mode in MODES {
        let Some(wire) = Wire::new() else { return };
        wire.theirs.command("ip addr add 10.77.0.1/24 dev p0");
        wire.theirs.command("ip neigh add 10.77.0.2 lladdr 02:00:00:00:00:09 dev p0");
        let config = small("e0", mode);
        let mut port = open(&wire.ours, &config, &umem_for(&config, 1)).unwrap();
        let socket = wire.theirs.run(|| UdpSocket::bind("10.77.0.1:0").unwrap());
        socket.send_to(b"left to the device", "10.77.0.2:5001").unwrap();
        let (mut frame, live) = receive(&mut port, 1).remove(0);
        assert_eq!(live.checksum, ChecksumState::MaybeUnfinished);
        assert_ne!(sum_of(&frame), 0xffff, "nobody finished it");
        let headers = parse(Link::Ethernet, &frame, frame.len(), Checksums::Verify);
        assert!(unfinished::complete(&mut frame, &headers));
        assert_eq!(sum_of(&frame), 0xffff);
    }
}
