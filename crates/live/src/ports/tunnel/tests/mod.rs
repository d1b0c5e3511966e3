//! Two ends of a tunnel, their ports and workers, over the loopback device: what is sent is what comes.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod ends;
#[cfg(target_os = "linux")]
mod forged;
mod hostile;
mod live;
mod memory;
#[cfg(target_os = "linux")]
pub(crate) mod namespace;
mod narrow;
mod own;
mod packets;
#[cfg(target_os = "linux")]
mod partial;
mod passing;
mod told;
mod waiting;
