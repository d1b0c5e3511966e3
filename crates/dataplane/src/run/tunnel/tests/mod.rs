//! Two ends of a tunnel, their ports and workers, over the loopback device: what is sent is what comes.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod ends;
mod hostile;
mod live;
mod memory;
mod narrow;
mod own;
mod packets;
mod passing;
mod told;
mod waiting;
