//! TUN devices between two stacks of this machine's kernel, in network namespaces that end with their test. Needs root.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod devices;
mod joined;
mod kernel_cut;
mod namespace;
mod sys;
mod traffic;
