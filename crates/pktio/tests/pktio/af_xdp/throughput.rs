//! How many frames one thread forwards between two ports. A measurement, so it runs only when asked for:
//!
//! ```sh
//! cargo test --release -p tamis-pktio --test pktio af_xdp_forwarded -- --ignored --nocapture
//! ```
//!
//! Both ports are on one Ethernet pair, so that frames go round in circles, and the thread does the kernel's work,
//! too: what it forwards in a second is what a frame costs in all.

use pktio::{AfXdpConfig, Umem};

use super::port::open;
use crate::af_packet::throughput::{in_circles, tell};
use crate::af_packet::wire::Wire;

/// Frames forwarded in a second, as long as this each.
fn measure(length: usize) -> Option<f64> {
    let wire = Wire::new()?;
    let config = AfXdpConfig::new;
    let umem = Umem::new(2 * config("e0").chunks(), 2048).unwrap();
    let near = open(&wire.ours, &config("e0"), &umem).unwrap();
    let far = open(&wire.theirs, &config("p0"), &umem).unwrap();
    Some(in_circles([near, far], length))
}

#[test]
#[ignore = "a measurement"]
fn af_xdp_forwarded() {
    tell(measure);
}
