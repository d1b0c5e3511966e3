//! Two ends and more of the overlay, under a clock of the tests' own.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod allocation;
mod audit;
mod cost;
mod ends;
mod handshakes;
mod hostile;
mod lossy;
mod restarts;
mod sessions;
mod workers;
