//! How many frames one thread forwards between two ports. A measurement, so it runs only when asked for:
//!
//! ```sh
//! cargo test --release -p tamis-pktio --test pktio forwarded -- --ignored --nocapture
//! ```
//!
//! Both ports are on one Ethernet pair, so that frames go round in circles, and the thread does the kernel's work,
//! too: what it forwards in a second is what a frame costs in all.

use std::time::{Duration, Instant};

use pktio::{AfPacketConfig, Burst, FrameMeta, Port};

use super::wire::{Wire, frame, no_pool, open};

const RUNS: usize = 5;
const LENGTH: Duration = Duration::from_secs(2);
/// In circles, in each direction: more than fill a block, or it waits for its time-out; fewer than fill the ring.
const FRAMES: u32 = 512;

/// Frames forwarded in a second, as long as this each.
fn measure(length: usize) -> Option<f64> {
    let wire = Wire::new()?;
    let config = |name| AfPacketConfig { block_bytes: 32 * 1024, ..AfPacketConfig::new(name) };
    let near = wire.port(&config("e0"), &no_pool());
    let far = open(&wire.theirs, &config("p0"), &no_pool()).unwrap();
    Some(in_circles([near, far], length))
}

/// Frames of this length that go round between two ports in a second.
pub(crate) fn in_circles(mut ports: [impl Port; 2], length: usize) -> f64 {
    let mut burst = Burst::new();
    for port in &mut ports {
        (0..FRAMES).for_each(|count| burst.push(&frame(count, length), FrameMeta::default()));
        while !burst.is_empty() {
            port.tx_burst(&mut burst).unwrap();
        }
    }
    let (began, mut forwarded) = (Instant::now(), 0);
    while began.elapsed() < LENGTH {
        for from in 0..2 {
            forwarded += ports[from].rx_burst(&mut burst).unwrap();
            while !burst.is_empty() {
                ports[1 - from].tx_burst(&mut burst).unwrap();
            }
        }
    }
    let rate = forwarded as f64 / began.elapsed().as_secs_f64();
    ports.iter().for_each(|port| assert_eq!(port.stats().rx_lost, 0));
    rate
}

/// Measures with short frames and long ones, and prints what came out.
pub(crate) fn tell(measure: impl Fn(usize) -> Option<f64>) {
    for length in [60, 1514] {
        let runs: Option<Vec<f64>> = (0..RUNS).map(|_| measure(length)).collect();
        let Some(mut rates) = runs else { return };
        rates.sort_by(f64::total_cmp);
        let median = rates[RUNS / 2];
        let each = 1e9 / median;
        println!("{length} bytes: median {median:.0} frames/s, {each:.0} ns each, of {rates:.0?}");
    }
}

#[test]
#[ignore = "a measurement"]
fn forwarded() {
    tell(measure);
}
