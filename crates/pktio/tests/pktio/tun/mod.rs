//! TUN devices between two stacks of this machine's kernel, in network namespaces that end with their test. Needs
//! root.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod devices;
mod joined;
mod kernel_cut;
pub(crate) mod namespace;
pub(crate) mod sys;
mod throughput;
pub(crate) mod traffic;
