//! UDP sockets in batches: over loopback, and as root between network namespaces.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod end;
mod loopback;
mod paths;
mod senders;
mod throughput;
