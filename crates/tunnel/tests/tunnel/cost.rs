//! What hostile datagrams cost, printed: `cargo test --release -p tamis-tunnel --test tunnel cost -- --ignored
//! --nocapture`. Nothing here fails by being slow.

use std::hint::black_box;
use std::time::Instant;

use tunnel::message::INITIATION;
use tunnel::{HEADROOM, Received, Staged, TAILROOM};

use crate::ends::*;

/// Nanoseconds of one, in the best of twenty rounds of 20,000.
fn nanoseconds(mut one: impl FnMut()) -> f64 {
    let round = |one: &mut dyn FnMut()| {
        let began = Instant::now();
        (0..20_000).for_each(|_| one());
        began.elapsed().as_nanos() as f64 / 20_000.0
    };
    (0..20).map(|_| round(&mut one)).fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "a measurement"]
fn cost_of_datagrams() {
    let mut pair = Pair::established();
    let mut bad_mac = [7; INITIATION];
    bad_mac[..4].copy_from_slice(&[0x81, 1, 0, 0]);
    let (_, data) = send(&mut pair.a, &packet(address(1), address(2), 1, 1_420), pair.now).unwrap();
    let mut unknown = data.clone();
    unknown[5] ^= 1;
    take(&mut pair.b, &data, place(1), pair.now);
    for (name, datagram) in
        [("bad mac1", &bad_mac[..]), ("unknown index", &unknown), ("replayed", &data)]
    {
        let cost = nanoseconds(|| {
            let came = pair.b.receive(black_box(datagram), place(9), pair.now);
            assert!(matches!(came, Received::Dropped(_)));
        });
        println!("{name}: {cost:.0} ns");
    }
    for len in [200, 1_420] {
        let sent = packet(address(1), address(2), 1, len);
        let mut buffer = [vec![0; HEADROOM], sent.clone(), vec![0; TAILROOM]].concat();
        let cost = nanoseconds(|| {
            let Staged::Seal(sealing) = pair.a.stage(&sent, pair.now) else { panic!("waits") };
            let sealed = sealing.seal(&mut buffer, HEADROOM..HEADROOM + len).unwrap();
            let datagram = &mut buffer[sealed];
            let Received::Opening(opening) = pair.b.receive(datagram, place(1), pair.now) else {
                panic!("not staged")
            };
            let opened = opening.open(datagram).unwrap();
            black_box(pair.b.release(opened, datagram, pair.now).unwrap());
            buffer[HEADROOM..HEADROOM + len].copy_from_slice(&sent);
        });
        println!("staged, sealed, received, opened and released, {len} bytes: {cost:.0} ns");
    }
}
