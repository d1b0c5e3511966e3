//! A datagram's way allocates nothing, nor does the way of a useless datagram.

use allocation_counter::measure;
use tunnel::{Content, HEADROOM, Received, Staged, TAILROOM};

use crate::ends::*;

#[test]
fn a_packet_allocates_nothing_on_its_way() {
    let mut pair = Pair::established();
    let sent = Pair::packet(1, 1);
    let mut buffer = [vec![0; HEADROOM], sent.clone(), vec![0; TAILROOM]].concat();
    let allocated = measure(|| {
        let Staged::Seal(sealing) = pair.a.stage(&sent, pair.now) else { panic!("waits") };
        let sealed = sealing.seal(&mut buffer, HEADROOM..HEADROOM + sent.len()).unwrap();
        let datagram = &mut buffer[sealed];
        let Received::Opening(opening) = pair.b.receive(datagram, place(1), pair.now) else {
            panic!("not staged")
        };
        let opened = opening.open(datagram).unwrap();
        let delivered = pair.b.release(opened, datagram, pair.now).unwrap();
        assert_eq!(delivered.content, Ok(Content::Packet(16..16 + sent.len())));
    });
    assert_eq!(allocated.count_total, 0);
}

#[test]
fn a_datagram_that_comes_to_nothing_allocates_nothing() {
    let mut pair = Pair::established();
    let (_, data) = send(&mut pair.a, &Pair::packet(1, 1), pair.now).unwrap();
    let mut unknown = data.clone();
    unknown[5] ^= 1;
    let mut bad_mac = [0; tunnel::message::INITIATION];
    bad_mac[..4].copy_from_slice(&[0x81, 1, 0, 0]);
    let allocated = measure(|| {
        for datagram in [&unknown[..], &bad_mac, b"noise"] {
            let came = pair.b.receive(datagram, place(9), pair.now);
            assert!(matches!(came, Received::Dropped(_)));
        }
    });
    assert_eq!(allocated.count_total, 0);
}
