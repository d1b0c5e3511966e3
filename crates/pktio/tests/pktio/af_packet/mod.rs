//! Packet sockets on Ethernet pairs between network namespaces that end with their test. Needs root.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod devices;
mod forwarder;
pub(crate) mod frames;
mod ring;
mod sys;
pub(crate) mod throughput;
mod traffic;
pub(crate) mod transmit;
pub(crate) mod wire;
