//! Ports over DPDK's virtual devices. The EAL starts once in a process, so each of these tests runs in one of its own:
//! the test program again, for that test alone. Needs root, for the EAL's folder; no huge pages.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[cfg(dpdk)]
mod child;
#[cfg(dpdk)]
mod net_null;
#[cfg(dpdk)]
mod net_pcap;
#[cfg(dpdk)]
mod net_ring;
#[cfg(dpdk)]
mod veth;

#[cfg(not(dpdk))]
#[test]
fn without_dpdk_the_eal_says_how_to_get_it() {
    println!("SKIPPED: built without DPDK (libdpdk-dev, as root: make deps)");
    let refused = pktio_dpdk::Eal::init("tamis", &[]).unwrap_err().to_string();
    assert!(refused.contains("apt-get install libdpdk-dev"), "{refused}");
}
