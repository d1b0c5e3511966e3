//! AF_XDP on Ethernet pairs between network namespaces that end with their test. Needs root.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod attach;
mod checksums;
mod frames;
mod port;
mod rings;
mod throughput;
mod transmit;
