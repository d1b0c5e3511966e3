//! Packet sockets on Ethernet pairs between network namespaces that end with their test. Needs root.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod devices;
mod forwarder;
mod frames;
mod ring;
mod sys;
mod throughput;
mod traffic;
mod transmit;
pub(crate) mod wire;
