//! How many frames one thread forwards between two ports. A measurement, so it runs only when asked for:
//!
//! ```sh
//! cargo test --release -p tamis-pktio --test pktio af_xdp_forwarded -- --ignored --nocapture
//! ```
//!
//! Both ports are on one Ethernet pair, so that frames go round in circles, and the thread does the kernel's work,
//! too: what it forwards in a second is what a frame costs in all.

use std::time::{Duration, Instant};

use pktio::{AfXdpConfig, Burst, FrameMeta, Port, Umem};

use super::port::open;
use crate::af_packet::wire::{Wire, frame};

const RUNS: usize = 5;
const LENGTH: Duration = Duration::from_secs(2);
/// In circles, in each direction.
const FRAMES: u32 = 512;

/// Frames forwarded in a second, as long as this each.
fn measure(length: usize) -> Option<f64> {
    let wire = Wire::new()?;
    let config = AfXdpConfig::new;
    let umem = Umem::new(2 * config("e0").chunks(), 2048).unwrap();
    let mut ports = [
        open(&wire.ours, &config("e0"), &umem).unwrap(),
        open(&wire.theirs, &config("p0"), &umem).unwrap(),
    ];
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
    Some(rate)
}

#[test]
#[ignore = "a measurement"]
fn af_xdp_forwarded() {
    for length in [60, 1514] {
        let runs: Option<Vec<f64>> = (0..RUNS).map(|_| measure(length)).collect();
        let Some(mut rates) = runs else { return };
        rates.sort_by(f64::total_cmp);
        let median = rates[RUNS / 2];
        let each = 1e9 / median;
        println!("{length} bytes: median {median:.0} frames/s, {each:.0} ns each, of {rates:.0?}");
    }
}
